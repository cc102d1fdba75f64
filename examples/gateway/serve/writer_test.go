// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
)

// countingWriter is an http.ResponseWriter that counts writes and flushes.
type countingWriter struct {
	*httptest.ResponseRecorder
	writes, flushes int
	flushed         chan string // the body so far, at each flush
	fail            error       // of the next writes
}

func newCountingWriter() *countingWriter {
	return &countingWriter{ResponseRecorder: httptest.NewRecorder(), flushed: make(chan string, 100)}
}

func (w *countingWriter) Write(b []byte) (int, error) {
	w.writes++
	if w.fail != nil {
		return 0, w.fail
	}
	return w.ResponseRecorder.Write(b)
}

func (w *countingWriter) Flush() {
	w.flushes++
	w.flushed <- w.Body.String()
}

// post passes a request to the gateway of r without a connection.
func (r *rig) post(t testing.TB, w http.ResponseWriter, a apiCase) {
	t.Helper()
	body, err := json.Marshal(a.body("go", true))
	require.NoError(t, err)
	r.gateway.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, a.path, strings.NewReader(string(body))))
}

// bursts starts a gateway before an engine that sends each element of chunks in one write, when next returns.
func bursts(t testing.TB, change func(*serve.Options), next func(i int), chunks ...string) *rig {
	url := engineOf(t, func(w http.ResponseWriter) {
		for i, c := range chunks {
			next(i)
			fmt.Fprint(w, c)
			w.(http.Flusher).Flush()
		}
	})
	return start(t, 0, nil, func(o *serve.Options) {
		o.Engines = []serve.Engine{{URL: url}}
		if change != nil {
			change(o)
		}
	})
}

// chunkOf returns an engine's chunk with text.
func chunkOf(text, finish string) string {
	if finish != "null" {
		finish = `"` + finish + `"`
	}
	return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"text\":%q,\"finish_reason\":%s}]}\n\n", text, finish)
}

// TestOneWritePerRead checks that all output that arrives together leaves in one write, and that none of it waits for
// the next.
func TestOneWritePerRead(t *testing.T) {
	for _, a := range apiCases {
		t.Run(a.name, func(t *testing.T) {
			w := newCountingWriter()
			var chunks []string
			for i := range 4 {
				burst := ""
				for k := range 20 {
					burst += chunkOf(fmt.Sprintf("w%d.%d ", i, k), "null")
				}
				chunks = append(chunks, burst)
			}
			chunks = append(chunks, chunkOf("end", "stop")+"data: [DONE]\n\n")
			r := bursts(t, nil, func(i int) {
				if i > 0 {
					if sent := within(t, w.flushed); !strings.Contains(sent, fmt.Sprintf("w%d.19", i-1)) {
						t.Errorf("burst %d is not in %q", i-1, sent)
					}
				}
			}, chunks...)
			r.post(t, w, a)
			got := a.gather(t, w.Body.String())
			require.Contains(t, got.Text, "w0.0 w0.1 ")
			require.Contains(t, got.Text, "w3.19 end")
			require.Contains(t, []int{5, 6}, w.writes, "the end of the engine's response can arrive after its last event")
			require.Equal(t, w.writes, w.flushes)
		})
	}
}

// TestOutputBeforeError checks that output which arrives together with an error is sent, and that the response has an
// error status if there was none.
func TestOutputBeforeError(t *testing.T) {
	const failure = "data: {\"error\":{\"message\":\"broken\"}}\n\n"
	for _, a := range apiCases {
		t.Run(a.name, func(t *testing.T) {
			w := newCountingWriter()
			bursts(t, nil, func(int) {}, chunkOf("before", "null")+failure).post(t, w, a)
			require.Equal(t, 200, w.Code)
			got := a.gather(t, w.Body.String())
			require.Equal(t, "before", got.Text)
			require.NotEmpty(t, got.Error)

			w = newCountingWriter()
			bursts(t, nil, func(int) {}, chunkOf("", "null"), chunkOf("", "null")+failure).post(t, w, a)
			require.GreaterOrEqual(t, w.Code, 500, w.Body)
		})
	}
}

// TestCallNotReportedAfterFailedWrite checks that OnToolCall is not called for calls that the client was not sent, and
// that it is called after the write otherwise.
func TestCallNotReportedAfterFailedWrite(t *testing.T) {
	two := chunkOf("Looking.", "null") + chunkOf(hermes("read", `{"path":"a"}`), "null") + chunkOf("\n"+hermes("grep", `{"pattern":"b"}`), "null") + chunkOf("", "stop")
	for _, a := range apiCases {
		t.Run(a.name, func(t *testing.T) {
			var w *countingWriter
			var names []string
			r := bursts(t, func(o *serve.Options) {
				o.OnToolCall = func(_ context.Context, c serve.ToolCall) {
					names = append(names, c.Name)
					require.Contains(t, w.Body.String(), c.Name)
					w.fail = fmt.Errorf("gone")
				}
			}, func(int) {}, two)
			w = newCountingWriter()
			r.post(t, w, a)
			require.Equal(t, []string{"read"}, names)
			require.NotContains(t, w.Body.String(), `\"b\"`)
			require.Equal(t, "canceled", r.done(t, 1)[0].Finish)
		})
	}
}

// timingWriter records the deadlines of its writes, and when keep-alives were written.
type timingWriter struct {
	*httptest.ResponseRecorder
	deadline time.Time
	set      int             // deadlines
	left     []time.Duration // until the deadline, at each write
	alive    []time.Time
}

func (w *timingWriter) SetWriteDeadline(t time.Time) error {
	w.deadline = t
	w.set++
	return nil
}

func (w *timingWriter) Write(b []byte) (int, error) {
	w.left = append(w.left, time.Until(w.deadline))
	if strings.Contains(string(b), "keep-alive") || strings.Contains(string(b), "event: ping") {
		w.alive = append(w.alive, time.Now())
	}
	return w.ResponseRecorder.Write(b)
}

// TestStreamTimes checks that the events of a stream have at least seven eighths of WriteTimeout, though few of them set
// a deadline, that keep-alives come when nothing was written for the set time, and that an engine may be silent for
// EngineSilence after each event.
func TestStreamTimes(t *testing.T) {
	for _, a := range apiCases {
		t.Run(a.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var last, failed time.Time
				silent := make(chan struct{})
				defer close(silent)
				s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
					return streamed(func(w *io.PipeWriter) {
						for range 1000 {
							io.WriteString(w, chunkOf("word ", "null"))
							time.Sleep(10 * time.Millisecond)
						}
						for range 3 {
							time.Sleep(4 * time.Second)
							last = time.Now()
							io.WriteString(w, chunkOf("slow ", "null"))
						}
						<-silent
					}), nil
				}}
				g := stubbed(t, 1, s, func(o *serve.Options) {
					o.WriteTimeout, o.KeepAlive, o.EngineSilence = 8*time.Second, 5*time.Second, 18*time.Second
				})
				w := &timingWriter{ResponseRecorder: httptest.NewRecorder()}
				g.ServeHTTP(w, request(t, a, true))
				failed = time.Now()
				g.Close()
				require.Equal(t, 18*time.Second, failed.Sub(last))
				require.NotEmpty(t, a.gather(t, w.Body.String()).Error)
				var alive []time.Duration
				for _, at := range w.alive {
					alive = append(alive, at.Sub(last))
				}
				require.Equal(t, []time.Duration{5 * time.Second, 10 * time.Second, 15 * time.Second}, alive)
				require.GreaterOrEqual(t, slices.Min(w.left), 7*time.Second)
				require.LessOrEqual(t, slices.Max(w.left), 8*time.Second)
				require.Greater(t, len(w.left), 1000)
				require.Less(t, w.set, 30)
			})
		})
	}
}
