// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTraces checks that the variables of OpenTelemetry turn tracing on, that the trace of a client reaches the engine, and
// that spans contain nothing of requests and responses.
func TestTraces(t *testing.T) {
	const trace = "0af7651916cd43dd8448eb211c80319c"
	var mu sync.Mutex
	var spans, parents strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		io.Copy(&spans, r.Body)
	}))
	defer collector.Close()
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // it does not tell what it serves
			w.WriteHeader(map[bool]int{true: 200, false: 404}[r.URL.Path == "/health"])
			return
		}
		mu.Lock()
		fmt.Fprintln(&parents, r.Header.Get("Traceparent"))
		mu.Unlock()
		fmt.Fprint(w, `data: {"choices":[{"index":0,"text":"secret-output","finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	defer engine.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	addr, cancel, ended := startProgram(t, io.Discard, io.Discard, "-listen", "127.0.0.1:0", "-model", "m", "-engine", "vllm="+engine.URL, "-tool-call-parser", "hermes")
	defer http.DefaultClient.CloseIdleConnections()
	for path, want := range map[string]int{"/v1/chat/completions": 200, "/v1/messages": 200, "/v1/responses": 400} { // messages is not a field of Responses
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+path,
			strings.NewReader(`{"model":"secret-name","max_tokens":9,"messages":[{"role":"user","content":"secret-prompt"}]}`))
		require.NoError(t, err)
		r.Header.Set("Traceparent", "00-"+trace+"-b7ad6b7169203331-01")
		r.Header.Set("X-Request-Id", "secret-id")
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, want, resp.StatusCode, path)
	}
	cancel()
	require.NoError(t, <-ended)
	for _, want := range []string{"weft-gateway", "chat m", "prepare", "place", "vllm-0", "POST /v1/completions", "gen_ai.usage.output_tokens", "error.type"} {
		require.Contains(t, spans.String(), want)
	}
	require.NotContains(t, spans.String(), "secret")
	require.Equal(t, 2, strings.Count(parents.String(), "00-"+trace+"-"))
	require.NotContains(t, parents.String(), "b7ad6b7169203331", "the parent of the engine is a span of the gateway")
}
