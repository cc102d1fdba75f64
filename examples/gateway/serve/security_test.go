// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/intent"
)

// The table of the section Security in examples/README.md lists these tests.

// TestDecompressionRatio sends 61 KB that decompress to 60 MB.
func TestDecompressionRatio(t *testing.T) {
	if testing.Short() {
		t.Skip("large input")
	}
	s := &stub{}
	g := stubbed(t, 1, s, nil)
	defer g.Close()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, `{"model":"m","max_tokens":5,"input":"`)
	for range 60 {
		fmt.Fprint(z, strings.Repeat("a", 1<<20))
	}
	fmt.Fprint(z, `","messages":[{"role":"user","content":"x"}]}`)
	require.NoError(t, z.Close())
	require.Less(t, packed.Len(), 100_000)
	for _, a := range apiCases {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, a.path, bytes.NewReader(packed.Bytes()))
		r.Header.Set("Content-Encoding", "gzip")
		w := httptest.NewRecorder()
		used := allocated(func() { g.ServeHTTP(w, r) })
		require.Equal(t, 413, w.Code, w.Body)
		require.Less(t, used, uint64(40<<20), "bytes allocated")
	}
	require.Zero(t, s.count(""))
}

// TestLongPrompt sends prompts that exceed the window many times over, in text of which encoders take much memory.
func TestLongPrompt(t *testing.T) {
	if testing.Short() {
		t.Skip("large input")
	}
	s := &stub{}
	g := stubbed(t, 1, s, func(o *serve.Options) { o.MaxModelLen = 4096 })
	defer g.Close()
	for _, piece := range []string{"a", "word ", "é", "{\"a\":"} {
		text, err := json.Marshal(strings.Repeat(piece, 8<<20/len(piece)))
		require.NoError(t, err)
		body := `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":` + string(text) + `}]}`
		for _, path := range []string{"/v1/messages", "/v1/messages/count_tokens"} {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
			used := allocated(func() { g.ServeHTTP(w, r) })
			apiCases[2].wantError(t, w.Code, w.Body.String(), 400, "invalid_request_error", "tokens > 4096 maximum")
			require.Less(t, used>>20, uint64(150), "MiB allocated for %q", piece)
		}
	}
}

// TestCanceledBeforeEncoding checks that a request whose client has left is not rendered.
func TestCanceledBeforeEncoding(t *testing.T) {
	s := &stub{}
	g := stubbed(t, 1, s, nil)
	defer g.Close()
	for _, a := range apiCases {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w := httptest.NewRecorder()
		g.ServeHTTP(w, request(t, a, true).WithContext(ctx))
		require.Equal(t, 499, w.Code)
	}
	require.Zero(t, s.count(""))
}

// TestMemoryBudget checks that a request is refused while others hold the memory, and served after they have ended.
func TestMemoryBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
			return streamed(func(w *io.PipeWriter) {
				time.Sleep(time.Minute)
				io.WriteString(w, whole)
			}), nil
		}}
		g := stubbed(t, 1, s, func(o *serve.Options) { o.MaxMemory = 230_000 })
		defer g.Close()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { require.Equal(t, 200, ask(t, g, apiCases[0], false).Code) })
		}
		synctest.Wait()
		large := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			body := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("word ", 6000) + `"}]}`
			g.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, apiCases[0].path, strings.NewReader(body)))
			return w
		}
		w := large()
		require.Equal(t, 503, w.Code, w.Body)
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		wg.Wait()
		require.Equal(t, 200, large().Code)
	})
}

// TestOutputMemory checks that the output of requests counts too.
func TestOutputMemory(t *testing.T) {
	long := strings.Repeat(chunkOf(strings.Repeat("word ", 200), "null"), 1000)
	s := &stub{answer: func(string, *http.Request) (*http.Response, error) { return answerOf(200, long+whole), nil }}
	g := stubbed(t, 1, s, func(o *serve.Options) { o.MaxMemory = 500_000 })
	defer g.Close()
	for _, a := range []apiCase{apiCases[0], apiCases[1]} {
		require.Equal(t, 503, ask(t, g, a, false).Code)
	}
}

// TestStuckClient checks that a client that reads nothing is disconnected after WriteTimeout, and does not delay Close
// by more than two seconds.
func TestStuckClient(t *testing.T) {
	for _, stream := range []bool{true, false} {
		for _, a := range apiCases {
			t.Run(fmt.Sprint(a.name, stream), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &stub{answer: func(string, *http.Request) (*http.Response, error) { return answerOf(200, whole), nil }}
					done := make(chan serve.Record, 1)
					g := stubbed(t, 1, s, func(o *serve.Options) {
						o.KeepAlive, o.OnDone = time.Hour, func(r serve.Record) { done <- r }
					})
					begun := time.Now()
					g.ServeHTTP(newStuckWriter(), request(t, a, stream))
					require.Equal(t, 30*time.Second, time.Since(begun))
					require.Equal(t, "canceled", (<-done).Finish)

					w := newStuckWriter()
					go g.ServeHTTP(w, request(t, a, stream))
					<-w.began
					begun = time.Now()
					g.Close()
					require.LessOrEqual(t, time.Since(begun), 2*time.Second)
				})
			})
		}
	}
}

// TestCloseEndsUploads checks that a body that does not arrive does not delay Close.
func TestCloseEndsUploads(t *testing.T) {
	begun := make(chan struct{})
	r := start(t, 1, say("x"), func(o *serve.Options) {
		o.BodyTimeout = time.Hour
		o.Tenant = func(*http.Request) string { // the body is read next
			close(begun)
			return ""
		}
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		resp, _ := r.talk(t, post("/v1/messages", "{", 10, ""), false)
		require.NotEqual(t, 200, resp.StatusCode)
	}()
	<-begun
	r.gateway.Close() // an hour without the deadline
	<-ended
}

// TestTenantsAreIsolated checks that tenants share no cache by default, that shared ones get no estimates of cached
// tokens, which depend on the prompts of others.
func TestTenantsAreIsolated(t *testing.T) {
	estimates := &stub{answer: func(string, *http.Request) (*http.Response, error) { return answerOf(200, whole), nil }} // engines that report nothing
	keys := []serve.Key{{Secret: "a", Tenant: "A"}, {Secret: "b", Tenant: "B"}, {Secret: "c", Tenant: "C"}, {Secret: "d", Tenant: "D"}}
	g := stubbed(t, 1, estimates, func(o *serve.Options) {
		o.Keys, o.Shared = keys, map[string]bool{"C": true, "D": true}
		o.Policies = map[string]intent.Policy{"A": {}}
	})
	defer g.Close()
	cached := func(key string) int {
		w := ask(t, g, apiCases[0], true, "X-Api-Key", key)
		require.Equal(t, 200, w.Code)
		return apiCases[0].gather(t, w.Body.String()).Cached
	}
	require.Zero(t, cached("a"))
	require.Zero(t, cached("b"), "A sent the same")
	require.NotZero(t, cached("a"))
	require.NotZero(t, cached("b"))
	require.Zero(t, cached("c"))
	require.Zero(t, cached("d"))
	require.Zero(t, cached("c"), "an estimate that depends on D")

	r := start(t, 1, say("x"), func(o *serve.Options) { o.Keys, o.Shared = keys, map[string]bool{"C": true, "D": true} })
	for i, tt := range []struct {
		key string
		hit bool
	}{{"a", false}, {"b", false}, {"a", true}, {"c", false}, {"d", true}} {
		send(t, r.url+apiCases[0].path, apiCases[0].body("same", true), "Authorization", "Bearer "+tt.key)
		require.Equal(t, tt.hit, r.done(t, i+1)[i].Usage.Cached > 0, "request %d: the cache of the engine", i)
	}
}

// TestPoison checks that a request that kills engines reaches at most two, and that retries stop if all engines fail.
func TestPoison(t *testing.T) {
	dead := errors.New("connection reset")
	for _, tt := range []struct{ retries, want int }{{0, 2}, {-1, 1}, {2, 3}} {
		s := &stub{answer: func(string, *http.Request) (*http.Response, error) { return nil, dead }}
		g := stubbed(t, 5, s, func(o *serve.Options) { o.Retries, o.HealthInterval = tt.retries, -1 })
		require.Equal(t, 502, ask(t, g, apiCases[0], true).Code)
		require.Equal(t, tt.want, s.count(""))
		g.Close()
	}

	s := &stub{answer: func(string, *http.Request) (*http.Response, error) { return answerOf(500, ""), nil }}
	g := stubbed(t, 100, s, nil)
	defer g.Close()
	const n = 60
	for range n {
		require.Equal(t, 502, ask(t, g, apiCases[0], true).Code)
	}
	require.LessOrEqual(t, s.count(""), n+10+(n+20)/10)
}

// TestBrokenEngine has an engine that returns status 200 and then breaks. No request fails because of it while the client has
// no output, and it is ejected.
func TestBrokenEngine(t *testing.T) {
	requests := 200
	if testing.Short() {
		requests = 40
	}
	for name, broken := range map[string]string{
		"nothing": "", "no finish reason": chunkOf("wrong", "null"), "not JSON": "data: {\n\n", "error": "data: {\"error\":{\"message\":\"x\"}}\n\n",
		"output, then an error": chunkOf("wrong", "null") + "data: {\"error\":{\"message\":\"x\"}}\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stub{answer: func(host string, _ *http.Request) (*http.Response, error) {
					if host == "e0" {
						return answerOf(200, broken), nil
					}
					return answerOf(200, whole), nil
				}}
				s.down.Store("e0", true)
				g := stubbed(t, 3, s, nil)
				defer g.Close()
				for i := range requests {
					a := apiCases[i%3]
					stream := i%2 == 0 && name != "no finish reason" // a stream would have some output
					w := ask(t, g, a, stream)
					require.Equal(t, 200, w.Code)
					require.NotContains(t, w.Body.String(), "wrong")
					if stream {
						require.Equal(t, "Hello.", a.gather(t, w.Body.String()).Text)
					}
				}
				require.LessOrEqual(t, s.count("e0"), 3)
			})
		})
	}
}

// TestRetryAfterKeepAlive checks that a stream that has only been opened continues on another engine.
func TestRetryAfterKeepAlive(t *testing.T) {
	for _, a := range apiCases {
		synctest.Test(t, func(t *testing.T) {
			var attempts atomic.Int64
			s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
				if attempts.Add(1) == 1 {
					return streamed(func(*io.PipeWriter) { time.Sleep(25 * time.Second) }), nil
				}
				return answerOf(200, whole), nil
			}}
			g := stubbed(t, 2, s, nil)
			defer g.Close()
			w := ask(t, g, a, true)
			got := a.gather(t, w.Body.String())
			require.Equal(t, "Hello.", got.Text)
			require.Empty(t, got.Error)
			require.EqualValues(t, 2, attempts.Load())
		})
	}
}

// TestReadmission ejects an engine, which gets requests again after a probe has succeeded, and not before.
func TestReadmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		s := &stub{answer: func(host string, _ *http.Request) (*http.Response, error) {
			if host == "e0" && broken.Load() {
				return nil, errors.New("refused")
			}
			return answerOf(200, whole), nil
		}}
		s.down.Store("e0", true)
		g := stubbed(t, 2, s, nil)
		defer g.Close()
		burst := func() int {
			was := s.count("e0")
			for i := range 8 { // sessions spread over the engines
				require.Equal(t, 200, ask(t, g, apiCases[0], true, "X-Tenant-Id", fmt.Sprint(i, time.Now())).Code)
			}
			return s.count("e0") - was
		}
		require.Equal(t, 1, burst())
		time.Sleep(5 * time.Minute)
		require.Zero(t, burst(), "probes fail")
		s.down.Delete("e0")
		time.Sleep(2 * time.Minute)
		require.Equal(t, 1, burst(), "one failure ejects it again")
		broken.Store(false)
		time.Sleep(2 * time.Minute)
		require.Greater(t, burst(), 1)

		s.down.Store("e0", true) // active: without any request
		s.down.Store("e1", true)
		require.Equal(t, 200, status(g, "/ready"))
		time.Sleep(time.Minute)
		require.Equal(t, 503, status(g, "/ready"))
		require.Equal(t, 200, status(g, "/health"))
		require.Equal(t, 200, ask(t, g, apiCases[0], true).Code, "ejected engines rather than none")
		s.down.Clear()
		time.Sleep(2 * time.Minute)
		require.Equal(t, 200, status(g, "/ready"))
	})
}

// An engine that may have been restarted is checked before it gets requests. One that contradicts the configuration gets none,
// even if there is no other, and is reported.
func TestRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken, other, hidden atomic.Bool
		var checks atomic.Int64
		s := &stub{answer: func(host string, _ *http.Request) (*http.Response, error) {
			if broken.Load() {
				return nil, errors.New("refused")
			}
			return answerOf(200, whole), nil
		}}
		var log bytes.Buffer
		g := stubbed(t, 1, s, func(o *serve.Options) {
			o.Engines[0].Unchecked = true
			o.Engines[0].Check = func(context.Context) error {
				checks.Add(1)
				switch {
				case broken.Load() || hidden.Load():
					return errors.New("connection refused")
				case other.Load():
					return fmt.Errorf("%w: 32 there, 16 here", serve.ErrContradiction)
				}
				return nil
			}
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		defer g.Close()
		code := func() int { return ask(t, g, apiCases[0], true).Code }
		ready := func(remote string) (int, string) {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/ready", nil)
			r.RemoteAddr = remote
			g.ServeHTTP(w, r)
			return w.Code, w.Body.String()
		}
		require.Equal(t, 200, code())
		require.Equal(t, 200, code())
		require.EqualValues(t, 1, checks.Load(), "before the first request")
		time.Sleep(10 * time.Minute)
		require.InDelta(t, 11, checks.Load(), 1, "now and then")

		broken.Store(true) // it ends, and another one takes its place before the next probe
		require.Equal(t, 502, code())
		synctest.Wait() // a check may still run
		broken.Store(false)
		other.Store(true)
		before := s.count("e0")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/embeddings", strings.NewReader(`{"model":"m","input":"x"}`)))
		require.Equal(t, 502, w.Code)
		require.Equal(t, 503, code(), "there is no engine")
		time.Sleep(5 * time.Minute)
		require.Equal(t, 503, code())
		require.Equal(t, before, s.count("e0"), "it gets no request")
		status, body := ready("127.0.0.1:1")
		require.Equal(t, 503, status)
		require.Contains(t, body, "e0: the engine contradicts the configuration: 32 there, 16 here")
		_, body = ready("192.0.2.1:1")
		require.NotContains(t, body, "32", "only for those who may see the metrics")
		require.Contains(t, g.Status("").Workers[0].Contradiction, "32 there, 16 here")
		require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), "it is logged once")

		other.Store(false)
		time.Sleep(2 * time.Minute)
		require.Equal(t, 200, code())
		status, body = ready("127.0.0.1:1")
		require.Equal(t, 200, status)
		require.Empty(t, body)

		hidden.Store(true) // what cannot be asked for a while stays
		time.Sleep(5 * time.Minute)
		require.Equal(t, 200, code())
		hidden.Store(false)
		other.Store(true) // restarted between two probes
		time.Sleep(2 * time.Minute)
		require.Equal(t, 503, code())
	})
}

// An engine without cache events loses its predictions when it is ejected, because it may have been restarted.
func TestPredictionsEndWithTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		s := &stub{answer: func(host string, _ *http.Request) (*http.Response, error) {
			if broken.Load() {
				return nil, errors.New("refused")
			}
			return answerOf(200, whole), nil
		}}
		var last serve.Record
		g := stubbed(t, 1, s, func(o *serve.Options) {
			o.BlockSize = 4
			o.OnDone = func(r serve.Record) { last = r }
		})
		defer g.Close()
		for range 2 {
			require.Equal(t, 200, ask(t, g, apiCases[0], true).Code)
		}
		require.Positive(t, last.Decision.CachedEstimate)
		broken.Store(true)
		require.Equal(t, 502, ask(t, g, apiCases[0], true).Code)
		broken.Store(false)
		require.Equal(t, 200, ask(t, g, apiCases[0], true).Code)
		require.Zero(t, last.Decision.CachedEstimate)
	})
}

func status(g http.Handler, path string) int {
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code
}

// TestOutputIsBounded has engines that ignore max_tokens.
func TestOutputIsBounded(t *testing.T) {
	for name, chunk := range map[string]string{
		"text":  chunkOf(strings.Repeat("word ", 1000), "null"),
		"ids":   `data: {"choices":[{"index":0,"text":"a","token_ids":[100,101,102],"finish_reason":null}]}` + "\n\n",
		"empty": chunkOf("", "null"),
	} {
		for _, a := range apiCases {
			t.Run(fmt.Sprint(name, "/", a.name), func(t *testing.T) {
				var sent atomic.Int64
				s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
					return streamed(func(w *io.PipeWriter) {
						for {
							n, err := io.WriteString(w, chunk)
							if sent.Add(int64(n)); err != nil || sent.Load() > 100<<20 {
								return
							}
						}
					}), nil
				}}
				g := stubbed(t, 1, s, nil)
				defer g.Close()
				body := object{"model": "m", "max_tokens": 16, "max_output_tokens": 16, "messages": []any{object{"role": "user", "content": "x"}}, "input": "x"}
				text, err := json.Marshal(body)
				require.NoError(t, err)
				w := httptest.NewRecorder()
				g.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, a.path, bytes.NewReader(text)))
				if name == "empty" { // max_tokens was not reached
					require.GreaterOrEqual(t, w.Code, 500)
				} else {
					require.Equal(t, 200, w.Code)
					require.Regexp(t, `"length"|"max_output_tokens"|"max_tokens"`, w.Body.String())
				}
				require.Less(t, w.Body.Len(), 20_000)
				require.Less(t, sent.Load(), int64(1<<20), "bytes read of the engine")
			})
		}
	}
}

// TestAbsurdUsage has engines with counts that cannot be right. What arrived counts.
func TestAbsurdUsage(t *testing.T) {
	for _, usage := range []string{
		`"prompt_tokens":-1,"completion_tokens":9223372036854775807,"prompt_tokens_details":{"cached_tokens":-7}`,
		`"prompt_tokens":1,"completion_tokens":-5,"prompt_tokens_details":{"cached_tokens":9000000000}`,
	} {
		for _, a := range apiCases {
			var done serve.Record
			s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
				return answerOf(200, chunkOf("Hello.", "null")+chunkOf("", "stop")+`data: {"choices":[],"usage":{`+usage+"}}\n\ndata: [DONE]\n\n"), nil
			}}
			g := stubbed(t, 1, s, func(o *serve.Options) { o.OnDone = func(r serve.Record) { done = r } })
			got := a.gather(t, ask(t, g, a, true).Body.String())
			require.Equal(t, "Hello.", got.Text)
			require.Equal(t, 1, got.Output)
			require.Zero(t, got.Cached)
			require.Equal(t, int64(1), done.Usage.Output)
			require.Zero(t, done.Usage.Cached)
			g.Close()
		}
	}
}

// TestDrain checks that running requests end in order while new ones are refused in the form of their API.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
			return streamed(func(w *io.PipeWriter) {
				time.Sleep(20 * time.Second)
				io.WriteString(w, whole)
			}), nil
		}}
		g := stubbed(t, 1, s, nil)
		defer g.Close()
		var running sync.WaitGroup
		for _, a := range apiCases {
			running.Go(func() {
				require.Equal(t, "Hello.", a.gather(t, ask(t, g, a, true).Body.String()).Text)
			})
		}
		synctest.Wait()
		require.Equal(t, 200, status(g, "/ready"))
		begun := time.Now()
		drained := make(chan error, 1)
		go func() { drained <- g.Drain(t.Context()) }()
		synctest.Wait()
		for _, a := range apiCases {
			w := ask(t, g, a, true)
			status, typ := 503, "server_error"
			if a.anthropic {
				status, typ = 529, "overloaded_error"
			}
			a.wantError(t, w.Code, w.Body.String(), status, typ, "shutting down")
			require.Equal(t, "1", w.Header().Get("Retry-After"))
			require.Equal(t, "close", w.Header().Get("Connection"))
		}
		require.Equal(t, 503, status(g, "/ready"))
		require.Equal(t, 200, status(g, "/health"))
		running.Wait()
		require.NoError(t, <-drained)
		require.Equal(t, 20*time.Second, time.Since(begun))

		late := stubbed(t, 1, s, nil) // whose requests exceed the grace period
		var w *httptest.ResponseRecorder
		running.Go(func() { w = ask(t, late, apiCases[2], true) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		require.ErrorIs(t, late.Drain(ctx), context.DeadlineExceeded)
		late.Close()
		running.Wait()
		require.Equal(t, 529, w.Code, w.Body)
		time.Sleep(time.Minute) // the engine ends
	})
}

// TestOpenConnection has engines that keep the connection open after the end of their response.
func TestOpenConnection(t *testing.T) {
	usage := "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n"
	for name, tt := range map[string]struct {
		stream string
		most   time.Duration
	}{
		"DONE":       {whole, 200 * time.Millisecond},
		"usage":      {chunkOf("Hello.", "stop") + usage, 200 * time.Millisecond},
		"finish":     {chunkOf("Hello.", "stop"), 2 * time.Second},
		"keep-alive": {chunkOf("Hello.", "stop") + strings.Repeat(": alive\n\n", 1000), 200 * time.Millisecond},
	} {
		for _, a := range apiCases {
			for _, stream := range []bool{true, false} {
				t.Run(fmt.Sprint(name, "/", a.name, stream), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
							r, w := io.Pipe()
							go io.WriteString(w, tt.stream) // w stays open
							return &http.Response{StatusCode: 200, Header: http.Header{}, Body: r}, nil
						}}
						g := stubbed(t, 1, s, nil)
						defer g.Close()
						begun := time.Now()
						w := ask(t, g, a, stream)
						require.Equal(t, 200, w.Code)
						require.Contains(t, w.Body.String(), "Hello.")
						require.LessOrEqual(t, time.Since(begun), tt.most)
					})
				})
			}
		}
	}
}

// TestQueue checks the limits of requests per engine, of waiting requests and of their time, and that requests are
// served in the order of their arrival.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
			return streamed(func(w *io.PipeWriter) {
				time.Sleep(20 * time.Second)
				io.WriteString(w, whole)
			}), nil
		}}
		g := stubbed(t, 2, s, func(o *serve.Options) {
			for i := range o.Engines {
				o.Engines[i].MaxRequests = 2
			}
			o.MaxQueue = 5
		})
		defer g.Close()
		begun := time.Now()
		ends := make([]time.Duration, 9)
		codes := make([]int, len(ends))
		var wg sync.WaitGroup
		for i := range ends {
			wg.Go(func() {
				codes[i] = ask(t, g, apiCases[0], false).Code
				ends[i] = time.Since(begun)
			})
			synctest.Wait()
		}
		require.Equal(t, 4, s.count(""), "requests at the engines")
		now := time.Now()
		w := ask(t, g, apiCases[0], false)
		require.Equal(t, 503, w.Code)
		require.Zero(t, time.Since(now), "it did not wait")
		require.Equal(t, "1", w.Header().Get("Retry-After"))

		wg.Wait()
		require.Equal(t, []int{200, 200, 200, 200, 200, 200, 200, 200, 503}, codes, "the last one waited for 30 s")
		for i, d := range []time.Duration{20, 20, 20, 20, 40, 40, 40, 40, 30} {
			require.Equal(t, d*time.Second, ends[i].Truncate(time.Second), "request %d", i)
		}
	})
}

// TestQueueLeave checks that clients that leave the queue make room in it, and do not hold up those after them.
func TestQueueLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
			return streamed(func(w *io.PipeWriter) {
				time.Sleep(10 * time.Second)
				io.WriteString(w, whole)
			}), nil
		}}
		g := stubbed(t, 1, s, func(o *serve.Options) { o.Engines[0].MaxRequests, o.MaxQueue = 1, 2 })
		defer g.Close()
		var wg sync.WaitGroup
		codes := make([]int, 4)
		run := func(i int, ctx context.Context) {
			wg.Go(func() {
				w := httptest.NewRecorder()
				g.ServeHTTP(w, request(t, apiCases[0], false).WithContext(ctx))
				codes[i] = w.Code
			})
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		run(0, t.Context())
		run(1, ctx)
		run(2, t.Context())
		cancel()
		synctest.Wait()
		run(3, t.Context())
		wg.Wait()
		require.Equal(t, []int{200, 499, 200, 200}, codes)
	})
}

// TestMaxRequests checks the limit of requests over all.
func TestMaxRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
			return streamed(func(w *io.PipeWriter) {
				time.Sleep(time.Second)
				io.WriteString(w, whole)
			}), nil
		}}
		g := stubbed(t, 1, s, func(o *serve.Options) { o.MaxRequests = 2 })
		defer g.Close()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { require.Equal(t, 200, ask(t, g, apiCases[0], false).Code) })
		}
		synctest.Wait()
		require.Equal(t, 503, ask(t, g, apiCases[0], false).Code)
		wg.Wait()
		require.Equal(t, 200, ask(t, g, apiCases[0], false).Code)
	})
}

// TestKeys checks required keys in the words of each API.
func TestKeys(t *testing.T) {
	s := &stub{answer: func(string, *http.Request) (*http.Response, error) { return answerOf(200, whole), nil }}
	keys := []serve.Key{{Secret: "sk-1", Tenant: "ops"}, {Secret: "sk-2", Name: "ada"}}
	g := stubbed(t, 1, s, func(o *serve.Options) { o.Keys = keys })
	defer g.Close()
	open := stubbed(t, 1, s, func(o *serve.Options) { o.Keys, o.Anonymous = keys, true })
	defer open.Close()
	for _, a := range apiCases {
		for _, header := range [][]string{nil, {"X-Api-Key", "sk-3"}, {"Authorization", "Bearer sk"}, {"Authorization", "sk-1"}, {"Authorization", "Bearer sk-11"}, {"X-Api-Key", ""}} {
			w := ask(t, g, a, true, header...)
			want, has := 401, "Incorrect API key"
			if header == nil || header[1] == "" || header[1] == "sk-1" { // no key
				want, has = 200, "No API key"
			}
			a.wantError(t, w.Code, w.Body.String(), 401, "authentication_error", has)
			require.Equal(t, "Bearer", w.Header().Get("WWW-Authenticate"))
			require.NotContains(t, w.Body.String(), "sk-3")
			require.Equal(t, want, ask(t, open, a, true, header...).Code, header)
		}
		for _, header := range [][]string{{"X-Api-Key", "sk-1"}, {"Authorization", "Bearer sk-2"}, {"Authorization", "bearer  sk-1"}} {
			require.Equal(t, 200, ask(t, g, a, true, header...).Code)
		}
	}
	require.Equal(t, 401, status(g, "/v1/models"))
	require.Equal(t, 200, status(open, "/v1/models"))
	require.Equal(t, 200, status(g, "/health"))
	count := httptest.NewRecorder()
	g.ServeHTTP(count, httptest.NewRequest(http.MethodPost, "/v1/messages/count_tokens", strings.NewReader("{}")))
	require.Equal(t, 401, count.Code)

	for has, list := range map[string][]serve.Key{
		"key 1 (key 1): empty":             {{}},
		"key 2 (b): is also a key of a":    {{Secret: "x", Name: "a"}, {Secret: "x", Name: "b"}},
		"key 1 (t): limits must not be":    {{Secret: "x", Tenant: "t", TokensPerMinute: -1}},
		"key 1 (key 1): empty, or begins":  {{Secret: "x "}},
		"key 1 (key 1): limits must not b": {{Secret: "x", Concurrent: -2}},
	} {
		_, err := serve.New(&serve.Options{Model: "m", Prompts: hermesModel(), Engines: []serve.Engine{{URL: "http://e"}}, Keys: list})
		require.ErrorContains(t, err, has)
	}
}

// TestKeyLimits checks the limits of a key: requests and tokens per minute, and requests at the same time.
func TestKeyLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
			return streamed(func(w *io.PipeWriter) {
				time.Sleep(time.Second)
				io.WriteString(w, whole)
			}), nil
		}}
		g := stubbed(t, 1, s, func(o *serve.Options) {
			o.Keys = []serve.Key{
				{Secret: "requests", RequestsPerMinute: 2}, {Secret: "tokens", TokensPerMinute: 20}, {Secret: "concurrent", Concurrent: 1}, {Secret: "free"},
			}
		})
		defer g.Close()
		limited := func(key, has, after string) {
			t.Helper()
			for _, a := range apiCases {
				w := ask(t, g, a, true, "X-Api-Key", key)
				a.wantError(t, w.Code, w.Body.String(), 429, "rate_limit_error", has)
				require.Equal(t, after, w.Header().Get("Retry-After"))
			}
		}
		served := func(key string) {
			t.Helper()
			require.Equal(t, 200, ask(t, g, apiCases[0], true, "X-Api-Key", key).Code)
		}
		served("requests")
		served("requests")
		limited("requests", "2 requests per minute", "28") // the first took two seconds
		time.Sleep(30 * time.Second)
		served("requests")

		served("tokens") // has more than 20
		limited("tokens", "20 tokens per minute", wantAfter(t, g))
		time.Sleep(time.Hour)
		served("tokens")

		var wg sync.WaitGroup
		wg.Go(func() { served("concurrent") })
		synctest.Wait()
		limited("concurrent", "at most 1", "1")
		wg.Wait()
		served("concurrent")
		for range 5 {
			served("free")
		}
	})
}

// wantAfter returns the Retry-After of the key "tokens", whose first request exceeded its limit several times over.
func wantAfter(t *testing.T, g *serve.Gateway) string {
	t.Helper()
	h := ask(t, g, apiCases[0], true, "X-Api-Key", "tokens").Header().Get("Retry-After")
	var seconds int
	_, err := fmt.Sscan(h, &seconds)
	require.NoError(t, err)
	require.Greater(t, seconds, 60)
	return h
}

// TestRedirect has an engine that redirects the prompt and the key to another one.
func TestRedirect(t *testing.T) {
	var stolen atomic.Int64
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	defer thief.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL+r.URL.Path, status)
		}))
		defer engine.Close()
		r := start(t, 0, nil, func(o *serve.Options) { o.Engines = []serve.Engine{{URL: engine.URL, APIKey: "secret"}} })
		code, _, body := send(t, r.url+apiCases[0].path, apiCases[0].body("go", true))
		apiCases[0].wantError(t, code, body, 502, "server_error", "engine failed")
	}
	require.Zero(t, stolen.Load())
}

// TestBrowsers checks that web pages cannot use a gateway on a loopback address, by its address or by a name that they
// make resolve to it.
func TestBrowsers(t *testing.T) {
	r := start(t, 1, say("x"), func(o *serve.Options) { o.Hosts, o.Origins = []string{"ai.example"}, []string{"https://chat.example"} })
	host := strings.TrimPrefix(r.url, "http://")
	for _, tt := range []struct {
		host, origin, site string
		want               int
	}{
		{host, "", "", 200},
		{"localhost:8080", "", "", 200},
		{"[::1]:8080", "", "", 200},
		{"ai.example", "", "", 200},
		{"AI.example:443", "", "", 200},
		{"evil.example", "", "", 403},
		{"evil.example:8080", "http://evil.example:8080", "same-origin", 403}, // DNS rebinding
		{host, "https://evil.example", "", 403},
		{host, "null", "", 403},
		{host, "", "cross-site", 403},
		{host, "https://evil.example", "cross-site", 403},
		{host, "https://chat.example", "cross-site", 200},
		{host, "http://" + host, "same-origin", 200},
	} {
		for _, a := range apiCases {
			body, err := json.Marshal(a.body("go", true))
			require.NoError(t, err)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+a.path, bytes.NewReader(body))
			require.NoError(t, err)
			req.Host = tt.host
			req.Header.Set("Content-Type", "text/plain")
			for k, v := range map[string]string{"Origin": tt.origin, "Sec-Fetch-Site": tt.site} {
				if v != "" {
					req.Header.Set(k, v)
				}
			}
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			out, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			require.NoError(t, err)
			require.Equal(t, tt.want, resp.StatusCode, tt)
			if tt.want == 403 {
				a.wantError(t, resp.StatusCode, string(out), 403, "permission_error", "")
			}
		}
	}
	_, err := serve.New(&serve.Options{Model: "m", Prompts: hermesModel(), Engines: []serve.Engine{{URL: "http://e"}}, Origins: []string{"chat.example"}})
	require.ErrorContains(t, err, "chat.example")
}

// TestRequestIDs checks that engines never get the ids that clients choose, and clients get theirs back.
func TestRequestIDs(t *testing.T) {
	var ids sync.Map
	s := &stub{answer: func(_ string, r *http.Request) (*http.Response, error) {
		id := r.Header.Get("X-Request-Id")
		if _, twice := ids.LoadOrStore(id, true); twice || id == "" || strings.Contains(id, "mine") {
			return answerOf(500, ""), nil
		}
		return answerOf(200, whole), nil
	}}
	g := stubbed(t, 1, s, nil)
	defer g.Close()
	for range 3 {
		for _, a := range apiCases {
			w := ask(t, g, a, true, "X-Request-Id", "mine")
			require.Equal(t, 200, w.Code)
			require.Equal(t, "mine", w.Header().Get("X-Request-Id"))
		}
	}
}
