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
	do := func(method, path string, header ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, nil)
		require.NoError(t, err)
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	stored := "/v1/responses/" + response.ID
	for path, allow := range map[string]string{
		"/": "GET, HEAD", "/health": "GET, HEAD", "/ready": "GET, HEAD", "/metrics": "GET, HEAD", "/version": "GET, HEAD",
		"/v1/models": "GET, HEAD", "/v1/models/": "GET, HEAD", "/v1/models/m": "GET, HEAD",
		stored + "/input_items": "GET, HEAD", stored: "GET, HEAD, DELETE",
	} {
		require.Equal(t, 200, do(http.MethodGet, path).StatusCode, path)
		require.Equal(t, 200, do(http.MethodHead, path).StatusCode, path)
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch} {
			resp := do(method, path)
			require.Equal(t, 405, resp.StatusCode, path)
			require.Equal(t, allow, resp.Header.Get("Allow"), path)
			var e struct {
				Error struct{ Type, Code, Message string }
			}
			require.NoError(t, json.NewDecoder(resp.Body).Decode(&e))
			require.Equal(t, "method_not_allowed", e.Error.Code)
			require.Contains(t, e.Error.Message, "Use GET")
		}
	}
	var claude struct{ Type string }
	require.NoError(t, json.NewDecoder(do(http.MethodPost, "/v1/models", "Anthropic-Version", "2023-06-01").Body).Decode(&claude))
	require.Equal(t, "error", claude.Type)
	require.Equal(t, "POST", do(http.MethodHead, "/v1/responses").Header.Get("Allow"))
}
