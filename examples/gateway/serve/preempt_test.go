// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/intent"
)

// TestPreempt checks that a request without output gives way to one of a higher tier, and that one with output does not.
func TestPreempt(t *testing.T) {
	for name, tt := range map[string]struct {
		preempt bool
		prefill time.Duration // before the first output
		asked   int           // requests to the engine, of 10 s each
		ends    [2]time.Duration
	}{
		"no output":     {true, 9 * time.Second, 3, [2]time.Duration{25 * time.Second, 15 * time.Second}},
		"output":        {true, time.Second, 2, [2]time.Duration{10 * time.Second, 20 * time.Second}},
		"not permitted": {false, 9 * time.Second, 2, [2]time.Duration{10 * time.Second, 20 * time.Second}},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", name, stream), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
						return streamed(func(w *io.PipeWriter) {
							time.Sleep(tt.prefill)
							io.WriteString(w, chunkOf("Hel", "null"))
							time.Sleep(10*time.Second - tt.prefill)
							io.WriteString(w, chunkOf("lo.", "stop")+"data: [DONE]\n\n")
						}), nil
					}}
					g := stubbed(t, 1, s, func(o *serve.Options) {
						o.Engines[0].MaxRequests, o.Preempt = 1, tt.preempt
						o.Policy = intent.Policy{Trust: intent.MustHints("tier")}
					})
					defer g.Close()
					begun := time.Now()
					send := func(tier int) <-chan time.Duration {
						done := make(chan time.Duration, 1)
						go func() {
							w := httptest.NewRecorder()
							g.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(fmt.Sprintf(
								`{"model":"m","stream":%v,"messages":[{"role":"user","content":"%d"}],"nvext":{"agent_hints":{"strict_priority":%d}}}`, stream, tier, tier))))
							require.Equal(t, 200, w.Code, w.Body)
							require.Equal(t, 1, strings.Count(w.Body.String(), "Hel"), w.Body)
							require.Equal(t, 1, strings.Count(w.Body.String(), "lo."), w.Body)
							done <- time.Since(begun)
						}()
						return done
					}
					low := send(0)
					time.Sleep(5 * time.Second)
					high := send(1)
					require.Equal(t, tt.ends, [2]time.Duration{<-low, <-high})
					require.Equal(t, tt.asked, s.count("e0"))
					require.False(t, g.Status("").Workers[0].Ejected)
					require.Zero(t, g.Status("").Running)
				})
			})
		}
	}
}

// TestPreemptEcho checks that a prompt that is repeated is not sent before the output, after which a request is not preempted.
func TestPreemptEcho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
			return streamed(func(w *io.PipeWriter) {
				io.WriteString(w, chunkOf("", "null"))
				time.Sleep(9 * time.Second)
				io.WriteString(w, chunkOf(" lo.", "stop")+"data: [DONE]\n\n")
			}), nil
		}}
		g := stubbed(t, 1, s, func(o *serve.Options) {
			o.Engines[0].MaxRequests, o.Preempt = 1, true
			o.Policy = intent.Policy{Trust: intent.MustHints("tier")}
		})
		defer g.Close()
		ask := func(tier int) <-chan string {
			done := make(chan string, 1)
			go func() {
				done <- serveOne(t, g, "/v1/completions", fmt.Sprintf(`{"model":"m","stream":true,"echo":true,"prompt":"Hel","nvext":{"agent_hints":{"strict_priority":%d}}}`, tier)).Body.String()
			}()
			return done
		}
		low := ask(0)
		time.Sleep(5 * time.Second)
		high := ask(1)
		for _, body := range []string{<-low, <-high} {
			require.Equal(t, 1, strings.Count(body, "Hel"), body)
			require.Equal(t, 1, strings.Count(body, " lo."), body)
		}
		require.Equal(t, 3, s.count("e0"))
	})
}
