// SPDX-License-Identifier: Apache-2.0

package preamble

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/internal/race"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

const head = "x-anthropic-billing-header: cc_version=2.1.330.1ad; cc_entrypoint=sdk-cli;"

func TestLen(t *testing.T) {
	tests := []struct {
		name, text, rest string
	}{
		{"the block as sent", head, ""},
		{"with a trailing newline", head + "\n", ""},
		{"unknown keys", "x-anthropic-billing-header: cc_future=1; x=y;", ""},
		{"an agent's, with a trailing space", head + " cc_is_subagent=true; ", ""},
		{"no semicolon at the end", "x-anthropic-billing-header: a=1; b=2", ""},
		{"a line before text", head + "\nYou are an agent.", "You are an agent."},
		{"glued to text", head + "You are an agent.\nBe kind.", "You are an agent.\nBe kind."},
		{"glued with a blank", head + " You are an agent.", " You are an agent."},
		{"no pairs", "x-anthropic-billing-header: on\nYou are", "You are"},
		{"a quoted value", `x-anthropic-billing-header: a="1; 2"; b=3;` + "\nYou are", "You are"},
		{"a quoted value, glued", `x-anthropic-billing-header: a="x y";You are`, "You are"},
		{"a quote that is not closed", `x-anthropic-billing-header: a=1; b="x y`, ` b="x y`},
		{"an empty value", "x-anthropic-billing-header: a=; b=2;\nYou", "You"},
		{"keys with dots", "x-anthropic-billing-header: cc.version=1; a-b.c=2;\nYou", "You"},
		{"CRLF", head + "\r\nYou", "You"},
		{"several lines", head + "\n" + head + "\n" + head + "\nYou", "You"},
		{"a blank line after the header stays", head + "\n\nYou", "\nYou"},
		{"the last pair lacks its semicolon, in a line", "x-anthropic-billing-header: a=1; b=2\nYou", "You"},
		{"a value with blanks", "x-anthropic-billing-header: cc_version=2; cc_prev_req=a b c; cch=0", ""},
		{"a value with blanks, glued", "x-anthropic-billing-header: cc_workload=a b; cch=0;You are", "You are"},
		{"a known pair lacks its semicolon, glued", "x-anthropic-billing-header: cc_version=2; cch=0 You are; be", " cch=0 You are; be"},
		{"text that assigns, glued", head + "x=1 is one; y=2 is two;", "x=1 is one; y=2 is two;"},
		{"the last pair lacks its semicolon, glued", "x-anthropic-billing-header: a=1; b=2 You are", " b=2 You are"},
		{"no pairs, a long line", "x-anthropic-billing-header: " + strings.Repeat("word ", 200), "x-anthropic-billing-header: " + strings.Repeat("word ", 200)},
		{"not at the start", " " + head, " " + head},
		{"another header", "x-billing: a=1;", "x-billing: a=1;"},
		{"other case", strings.ToUpper(head), strings.ToUpper(head)},
		{"no text", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.rest, tt.text[billingLen(tt.text):]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStabilize(t *testing.T) {
	type decode = func([]byte, *block.Limits) (*block.Request, error)
	h := strings.ReplaceAll(head, "1ad", `1\u0061d`) // spelled with an escape
	tests := []struct {
		name       string
		decode     decode
		body, want string
		off        int64
	}{
		{
			"R1 own block", messages.Decode,
			`{"system":[ {"type":"text","text":"` + h + `"} , {"type":"text", "text":"You"}],"messages":[]}`,
			`{"system":[ {"type":"text", "text":"You"}],"messages":[]}`, 12,
		},
		{
			"R1 the only block", messages.Decode,
			`{"system":[{"type":"text","text":"` + h + `"}],"messages":[]}`, `{"messages":[]}`, 11,
		},
		{
			"R2 line, breakpoint kept", messages.Decode,
			`{"system":[{"text":"` + h + `\nYou \u0061re","type":"text","cache_control":{"type":"ephemeral"}}],"messages":[]}`,
			`{"system":[{"text":"You are","type":"text","cache_control":{"type":"ephemeral"}}],"messages":[]}`, 11,
		},
		{
			"R3 string", messages.Decode,
			`{"messages":[], "system":"` + h + `\nYou", "x":1}`, `{"messages":[], "system":"You", "x":1}`, 25,
		},
		{
			"R3 string, nothing else", messages.Decode,
			`{"system":"` + h + `", "messages":[]}`, `{"messages":[]}`, 10,
		},
		{
			"R3 role system", messages.Decode,
			`{"messages":[{"role":"system","content":"` + h + `\nYou"},{"role":"user","content":"` + h + `"}]}`,
			`{"messages":[{"role":"system","content":"You"},{"role":"user","content":"` + h + `"}]}`, 40,
		},
		{
			"R4 chat system", chat.Decode,
			`{"messages":[{"role":"system","content":"` + h + `\nYou"},{"role":"user","content":"hi"}]}`,
			`{"messages":[{"role":"system","content":"You"},{"role":"user","content":"hi"}]}`, 40,
		},
		{
			"R4 chat, own message", chat.Decode,
			`{"messages":[{"role":"developer","content":"` + h + `"},{"role":"user","content":"hi"}]}`,
			`{"messages":[{"role":"user","content":"hi"}]}`, 43,
		},
		{
			"R4 responses instructions", responses.Decode,
			`{"instructions":"` + h + `\nYou","input":"hi"}`, `{"instructions":"You","input":"hi"}`, 16,
		},
		{
			"R4 responses developer message", responses.Decode,
			`{"input":[{"role":"developer","content":[{"type":"input_text","text":"` + h + `"},{"type":"input_text","text":"You"}]}]}`,
			`{"input":[{"role":"developer","content":[{"type":"input_text","text":"You"}]}]}`, 41,
		},
		{
			"user text stays", messages.Decode,
			`{"messages":[{"role":"user","content":"` + h + `"}]}`, `{"messages":[{"role":"user","content":"` + h + `"}]}`, -1,
		},
		{
			"user text stays, chat", chat.Decode,
			`{"messages":[{"role":"user","content":"` + h + `\nhi"}]}`, `{"messages":[{"role":"user","content":"` + h + `\nhi"}]}`, -1,
		},
		{
			"user text after system text stays", chat.Decode,
			`{"messages":[{"role":"system","content":"You"},{"role":"user","content":[{"type":"text","text":"` + h + `"}]}]}`,
			`{"messages":[{"role":"system","content":"You"},{"role":"user","content":[{"type":"text","text":"` + h + `"}]}]}`, -1,
		},
		{
			"user text stays, responses", responses.Decode,
			`{"input":[{"role":"user","content":"` + h + `"}]}`, `{"input":[{"role":"user","content":"` + h + `"}]}`, -1,
		},
		{
			"user text stays, an input that is a string", responses.Decode,
			`{"input":"` + h + `"}`, `{"input":"` + h + `"}`, -1,
		},
		{
			"tool text stays", chat.Decode,
			`{"messages":[{"role":"tool","tool_call_id":"c","content":"` + h + `"}]}`,
			`{"messages":[{"role":"tool","tool_call_id":"c","content":"` + h + `"}]}`, -1,
		},
		{
			"system text after the start stays", messages.Decode,
			`{"system":"You","messages":[{"role":"user","content":"hi"},{"role":"system","content":"` + h + `"}]}`,
			`{"system":"You","messages":[{"role":"user","content":"hi"},{"role":"system","content":"` + h + `"}]}`, -1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := tt.decode([]byte(tt.body), nil)
			require.NoError(t, err)
			rep, err := Stabilize(r, nil)
			require.NoError(t, err)
			if tt.off < 0 {
				require.Empty(t, rep.Changes)
			} else {
				require.Len(t, rep.Changes, 1)
				require.Equal(t, tt.off, rep.Changes[0].Offset)
				require.True(t, strings.HasPrefix(rep.Changes[0].Text, head))
			}
			out, err := r.AppendBody(nil)
			require.NoError(t, err)
			if diff := cmp.Diff(tt.want, string(out)); diff != "" {
				t.Error(diff)
			}
			again, err := Stabilize(r, nil)
			require.NoError(t, err)
			require.Empty(t, again.Changes, "not idempotent")
		})
	}
}

func TestStabilizeSeveral(t *testing.T) {
	r := block.NewRequest()
	require.NoError(t, r.Append(block.Turn{Role: block.RoleSystem, Blocks: []block.Block{
		{Kind: block.Text, Text: head}, {Kind: block.Text, Text: head + "\n" + head + "\nYou"},
	}}))
	rep, err := Stabilize(r, nil)
	require.NoError(t, err)
	require.Len(t, rep.Changes, 2)
	require.Equal(t, 3*len(head)+2, rep.Bytes())
	require.Equal(t, "You", r.Turns()[0].Text(""))
}

// TestStabilizeCaptures strips recorded requests of Claude Code. Only the first system block may be removed.
func TestStabilizeCaptures(t *testing.T) {
	for _, f := range []string{"A1-001", "A1-003", "B-001"} {
		r := capture(t, "claude-code/"+f)
		body := bytes.Clone(r.Body())
		rep, err := Stabilize(r, nil)
		require.NoError(t, err)
		require.Len(t, rep.Changes, 1)
		x := rep.Changes[0]
		require.True(t, x.whole)
		require.Equal(t, "system[0]", x.Path)
		out, err := r.AppendBody(nil)
		require.NoError(t, err)
		gone := len(body) - len(out)
		want := append(bytes.Clone(body[:x.Offset]), body[int(x.Offset)+gone:]...)
		require.True(t, bytes.Equal(want, out), "bytes outside the block changed")
		require.NotContains(t, string(out[:x.Offset+200]), "x-anthropic-billing-header")
	}
}

// TestHistoryAllocs checks that the next turn needs no memory for each block.
func TestHistoryAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("allocations differ with the race detector")
	}
	var b strings.Builder
	b.WriteString(`{"model":"m","tools":[{"name":"f","input_schema":{}}],"messages":[{"role":"user","content":"hi"}`)
	for i := range 300 {
		fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t%d","name":"f","input":{"a":%d}}]},`+
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"r\n"}]}`, i, i, i)
	}
	r, err := messages.Decode([]byte(b.String()+"]}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var h History
	h.Next(r, nil)
	if n := testing.AllocsPerRun(10, func() { h.Next(r, nil) }); n > 8 {
		t.Errorf("%.0f allocations, want at most 8", n)
	}
}

// TestPieceSums checks that pieces that differ in anything that is in the prompt have different hashes, and that the hash of
// a prefix depends on their order.
func TestPieceSums(t *testing.T) {
	seen := map[uint64]string{}
	var all []uint64
	for _, text := range []string{"", "a", "b", "ab"} {
		for k := range otherSegment + 1 {
			for role := range block.Role(8) {
				for i := range 4 {
					g := segment{kind: k, role: role, opens: i&1 != 0}
					sum, name := g.sum(text, i&2 != 0), fmt.Sprint(text, k, role, i)
					require.Empty(t, seen[sum], name)
					seen[sum] = name
					all = append(all, sum)
				}
			}
		}
	}
	prefixes := map[uint64]bool{}
	for i, a := range all[:200] {
		for k, b := range all[:200] {
			sum := mix(mix(0, a), b)
			require.False(t, prefixes[sum], "%d %d", i, k)
			prefixes[sum] = true
		}
	}
}

// TestHistoryCuts compares a History that recorded earlier requests with one that walks over all of each request, for tools and
// system text that change in all ways.
func TestHistoryCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := []string{"You are an agent.\\n", "Current date: 1\\n", "- Platform: linux\\n", strings.Repeat("word ", 60) + "\\n", strings.Repeat("x", 5000), "\u00e9", "gitStatus: clean\\n"}
		text := func() string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(lines), 0, 8).Draw(t, "text"), "")
		}
		tool := func() string {
			form := rapid.SampledFrom([]string{
				`{"name":%q,"description":"%s","input_schema":{}}`, `{"name":%q, "description": "%s", "input_schema": { "type": "object" }}`,
				`{"name":%q,"description":"%s","input_schema":{},"cache_control":{"type":"ephemeral"}}`, `{"name":%q,"description":"%s","input_schema":{},"defer_loading":true}`,
			}).Draw(t, "form")
			return fmt.Sprintf(form, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"), text())
		}
		var tools []string
		for range rapid.IntRange(0, 5).Draw(t, "tools") {
			tools = append(tools, tool())
		}
		system := []string{text(), text()}
		o := &CompareOptions{Prompt: Prompt{SystemFirst: rapid.Bool().Draw(t, "system first")}}
		edits := rapid.Bool().Draw(t, "edits")
		var history, before History
		for range rapid.IntRange(2, 6).Draw(t, "requests") {
			at := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "at") }
			switch change := rapid.IntRange(0, 5).Draw(t, "change"); {
			case change == 0:
				tools = append(tools, tool())
			case change == 1 && len(tools) > 0:
				tools = slices.Delete(tools, 0, 1)
			case change == 2 && len(tools) > 0:
				tools[at(len(tools))] = tool()
			case change == 3:
				system[at(2)] = text()
			}
			body := `{"model":"m","max_tokens":9,"tools":[` + strings.Join(tools, ",") + `],"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=1; cch=2;"},{"type":"text","text":"s` +
				strings.Join(system, `"},{"type":"text","text":"s`) + `"}],"messages":[{"role":"user","content":"hi"}]}`
			r, err := messages.Decode([]byte(body), nil)
			require.NoError(t, err)
			if edits { // then the turn has no origin
				require.NoError(t, r.Delete(r.Turns()[0].Blocks[0].At))
			}
			before.cuts = nil
			require.Equal(t, before.Next(r, o), history.Next(r, o), body)
			require.Equal(t, before.marks, history.marks)
			require.Equal(t, before.total, history.total)
			require.Equal(t, before.tools, history.tools)
			require.True(t, slices.Equal(before.cuts, history.cuts), body)
			require.LessOrEqual(t, cap(history.cuts), maxCuts)
		}
	})
}
