// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
)

// TestToolSearch plays a conversation of Codex 0.169: the model searches for a tool, the client returns it in a namespace, and
// the model calls it. What was found does not change the prompt before it.
func TestToolSearch(t *testing.T) {
	say := func(name, args string) vllm.Reply {
		return vllm.Reply{Text: "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + args + "}\n</tool_call>"}
	}
	const query = `{"query": "note beta", "limit": 2}`
	r := start(t, 1, func(p vllm.Prompt) vllm.Reply {
		switch strings.Count(p.Text, "<tool_response>") {
		case 0:
			return say("tool_search", query)
		case 1:
			return say("note_beta", `{"text": "x"}`)
		}
		return vllm.Reply{Text: "Done."}
	}, nil)
	for _, stream := range []bool{false, true} {
		r.prompts = nil
		items := []string{`{"type":"message","role":"user","content":[{"type":"input_text","text":"Take a note."}]}`}
		ask := func() (output []object, raw []string) {
			t.Helper()
			status, _, text := send(t, r.url+"/v1/responses", fmt.Sprintf(`{"model":"m","stream":%v,"store":false,"input":[%s],"tools":[
				{"type":"tool_search","execution":"client","description":"Searches tools.","parameters":{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"number"}},"required":["query"]}},
				{"type":"function","name":"exec","parameters":{"type":"object"}}]}`, stream, strings.Join(items, ",")))
			require.Equal(t, 200, status, text)
			if stream {
				fs := frames(t, text)
				kinds := ""
				for _, f := range fs {
					kinds += f.typ + " "
				}
				require.Contains(t, kinds, "response.output_item.added ")
				text = fs[len(fs)-1].text
			}
			type body struct{ Output []json.RawMessage }
			var response struct {
				body
				Response body
			}
			require.NoError(t, json.Unmarshal([]byte(text), &response))
			response.Output = append(response.Output, response.Response.Output...)
			for _, o := range response.Output {
				var item object
				require.NoError(t, json.Unmarshal(o, &item))
				output, raw = append(output, item), append(raw, string(o))
			}
			return output, raw
		}
		output, raw := ask()
		require.Len(t, output, 1)
		require.Equal(t, "tool_search_call", output[0]["type"])
		require.Equal(t, "client", output[0]["execution"])
		require.Equal(t, object{"query": "note beta", "limit": 2.0}, output[0]["arguments"])
		require.Contains(t, r.prompts[0].Text, "Searches tools.")

		items = append(append(items, raw...), fmt.Sprintf(`{"type":"tool_search_output","call_id":%q,"status":"completed","execution":"client","tools":[
			{"type":"namespace","name":"mcp__notes","description":"Notes.","tools":[
				{"type":"function","name":"note_beta","description":"Takes a note","strict":false,"defer_loading":true,"parameters":{"type":"object","properties":{"text":{"type":"string"}}}},
				{"type":"function","name":"exec","description":"Runs a note","defer_loading":true,"parameters":{"type":"object"}}]},
			{"type":"custom","name":"free","defer_loading":true}]}`, output[0]["call_id"]))
		output, raw = ask()
		require.Equal(t, "function_call", output[0]["type"])
		require.Equal(t, "mcp__notes", output[0]["namespace"])
		require.Equal(t, "note_beta", output[0]["name"])
		first, second := r.prompts[0].Text, r.prompts[1].Text
		require.True(t, strings.HasPrefix(second, first+"<tool_call>\n{\"name\": \"tool_search\", \"arguments\": "+query+"}\n</tool_call><|im_end|>\n"), "%s\n---\n%s", first, second)
		found := second[len(first):]
		require.Contains(t, found, `Tool note_beta is available now:`)
		require.Contains(t, found, `"description":"Takes a note"`)
		require.Contains(t, found, `Tool mcp__notes__exec is available now:`, "the name is another tool's, too")
		require.Contains(t, found, `Tool free is available now:`)

		items = append(append(items, raw...), fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"noted"}`, output[0]["call_id"]),
			`{"type":"tool_search_call","call_id":"c2","execution":"client","status":"completed","arguments":{"query":"x"}}`,
			`{"type":"tool_search_output","call_id":"c2","execution":"client","status":"completed","tools":[{"type":"custom","name":"free","defer_loading":true}]}`,
			`{"type":"tool_search_call","call_id":"c3","execution":"client","status":"completed","arguments":{"query":"y"}}`,
			`{"type":"tool_search_output","call_id":"c3","execution":"client","status":"completed","tools":[]}`)
		output, _ = ask()
		require.Equal(t, "message", output[0]["type"])
		third := r.prompts[2].Text
		require.True(t, strings.HasPrefix(third, second))
		require.Contains(t, third[len(second):], "Tool free is available now.")
		require.Contains(t, third[len(second):], "No tool was found.")
	}

	// A search that the server of another API runs stays what it was.
	status, _, text := send(t, r.url+"/v1/responses", `{"model":"m","input":"x","tools":[{"type":"tool_search"},{"type":"function","name":"exec","parameters":{"type":"object"}}]}`)
	require.Equal(t, 200, status, text)
	require.NotContains(t, r.prompts[len(r.prompts)-1].Text, "tool_search")
}

// TestToolSearchArguments checks that blank arguments become an object, as the item has one.
func TestToolSearchArguments(t *testing.T) {
	r := start(t, 1, say("<tool_call>\n{\"name\": \"tool_search\"}\n</tool_call>"), nil)
	status, _, text := send(t, r.url+"/v1/responses", `{"model":"m","input":"x","tools":[{"type":"tool_search","execution":"client","parameters":{"type":"object"}}]}`)
	require.Equal(t, 200, status, text)
	require.Contains(t, text, `"execution":"client","arguments":{}}`)
}
