// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
)

// TestWrongMethods checks that endpoints refuse methods that they do not have, in the error form of the API, and that HEAD is served
// wherever GET is.
func TestWrongMethods(t *testing.T) {
	r := start(t, 1, say("Hello."), func(o *serve.Options) {
		o.Store = storeOf(1 << 20)
		o.Metrics = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		o.MetricsOpen = true
	})
	_, _, text := send(t, r.url+"/v1/responses", `{"model":"m","input":"x"}`)
	var response struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(text), &response))
	stored := "/v1/responses/" + response.ID
	for path, allow := range map[string]string{
		"/": "GET, HEAD", "/health": "GET, HEAD", "/ready": "GET, HEAD", "/metrics": "GET, HEAD", "/version": "GET, HEAD",
		"/v1/models": "GET, HEAD", "/v1/models/": "GET, HEAD", "/v1/models/m": "GET, HEAD",
		stored + "/input_items": "GET, HEAD", stored: "GET, HEAD, DELETE",
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			resp, _ := do(t, method, r.url+path, "")
			require.Equal(t, 200, resp.StatusCode, path)
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch} {
			resp, body := do(t, method, r.url+path, "")
			require.Equal(t, 405, resp.StatusCode, path)
			require.Equal(t, allow, resp.Header.Get("Allow"), path)
			var e struct {
				Error struct{ Type, Code, Message string }
			}
			require.NoError(t, json.Unmarshal([]byte(body), &e))
			require.Equal(t, "method_not_allowed", e.Error.Code)
			require.Contains(t, e.Error.Message, "Use GET")
		}
	}
	_, text = do(t, http.MethodPost, r.url+"/v1/models", "", "Anthropic-Version", "2023-06-01")
	var claude struct{ Type string }
	require.NoError(t, json.Unmarshal([]byte(text), &claude))
	require.Equal(t, "error", claude.Type)
	resp, _ := do(t, http.MethodHead, r.url+"/v1/responses", "")
	require.Equal(t, "POST", resp.Header.Get("Allow"))
}
