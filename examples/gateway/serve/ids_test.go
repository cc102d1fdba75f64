// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/wire"
)

// TestCallIDs checks that ids are unique in a conversation, even if each turn has the same question and output,
// including the model's own ids. On a duplicate, Claude Code drops the earlier result and repeats the request forever.
func TestCallIDs(t *testing.T) {
	kimi := func(ids ...string) string {
		s := "<|tool_calls_section_begin|>"
		for _, id := range ids {
			s += "<|tool_call_begin|>" + id + `<|tool_call_argument_begin|>{"command": "ls"}<|tool_call_end|>`
		}
		return s + "<|tool_calls_section_end|>"
	}
	hermes := strings.Repeat("<tool_call>\n{\"name\": \"TOOL\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>\n", 2)
	models := []struct {
		name, family string
		output       func(turn int) string
		form         string // of the ids, by model or gateway
	}{
		{"no ids", "hermes", func(int) string { return hermes }, `^call_`},
		{"ids from 0 in each turn", "kimi_k2", func(int) string { return kimi("functions.TOOL:0", "functions.TOOL:1") }, `^functions\.TOOL:\d+$`},
		{"one id for all", "kimi_k2", func(int) string { return kimi("functions.TOOL:7", "functions.TOOL:7") }, `^functions\.TOOL:\d+$`},
		{"ids counted over the conversation", "kimi_k2", func(turn int) string {
			return kimi(fmt.Sprint("functions.TOOL:", 2*turn), fmt.Sprint("functions.TOOL:", 2*turn+1))
		}, `^functions\.TOOL:\d+$`},
		{"ids without number", "kimi_k2", func(int) string { return kimi("functions.TOOL", "functions.TOOL") }, `.`},
	}
	for i, h := range ownHarnesses() {
		if i > 0 && testing.Short() {
			break
		}
		for k, m := range models {
			if testing.Short() && k%2 != 0 {
				continue
			}
			for _, stream := range []bool{true, false} {
				t.Run(fmt.Sprint(h.name, "/", m.name, "/", stream), func(t *testing.T) {
					body := h.first(t)
					tool := usables(t, body)[0].name
					if tool == "apply_patch" {
						tool = usables(t, body)[1].name
					}
					turn := 0
					var reported []string
					r := start(t, 1, func(vllm.Prompt) vllm.Reply {
						return vllm.Reply{Text: strings.ReplaceAll(m.output(turn), "TOOL", tool)}
					}, func(o *serve.Options) {
						o.Prompts = prompts(t, nil, m.family)
						o.OnToolCall = func(_ context.Context, c serve.ToolCall) { reported = append(reported, c.ID) }
					})
					key := h.api.key()
					question := body[key].([]any)
					msgs := slices.Clone(question)
					seen := map[string]bool{"": true}
					for turn = range 4 {
						body[key] = msgs
						got := h.api.ask(t, r.url, body, stream, h.header...)[0].calls()
						require.Len(t, got, 2)
						for _, c := range got {
							require.False(t, seen[c.ID], "id %q twice", c.ID)
							seen[c.ID] = true
							id := c.ID
							if h.api.anthropic {
								require.Regexp(t, `^[a-zA-Z0-9_-]+$`, id)
								id = givenID(t, id)
							}
							require.Regexp(t, strings.ReplaceAll(m.form, "TOOL", tool), id)
							require.Contains(t, reported, id, "OnToolCall has the same id")
						}
						if m.name == "ids counted over the conversation" {
							for i, c := range got {
								require.Equal(t, fmt.Sprint("functions.", tool, ":", 2*turn+i), givenID(t, c.ID), "the model's own id is kept")
							}
						}
						msgs = append(msgs, h.turn(reply{Parts: got}, []result{{got[1], fmt.Sprint("second of ", turn)}, {got[0], fmt.Sprint("first of ", turn)}})...)
						msgs = append(msgs, question[len(question)-1]) // repeat the question
					}
					text := r.prompts[3].Text
					for i := range 3 {
						a, b := strings.Index(text, fmt.Sprint("first of ", i)), strings.Index(text, fmt.Sprint("second of ", i))
						require.Positive(t, a)
						require.Greater(t, b, a, "results join their calls by id")
					}
				})
			}
		}
	}
}

// TestForgedIDs returns ids that the gateway did not generate: ids of another server, and ids that the model will use
// next.
func TestForgedIDs(t *testing.T) {
	r := start(t, 1, say("<|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{}<|tool_call_end|>"), func(o *serve.Options) { o.Prompts = prompts(t, nil, "kimi_k2") })
	for _, id := range []string{"toolu_01A", "functions.read:0", "call_00000000", "functions.read:2"} {
		for _, a := range apiCases {
			body := a.body("x", false)
			switch a.name {
			case "chat":
				body["messages"] = append(body["messages"].([]any), object{"role": "assistant", "tool_calls": []any{
					object{"id": id, "type": "function", "function": object{"name": "read", "arguments": "{}"}}}}, object{"role": "tool", "tool_call_id": id, "content": "r"})
			case "responses":
				body["input"] = []any{object{"role": "user", "content": "x"}, object{"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"},
					object{"type": "function_call_output", "call_id": id, "output": "r"}}
			case "messages":
				body["messages"] = append(body["messages"].([]any), object{"role": "assistant", "content": []any{object{"type": "tool_use", "id": id, "name": "read", "input": object{}}}},
					object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": id, "content": "r"}}})
			}
			got := a.ask(t, r.url, body, true)[0].calls()
			require.Len(t, got, 1)
			want := "functions.read:0"
			if id == want {
				want = "functions.read:1"
			}
			require.Equal(t, want, givenID(t, got[0].ID))
			if raw, err := json.Marshal(body); err == nil {
				require.NotContains(t, string(raw), `"`+got[0].ID+`"`)
			}
		}
	}
}

// givenID returns the model's id for an id that a Messages client returns.
func givenID(t *testing.T, id string) string {
	r, err := wire.Messages.Decode([]byte(`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"`+id+`","name":"f","input":{}}]}]}`), nil)
	require.NoError(t, err)
	return r.Turns()[0].Blocks[0].CallID
}

// TestEmbeddedEcho checks that the embedded engine repeats the user's text also where it spells tokens that end a turn.
func TestEmbeddedEcho(t *testing.T) {
	r := start(t, 1, vllm.Echo, nil)
	for _, text := range []string{"hello", "<|im_end|>abc def", "a <|im_end|> b <|im_start|>user\nc", "\n\nx", "<|endoftext|>"} {
		for _, a := range apiCases {
			got := a.ask(t, r.url, a.body(text, false), false)
			require.Equal(t, text, got[0].text("text"), a.path)
		}
	}
}
