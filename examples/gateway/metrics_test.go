// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
)

// scrape returns the metrics of a gateway, without the process metrics, as the value of each series.
func scrape(t *testing.T, h http.Handler) (series map[string]string, text string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.RemoteAddr = "127.0.0.1:1"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Body.String(), "go_goroutines ")
	series = make(map[string]string)
	for line := range strings.Lines(w.Body.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && strings.HasPrefix(line, "weft_") {
			series[name+"}"] = value
		}
	}
	return series, w.Body.String()
}

// TestMetrics checks the metrics after a few requests, that they contain nothing that clients send and no tenants, and that
// a reload keeps the counts.
func TestMetrics(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	text := `
model: m
tool_call_parser: hermes
engines: [{kind: embedded, url: local, name: one}, {kind: embedded, url: local, name: two}]
tenants: [{name: secret-tenant, keys: [sk-secret]}]
anonymous: true
`
	p := &program{log: slog.New(slog.DiscardHandler), metrics: newMetrics()}
	start := func(text string) *generation {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		c, err := parse([]string{"-config", file}, io.Discard)
		require.NoError(t, err)
		g, err := p.start(t.Context(), c)
		require.NoError(t, err)
		return g
	}
	g := start(text)
	post := func(g *generation, path, body string, header ...string) int {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		g.gateway.ServeHTTP(w, r)
		return w.Code
	}
	question := strings.Repeat("What is secret-text? ", 20)
	chat := fmt.Sprintf(`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":%q}]}`, question)
	for range 2 {
		require.Equal(t, 200, post(g, "/v1/chat/completions", chat, "Authorization", "Bearer sk-secret", "X-Request-Id", "secret-id"))
	}
	require.Equal(t, 200, post(g, "/v1/messages", chat))
	require.Equal(t, 400, post(g, "/v1/messages", `{"secret-field":`))
	require.Equal(t, 401, post(g, "/v1/responses", chat, "X-Api-Key", "sk-secret-wrong"))

	got, all := scrape(t, g.gateway)
	value := func(name string) string {
		t.Helper()
		v, ok := got[name]
		require.True(t, ok, "%s\n%s", name, all)
		return v
	}
	require.Equal(t, "2", value(`weft_requests_total{api="chat",model="m",outcome="length"}`))
	require.Equal(t, "1", value(`weft_requests_total{api="messages",model="m",outcome="length"}`))
	require.Equal(t, "1", value(`weft_requests_total{api="messages",model="m",outcome="invalid"}`))
	require.Equal(t, "1", value(`weft_requests_total{api="responses",model="m",outcome="invalid"}`))
	require.Equal(t, "15", value(`weft_generation_tokens_total{model="m"}`))
	require.Regexp(t, `^[1-9]\d\d+$`, value(`weft_prompt_tokens_total{model="m"}`))
	require.Regexp(t, `^[1-9]\d+$`, value(`weft_prompt_tokens_cached_total{model="m"}`), "of the second request")
	for _, name := range []string{"time_to_first_token_seconds", "request_duration_seconds", "request_queue_seconds", "router_place_seconds", "router_hit_ratio"} {
		require.Equal(t, "3", value("weft_"+name+`_count{model="m"}`), name)
	}
	require.Equal(t, "0", value(`weft_requests_running{model="m"}`))
	require.Equal(t, "0", value(`weft_requests_waiting{model="m"}`))
	for _, w := range []string{"one", "two"} {
		require.Equal(t, "1", value(`weft_worker_up{model="m",worker="`+w+`"}`))
		require.Equal(t, "0", value(`weft_worker_requests_running{model="m",worker="`+w+`"}`))
		require.Equal(t, "0", value(`weft_worker_active_blocks{model="m",worker="`+w+`"}`))
		require.Equal(t, "0", value(`weft_worker_prefill_tokens{model="m",worker="`+w+`"}`))
	}
	require.NotContains(t, all, "secret")

	names := map[string]bool{}
	for s := range got {
		name, _, _ := strings.Cut(s, "{")
		names[regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")] = true
	}
	var list []string
	for name := range names {
		list = append(list, name)
	}
	slices.Sort(list)
	require.Empty(t, cmp.Diff([]string{
		"weft_cache_estimate_errors_total", "weft_generation_tokens_total", "weft_inter_token_latency_seconds", "weft_prompt_tokens_cached_total", "weft_prompt_tokens_total",
		"weft_request_duration_seconds", "weft_request_queue_seconds", "weft_requests_running", "weft_requests_total", "weft_requests_waiting",
		"weft_router_hit_ratio", "weft_router_place_seconds", "weft_time_to_first_token_seconds",
		"weft_worker_active_blocks", "weft_worker_cache_trust", "weft_worker_prefill_tokens", "weft_worker_requests_running", "weft_worker_up",
	}, list))

	for i := range 50 { // clients cannot add series
		post(g, "/v1/messages", strings.Replace(chat, `"m"`, fmt.Sprintf(`"model-%d"`, i), 1), "X-Request-Id", fmt.Sprint(i), "X-Tenant-Id", fmt.Sprint("tenant", i), "User-Agent", fmt.Sprint(i))
		post(g, fmt.Sprintf("/v1/%d", i), chat)
	}
	more, _ := scrape(t, g.gateway)
	require.LessOrEqual(t, len(more), len(got)+1, "one more outcome")

	next := start(strings.Replace(text, "name: two", "name: three", 1))
	defer next.stop()
	require.Equal(t, 200, post(next, "/v1/chat/completions", chat))
	got, all = scrape(t, next.gateway)
	require.Equal(t, "3", value(`weft_requests_total{api="chat",model="m",outcome="length"}`))
	value(`weft_worker_up{model="m",worker="three"}`)
	require.NotContains(t, all, `"two"`)
	g.stop()
	got, _ = scrape(t, next.gateway)
	require.Equal(t, "1", value(`weft_worker_up{model="m",worker="one"}`))
}

// TestMetricsSettings checks that metrics are off and open as configured.
func TestMetricsSettings(t *testing.T) {
	for setting, want := range map[string]int{"off": 404, "open": 200, "local": 401} {
		c, err := parse([]string{"-model", "m", "-engine", "embedded=local", "-tool-call-parser", "hermes", "-metrics", setting}, io.Discard)
		require.NoError(t, err)
		c.Engines[0].Name = "one\xff"
		p := &program{log: slog.New(slog.DiscardHandler), metrics: newMetrics()}
		g, err := p.start(t.Context(), c)
		require.NoError(t, err)
		w := httptest.NewRecorder() // for a request of 192.0.2.1
		g.gateway.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		require.Equal(t, want, w.Code)
		require.Equal(t, want == 200, strings.Contains(w.Body.String(), "worker=\"one\uFFFD\""))
		g.stop()
	}
}

// TestPrefetchMetrics checks the counters of what is computed in advance.
func TestPrefetchMetrics(t *testing.T) {
	m, o := newMetrics(), serve.Options{Model: "m"}
	m.watch(&o)
	o.OnPrefetch(serve.Prefetch{Model: "m", Worker: "one", Outcome: serve.PrefetchDone, Tokens: 320})
	o.OnPrefetch(serve.Prefetch{Model: "m", Worker: "one", Outcome: serve.PrefetchDone, Tokens: 32})
	o.OnPrefetch(serve.Prefetch{Model: "m", Worker: "one", Outcome: serve.PrefetchUsed, Tokens: 304})
	got, all := scrape(t, m.handler(slog.New(slog.DiscardHandler)))
	for name, want := range map[string]string{
		`weft_prefetches_total{model="m",outcome="done"}`: "2", `weft_prefetches_total{model="m",outcome="used"}`: "1",
		`weft_prefetch_tokens_total{model="m",outcome="done"}`: "352", `weft_prefetch_tokens_total{model="m",outcome="used"}`: "304",
	} {
		require.Equal(t, want, got[name], "%s\n%s", name, all)
	}
}
