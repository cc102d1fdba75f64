// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
)

// original is the content of a block in a form that can be compared across APIs.
type original struct {
	Path string `cmp:"-"`
	Role string
	B    block.Block
}

// flatten lists the blocks of a request in order, nested blocks after their parent.
func flatten(r *block.Request) (list []original) {
	var add func(role string, blocks []block.Block)
	add = func(role string, blocks []block.Block) {
		for _, b := range blocks {
			if b.Kind == block.Instruction { // becomes system text in the other APIs
				add("system", b.Content)
				continue
			}
			if b.Kind == block.Text && b.Text == "" && b.Cache == nil {
				continue // next to calls, many clients write an empty text for absent content
			}
			inner, path := b.Content, b.At.Path()
			b.At, b.Type, b.ID, b.Content = block.Ref{}, "", "", nil
			if b.Cache != nil {
				b.Cache = &block.Cache{TTL: b.Cache.TTL}
			}
			if b.Media != nil && b.Media.MIME == "" && b.Media.Data != "" {
				m := *b.Media
				m.MIME, b.Media = "application/octet-stream", &m // a data: URL has one
			}
			if b.Kind == block.ToolResult {
				b.Name, b.Custom = "", false // implied by the call
			}
			of := role
			switch b.Kind {
			case block.Reasoning, block.ToolCall, block.ToolResult, block.Compaction:
				of = "" // implied by the kind; Responses has no other position for it
			}
			list = append(list, original{path, of, b})
			add(of, inner)
		}
	}
	for _, t := range r.Turns() {
		role := t.Role.String()
		if t.Role == block.RoleTool {
			role = "user" // in the Messages API, results are in user turns
		}
		add(role, t.Blocks)
	}
	return list
}

// hit reports whether the losses name a path, or a path inside or around it.
func hit(losses []block.Loss, path string) bool {
	for _, l := range losses {
		if l.Path == path || strings.HasPrefix(path, l.Path) && l.Path != "" && strings.ContainsAny(path[len(l.Path):][:1], ".[") ||
			strings.HasPrefix(l.Path, path+".") || strings.HasPrefix(l.Path, path+"[") {
			return true
		}
	}
	return false
}

// checkBack converts a request to another API and back, unless the Messages API requires a name that a call lacks. Every block
// that no loss names must be unchanged and at the same position.
func checkBack(t interface {
	Helper()
	Fatalf(string, ...any)
}, from, to api, r *block.Request) {
	t.Helper()
	there, losses, err := to.encode(nil, r, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	mid, err := to.decode(there, nil)
	if nameless(to.api, err) {
		return
	}
	if err != nil {
		t.Fatalf("%v: %s", err, there)
	}
	again, more, err := from.encode(nil, mid, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	back, err := from.decode(again, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, again)
	}
	// The losses of the second conversion have paths in the other body; they must have been reported by the first, or
	// be matters of form.
	var want []original
	for _, s := range flatten(r) {
		if !hit(losses, s.Path) {
			s.Path = ""
			want = append(want, s)
		}
	}
	got := flatten(back)
	for i := range got {
		got[i].Path = ""
	}
	// Blocks that a loss names may return in another form, or not at all. The others must be present, in order. The
	// order is not checked if the second conversion reports that it moves a block.
	moved := slices.ContainsFunc(more, func(l block.Loss) bool { return strings.HasPrefix(l.Why, "the order of") })
	k := 0
	for _, w := range want {
		if moved {
			k = 0
		}
		for k < len(got) && !cmp.Equal(w, got[k], cmp.AllowUnexported(block.Ref{}), cmp.Comparer(func(a, b block.Block) bool { return a.Equal(b) })) {
			k++
		}
		if k == len(got) {
			t.Fatalf("%v to %v and back: lost %s %+v\nlosses %v\nand back %v\n%s\n%s\n%s", from.api, to.api, w.Role, w.B, losses, more, r.Body(), there, again)
		}
		k++
	}
}

func TestConvertRoundTrip(t *testing.T) {
	for _, c := range captures(t) {
		t.Run(c.name, func(t *testing.T) {
			for _, o := range apis {
				r, err := c.api.decode(bytes.Clone(c.body), nil)
				require.NoError(t, err)
				checkBack(t, c.api, o, r)
			}
		})
	}
	for i, body := range []string{chatBody, responsesBody, messagesBody} {
		t.Run("own/"+apis[i].api.String(), func(t *testing.T) {
			for _, o := range apis {
				r, err := apis[i].decode([]byte(body), nil)
				require.NoError(t, err)
				checkBack(t, apis[i], o, r)
			}
		})
	}
}

// TestShapesConvertRoundTrip converts random requests to each API and back.
func TestShapesConvertRoundTrip(t *testing.T) {
	for i, a := range apis {
		t.Run(a.api.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				var turns []any
				for range rapid.IntRange(0, 4).Draw(t, "turns") {
					turns = append(turns, turnShape(t))
				}
				body, err := json.Marshal(map[string]any{[]string{"messages", "input", "messages"}[i]: append([]any{}, turns...)})
				if err != nil {
					t.Fatalf("%v", err)
				}
				r, err := a.decode(body, nil)
				if err != nil {
					return
				}
				for _, o := range apis {
					if o.api != a.api {
						checkBack(t, a, o, r)
					}
				}
			})
		})
	}
}

// TestBridges checks that contents for which an API has no field are encoded in other forms, and that the whole request
// is restored without any loss.
func TestBridges(t *testing.T) {
	reason := func(b block.Block) block.Block { b.Kind = block.Reasoning; return b }
	call := func(id, name, args string) block.Block {
		return block.Block{Kind: block.ToolCall, CallID: id, Name: name, Args: args}
	}
	say := func(s string) block.Block { return block.Block{Kind: block.Text, Text: s} }
	tests := []struct {
		name   string
		to     []int // the APIs that can carry it
		blocks []block.Block
	}{
		{"interleaved reasoning", []int{0, 1, 2}, []block.Block{
			reason(block.Block{Text: "one"}), say("a"), reason(block.Block{Text: "two"}), call("c1", "ls", "{}"),
			reason(block.Block{Text: "three"}), call("c2", "ls", "{}"), reason(block.Block{Text: "four"}),
		}},
		{"text between calls", []int{1, 2}, []block.Block{say("a"), call("c1", "ls", "{}"), say("b"), call("c2", "ls", "{}"), say("c")}},
		{"signature", []int{0, 1, 2}, []block.Block{reason(block.Block{Text: "t", Signature: "c2ln"}), say("a")}},
		{"signature alone", []int{0, 1, 2}, []block.Block{reason(block.Block{Signature: "c2ln"}), say("a")}},
		{"summary", []int{0, 1, 2}, []block.Block{reason(block.Block{Text: "s", Summary: true}), say("a")}},
		{"encrypted", []int{0, 1, 2}, []block.Block{reason(block.Block{Encrypted: "a.b=="}), say("a")}},
		{"summary and encrypted", []int{0, 1, 2}, []block.Block{reason(block.Block{Text: "s", Summary: true, Encrypted: "e"}), say("a")}},
		{"all of it", []int{0, 1, 2}, []block.Block{reason(block.Block{Text: "t", Signature: "s.s", Encrypted: "7.e"}), say("a")}},
		{"redacted", []int{0, 1, 2}, []block.Block{reason(block.Block{Redacted: true, Encrypted: "x"}), reason(block.Block{Text: "t"}), say("a")}},
		{"broken arguments", []int{0, 1, 2}, []block.Block{call("c1", "ls", `{"p": "cut`), call("c2", "ls", `[1]`), call("c3", "ls", `{"a":1,"a":2}`)}},
		{"spaced arguments", []int{0, 1, 2}, []block.Block{call("c1", "ls", `{ "p" : 1.0 }`), call("c2", "ls", ` `)}},
		{"arguments that look like a bridge", []int{0, 1, 2}, []block.Block{call("c1", "ls", `{"x-raw-arguments":"z"}`), call("c2", "ls", `{"x-raw-arguments":"z","b":1}`)}},
		{"ids that are no ids", []int{0, 1, 2}, []block.Block{call("functions.ls:0", "ls", "{}"), call("tc_xA", "ls", "{}"), call("\u00e9 ", "ls", "{}")}},
		{"free text", []int{0, 1, 2}, []block.Block{{Kind: block.ToolCall, Custom: true, CallID: "c1", Name: "patch", Args: "*** Begin\n{\"}"}, call("c2", "ls", `{"input":"x"}`)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, i := range tt.to {
				r := block.NewRequest()
				require.NoError(t, r.SetParams(block.Params{Model: "m", MaxTokens: new(int64)}))
				require.NoError(t, r.SetTools(append(r.Tools(), block.Tool{Name: "ls", Schema: []byte(`{"type":"object"}`), Strict: new(bool)})...))
				require.NoError(t, r.SetTools(append(r.Tools(), block.Tool{Kind: block.CustomTool, Name: "patch", Format: []byte(`{"type":"grammar","syntax":"lark","definition":"start: /x/"}`)})...))
				require.NoError(t, r.Append(block.Turn{Role: block.RoleAssistant, Blocks: tt.blocks}))
				out, losses, err := apis[i].encode(nil, r, &block.EncodeOptions{Strict: true})
				require.NoError(t, err)
				require.Empty(t, losses)
				back, err := apis[i].decode(out, nil)
				require.NoError(t, err)
				ignore := cmp.Comparer(func(a, b block.Block) bool { return a.Equal(b) })
				if d := cmp.Diff(r.Turns()[0].Blocks, back.Turns()[0].Blocks, ignore); d != "" {
					t.Errorf("%v: %s\n%s", apis[i].api, d, out)
				}
				require.Equal(t, block.CustomTool, back.Tools()[1].Kind)
				// Edits of such blocks work, too.
				for _, b := range back.Turns()[0].Blocks {
					if b.Kind != block.Reasoning || b.Text == "" {
						continue
					}
					b.Text = "other"
					require.NoError(t, back.Set(b.At, b))
				}
				edited, err := back.AppendBody(nil)
				require.NoError(t, err)
				want := back.Turns()
				again, err := apis[i].decode(edited, nil)
				require.NoError(t, err)
				if d := cmp.Diff(want[0].Blocks, again.Turns()[0].Blocks, ignore); d != "" {
					t.Errorf("%v edited: %s\n%s", apis[i].api, d, edited)
				}
			}
		})
	}
}

// TestInstructionConverts converts system text inside a user message to the other APIs: it becomes a turn at the same position.
func TestInstructionConverts(t *testing.T) {
	r, err := apis[2].decode([]byte(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"mid_conv_system","content":[{"type":"text","text":"now"}]},{"type":"text","text":"b"}]}]}`), nil)
	require.NoError(t, err)
	require.Equal(t, block.Instruction, r.Turns()[0].Blocks[1].Kind)
	out, losses, err := apis[0].encode(nil, r, nil)
	require.NoError(t, err)
	require.Empty(t, losses)
	require.Equal(t, `{"model":"m","max_completion_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"system","content":"now"},{"role":"user","content":"b"}]}`, string(out))
	out, _, err = apis[1].encode(nil, r, nil)
	require.NoError(t, err)
	require.Contains(t, string(out), `{"type":"message","role":"system","content":[{"type":"input_text","text":"now"}]}`)
}

// TestResultsRoundTrip converts tool results with images, in another order than their calls, to every API and back. They are
// linked to their calls by ID.
func TestResultsRoundTrip(t *testing.T) {
	png := &block.Media{MIME: "image/png", Data: "aGk="}
	results := []block.Block{
		{Kind: block.ToolResult, CallID: "c2", Content: []block.Block{{Kind: block.Text, Text: "second"}, {Kind: block.Image, Media: png}}},
		{Kind: block.ToolResult, CallID: "c1", Content: []block.Block{{Kind: block.Image, Media: png}}},
		{Kind: block.ToolResult, CallID: "c3", Content: text("")},
	}
	r := block.NewRequest()
	require.NoError(t, r.SetParams(block.Params{Model: "m", MaxTokens: new(int64)}))
	require.NoError(t, r.SetTools(append(r.Tools(), block.Tool{Name: "see", Schema: []byte(`{}`), Strict: new(bool), Deferred: true})...))
	require.NoError(t, r.Append(block.Turn{Role: block.RoleDeveloper, Blocks: text("Look.")}))
	require.NoError(t, r.Append(block.Turn{Role: block.RoleAssistant, Blocks: []block.Block{
		{Kind: block.ToolCall, CallID: "c1", Name: "see", Args: "{}"}, {Kind: block.ToolCall, CallID: "c2", Name: "see", Args: "{}"},
		{Kind: block.ToolCall, CallID: "c3", Name: "see", Args: "{}"},
	}}))
	require.NoError(t, r.Append(block.Turn{Role: block.RoleTool, Blocks: results}))
	require.NoError(t, r.Append(block.Turn{Role: block.RoleSystem, Blocks: text("Hurry.")}))
	require.NoError(t, r.Append(block.Turn{Role: block.RoleUser, Blocks: text("And?")}))
	for i, a := range apis {
		out, losses, err := a.encode(nil, r, nil)
		require.NoError(t, err)
		back, err := a.decode(out, nil)
		require.NoError(t, err)
		var got []block.Block
		var system []string
		for _, turn := range back.Turns() {
			for _, b := range turn.Blocks {
				if b.Kind == block.ToolResult {
					got = append(got, b)
				}
			}
			if turn.Role == block.RoleSystem || turn.Role == block.RoleDeveloper {
				system = append(system, turn.Role.String()+" "+turn.Text(""))
			}
		}
		if d := cmp.Diff(results, got, cmp.Comparer(func(a, b block.Block) bool { return a.Equal(b) })); d != "" {
			t.Errorf("%v: %s\n%s", a.api, d, out)
		}
		require.True(t, back.Tools()[0].Deferred, "%v", a.api)
		want := []string{"developer Look.", "system Hurry."}
		if i == 2 { // the only thing that the Messages API cannot express
			want[0] = "system Look."
			require.Len(t, losses, 1)
		} else {
			require.Empty(t, losses)
		}
		require.Equal(t, want, system, "%v", a.api)
	}
}
