// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
)

// TestMetricsAccess checks which clients may read the metrics.
func TestMetricsAccess(t *testing.T) {
	keys := []serve.Key{{Secret: "sk-team"}, {Secret: "sk-tenant", Tenant: "ops"}}
	for name, tt := range map[string]struct {
		from, header string
		keys         []serve.Key
		anonymous    bool
		open         bool
		want         int
	}{
		"this machine":                 {from: "127.0.0.1:1", want: 200},
		"this machine, IPv6":           {from: "[::1]:1", want: 200},
		"this machine, mapped":         {from: "[::ffff:127.0.0.1]:1", want: 200},
		"this machine, with keys":      {from: "127.0.0.1:1", keys: keys, want: 200},
		"a proxy on this machine":      {from: "127.0.0.1:1", header: "X-Forwarded-For: 192.0.2.1", want: 401},
		"another proxy":                {from: "127.0.0.1:1", header: "Via: 1.1 proxy", want: 401},
		"another machine":              {from: "192.0.2.1:1", want: 401},
		"another machine, any key":     {from: "192.0.2.1:1", header: "X-Api-Key: x", want: 401},
		"another machine, open":        {from: "192.0.2.1:1", open: true, want: 200},
		"another machine, anonymous":   {from: "192.0.2.1:1", keys: keys, anonymous: true, want: 401},
		"a key":                        {from: "192.0.2.1:1", keys: keys, header: "Authorization: Bearer sk-team", want: 200},
		"a wrong key":                  {from: "192.0.2.1:1", keys: keys, header: "Authorization: Bearer sk-other", want: 401},
		"a wrong key, this machine":    {from: "127.0.0.1:1", keys: keys, header: "Authorization: Bearer sk-other", want: 401},
		"a tenant's key":               {from: "192.0.2.1:1", keys: keys, header: "Authorization: Bearer sk-tenant", want: 403},
		"a tenant's key, this machine": {from: "127.0.0.1:1", keys: keys, header: "X-Api-Key: sk-tenant", want: 403},
	} {
		t.Run(name, func(t *testing.T) {
			g := stubbed(t, 1, hello(), func(o *serve.Options) {
				o.Keys, o.Anonymous, o.MetricsOpen = tt.keys, tt.anonymous, tt.open
				o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "metrics") })
			})
			defer g.Close()
			r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			r.RemoteAddr = tt.from
			if name, value, ok := strings.Cut(tt.header, ": "); ok {
				r.Header.Set(name, value)
			}
			for range 2 { // also while it drains
				w := httptest.NewRecorder()
				g.ServeHTTP(w, r)
				require.Equal(t, tt.want, w.Code)
				require.Equal(t, tt.want == 200, w.Body.String() == "metrics")
				require.NoError(t, g.Drain(t.Context()))
			}
		})
	}
	g := stubbed(t, 1, hello(), nil)
	defer g.Close()
	require.Equal(t, 404, status(g, "/metrics"), "without Options.Metrics")
}

// TestStatus checks the numbers of running and waiting requests, and of each engine.
func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
			if broken.Load() {
				return nil, errors.New("refused")
			}
			return streamed(func(w *io.PipeWriter) {
				time.Sleep(10 * time.Second)
				io.WriteString(w, whole)
			}), nil
		}}
		g := stubbed(t, 2, s, func(o *serve.Options) {
			for i := range o.Engines {
				o.Engines[i].MaxRequests = 1
			}
			o.Retries = -1
		})
		defer g.Close()
		idle := serve.Status{Workers: []serve.WorkerStatus{{Name: "e0", Trust: 1}, {Name: "e1", Trust: 1}}}
		require.Empty(t, cmp.Diff(idle, g.Status("")))
		done := make(chan int)
		for range 3 {
			go func() { done <- ask(t, g, apiCases[0], true).Code }()
		}
		synctest.Wait()
		now := g.Status("")
		require.Equal(t, 2, now.Running)
		require.Equal(t, 1, now.Waiting)
		for _, w := range now.Workers {
			require.Equal(t, 1, w.Running)
			require.Positive(t, w.ActiveBlocks)
			require.Positive(t, w.PrefillTokens)
		}
		for range 3 {
			require.Equal(t, 200, <-done)
		}
		synctest.Wait()
		require.Empty(t, cmp.Diff(idle, g.Status("")))

		broken.Store(true)
		require.Equal(t, 502, ask(t, g, apiCases[0], true).Code)
		now = g.Status("")
		require.True(t, now.Workers[0].Ejected != now.Workers[1].Ejected)
	})
}

// An endRecorder is a Tracer that records how requests end.
type endRecorder struct {
	mu   sync.Mutex
	ends []string
}

func (*endRecorder) Start(r *http.Request, api string) context.Context { return r.Context() }
func (*endRecorder) Place(context.Context, *serve.Record)              {}
func (*endRecorder) Transport(rt http.RoundTripper) http.RoundTripper  { return rt }
func (t *endRecorder) End(_ context.Context, r *serve.Record, e *apierr.Error) {
	why := event.None
	if e != nil {
		why = e.Why
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends = append(t.ends, fmt.Sprint(r.API, " ", why))
}

// TestTracePanic checks that the tracer gets one end of each request, also of those that panic.
func TestTracePanic(t *testing.T) {
	var panics bool
	var trace endRecorder
	s := &stub{answer: func(_ string, r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/v1/embeddings" {
			return answerOf(200, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"model":"m","usage":{"prompt_tokens":1}}`), nil
		}
		return answerOf(200, whole), nil
	}}
	g := stubbed(t, 1, s, func(o *serve.Options) {
		o.Engines[0].Kind, o.Tracer = upstream.VLLM{}, &trace
		o.OnDone = func(serve.Record) {
			if panics {
				panic("OnDone")
			}
		}
	})
	defer g.Close()
	embed := func() {
		g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/embeddings", strings.NewReader(`{"model":"m","input":"go"}`)))
	}
	ask(t, g, apiCases[0], true)
	embed()
	require.Equal(t, []string{"chat ", "embeddings "}, trace.ends)
	trace.ends, panics = nil, true
	require.Panics(t, func() { ask(t, g, apiCases[0], true) })
	require.Panics(t, embed)
	require.Equal(t, []string{"chat internal", "embeddings internal"}, trace.ends)
}

// TestPlacing checks that the time for which a request waits for an engine is not the router's.
func TestPlacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
			time.Sleep(10 * time.Second)
			return answerOf(200, whole), nil
		}}
		var list []serve.Record
		g := stubbed(t, 1, s, func(o *serve.Options) {
			o.Engines[0].MaxRequests, o.OnDone = 1, func(r serve.Record) { list = append(list, r) }
		})
		defer g.Close()
		done := make(chan int)
		for range 2 {
			go func() { done <- ask(t, g, apiCases[0], true).Code }()
		}
		require.Equal(t, 200, <-done)
		require.Equal(t, 200, <-done)
		synctest.Wait()
		require.Equal(t, 10*time.Second, list[1].Queued)
		require.Zero(t, list[1].Placing)
	})
}

// TestObservers checks what OnDone, OnRefuse and OnOutput get.
func TestObservers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var outputs, refused []string
		var last serve.Record
		s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
			return streamed(func(w *io.PipeWriter) {
				time.Sleep(3 * time.Second)
				io.WriteString(w, `data: {"choices":[{"index":0,"text":"","token_ids":[100,101],"finish_reason":null}]}`+"\n\n")
				time.Sleep(time.Second)
				io.WriteString(w, `data: {"choices":[{"index":0,"text":"","token_ids":[100,101,102],"finish_reason":null}]}`+"\n\n")
				time.Sleep(2 * time.Second)
				io.WriteString(w, chunkOf("a", "null")+chunkOf("", "stop")+"data: [DONE]\n\n")
			}), nil
		}}
		g := stubbed(t, 1, s, func(o *serve.Options) {
			o.OnDone = func(r serve.Record) { last = r }
			o.OnRefuse = func(_, api string, err *apierr.Error) { refused = append(refused, fmt.Sprintf("%s %s", api, err.Why)) }
			o.OnOutput = func(_ string, n int, took time.Duration) { outputs = append(outputs, fmt.Sprint(n, " in ", took)) }
			o.Keys, o.Anonymous = []serve.Key{{Secret: "sk"}}, true
		})
		defer g.Close()
		for i, a := range apiCases {
			outputs, refused, last = nil, nil, serve.Record{}
			require.Equal(t, 200, ask(t, g, a, i > 0).Code)
			require.Equal(t, []string{"3 in 1s", "1 in 2s"}, outputs)
			require.Empty(t, refused)
			require.Equal(t, 3*time.Second, last.FirstByte)
			require.Equal(t, 6*time.Second, last.Total)
			require.Positive(t, last.Usage.Prompt)

			require.Equal(t, 401, ask(t, g, a, true, "X-Api-Key", "wrong").Code)
			w := httptest.NewRecorder()
			g.ServeHTTP(w, httptest.NewRequest(http.MethodPost, a.path, strings.NewReader("{")))
			require.Equal(t, 400, w.Code)
			require.Equal(t, []string{a.name + " invalid", a.name + " invalid"}, refused)
		}
	})
}
