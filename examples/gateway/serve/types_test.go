// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
)

// TestStateOfWrongType checks that a field that specifies what a request continues, or what becomes of its response, is refused if it
// has a type that the API does not permit, and not treated as absent.
func TestStateOfWrongType(t *testing.T) {
	wrong := map[string][]string{
		"previous_response_id": {`5`, `["a"]`, `true`, `{"id":"x"}`},
		"conversation":         {`5`, `[]`, `true`, `{}`, `{"id":5}`, `{"id":"c"}`, `"c"`}, // this server keeps none
		"store":                {`"true"`, `1`, `{}`},
		"background":           {`"true"`, `0`, `[]`},
	}
	for _, store := range []*serve.Store{nil, storeOf(1 << 20)} {
		r := start(t, 1, say("Hello."), func(o *serve.Options) { o.Store = store })
		c := connect(t, r.url)
		for name, values := range wrong {
			for _, value := range values {
				field := `"` + name + `":` + value + `,"input":"x"`
				for _, path := range []string{"", "/input_tokens", "/compact"} {
					status, _, text := send(t, r.url+"/v1/responses"+path, `{"model":"m",`+field+`}`)
					require.Equal(t, 400, status, field)
					apiCases[1].wantParam(t, status, text, name)
				}
				c.send(field)
				ev := c.wantError(400, "", "")
				require.Equal(t, name, ev["error"].(object)["param"], field)
			}
			field := `"` + name + `":null,"input":"x"`
			status, _, text := send(t, r.url+"/v1/responses", `{"model":"m",`+field+`}`)
			require.Equal(t, 200, status, text)
			c.send(field)
			c.response()
		}
		require.Len(t, r.prompts, 2*len(wrong))
		status, _, text := send(t, r.url+"/v1/messages", `{"model":"m","max_tokens":9,"thread":"t","messages":[{"role":"user","content":"x"}]}`)
		require.Equal(t, 400, status, text)
		require.Contains(t, text, "thread must be an object")
	}
	for _, k := range managedKinds {
		e := newEndpoint(t, playing(k, lengthScene))
		url := managed(t, k, nil, e).url
		for name, values := range wrong {
			status, _, text := send(t, url+"/v1/responses", `{"model":"m","input":"x","`+name+`":`+values[0]+`}`)
			apiCases[1].wantParam(t, status, text, name)
		}
		require.Empty(t, e.paths)
	}
}
