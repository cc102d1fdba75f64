// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/kvhash/index"
)

// trtllm is a transport to an engine that behaves like trtllm-serve: each event is handed out once, and a request
// without events waits for 2 seconds.
type trtllm struct {
	mu     sync.Mutex
	block  int // tokens
	next   int // number of the next event
	hash   int
	events []object
	held   []int // hashes of blocks
	status int   // of requests for events; 0 means 200
	down   bool
	polls  int
}

func (e *trtllm) add(data object) {
	e.events = append(e.events, object{"event_id": e.next, "data": data, "window_size": 4096})
	e.next++
}

// start begins the numbers again, with an empty cache.
func (e *trtllm) start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next, e.events, e.held = 0, nil, nil
	e.add(object{"type": "created", "num_blocks_per_cache_level": []int{100, 0}})
}

// evict removes all blocks.
func (e *trtllm) evict() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.add(object{"type": "removed", "block_hashes": e.held})
	e.held = nil
}

// set sets the status of requests for events and whether the engine is down.
func (e *trtllm) set(status int, down bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status, e.down = status, down
}

func (e *trtllm) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body.Close()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch r.Method + " " + r.URL.Path {
	case "GET /health":
		if e.down {
			return answerOf(503, ""), nil
		}
		return answerOf(200, ""), nil
	case "POST /kv_cache_events":
		e.polls++
		if e.status != 0 {
			return answerOf(e.status, "[]"), nil
		}
		if len(e.events) == 0 {
			e.mu.Unlock()
			time.Sleep(2 * time.Second)
			e.mu.Lock()
		}
		out, err := json.Marshal(append([]object{}, e.events...))
		e.events = nil
		return answerOf(200, string(out)), err
	}
	var req struct{ Prompt []int }
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	blocks, parent := []object{}, any(nil)
	for at := 0; at < len(req.Prompt); at += e.block {
		var tokens []object
		for _, id := range req.Prompt[at:min(at+e.block, len(req.Prompt))] {
			tokens = append(tokens, object{"type": "unique_token", "token_id": id, "token_extra_id": 0})
		}
		e.hash++
		e.held = append(e.held, e.hash)
		blocks = append(blocks, object{"type": "stored_block", "block_hash": e.hash, "tokens": tokens, "cache_level": 0, "priority": 35})
	}
	e.add(object{"type": "stored", "parent_hash": parent, "blocks": blocks})
	return answerOf(200, whole), nil
}

// polled returns a gateway with the engine e.
func polled(t *testing.T, e *trtllm, log io.Writer, recs *[]serve.Record) *serve.Gateway {
	t.Helper()
	g, err := serve.New(&serve.Options{
		Model: "m", Prompts: hermesModel(), Transport: e, Engines: []serve.Engine{{Name: "e", URL: "http://e", Kind: upstream.TensorRTLLM{}}},
		OnDone: func(r serve.Record) { *recs = append(*recs, r) }, HealthInterval: time.Second, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	require.NoError(t, err)
	return g
}

// askPolled sends a prompt and waits until the gateway has read the events.
func askPolled(t *testing.T, g *serve.Gateway, recs *[]serve.Record, text string) serve.Record {
	t.Helper()
	w := serveOne(t, g, "/v1/completions", fmt.Sprintf(`{"model":"m","prompt":%q}`, strings.Repeat(text+" ", 100)))
	require.Equal(t, 200, w.Code, w.Body)
	time.Sleep(10 * time.Second)
	return (*recs)[len(*recs)-1]
}

// TestPoll checks that the index has what an engine's events tell that hands each of them out once: also after evictions, a
// restart, a loss and failures. It is asked only while it has requests and is in service.
func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &trtllm{block: 16}
		e.start()
		var recs []serve.Record
		var log bytes.Buffer
		g := polled(t, e, &log, &recs)
		defer g.Close()
		ask := func(text string) serve.Record { t.Helper(); return askPolled(t, g, &recs, text) }
		want := func(r serve.Record, hit bool, state index.State) {
			t.Helper()
			cached := 0
			if hit {
				cached = (int(r.Usage.Prompt) - 1) / 16 * 16
			}
			require.Equal(t, cached, r.Decision.CachedEstimate)
			require.Equal(t, state, r.Decision.State(), r.Decision.Why())
		}
		polls := func(wait time.Duration) int {
			e.mu.Lock()
			n := e.polls
			e.mu.Unlock()
			time.Sleep(wait)
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.polls - n
		}
		polls(10 * time.Second)
		require.Zero(t, polls(time.Hour), "an idle engine is not asked")

		want(ask("one"), false, index.Unknown) // without blocks there is no state
		want(ask("one"), true, index.Exact)
		e.evict()
		ask("two")
		want(ask("one"), false, index.Unknown)
		want(ask("one"), true, index.Exact)

		e.start()
		ask("two")
		want(ask("one"), false, index.Unknown)
		want(ask("two"), true, index.Exact)

		e.mu.Lock()
		e.next++ // another client has read an event
		e.mu.Unlock()
		ask("three")
		want(ask("two"), true, index.Degraded)
		e.start()
		ask("three")
		want(ask("three"), true, index.Exact)

		e.set(500, false)
		ask("three")
		require.Less(t, polls(10*time.Minute), 20, "the pauses between failures grow")
		want(ask("three"), true, index.Degraded)
		e.set(0, false)
		ask("three")
		time.Sleep(2 * time.Minute)
		want(ask("three"), true, index.Exact)

		e.set(0, true)
		ask("three")
		time.Sleep(10 * time.Second)
		require.True(t, g.Status("").Workers[0].Ejected)
		require.Zero(t, polls(time.Hour), "an engine that is out of service is not asked")
		e.start()
		e.set(0, false)
		time.Sleep(time.Minute)
		ask("two")
		want(ask("three"), false, index.Unknown)
		want(ask("three"), true, index.Exact)
		require.Equal(t, 1, strings.Count(log.String(), "no cache events"), log.String())
	})
}

// TestPollFails checks an engine whose blocks have another size, and one without events, whose cache is predicted.
func TestPollFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &trtllm{block: 32}
		e.start()
		var recs []serve.Record
		var log bytes.Buffer
		g := polled(t, e, &log, &recs)
		defer g.Close()
		for range 3 {
			askPolled(t, g, &recs, "one")
		}
		require.Equal(t, 1, strings.Count(log.String(), "engine_block_size=32"), log.String())
	})
	for _, status := range []int{404, 200} {
		synctest.Test(t, func(t *testing.T) {
			e := &trtllm{block: 16}
			e.set(status, false)
			var recs []serve.Record
			var log bytes.Buffer
			g := polled(t, e, &log, &recs)
			defer g.Close()
			for range 20 {
				askPolled(t, g, &recs, "one")
			}
			require.LessOrEqual(t, e.polls, 12)
			require.Positive(t, askPolled(t, g, &recs, "one").Decision.CachedEstimate)
			e.set(status, true)
			time.Sleep(10 * time.Second)
			e.set(status, false)
			time.Sleep(time.Minute)
			require.Zero(t, askPolled(t, g, &recs, "one").Decision.CachedEstimate, "it may have been restarted")
			require.Equal(t, 1, strings.Count(log.String(), "no cache events"), log.String())
		})
	}
}
