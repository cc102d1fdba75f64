// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
)

// TestStore checks that a request that names the previous response gets the prompt that the whole conversation would have,
// that other clients cannot name it, and that memory is limited.
func TestStore(t *testing.T) {
	r := start(t, 1, say("<think>\nhm\n</think>\n\nLooking.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.go\"}}\n</tool_call>"), func(o *serve.Options) {
		o.StoreBytes = 8 << 10
		o.Keys = []serve.Key{{Secret: "one", Tenant: "a"}, {Secret: "two", Tenant: "a"}}
	})
	const tools = `"tools":[{"type":"function","name":"read","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}]`
	ask := func(key, fields string) (status int, header string, text string) {
		t.Helper()
		status, h, text := send(t, r.url+"/v1/responses", `{"model":"m",`+tools+`,`+fields+`}`, "Authorization", "Bearer "+key)
		return status, h.Get("X-Weft-Dropped"), text
	}
	type response struct {
		ID       string
		Previous string `json:"previous_response_id"`
		Output   []json.RawMessage
	}
	decode := func(text string, stream bool) (out response) {
		t.Helper()
		if stream {
			fs := frames(t, text)
			raw, err := json.Marshal(fs[len(fs)-1].data["response"])
			require.NoError(t, err)
			text = string(raw)
		}
		require.NoError(t, json.Unmarshal([]byte(text), &out))
		return out
	}
	for _, stream := range []bool{false, true} {
		for _, input := range []string{`"Read a.go."`, `[{"role":"user","content":"Read a.go."}]`} {
			status, dropped, text := ask("one", fmt.Sprintf(`"stream":%t,"store":true,"input":%s`, stream, input))
			require.Equal(t, 200, status, text)
			require.Empty(t, dropped)
			first := decode(text, stream)
			call := first.Output[len(first.Output)-1]
			var id struct {
				Call string `json:"call_id"`
			}
			require.NoError(t, json.Unmarshal(call, &id))
			result := `{"type":"function_call_output","call_id":"` + id.Call + `","output":"package a"}`

			status, _, text = ask("one", fmt.Sprintf(`"stream":%t,"previous_response_id":%q,"input":[%s]`, stream, first.ID, result))
			require.Equal(t, 200, status, text)
			second := decode(text, stream)
			require.Equal(t, first.ID, second.Previous)
			joined := r.prompts[len(r.prompts)-1].Text

			var items []string
			for _, o := range first.Output {
				items = append(items, string(o))
			}
			whole := `[{"role":"user","content":"Read a.go."},` + strings.Join(items, ",") + "," + result
			status, _, text = ask("one", `"store":false,"input":`+whole+`]`)
			require.Equal(t, 200, status, text)
			require.Equal(t, r.prompts[len(r.prompts)-1].Text, joined)

			status, _, text = ask("one", fmt.Sprintf(`"previous_response_id":%q,"input":"And now?"`, second.ID))
			require.Equal(t, 200, status, text)
			require.Contains(t, r.prompts[len(r.prompts)-1].Text, "package a")

			status, _, text = ask("two", fmt.Sprintf(`"previous_response_id":%q,"input":"x"`, first.ID))
			apiCases[1].wantError(t, status, text, 400, "invalid_request_error", "not found")
			require.Contains(t, text, "previous_response_not_found")
			status, _, text = ask("one", fmt.Sprintf(`"store":false,"previous_response_id":%q,"input":"x"`, first.ID))
			require.Equal(t, 200, status, text)
			status, _, text = ask("one", fmt.Sprintf(`"previous_response_id":%q,"input":"x"`, decode(text, false).ID))
			require.Equal(t, 400, status, "store was false")
			require.Contains(t, text, "not found")
		}
	}
	_, _, text := ask("one", `"input":"x"`)
	first := decode(text, false)
	for range 8 {
		ask("one", `"input":"`+strings.Repeat("word ", 200)+`"`)
	}
	status, _, text := ask("one", fmt.Sprintf(`"previous_response_id":%q,"input":"x"`, first.ID))
	require.Equal(t, 400, status, "it was not used for longest")
	require.Contains(t, text, "not found")
}
