// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/responses"
	"github.com/weft-go/weft/protocols/wire"
)

var (
	reasoningKey, _   = replay.NewSigner([]byte("0123456789abcdef0123456789abcdef"), nil)
	reasoningOther, _ = replay.NewSigner([]byte("fedcba9876543210fedcba9876543210"), nil)
)

func signedBy(c *replay.Signer, text string) string {
	return string(c.AppendSigned(nil, []byte(text)))
}

func sealedBy(c *replay.Signer, text string) string {
	token, ok := c.AppendSealed(nil, []byte(text))
	if !ok {
		panic("too long to be sealed")
	}
	return string(token)
}

// reasoningForms are request bodies of each API with past reasoning. The verbs %s are its text and token as JSON
// strings.
var reasoningForms = []struct {
	name   string
	decode func([]byte, *block.Limits) (*block.Request, error)
	body   func(text, token string) string
}{
	{"messages", messages.Decode, func(text, token string) string {
		return fmt.Sprintf(`{"model":"m", "max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[ {"type":"thinking","thinking":%q,"signature":%q} , {"type":"text","text":"b"}]},{"role":"user","content":"c"}]}`, text, token)
	}},
	{"responses, raw", responses.Decode, func(text, token string) string {
		content := fmt.Sprintf(`[{"type":"reasoning_text","text":%q}]`, text)
		if text == "" {
			content = "null"
		}
		return fmt.Sprintf(`{"model":"m", "input":[{"role":"user","content":"a"},{"type":"reasoning","id":"rs_1","summary":[],"content":%s,"encrypted_content":%q},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`, content, token)
	}},
	{"responses, summary", responses.Decode, func(text, token string) string {
		summary := fmt.Sprintf(`[{"type":"summary_text","text":%q}]`, text)
		if text == "" {
			summary = "[]"
		}
		return fmt.Sprintf(`{"model":"m", "input":[{"role":"user","content":"a"},{"type":"reasoning","summary":%s,"content":null,"encrypted_content":%q},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`, summary, token)
	}},
	{"chat, details", chat.Decode, func(text, token string) string {
		return fmt.Sprintf(`{"model":"m", "messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","reasoning_content":%q,"reasoning_details":[{"type":"reasoning.text","index":0,"text":%q,"signature":%q}]},{"role":"user","content":"c"}]}`, text, text, token)
	}},
	{"chat, encrypted details", chat.Decode, func(text, token string) string {
		entry := ""
		if text != "" {
			entry = fmt.Sprintf(`{"type":"reasoning.summary","index":0,"summary":%q},`, text)
		}
		return fmt.Sprintf(`{"model":"m", "messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","reasoning_details":[%s{"type":"reasoning.encrypted","index":0,"data":%q}]},{"role":"user","content":"c"}]}`, entry, token)
	}},
	{"chat, LiteLLM", chat.Decode, func(text, token string) string {
		if text == "" {
			return fmt.Sprintf(`{"model":"m", "messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","thinking_blocks":[{"type":"redacted_thinking","data":%q}]},{"role":"user","content":"c"}]}`, token)
		}
		return fmt.Sprintf(`{"model":"m", "messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","thinking_blocks":[{"type":"thinking","thinking":%q,"signature":%q}]},{"role":"user","content":"c"}]}`, text, token)
	}},
}

func TestCheckReasoning(t *testing.T) {
	const original, other = "say b", "say c"
	strictly := []replay.Verdict{replay.Unverified, replay.Foreign}
	for _, form := range reasoningForms {
		for _, tc := range []struct {
			name, text, token string
			c                 *replay.Signer
			drop              []replay.Verdict
			verdict           replay.Verdict
			restored, dropped bool
			silent            bool // not reported
			left              string
		}{
			{name: "intact", text: original, token: signedBy(reasoningKey, original), verdict: replay.Intact, silent: true, left: original},
			{name: "intact, strictly", text: original, token: signedBy(reasoningKey, original), drop: strictly, verdict: replay.Intact, silent: true, left: original},
			{name: "sealed", token: sealedBy(reasoningKey, original), verdict: replay.Intact, restored: true, left: original},
			{name: "sealed next to a summary", text: other, token: sealedBy(reasoningKey, original), verdict: replay.Intact, restored: true, left: original},
			{name: "text edited", text: other, token: signedBy(reasoningKey, original), verdict: replay.Forged, dropped: true},
			{name: "token truncated", text: original, token: signedBy(reasoningKey, original)[:30], verdict: replay.Forged, dropped: true},
			{name: "another context", text: original, token: signedBy(reasoningKey.With("t"), original), verdict: replay.Forged, dropped: true},
			{name: "unknown key", text: original, token: signedBy(reasoningOther, original), verdict: replay.Unverified, left: original},
			{name: "unknown key, strictly", text: original, token: signedBy(reasoningOther, original), drop: strictly, verdict: replay.Unverified, dropped: true},
			{name: "unsigned", text: original, token: signedBy(nil, original), verdict: replay.Unverified, left: original},
			{name: "foreign", text: original, token: "EqQBCkYIARgCIkA", silent: true, left: original},
			{name: "foreign, strictly", text: original, token: "EqQBCkYIARgCIkA", drop: strictly, verdict: replay.Foreign, dropped: true},
			{name: "text taken out", token: signedBy(reasoningKey, original), verdict: replay.Absent},
			{name: "text taken out, strictly", token: signedBy(reasoningKey, original), drop: []replay.Verdict{replay.Absent}, verdict: replay.Absent, dropped: true},
		} {
			for _, detached := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/detached=%v", form.name, tc.name, detached), func(t *testing.T) {
					body := form.body(tc.text, tc.token)
					r, err := form.decode([]byte(body), nil)
					require.NoError(t, err)
					path := reasoningOf(t, r)
					var whole []byte
					if detached {
						require.NoError(t, r.Detach())
						path = reasoningOf(t, r)
						whole, err = r.AppendBody(nil)
						require.NoError(t, err)
					}
					found, err := wire.CheckReasoning(r, reasoningKey, tc.drop...)
					require.NoError(t, err)
					if tc.silent {
						require.Empty(t, found)
					} else {
						want := wire.ReasoningCheck{Verdict: tc.verdict, Restored: tc.restored, Dropped: tc.dropped}
						require.Contains(t, found[0].String(), path)
						require.Empty(t, gocmp.Diff([]wire.ReasoningCheck{want}, found, cmpopts.IgnoreUnexported(want)))
					}
					again, err := r.AppendBody(nil)
					require.NoError(t, err)
					if !tc.restored && !tc.dropped {
						if !detached {
							whole = []byte(body)
						}
						require.Equal(t, string(whole), string(again), "byte for byte")
					}
					next, err := form.decode(again, nil)
					require.NoError(t, err, "%s", again)
					require.Empty(t, gocmp.Diff(r.Turns(), next.Turns(), gocmp.Comparer(block.Turn.Equal)), "the request equals its body")
					var left []string
					for _, turn := range next.Turns() {
						for _, b := range turn.Blocks {
							if b.Kind == block.Reasoning && b.Text != "" {
								left = append(left, b.Text)
								require.False(t, tc.restored && b.Summary)
							}
						}
					}
					require.Equal(t, tc.left, strings.Join(left, "|"))
					if tc.restored || tc.dropped {
						require.NotContains(t, string(again), tc.token)
						if tc.left == "" {
							require.NotContains(t, string(again), "say", "nor in the plain text next to it")
						}
					}
					twice, err := wire.CheckReasoning(next, reasoningKey)
					require.NoError(t, err)
					for _, f := range twice {
						require.False(t, f.Restored || f.Dropped, "a second check has nothing to do")
					}
				})
			}
		}
	}
}

// reasoningOf returns the position of the reasoning of a request.
func reasoningOf(t *testing.T, r *block.Request) (path string) {
	n := 0
	for ti, turn := range r.Turns() {
		for bi, b := range turn.Blocks {
			if b.Kind == block.Reasoning {
				path = cmp.Or(b.At.Path(), fmt.Sprintf("turn %d, block %d", ti, bi))
				n++
			}
		}
	}
	require.Equal(t, 1, n)
	return path
}

// TestCheckReasoningAlone checks that a message of forged reasoning only is dropped and that the rest converts to every
// API.
func TestCheckReasoningAlone(t *testing.T) {
	forged := signedBy(reasoningKey, "said")
	for name, body := range map[string]string{
		"messages":     `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"` + forged + `"},{"type":"thinking","thinking":"y","signature":"` + forged + `"}]},{"role":"user","content":"c"}]}`,
		"responses":    `{"model":"m","input":[{"role":"user","content":"a"},{"type":"reasoning","summary":[{"type":"summary_text","text":"x"}],"encrypted_content":"` + forged + `"},{"role":"user","content":"c"}]}`,
		"chat":         `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"reasoning_details":[{"type":"reasoning.text","text":"x","signature":"` + forged + `"}]},{"role":"user","content":"c"}]}`,
		"calls":        `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"reasoning_details":[{"type":"reasoning.text","text":"x","signature":"` + forged + `"}],"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"r"}]}`,
		"all there is": `{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"` + forged + `"}]}]}`,
	} {
		for _, detached := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/detached=%v", name, detached), func(t *testing.T) {
				decode := chat.Decode
				switch {
				case strings.Contains(body, "thinking"):
					decode = messages.Decode
				case strings.Contains(body, `"input"`):
					decode = responses.Decode
				}
				r, err := decode([]byte(body), nil)
				require.NoError(t, err)
				if detached {
					require.NoError(t, r.Detach())
				}
				found, err := wire.CheckReasoning(r, reasoningKey)
				require.NoError(t, err)
				require.NotEmpty(t, found)
				for _, turn := range r.Turns() {
					require.NotEmpty(t, turn.Blocks)
				}
				own, err := r.AppendBody(nil)
				require.NoError(t, err)
				_, err = decode(own, nil)
				require.NoError(t, err, "%s", own)
				for to, encode := range map[string]func([]byte, *block.Request, *block.EncodeOptions) ([]byte, []block.Loss, error){
					"chat": chat.AppendRequest, "messages": messages.AppendRequest, "responses": responses.AppendRequest,
				} {
					out, _, err := encode(nil, r, nil)
					require.NoError(t, err, to)
					require.True(t, json.Valid(out))
					require.NotContains(t, string(out), forged)
				}
			})
		}
	}
}

// TestCheckReasoningBuilt checks a built request and an edited one.
func TestCheckReasoningBuilt(t *testing.T) {
	r := block.NewRequest()
	require.NoError(t, r.Append(block.Turn{Role: block.RoleAssistant, Blocks: []block.Block{
		{Kind: block.Reasoning, Text: "edited", Signature: signedBy(reasoningKey, "said")},
		{Kind: block.Text, Text: "t"},
		{Kind: block.Reasoning, Encrypted: sealedBy(reasoningKey, "hidden")},
	}}))
	found, err := wire.CheckReasoning(r, reasoningKey)
	require.NoError(t, err)
	require.Equal(t, "[turn 0, block 0: forged reasoning dropped turn 0, block 2: intact reasoning restored]", fmt.Sprint(found))
	list := r.Turns()[0].Blocks
	require.Len(t, list, 2)
	require.Equal(t, "hidden", list[1].Text)
	require.Empty(t, list[1].Encrypted)

	r, err = messages.Decode([]byte(reasoningForms[0].body("x", signedBy(reasoningKey, "said"))), nil)
	require.NoError(t, err)
	require.NoError(t, r.SetText(r.Turns()[1].Blocks[0].At, "said"))
	require.NoError(t, r.SetText(r.Turns()[1].Blocks[1].At, "changed"))
	found, err = wire.CheckReasoning(r, reasoningKey)
	require.NoError(t, err)
	require.Empty(t, found, "the edit is what counts")
	body, err := r.AppendBody(nil)
	require.NoError(t, err)
	require.Contains(t, string(body), `"changed"`)
}

// TestCheckReasoningProperties mixes all kinds of reasoning in turns of every API. It checks that the kept blocks are
// in order and that the view matches the body.
func TestCheckReasoningProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var turn block.Turn
		turn.Role = block.RoleAssistant
		var drop []replay.Verdict
		for _, v := range []replay.Verdict{replay.Unverified, replay.Foreign} {
			if rapid.Bool().Draw(rt, v.String()) {
				drop = append(drop, v)
			}
		}
		var want, thoughts, gone []string
		for i := range rapid.IntRange(1, 7).Draw(rt, "blocks") {
			text := fmt.Sprint("text", i)
			b := block.Block{Kind: block.Reasoning, Text: text}
			keep := true
			switch rapid.IntRange(0, 7).Draw(rt, "kind") {
			case 0:
				b = block.Block{Kind: block.Text, Text: text}
			case 1:
				b.Signature = signedBy(reasoningKey, text)
			case 2:
				b.Text, b.Signature = "", sealedBy(reasoningKey, text)
			case 3:
				b.Text, b.Encrypted = "", sealedBy(reasoningKey, text)
			case 4:
				b.Text, b.Encrypted, b.Summary = "short", sealedBy(reasoningKey, text), true
			case 5:
				b.Signature, keep = signedBy(reasoningKey, text+"!"), false
			case 6:
				b.Encrypted, keep = signedBy(reasoningOther, text), !slices.Contains(drop, replay.Unverified)
			case 7:
				keep = !slices.Contains(drop, replay.Foreign)
			}
			if turn.Blocks = append(turn.Blocks, b); keep {
				want = append(want, text)
				if b.Kind == block.Reasoning {
					thoughts = append(thoughts, text)
				}
			} else {
				gone = append(gone, text)
			}
		}
		built := block.NewRequest()
		require.NoError(rt, built.Append(block.Turn{Role: block.RoleUser, Blocks: []block.Block{{Kind: block.Text, Text: "q"}}}))
		require.NoError(rt, built.Append(turn))
		api := rapid.IntRange(0, 2).Draw(rt, "api")
		encode := []func([]byte, *block.Request, *block.EncodeOptions) ([]byte, []block.Loss, error){chat.AppendRequest, messages.AppendRequest, responses.AppendRequest}[api]
		decode := []func([]byte, *block.Limits) (*block.Request, error){chat.Decode, messages.Decode, responses.Decode}[api]
		body, _, err := encode(nil, built, nil)
		require.NoError(rt, err)
		r, err := decode(body, nil)
		require.NoError(rt, err)
		if rapid.Bool().Draw(rt, "detach") {
			require.NoError(rt, r.Detach())
		}
		_, err = wire.CheckReasoning(r, reasoningKey, drop...)
		require.NoError(rt, err, "%s", body)
		again, err := r.AppendBody(nil)
		require.NoError(rt, err)
		next, err := decode(again, nil)
		require.NoError(rt, err, "%s", again)
		var got []string
		for _, t := range next.Turns()[1:] {
			for _, b := range t.Blocks {
				if api != 0 || b.Kind == block.Reasoning { // the order of other parts of a chat message is not checked
					got = append(got, b.Text)
				}
			}
		}
		if api == 0 {
			want = thoughts
		}
		for _, text := range gone {
			require.NotContains(rt, string(again), text, "dropped text must not occur, not even in the plain text")
		}
		require.Equal(rt, fmt.Sprint(want), fmt.Sprint(got), "%s\n%s", body, again)
		require.Empty(rt, gocmp.Diff(r.Turns(), next.Turns(), gocmp.Comparer(block.Turn.Equal)))
	})
}

// TestCheckReasoningHostile checks that the cost is linear in the number of forged blocks. Quadratic cost would take
// minutes.
func TestCheckReasoningHostile(t *testing.T) {
	forged := signedBy(reasoningKey, "said")
	n := 15_000
	switch {
	case testing.Short():
		n = 3_000
	case os.Getenv("WEFT_TEST") == "long":
		n = 30_000
	}
	entry := `{"type":"thinking","thinking":"x","signature":"` + forged + `"},`
	one := `{"max_tokens":1,"messages":[{"role":"assistant","content":[` + strings.Repeat(entry, n) + `{"type":"text","text":"b"}]}]}`
	message := `{"role":"assistant","content":[` + entry + `{"type":"text","text":"b"}]},{"role":"user","content":"c"},`
	many := `{"max_tokens":1,"messages":[` + strings.Repeat(message, n/2) + `{"role":"user","content":"c"}]}`
	for name, body := range map[string]string{"one message": one, "many messages": many} {
		for _, detached := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/detached=%v", name, detached), func(t *testing.T) {
				r, err := messages.Decode([]byte(body), nil)
				require.NoError(t, err)
				if detached {
					require.NoError(t, r.Detach())
				}
				found, err := wire.CheckReasoning(r, reasoningKey)
				require.NoError(t, err)
				require.GreaterOrEqual(t, len(found), n/2)
				out, err := r.AppendBody(nil)
				require.NoError(t, err)
				require.False(t, bytes.Contains(out, []byte("weft3")))
			})
		}
	}
	details := `{"messages":[{"role":"assistant","content":"b","reasoning_content":"x","reasoning_details":[` + strings.TrimSuffix(strings.Repeat(`{"type":"reasoning.text","text":"x","signature":"`+forged+`"},`, 257), ",") + `]}]}`
	r, err := chat.Decode([]byte(details), nil)
	require.NoError(t, err)
	_, err = wire.CheckReasoning(r, reasoningKey)
	require.EqualError(t, err, "messages[0]: too many changes of reasoning in one message (limit: 256 changes of reasoning)")
}

// A client modified one of two thinking blocks.
func ExampleCheckReasoning() {
	signer, err := replay.NewSigner([]byte("32 bytes from a random source..."), nil)
	if err != nil {
		panic(err)
	}
	one, two := signer.AppendSigned(nil, []byte("Look first.")), signer.AppendSigned(nil, []byte("Then ask."))
	r, err := messages.Decode(fmt.Appendf(nil, `{"max_tokens":9,"messages":[{"role":"assistant","content":[
		{"type":"thinking","thinking":"Look first.","signature":%q},
		{"type":"thinking","thinking":"Never ask.","signature":%q},
		{"type":"text","text":"Done."}]}]}`, one, two), nil)
	if err != nil {
		panic(err)
	}
	found, err := wire.CheckReasoning(r, signer)
	fmt.Println(found, err)
	for _, b := range r.Turns()[0].Blocks {
		fmt.Println(b.Kind, b.Text)
	}
	// Output:
	// [messages[0].content[1]: forged reasoning dropped] <nil>
	// reasoning Look first.
	// text Done.
}

// TestCheckReasoningPending checks a request with a pending edit: it becomes the body only if a result needs it.
func TestCheckReasoningPending(t *testing.T) {
	for _, tt := range []struct {
		name, token string
		commits     bool
	}{{"intact", signedBy(reasoningKey, "hm"), false}, {"foreign", "c2ln", false}, {"forged", signedBy(reasoningKey, "other"), true}, {"unverified", signedBy(reasoningOther, "hm"), true}} {
		for _, f := range reasoningForms {
			t.Run(tt.name+"/"+f.name, func(t *testing.T) {
				raw := f.body("hm", tt.token)
				r, err := f.decode([]byte(raw), nil)
				require.NoError(t, err)
				edited, err := f.decode([]byte(strings.Replace(raw, `"a"`, `"edited"`, 1)), nil)
				require.NoError(t, err)
				require.NoError(t, r.SetText(r.Turns()[0].Blocks[0].At, "edited"))
				got, err := wire.CheckReasoning(r, reasoningKey)
				require.NoError(t, err)
				want, err := wire.CheckReasoning(edited, reasoningKey)
				require.NoError(t, err)
				require.Equal(t, fmt.Sprint(want), fmt.Sprint(got))
				require.Equal(t, tt.commits, len(got) > 0)
				require.Equal(t, tt.commits, string(r.Body()) != raw)
				require.True(t, r.Equal(edited))
				a, err := r.AppendBody(nil)
				require.NoError(t, err)
				b, err := edited.AppendBody(nil)
				require.NoError(t, err)
				require.Equal(t, string(b), string(a))
			})
		}
	}
}
