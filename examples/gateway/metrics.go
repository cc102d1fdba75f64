// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/apierr"
)

// metrics holds the metrics of the program for Prometheus. Their labels are names of the configuration, constants, and what
// engines report of themselves: never tenants, keys or what clients send. It is safe for concurrent use by multiple goroutines.
//
// Names, apart from the prefix weft, and buckets follow other serving systems where they have such a metric.
type metrics struct {
	registry *prometheus.Registry

	requests    *prometheus.CounterVec // by model, api, outcome
	prompt      *prometheus.CounterVec // by model, as are the others
	cached      *prometheus.CounterVec
	generated   *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	firstToken  *prometheus.HistogramVec
	betweenEach *prometheus.HistogramVec
	queue       *prometheus.HistogramVec
	place       *prometheus.HistogramVec
	hits        *prometheus.HistogramVec
	misjudged   *prometheus.CounterVec // by model, direction
	prefetches  *prometheus.CounterVec // by model, outcome
	prefetched  *prometheus.CounterVec // by model, outcome

	mu   sync.Mutex
	live []*generation // the current one last
}

// Descriptions of what is read from the gateways.
var (
	runningDesc = prometheus.NewDesc("weft_requests_running", "Requests that were placed on an engine.", []string{"model"}, nil)
	waitingDesc = prometheus.NewDesc("weft_requests_waiting", "Requests that wait for an engine.", []string{"model"}, nil)

	workerRunningDesc = prometheus.NewDesc("weft_worker_requests_running", "Requests that were placed on the engine.", []string{"model", "worker"}, nil)
	workerBlocksDesc  = prometheus.NewDesc("weft_worker_active_blocks", "KV blocks of the engine's requests, expected output included, as the router knows them.", []string{"model", "worker"}, nil)
	workerPrefillDesc = prometheus.NewDesc("weft_worker_prefill_tokens", "Prompt tokens that the engine must compute before the first tokens of its requests, as the router knows them.", []string{"model", "worker"}, nil)
	workerTrustDesc   = prometheus.NewDesc("weft_worker_cache_trust", "Part of the prompt tokens estimated as cached that the engine, by its reports, has cached.", []string{"model", "worker"}, nil)
	contradictionDesc = prometheus.NewDesc("weft_worker_contradiction", "1 for an engine that is not what the gateway is configured for, with both sides as the reason.", []string{"model", "worker", "reason"}, nil)
	workerUpDesc      = prometheus.NewDesc("weft_worker_up", "Whether the engine is in rotation (1) or ejected because it failed (0).", []string{"model", "worker"}, nil)
)

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	count := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weft_" + name, Help: help}, append([]string{"model"}, labels...))
		m.registry.MustRegister(c)
		return c
	}
	observe := func(name, help string, buckets ...float64) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "weft_" + name, Help: help, Buckets: buckets}, []string{"model"})
		m.registry.MustRegister(h)
		return h
	}
	m.requests = count("requests_total", "Requests that ended, by API and finish reason or class of the error.", "api", "outcome")
	m.prompt = count("prompt_tokens_total", "Prompt tokens of requests that were placed on an engine, cached ones included.")
	m.cached = count("prompt_tokens_cached_total", "Prompt tokens that engines reported as cached.")
	m.misjudged = count("cache_estimate_errors_total", "Requests of which the engine had fewer or more prompt tokens cached than estimated, by more than a cache block.", "direction")
	m.generated = count("generation_tokens_total", "Output tokens.")
	m.prefetches = count("prefetches_total", "Known parts of next prompts that were to be computed in advance, by outcome, and again if they were used.", "outcome")
	m.prefetched = count("prefetch_tokens_total", "Their tokens that the engine did not have. Those that are done and not used later were computed in vain.", "outcome")
	m.duration = observe("request_duration_seconds", "Time from the start of a request to the end of its response.",
		.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
	m.firstToken = observe("time_to_first_token_seconds", "Time from the start of a request to the first output of its engine.",
		.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560)
	m.betweenEach = observe("inter_token_latency_seconds", "Time between output tokens of a request's first choice; tokens that arrive together share it evenly.",
		.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
	m.queue = observe("request_queue_seconds", "Time for which a request waited for an engine with room.",
		.001, .005, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60)
	m.place = observe("router_place_seconds", "Time in which the router chose an engine.",
		.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1)
	m.hits = observe("router_hit_ratio", "Part of a prompt that the chosen engine has cached, as the router estimates it.",
		0, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1)
	m.registry.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// handler serves the metrics.
func (m *metrics) handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)})
}

// perModel holds the metrics of one model.
type perModel struct {
	prompt, cached, generated, fewer, more                prometheus.Counter
	duration, firstToken, betweenEach, queue, place, hits prometheus.Observer
}

// watch sets the functions of o that count the requests of a gateway.
func (m *metrics) watch(o *serve.Options) {
	of := map[string]*perModel{}
	for _, model := range modelNames(o) {
		of[model] = &perModel{
			prompt: m.prompt.WithLabelValues(model), cached: m.cached.WithLabelValues(model), generated: m.generated.WithLabelValues(model),
			duration: m.duration.WithLabelValues(model), firstToken: m.firstToken.WithLabelValues(model), betweenEach: m.betweenEach.WithLabelValues(model),
			queue: m.queue.WithLabelValues(model), place: m.place.WithLabelValues(model), hits: m.hits.WithLabelValues(model),
			fewer: m.misjudged.WithLabelValues(model, "fewer"), more: m.misjudged.WithLabelValues(model, "more"),
		}
	}
	o.OnDone = func(r serve.Record) {
		m.requests.WithLabelValues(r.Model, r.API, r.Finish).Inc()
		p := of[r.Model]
		p.duration.Observe(r.Total.Seconds())
		if r.FirstByte > 0 {
			p.firstToken.Observe(r.FirstByte.Seconds())
		}
		p.queue.Observe(r.Queued.Seconds())
		p.place.Observe(r.Placing.Seconds())
		p.prompt.Add(float64(r.Usage.Prompt))
		p.generated.Add(float64(r.Usage.Output))
		if r.Usage.Prompt > 0 {
			p.hits.Observe(float64(r.Decision.CachedEstimate) / float64(r.Usage.Prompt))
		}
		if !r.Usage.CachedEstimated {
			p.cached.Add(float64(r.Usage.Cached))
		}
		switch {
		case r.CacheExcess < 0:
			p.fewer.Inc()
		case r.CacheExcess > 0:
			p.more.Inc()
		}
	}
	o.OnRefuse = func(model, api string, err *apierr.Error) {
		m.requests.WithLabelValues(model, api, err.Why.String()).Inc()
	}
	o.OnPrefetch = func(p serve.Prefetch) {
		m.prefetches.WithLabelValues(p.Model, p.Outcome).Inc()
		m.prefetched.WithLabelValues(p.Model, p.Outcome).Add(float64(p.Tokens))
	}
	o.OnOutput = func(model string, tokens int, took time.Duration) {
		each, between := took.Seconds()/float64(tokens), of[model].betweenEach
		for range tokens {
			between.Observe(each)
		}
	}
}

// modelNames returns the names of the models in o.
func modelNames(o *serve.Options) []string {
	names := []string{o.Model}
	for _, m := range o.More {
		names = append(names, m.Name)
	}
	return names
}

// add adds a generation, whose engines are then among the metrics until remove.
func (m *metrics) add(g *generation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live = append(m.live, g)
}

// remove removes a generation.
func (m *metrics) remove(g *generation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, l := range m.live {
		if l == g {
			m.live = append(m.live[:i:i], m.live[i+1:]...)
			return
		}
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{runningDesc, waitingDesc, workerRunningDesc, workerBlocksDesc, workerPrefillDesc, workerTrustDesc, workerUpDesc, contradictionDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. While a generation ends after a reload, its requests count too.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	type worker struct{ model, name string }
	models, workers := make(map[string]serve.Status), make(map[worker]serve.WorkerStatus)
	for i, g := range m.live {
		for _, model := range g.models {
			s := g.gateway.Status(model)
			sum := models[model]
			sum.Running += s.Running
			sum.Waiting += s.Waiting
			models[model] = sum
			for _, w := range s.Workers {
				key := worker{model, strings.ToValidUTF8(w.Name, "\uFFFD")} // a label must be valid UTF-8
				old, known := workers[key]
				if !known && i < len(m.live)-1 && w.Running == 0 {
					continue // a reload removed the engine
				}
				w.Running += old.Running
				w.ActiveBlocks += old.ActiveBlocks
				w.PrefillTokens += old.PrefillTokens
				workers[key] = w
			}
		}
	}
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	for model, s := range models {
		gauge(runningDesc, s.Running, model)
		gauge(waitingDesc, s.Waiting, model)
	}
	for key, w := range workers {
		gauge(workerRunningDesc, w.Running, key.model, key.name)
		gauge(workerBlocksDesc, w.ActiveBlocks, key.model, key.name)
		gauge(workerPrefillDesc, w.PrefillTokens, key.model, key.name)
		ch <- prometheus.MustNewConstMetric(workerTrustDesc, prometheus.GaugeValue, w.Trust, key.model, key.name)
		up := 1
		if w.Ejected {
			up = 0
		}
		gauge(workerUpDesc, up, key.model, key.name)
		if w.Contradiction != "" {
			gauge(contradictionDesc, 1, key.model, key.name, strings.ToValidUTF8(w.Contradiction, "\uFFFD"))
		}
	}
}
