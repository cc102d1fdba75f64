// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/tokenizers/mini"
)

// TestRestart replaces an engine by another one at the same address, which gets no requests if it contradicts the
// configuration.
func TestRestart(t *testing.T) {
	same := vllm.Options{Model: "m"}
	for name, tt := range map[string]struct {
		other    vllm.Options
		tokenize func(w http.ResponseWriter)
		want     string
	}{
		"block size": {vllm.Options{Model: "m", BlockSize: 32}, nil, "have 32 tokens, -block-size is 16"},
		"model":      {vllm.Options{Model: "n"}, nil, "serves n, not m"},
		"window":     {vllm.Options{Model: "m", MaxModelLen: 4096}, nil, "takes 4096 tokens of prompt and output, -max-model-len is 131072"},
		"tokenizer": {same, func(w http.ResponseWriter) { json.NewEncoder(w).Encode(map[string]any{"tokens": []int{1, 2}}) },
			"differs from the tokenizer of the engine"},
		"key": {same, func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }, "does not accept the key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			addr := l.Addr().String()
			// serve starts an engine and returns a function that ends it.
			serve := func(l net.Listener, o vllm.Options, other func(w http.ResponseWriter)) (end func()) {
				e := vllm.New(mini.Load(), &o)
				s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if other != nil && (name == "key" || r.URL.Path == "/tokenize") {
						other(w)
						return
					}
					e.ServeHTTP(w, r)
				})}
				done := make(chan struct{})
				go func() {
					defer close(done)
					s.Serve(l)
				}()
				return func() { s.Close(); <-done; e.Close() }
			}
			restart := func(o vllm.Options, other func(w http.ResponseWriter)) (end func()) {
				l, err := net.Listen("tcp", addr)
				require.NoError(t, err)
				return serve(l, o, other)
			}
			end := serve(l, same, nil)
			c, err := parse([]string{"-engine", "http://" + addr, "-tool-call-parser", "hermes", "-health-interval", "0.05"}, io.Discard)
			require.NoError(t, err)
			p := &program{log: slog.New(slog.DiscardHandler), metrics: newMetrics()}
			g, err := p.start(t.Context(), c)
			require.NoError(t, err)
			defer g.stop()
			get := func(path string) (int, string) {
				w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
				r.RemoteAddr = "127.0.0.1:1"
				g.gateway.ServeHTTP(w, r)
				return w.Code, w.Body.String()
			}
			ask := func() int {
				w := httptest.NewRecorder()
				g.gateway.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"x"}]}`)))
				return w.Code
			}
			require.Equal(t, 200, ask())
			end()
			require.Equal(t, 502, ask())
			end = restart(tt.other, tt.tokenize)
			require.Contains(t, []int{502, 503}, ask(), "503 if it was asked already")
			require.Equal(t, 503, ask())
			status, body := get("/ready")
			require.Equal(t, 503, status)
			require.Contains(t, body, tt.want)
			_, series := get("/metrics")
			require.Contains(t, series, `weft_worker_contradiction{model="m",reason="the engine contradicts the configuration: `)
			require.Contains(t, series, tt.want)
			end()
			end = restart(same, nil)
			defer func() { end() }()
			require.Eventually(t, func() bool {
				status, _ := get("/ready")
				return status == 200
			}, 20*time.Second, 20*time.Millisecond)
			require.Equal(t, 200, ask())
			_, series = get("/metrics")
			require.NotContains(t, series, "weft_worker_contradiction{")
		})
	}
}
