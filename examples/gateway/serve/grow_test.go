// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
)

// TestPromptsGrow returns a turn with reasoning and two calls to the gateway, as harnesses do. The tokens of the second
// prompt must begin with the first prompt and the model's output, so that the whole cache is reused.
func TestPromptsGrow(t *testing.T) {
	families := map[string]string{
		"hermes": "<think>\nTwo things at once.\n</think>\n\nA look at both.\n" +
			"<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.go\"}}\n</tool_call>\n" +
			"<tool_call>\n{\"name\": \"grep\", \"arguments\": {\"pattern\": \"x+ <b> \\\"é\\\"\"}}\n</tool_call>",
		"qwen3_coder": "<think>\nTwo things at once.\n</think>\n\nA look at both.\n\n" +
			"<tool_call>\n<function=read>\n<parameter=path>\na.go\n</parameter>\n</function>\n</tool_call>\n" +
			"<tool_call>\n<function=grep>\n<parameter=pattern>\nx+ <b> \"é\"\n</parameter>\n</function>\n</tool_call>",
	}
	for family, output := range families {
		// With "compact" the client parses and reprints the arguments, as opencode and pi do.
		for _, name := range []string{"chat", "chat compact", "responses", "responses compact", "messages", "messages compact"} {
			t.Run(family+"/"+name, func(t *testing.T) {
				api, compact, _ := strings.Cut(name, " ")
				a := apiCases[slices.Index([]string{"chat", "responses", "messages"}, api)]
				r := start(t, 2, func(p vllm.Prompt) vllm.Reply {
					if strings.Contains(p.Text, "<tool_response>") {
						return vllm.Reply{Text: "Done."}
					}
					return vllm.Reply{Text: output}
				}, nil)
				body := a.body("Look around.", false)
				header := []string{"X-Weft-Tool-Call-Parser", family}
				status, _, text := send(t, r.url+a.path, body, header...)
				require.Equal(t, 200, status, text)
				if compact != "" {
					text = strings.NewReplacer(`{\"path\": `, `{\"path\":`, `{\"pattern\": `, `{\"pattern\":`,
						`{"path": `, `{"path":`, `{"pattern": `, `{"pattern":`).Replace(text)
				}

				var ans struct {
					Choices []struct{ Message json.RawMessage }
					Output  []json.RawMessage
					Content json.RawMessage
				}
				require.NoError(t, json.Unmarshal([]byte(text), &ans))
				// The ids are in the order of the calls; the results are returned in reverse order, as Claude Code
				// does.
				var ids []string
				key := map[string]string{"chat": `"id":"call_`, "responses": `"call_id":"call_`, "messages": `"id":"call_`}[a.name]
				for _, part := range strings.Split(text, key)[1:] {
					id, _, _ := strings.Cut(part, `"`)
					ids = append(ids, "call_"+id)
				}
				require.Len(t, ids, 2, text)
				switch a.name {
				case "chat":
					body["messages"] = append(body["messages"].([]any), ans.Choices[0].Message,
						object{"role": "tool", "tool_call_id": ids[1], "content": "two"}, object{"role": "tool", "tool_call_id": ids[0], "content": "one"})
				case "responses":
					input := []any{object{"role": "user", "content": body["input"]}}
					for _, item := range ans.Output {
						input = append(input, item)
					}
					body["input"] = append(input, object{"type": "function_call_output", "call_id": ids[1], "output": "two"},
						object{"type": "function_call_output", "call_id": ids[0], "output": "one"})
				case "messages":
					body["messages"] = append(body["messages"].([]any), object{"role": "assistant", "content": ans.Content},
						object{"role": "user", "content": []any{
							object{"type": "tool_result", "tool_use_id": ids[1], "content": "two"},
							object{"type": "tool_result", "tool_use_id": ids[0], "content": "one"}}})
				}
				status, _, text = send(t, r.url+a.path, body, header...)
				require.Equal(t, 200, status, text)
				require.Contains(t, text, "Done.")

				first, second := r.prompts[0], r.prompts[1]
				require.True(t, strings.HasPrefix(second.Text, first.Text+output+"<|im_end|>\n"), "%s\n---\n%s", first.Text, second.Text)
				want := append(first.IDs, tok().AppendEncode(nil, output)...)
				require.Equal(t, want, second.IDs[:len(want)])
				require.Less(t, strings.Index(second.Text, "one"), strings.Index(second.Text, "two\n"), "results stand in the order of the calls")
				recs := r.done(t, 2)
				require.Equal(t, recs[0].Worker, recs[1].Worker)
				require.EqualValues(t, len(want)/16*16, recs[1].Usage.Cached, "all that the engine could keep")
				require.Equal(t, len(want)/16*16, recs[1].Decision.CachedEstimate, "and the router knew")
			})
		}
	}
}

// TestPromptsGrowPastToolSearch checks that a tool that is declared late, and an image, do not change the prompt before
// them.
func TestPromptsGrowPastToolSearch(t *testing.T) {
	const search = "<tool_call>\n{\"name\": \"ToolSearch\", \"arguments\": {\"query\": \"fetch\"}}\n</tool_call>"
	r := start(t, 1, func(p vllm.Prompt) vllm.Reply {
		if strings.Contains(p.Text, "<tool_response>") {
			return vllm.Reply{Text: "<tool_call>\n{\"name\": \"WebFetch\", \"arguments\": {\"url\": \"x\"}}\n</tool_call>"}
		}
		return vllm.Reply{Text: search}
	}, nil)
	tool := func(name string, more ...any) object {
		o := object{"name": name, "input_schema": object{"type": "object"}}
		for i := 0; i < len(more); i += 2 {
			o[more[i].(string)] = more[i+1]
		}
		return o
	}
	body := object{"model": "m", "max_tokens": 200, "messages": []any{object{"role": "user", "content": "Fetch x."}},
		"tools": []any{tool("ToolSearch"), tool("Placeholder", "defer_loading", true), tool("Zip")}}
	status, _, text := send(t, r.url+"/v1/messages", body)
	require.Equal(t, 200, status, text)
	var ans struct{ Content []object }
	require.NoError(t, json.Unmarshal([]byte(text), &ans))
	body["tools"] = []any{tool("ToolSearch"), tool("WebFetch", "defer_loading", true, "description", "fetches"), tool("Placeholder", "defer_loading", true), tool("Zip")}
	body["messages"] = append(body["messages"].([]any), object{"role": "assistant", "content": ans.Content},
		object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": ans.Content[0]["id"], "content": []any{
			object{"type": "tool_reference", "tool_name": "WebFetch"},
			object{"type": "image", "source": object{"type": "base64", "media_type": "image/png", "data": "aWs="}}}}}})
	status, _, text = send(t, r.url+"/v1/messages", body)
	require.Equal(t, 200, status, text)
	require.Contains(t, text, `"name":"WebFetch"`, "a tool that was found can be called")
	first, second := r.prompts[0].Text, r.prompts[1].Text
	require.True(t, strings.HasPrefix(second, first+search+"<|im_end|>\n"), "%s\n---\n%s", first, second)
	require.Contains(t, second[len(first):], `"description":"fetches"`)
	require.Contains(t, second[len(first):], "image left out")
	require.NotContains(t, second, "Placeholder")
}
