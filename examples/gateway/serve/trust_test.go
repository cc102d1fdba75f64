// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/kvhash/index"
)

// What is known of an engine's cache, or predicted, is dropped if the engine often has less. Here it was replaced by another
// one, and neither events nor probes tell.
func TestDoubtfulCache(t *testing.T) {
	for _, events := range []bool{true, false} {
		t.Run(fmt.Sprint("events=", events), func(t *testing.T) {
			var engine atomic.Pointer[vllm.Engine]
			add := func() *vllm.Engine {
				e := vllm.New(tok(), &vllm.Options{Model: "m", Speed: math.Inf(1), Script: say("Hello.")})
				t.Cleanup(e.Close)
				return e
			}
			engine.Store(add())
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { engine.Load().ServeHTTP(w, r) }))
			defer s.Close()
			r := start(t, 1, say(""), func(o *serve.Options) {
				o.HealthInterval = 10 * time.Millisecond
				o.Engines[0].URL, o.Engines[0].Events = s.URL, nil
				if events {
					o.Engines[0].Events = func(s *index.Stream) (func(), error) { return engine.Load().Events(s) }
				}
			})
			asked := 0
			ask := func(i int) serve.Record {
				status, _, body := send(t, r.url+"/v1/chat/completions", apiCases[0].body(fmt.Sprint(i, strings.Repeat(" word", 400)), false))
				require.Equal(t, 200, status, body)
				asked++
				return r.done(t, asked)[asked-1]
			}
			const n = 12
			for i := range n {
				ask(i)
			}
			engine.Store(add())
			i := 0
			for ; r.gateway.Status("").Workers[0].Trust >= 0.5; i++ {
				require.Less(t, i, n-2)
				require.Negative(t, ask(i).CacheExcess)
			}
			time.Sleep(200 * time.Millisecond) // until the next probe
			for ; i < n; i++ {
				rec := ask(i)
				require.Less(t, rec.Decision.CachedEstimate, 200, "only what the prompts have in common")
				require.GreaterOrEqual(t, rec.CacheExcess, int64(0))
			}
			rec := ask(n - 1)
			require.Greater(t, rec.Decision.CachedEstimate, 200)
			require.Zero(t, rec.CacheExcess)
		})
	}
}

// An engine that has nothing of what the router predicted is trusted less, until it has it again. Disagreement within a block
// does not count.
func TestTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cached [2]atomic.Int64 // by engine
		s := &stub{answer: func(host string, _ *http.Request) (*http.Response, error) {
			n := cached[host[1]-'0'].Load()
			return answerOf(200, chunkOf("Hello.", "null")+chunkOf("", "stop")+
				fmt.Sprintf("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":%d}}}\n\ndata: [DONE]\n\n", n)), nil
		}}
		var last serve.Record
		g := stubbed(t, 2, s, func(o *serve.Options) {
			o.HealthInterval = -1
			o.BlockSize = 4
			o.OnDone = func(r serve.Record) { last = r }
		})
		defer g.Close()
		trust := func(name string) float64 {
			for _, w := range g.Status("").Workers {
				if w.Name == name {
					return w.Trust
				}
			}
			return -1
		}
		question := func() string {
			w := ask(t, g, apiCases[0], true)
			require.Equal(t, 200, w.Code, w.Body.String())
			return last.Worker
		}
		cached[0].Store(9)
		cached[1].Store(9)
		first := question()
		require.EqualValues(t, 9, last.CacheExcess, "nothing was estimated")
		require.Equal(t, 1.0, trust(first))
		own := &cached[first[1]-'0']
		own.Store(0)

		require.Equal(t, first, question(), "it has the prompt, by the prediction")
		estimate := int64(last.Decision.CachedEstimate)
		require.GreaterOrEqual(t, estimate, int64(8))
		require.Equal(t, -estimate, last.CacheExcess)
		below := trust(first)
		require.Less(t, below, 1.0)
		for range 3 {
			question()
			require.Less(t, trust(last.Worker), below)
			below = trust(last.Worker)
		}
		own.Store(estimate)
		for range 60 {
			question()
			require.Equal(t, first, last.Worker)
			require.Zero(t, last.CacheExcess, "it has what was predicted")
		}
		require.Greater(t, trust(first), 0.99)

		below = trust(first)
		own.Store(estimate - 4)
		question()
		require.Zero(t, last.CacheExcess, "within a block")
		require.GreaterOrEqual(t, trust(first), below)
	})
}
