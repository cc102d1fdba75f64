// SPDX-License-Identifier: Apache-2.0

package vllm

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// stats are the engine's counters, guarded by Engine.mu.
type stats struct {
	running, waiting         int
	prompt, output           int64 // tokens computed or found, tokens generated
	prefixQueries, prefixHit int64 // prompt tokens looked up and found
	finished                 map[string]int64
	firstToken               histogram
}

var firstTokenBounds = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}

// A histogram counts seconds in Prometheus buckets.
type histogram struct {
	bounds []float64
	counts []int64 // one more than bounds
	sum    float64
}

func (h *histogram) observe(d time.Duration) {
	if h.counts == nil {
		h.counts = make([]int64, len(h.bounds)+1)
	}
	i, _ := slices.BinarySearch(h.bounds, d.Seconds())
	h.counts[i]++
	h.sum += d.Seconds()
}

func (s *stats) finish(r *Report) {
	s.output += int64(r.OutputTokens)
	if s.finished == nil {
		s.finished = make(map[string]int64)
	}
	s.finished[r.Finish]++
	if r.FirstToken > 0 {
		s.firstToken.observe(r.FirstToken)
	}
}

// metrics serves GET /metrics in Prometheus' text format, with vLLM's metric names. Durations are modeled time.
func (e *Engine) metrics(w http.ResponseWriter, _ *http.Request) {
	var b []byte
	label := `model_name=` + strconv.Quote(e.opt.Model)
	metric := func(kind, name, help string, v float64, extra string) {
		b = fmt.Appendf(b, "# HELP vllm:%s %s\n# TYPE vllm:%s %s\nvllm:%s{%s%s} %s\n", name, help, name, kind, name, label, extra,
			strconv.FormatFloat(v, 'g', -1, 64))
	}
	e.mu.Lock()
	s := &e.stats
	metric("gauge", "num_requests_running", "Requests that run.", float64(s.running), "")
	metric("gauge", "num_requests_waiting", "Requests that wait for a slot.", float64(s.waiting), "")
	used := 0.0
	if e.cache.capacity > 0 {
		used = float64(len(e.cache.blocks)-e.cache.freeLen) / float64(e.cache.capacity)
	}
	metric("gauge", "kv_cache_usage_perc", "Pinned part of the cache, 1 is all.", used, "")
	metric("gauge", "cache_config_info", "Shape of the cache.", 1,
		fmt.Sprintf(`,block_size="%d",num_gpu_blocks="%d",enable_prefix_caching="True"`, e.opt.BlockSize, e.cache.capacity))
	metric("counter", "prefix_cache_queries_total", "Prompt tokens looked up in the cache.", float64(s.prefixQueries), "")
	metric("counter", "prefix_cache_hits_total", "Prompt tokens found in the cache.", float64(s.prefixHit), "")
	metric("counter", "prompt_tokens_total", "Prompt tokens.", float64(s.prompt), "")
	metric("counter", "generation_tokens_total", "Output tokens.", float64(s.output), "")
	b = append(b, "# HELP vllm:request_success_total Finished requests.\n# TYPE vllm:request_success_total counter\n"...)
	for _, reason := range []string{"stop", "length", "abort", "error"} {
		b = fmt.Appendf(b, "vllm:request_success_total{%s,finished_reason=%q} %d\n", label, reason, s.finished[reason])
	}
	h := &s.firstToken
	b = append(b, "# HELP vllm:time_to_first_token_seconds Modelled time to first token.\n# TYPE vllm:time_to_first_token_seconds histogram\n"...)
	var sum int64
	for i, c := range append(slices.Clone(h.counts), make([]int64, len(h.bounds)+1-len(h.counts))...) {
		le := "+Inf"
		if i < len(h.bounds) {
			le = strconv.FormatFloat(h.bounds[i], 'g', -1, 64)
		}
		sum += c
		b = fmt.Appendf(b, "vllm:time_to_first_token_seconds_bucket{%s,le=%q} %d\n", label, le, sum)
	}
	b = fmt.Appendf(b, "vllm:time_to_first_token_seconds_sum{%s} %g\nvllm:time_to_first_token_seconds_count{%s} %d\n", label, h.sum, label, sum)
	e.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write(b)
}
