// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/router"
	"github.com/weft-go/weft/router/policy"
)

const block = 10

var start = time.Unix(1000, 0)

func named(t testing.TB, name string) policy.Policy {
	p, err := policy.Named(name)
	require.NoError(t, err)
	return p
}

// fleet returns a router over n workers that need a millisecond for each token.
func fleet(t testing.TB, n int, o *router.Options) *router.Router {
	r := router.New(index.New(block, nil), o)
	for i := range n {
		_, err := r.AddWorker(index.Key{Instance: string(rune('a' + i))}, policy.Both, &router.Engine{Prefill: 1})
		require.NoError(t, err)
	}
	return r
}

// prompt returns the tokens of a prompt that shares its beginning with every other prompt of the same name.
func prompt(name byte, n int) []uint32 {
	p := make([]uint32, n)
	for i := range p {
		p[i] = uint32(name)<<16 | uint32(i)
	}
	return p
}

func request(tokens []uint32) *router.Request {
	return &router.Request{Hashes: kvhash.Scheme{}.AppendBlocks(nil, tokens, block, nil), Tokens: len(tokens)}
}

func place(t testing.TB, r *router.Router, req *router.Request, now time.Time) *router.Ticket {
	tk, err := r.Offer(req, now)
	require.NoError(t, err)
	return tk
}

// loads returns the loads, with Pending in place of the wait at a time.
func loads(r *router.Router, now time.Time) (l []policy.Load) {
	for _, w := range r.Workers() {
		w.Load.Pending, w.Load.Free = w.Load.Wait(now), time.Time{}
		l = append(l, w.Load)
	}
	return l
}

// The second of two requests with one prefix goes to the worker of the first before any event, while the first is still
// computed, if that takes less time than computing the prefix again; another prefix goes elsewhere.
func TestPredictedPrefix(t *testing.T) {
	r := fleet(t, 2, nil)
	first := start
	a := place(t, r, request(prompt('x', 1000)), first)
	start := first.Add(101 * time.Millisecond)
	b := place(t, r, request(append(prompt('x', 900), prompt('y', 50)...)), start)
	c := place(t, r, request(prompt('z', 1000)), start)
	require.Equal(t, "a", a.Decision().Key.Instance)
	require.Equal(t, "a", b.Decision().Key.Instance, b.Decision().Why())
	require.Equal(t, "b", c.Decision().Key.Instance, c.Decision().Why())
	require.Equal(t, 900, b.Decision().CachedEstimate)
	require.Equal(t, 900, b.Decision().Predicted())
	require.Equal(t, index.Unknown, b.Decision().State())
	want := []policy.Load{
		// The first two share 90 blocks, of which 51 are known to be the same: 512 tokens.
		{Pending: 949 * time.Millisecond, Prefills: 2, Tokens: 1050, Blocks: 195 - 51}, {Pending: time.Second, Prefills: 1, Tokens: 1000, Blocks: 100},
	}
	if d := cmp.Diff(want, loads(r, start)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}

	// Without confirmation the expectation ends: the estimated prefill, then five minutes.
	depth := func(now time.Time) int {
		scores, _, err := r.Explain(request(prompt('x', 1000)), now)
		require.NoError(t, err)
		return scores[0].CachedEstimate
	}
	require.Equal(t, 990, depth(first.Add(5*time.Minute)), "the last block is computed in any case")
	require.Equal(t, 900, depth(first.Add(301*time.Second)), "what the second one expects is left")
	require.Equal(t, 0, depth(first.Add(302*time.Second)))
}

func TestFailTakesPredictionsBack(t *testing.T) {
	r := fleet(t, 1, nil)
	cached := func() int {
		_, d, err := r.Explain(request(prompt('x', 100)), start)
		require.NoError(t, err)
		return d.CachedEstimate
	}
	a := place(t, r, request(prompt('x', 50)), start)
	b := place(t, r, request(prompt('x', 100)), start)
	b.Cancel(start)
	require.Equal(t, 50, cached(), "only its own")
	a.FirstToken(start)
	a.Cancel(start)
	require.Equal(t, 50, cached(), "the prompt was computed")
	require.Equal(t, []policy.Load{{}}, loads(r, start))
}

// A canceled request is not computed, unless another one needs the same blocks.
func TestCancelTakesPredictionsBack(t *testing.T) {
	{
		r := fleet(t, 1, nil)
		cached := func() int {
			_, d, err := r.Explain(request(prompt('x', 200)), start)
			require.NoError(t, err)
			return d.CachedEstimate
		}
		a := place(t, r, request(prompt('x', 50)), start)
		a.Cancel(start)
		require.Equal(t, 0, cached())
		a = place(t, r, request(prompt('x', 50)), start)
		place(t, r, request(prompt('x', 100)), start)
		a.Cancel(start)
		require.Equal(t, 100, cached(), "the second request still computes what the first began")
	}
}

// Predictions can be valid for as long as a time.Duration can be.
func TestPredictForever(t *testing.T) {
	r := fleet(t, 1, &router.Options{PredictFor: math.MaxInt64})
	place(t, r, request(prompt('x', 100)), start)
	for _, later := range []time.Duration{0, time.Second, 24 * 365 * time.Hour} {
		_, d, err := r.Explain(request(prompt('x', 200)), start.Add(later))
		require.NoError(t, err)
		require.Equal(t, 100, d.CachedEstimate, later)
	}
}

// No more is predicted on a worker than its device holds: without events, its oldest prompts are treated as evicted.
func TestPredictionsFit(t *testing.T) {
	r := router.New(index.New(block, nil), nil)
	id, err := r.AddWorker(index.Key{}, policy.Both, &router.Engine{Capacity: 10})
	require.NoError(t, err)
	cached := func(name byte) int {
		_, d, err := r.Explain(request(prompt(name, 200)), start)
		require.NoError(t, err)
		return d.CachedEstimate / block
	}
	for i, name := range []byte("abc") {
		place(t, r, request(prompt(name, 4*block)), start.Add(time.Duration(i)*time.Second)).Finish(start.Add(time.Duration(i+1)*time.Second), -1, 0)
	}
	require.Equal(t, []int{0, 4, 4}, []int{cached('a'), cached('b'), cached('c')})
	require.True(t, r.Update(id, start, func(w *policy.Worker) { w.Engine.Capacity = 5 }))
	require.Equal(t, []int{0, 4}, []int{cached('b'), cached('c')})
	place(t, r, request(prompt('d', 9*block)), start.Add(time.Minute))
	require.Equal(t, []int{0, 5}, []int{cached('c'), cached('d')}, "the end of a prompt that is too long is not predicted")
}

// Events and lookups meet: what an engine stored is where the next turn goes.
func TestEvents(t *testing.T) {
	r := fleet(t, 3, &router.Options{PredictFor: -1})
	tokens := prompt('x', 100)
	id, ok := r.Index().Lookup(index.Key{Instance: "c"})
	require.True(t, ok)
	ev := &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1, 2, 3, 4, 5}, TokenIDs: tokens[:50]}
	r.Index().Add(id, ev)
	d := place(t, r, request(tokens), start).Decision()
	require.Equal(t, "c", d.Key.Instance, d.Why())
	require.Equal(t, 50, d.CachedEstimate)
	require.Equal(t, index.Exact, d.State())
	r.Index().Add(id, &kvevent.Event{Kind: kvevent.Cleared})
	require.NotEqual(t, "c", place(t, r, request(tokens), start).Decision().Key.Instance)
}

func TestSessions(t *testing.T) {
	r := fleet(t, 4, &router.Options{Policy: named(t, "sticky"), PredictFor: -1, SessionFor: time.Minute})
	in := func(id string) *router.Request {
		return &router.Request{Tokens: 10, Intent: intent.Intent{Session: intent.Session{ID: id}}}
	}
	ask := func(req *router.Request, now time.Time) (key string, credit bool) {
		tk := place(t, r, req, now)
		tk.Finish(now, -1, 0)
		d := tk.Decision()
		return d.Key.Instance, d.Term("session") < 0
	}
	home, credit := ask(in("s"), start)
	require.False(t, credit)
	for range 5 {
		again, credit := ask(in("s"), start)
		require.Equal(t, home, again)
		require.True(t, credit)
	}
	other := in("s")
	other.Intent.Salt = "tenant"
	_, credit = ask(other, start)
	require.False(t, credit, "a session of another tenant")
	_, credit = ask(in("s"), start.Add(time.Minute))
	require.False(t, credit, "too long ago")
	final := in("s")
	final.Intent.Session.Final = true
	_, credit = ask(final, start.Add(time.Minute))
	require.True(t, credit)
	_, credit = ask(in("s"), start.Add(time.Minute))
	require.False(t, credit, "it was over")
}

func TestWorkersComeAndGo(t *testing.T) {
	r := router.New(nil, nil)
	require.Equal(t, 64, r.Index().BlockSize())
	req := &router.Request{Tokens: 10}
	_, err := r.Offer(req, start)
	require.ErrorIs(t, err, router.ErrNoWorkers)

	a, err := r.AddWorker(index.Key{Instance: "a"}, policy.Both, nil)
	require.NoError(t, err)
	_, err = r.AddWorker(index.Key{Instance: "a"}, policy.Both, nil)
	require.ErrorContains(t, err, "already registered")
	require.EqualError(t, err, "router: add worker a: already registered")
	tk := place(t, r, req, start)

	down := func(w *policy.Worker) { w.Down = "connection refused" }
	require.True(t, r.Update(a, start, down))
	_, err = r.Offer(req, start)
	require.ErrorIs(t, err, router.ErrAllBarred)
	e, ok := errors.AsType[*router.Error](err)
	require.True(t, ok)
	require.Equal(t, "connection refused", e.Scores[0].Barred)

	// The next worker gets the number of the removed one. An old ticket does not touch it.
	require.True(t, r.RemoveWorker(a))
	require.False(t, r.RemoveWorker(a))
	require.False(t, r.Update(a, start, down))
	b, err := r.AddWorker(index.Key{Instance: "b", DPRank: 1}, policy.Both, nil)
	require.NoError(t, err)
	require.Equal(t, a, b)
	tk2 := place(t, r, req, start)
	tk.Cancel(start)
	require.Equal(t, 1, loads(r, start)[0].Prefills)
	tk2.Cancel(start)
	require.Zero(t, loads(r, start)[0].Prefills)
	require.Equal(t, "b/1", r.Workers()[0].Key.String())
}

// Excessive values from a client or a configuration must not make a worker look cheap.
func TestAbsurdNumbers(t *testing.T) {
	r := router.New(nil, nil)
	for name, prefill := range map[string]float64{"nan": math.NaN(), "inf": math.Inf(1), "negative": -1, "slow": 1e300} {
		_, err := r.AddWorker(index.Key{Instance: name}, policy.Both, &router.Engine{Prefill: prefill, Base: prefill, Attention: prefill, Load: [4]float64{-1, prefill}, Capacity: -1})
		require.NoError(t, err)
	}
	var all []*router.Ticket
	for i := range 40 {
		req := &router.Request{Tokens: 100 * i, Intent: intent.Intent{ExpectedOutput: math.MaxInt}}
		if i%2 == 0 {
			req.Tokens = -req.Tokens
		}
		all = append(all, place(t, r, req, start))
		scores, d, err := r.Explain(req, start)
		require.NoError(t, err)
		for _, s := range scores {
			require.GreaterOrEqual(t, s.Cost, 0.0, d.Why())
		}
	}
	for _, l := range loads(r, start) {
		require.GreaterOrEqual(t, l.Pending, time.Duration(0))
		require.GreaterOrEqual(t, l.Blocks, 0)
		require.LessOrEqual(t, l.Prefills, 20, "no worker gets all requests")
	}
	for _, tk := range all {
		tk.Finish(start, 0, 0)
	}
	require.Equal(t, make([]policy.Load, 4), loads(r, start))
}

// wild is a policy that excludes workers.
type wild struct{ cost float64 }

func (wild) Name() string         { return "wild" }
func (wild) Terms() []policy.Term { return []policy.Term{{Name: "x", Unit: "1"}} }
func (p wild) Costs(v *policy.View, _ *policy.Request, out []policy.Terms) {
	for i := range out {
		out[i][0] = p.cost
	}
	out[len(out)-1][0] = -2.5
}

func TestPolicyExcludes(t *testing.T) {
	for _, x := range []float64{math.Inf(1), math.NaN()} {
		r := fleet(t, 3, &router.Options{Policy: wild{x}})
		d := place(t, r, &router.Request{Tokens: 10}, start).Decision()
		require.Equal(t, "c: -2.5 = - x 2.5; 0 of 10 tokens cached (estimate, unknown)", d.Why())
		require.Equal(t, "wild", d.Policy())
		_, err := r.Offer(&router.Request{Exclude: []index.WorkerID{d.Worker}}, start)
		require.EqualError(t, err, "router: all workers are barred: a excluded by the policy, b excluded by the policy, c excluded by the request")
	}
}

// bare is a policy that does not name its terms.
type bare struct{ wild }

func (bare) Terms() []policy.Term { return nil }

func TestPolicyWithoutTerms(t *testing.T) {
	r := fleet(t, 1, &router.Options{Policy: bare{}})
	d := place(t, r, &router.Request{Tokens: 10}, start).Decision()
	require.Equal(t, "a: -2.5; 0 of 10 tokens cached (estimate, unknown)", d.Why())
}

func TestPolicies(t *testing.T) {
	r := fleet(t, 3, &router.Options{Policy: named(t, "round_robin")})
	var got string
	for range 6 {
		got += place(t, r, request(prompt('x', 100)), start).Decision().Key.Instance
	}
	require.Equal(t, "abcabc", got)
	r = fleet(t, 3, &router.Options{Policy: named(t, "least_loaded")})
	got = ""
	for range 6 {
		got += place(t, r, request(prompt('x', 100)), start).Decision().Key.Instance
	}
	require.Equal(t, "abc", got[:3])
}

// TestTickets ends tickets in every order, more than once, and sees that nothing is left.
func TestTickets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := router.New(index.New(block, nil), nil)
		for i := range 3 {
			r.AddWorker(index.Key{Instance: string(rune('a' + i))}, policy.Both, nil)
		}
		now := start
		var all []*router.Ticket
		t.Repeat(map[string]func(*rapid.T){
			"place": func(t *rapid.T) {
				n := rapid.IntRange(0, 200).Draw(t, "tokens")
				tk, err := r.Offer(request(prompt(byte(rapid.IntRange('a', 'c').Draw(t, "name")), n)), now)
				if err != nil {
					t.Fatal(err)
				}
				if tk.Decision().CachedEstimate > max(0, n-1) {
					t.Fatal(tk.Decision().Why())
				}
				all = append(all, tk)
			},
			"end": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip("no tickets")
				}
				tk := rapid.SampledFrom(all).Draw(t, "ticket")
				switch rapid.IntRange(0, 3).Draw(t, "how") {
				case 0:
					tk.FirstToken(now)
				case 1:
					tk.Finish(now, rapid.IntRange(-1, 5).Draw(t, "cached"), 3)
				case 2:
					tk.Cancel(now)
				case 3:
					tk.Cancel(now)
				}
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			},
		})
		for _, tk := range all {
			tk.Cancel(now)
		}
		for _, w := range r.Workers() {
			if d := cmp.Diff(policy.Load{}, w.Load); d != "" {
				t.Fatalf("load is left on %s:\n%s", w.Key, d)
			}
		}
		r.Index().Expire(now.Add(time.Hour))
		if n := r.Index().Stats().Blocks; n != 0 {
			t.Fatal(n, "blocks are left")
		}
	})
}

// TestFleetInTime lets clients run against the router in virtual time: prefills take as long as estimated, so the predicted wait is
// exact, and at the end everything is back at zero.
func TestFleetInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fleet(t, 2, nil)
		busy := [2]chan bool{make(chan bool, 1), make(chan bool, 1)} // one prefill at a time
		var wg sync.WaitGroup
		for client := range 6 {
			wg.Go(func() {
				time.Sleep(time.Duration(client) * time.Millisecond)
				conversation := prompt(byte('a'+client), 300)
				for turn := range 4 {
					tk, err := r.Offer(request(conversation), time.Now())
					if err != nil {
						t.Error(err)
						return
					}
					placed, s := time.Now(), tk.Decision()
					busy[tk.Decision().Worker] <- true
					time.Sleep(time.Duration((s.Term("new") + s.Term("load")) * float64(time.Millisecond)))
					tk.FirstToken(time.Now())
					<-busy[tk.Decision().Worker]
					if got, want := time.Since(placed), time.Duration((s.Term("wait")+s.Term("new")+s.Term("load"))*float64(time.Millisecond)); got.Round(time.Millisecond) != want.Round(time.Millisecond) {
						t.Errorf("client %d turn %d: first token after %v, predicted %v", client, turn, got, want)
					}
					if turn > 0 && tk.Decision().CachedEstimate < 300+(turn-1)*20 {
						t.Errorf("client %d turn %d left its cache: %s", client, turn, tk.Decision().Why())
					}
					time.Sleep(50 * time.Millisecond)
					tk.Finish(time.Now(), tk.Decision().CachedEstimate, 10)
					conversation = append(conversation, prompt(byte('A'+client), 20)...)
					time.Sleep(time.Second)
				}
			})
		}
		wg.Wait()
		require.Equal(t, make([]policy.Load, 2), loads(r, time.Now()))
	})
}

// TestConcurrent is for the race detector: clients, events, health and membership at the same time.
func TestConcurrent(t *testing.T) {
	r := fleet(t, 4, nil)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 30 {
				tokens := prompt(byte(g), 200+i)
				req := request(tokens)
				req.Intent.Session.ID = fmt.Sprint(g)
				tk, err := r.Offer(req, start)
				if err != nil {
					t.Error(err)
					return
				}
				r.Index().Add(tk.Decision().Worker, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: req.Hashes, TokenIDs: tokens})
				tk.FirstToken(start)
				go tk.Cancel(start)
				tk.Finish(start, -1, 0)
				r.Update(index.WorkerID(g), start, func(w *policy.Worker) { w.Down = "draining" })
				r.Workers()
				r.Update(index.WorkerID(g), start, func(w *policy.Worker) { w.Down = "" })
			}
		})
	}
	wg.Go(func() {
		for range 30 {
			id, err := r.AddWorker(index.Key{Instance: "z"}, policy.Decode, nil)
			if err != nil {
				t.Error(err)
			}
			r.RemoveWorker(id)
		}
	})
	wg.Wait()
	require.Equal(t, make([]policy.Load, 4), loads(r, start))
}

func TestExplainChangesNothing(t *testing.T) {
	r := fleet(t, 2, &router.Options{Policy: named(t, "round_robin")})
	for range 3 {
		_, d, err := r.Explain(request(prompt('x', 100)), start)
		require.NoError(t, err)
		require.Equal(t, "a", d.Key.Instance)
	}
	require.Equal(t, make([]policy.Load, 2), loads(r, start))
	require.Zero(t, r.Index().Stats().Blocks)
}

// Equal requests at the same time are spread over the whole fleet, although the first worker is predicted to hold the prompt.
func TestHerd(t *testing.T) {
	for _, n := range []int{300, 3000, 32_000, 140_000} {
		for _, e := range []*router.Engine{nil, {Prefill: 0.025, Attention: 2.5e-7, Base: 5}} {
			r := router.New(index.New(64, nil), nil)
			for i := range 64 {
				_, err := r.AddWorker(index.Key{Instance: "e", DPRank: uint32(i)}, policy.Both, e)
				require.NoError(t, err)
			}
			tokens := prompt('x', n)
			req := &router.Request{Hashes: kvhash.Scheme{}.AppendBlocks(nil, tokens, 64, nil), Tokens: len(tokens)}
			placed := map[index.WorkerID]int{}
			for range 1000 {
				placed[place(t, r, req, start).Decision().Worker]++
			}
			require.Len(t, placed, 64, "%d tokens", n)
			for id, k := range placed {
				require.LessOrEqual(t, k, 20, "%d tokens, worker %d", n, id)
			}
		}
	}
}

// Unrelated prompts that are sent one after another go to all workers in turn, also to one that has held more before.
func TestSpread(t *testing.T) {
	r := fleet(t, 4, nil)
	place(t, r, request(prompt('!', 5000)), start).Finish(start, 0, 1)
	placed := map[string]int{}
	for i := range 40 {
		now := start.Add(time.Duration(i) * time.Minute)
		tk := place(t, r, request(prompt(byte(i), 100)), now)
		placed[tk.Decision().Key.Instance]++
		tk.FirstToken(now)
		tk.Finish(now, 0, 1)
	}
	require.Equal(t, map[string]int{"a": 10, "b": 10, "c": 10, "d": 10}, placed)
}

// The last worker sets the rates that are assumed, and its speed is relative to them.
func TestLearningFromTheLastWorker(t *testing.T) {
	r := fleet(t, 1, nil)
	b, err := r.AddWorker(index.Key{Instance: "b"}, policy.Both, &router.Engine{Prefill: 0.5})
	require.NoError(t, err)
	require.True(t, r.RemoveWorker(0))
	require.True(t, r.Update(b, start, func(w *policy.Worker) { w.Engine.Slots = 9 }))
	c, err := r.AddWorker(index.Key{Instance: "c"}, policy.Both, &router.Engine{Prefill: 0.5})
	require.NoError(t, err)
	tk := place(t, r, &router.Request{Tokens: 2000, Exclude: []index.WorkerID{c}}, start)
	tk.FirstToken(start.Add(time.Second))
	tk.Finish(start.Add(time.Second), 0, 1)
	for _, w := range r.Workers() {
		require.InDelta(t, 0.5, w.Engine.Prefill, 0.01, w.Key)
	}
}

// The router learns how fast engines are.
func TestLearning(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		r := fleet(t, 2, &router.Options{FixedRates: fixed}) // assumed: 1 ms for each token
		now := start
		for i := range 200 {
			n := 100 + i%7*300
			req := request(prompt(byte(i), n))
			tk := place(t, r, req, now)
			now = now.Add(time.Duration(20+n/4) * time.Millisecond)
			tk.FirstToken(now)
			tk.Finish(now, 0, 5)
			now = now.Add(time.Minute)
		}
		_, d, err := r.Explain(request(prompt('z', 2000)), now)
		require.NoError(t, err)
		if fixed {
			require.InDelta(t, 2000, d.Term("new"), 1e-9)
		} else {
			require.InDelta(t, 520, d.Term("new"), 5, d.Why())
		}
	}
}

// A request counts until it ends, also after days in which others come and go and what the index predicts of it has expired.
func TestLongRequest(t *testing.T) {
	r := fleet(t, 2, nil)
	long, waiting := place(t, r, request(prompt('x', 6400)), start), place(t, r, request(prompt('y', 6400)), start)
	long.FirstToken(start.Add(time.Second))
	for i := range 100 {
		now := start.Add(time.Duration(i+1) * time.Hour)
		tk := place(t, r, request(prompt(byte(i), 640)), now)
		tk.FirstToken(now)
		tk.Finish(now, 0, 5)
		r.Tick(now)
		for r.Index().Expire(now) {
		}
	}
	var sum policy.Load
	for _, w := range r.Workers() {
		sum.Prefills, sum.Decodes, sum.Tokens, sum.Blocks = sum.Prefills+w.Load.Prefills, sum.Decodes+w.Load.Decodes, sum.Tokens+w.Load.Tokens, sum.Blocks+w.Load.Blocks
	}
	require.Equal(t, policy.Load{Prefills: 1, Decodes: 1, Tokens: 6400, Blocks: 2 * 640}, sum)
	end := start.Add(200 * time.Hour)
	long.Finish(end, 0, 5)
	waiting.Cancel(end)
	for _, w := range r.Workers() {
		require.Zero(t, w.Load.Prefills+w.Load.Decodes+w.Load.Tokens+w.Load.Blocks)
	}
}

// Prefills that run one after another are a sample together. If the cached tokens of one are unknown, nothing is learned.
func TestLearnsFromPeriods(t *testing.T) {
	for cached, want := range map[int]float64{0: 0.5, -1: 1} {
		r := fleet(t, 1, nil)
		for i := range 40 {
			now := start.Add(time.Duration(i) * time.Hour)
			n := 400 + i%5*200
			a := place(t, r, request(prompt(byte(i), n)), now)
			b := place(t, r, request(prompt(byte(i+100), 500)), now)
			a.FirstToken(now.Add(time.Duration(n) * time.Millisecond / 2))
			a.Finish(now.Add(time.Duration(n)*time.Millisecond/2), 0, 5)
			b.FirstToken(now.Add(time.Duration(n+500) * time.Millisecond / 2))
			b.Finish(now.Add(time.Second), cached, 5)
		}
		require.InEpsilon(t, want, r.Workers()[0].Engine.Prefill, 0.1)
	}
}

// A placement allocates its ticket, and what the index predicts.
func TestAllocations(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("counts allocations")
	}
	for _, equal := range []bool{true, false} {
		r, reqs := warm(t, 64, equal)
		now := start
		one := func() {
			tk := place(t, r, reqs[0], now)
			tk.FirstToken(now)
			tk.Finish(now, -1, 0)
		}
		for range 500 {
			one() // the tables of all workers
		}
		require.LessOrEqual(t, testing.AllocsPerRun(200, one), 1.0)
		n := testing.AllocsPerRun(200, func() { // what is predicted anew
			now = now.Add(time.Second)
			tk := place(t, r, reqs[0], now)
			tk.FirstToken(now)
			tk.Finish(now, -1, 0)
		})
		require.LessOrEqual(t, n, 2.0)
		fresh := &router.Request{Hashes: slices.Clone(reqs[0].Hashes), Tokens: reqs[0].Tokens}
		next := func() { // what no worker holds
			now = now.Add(time.Second)
			for i := range fresh.Hashes {
				fresh.Hashes[i] += 0x9e3779b97f4a7c15
			}
			tk := place(t, r, fresh, now)
			tk.FirstToken(now)
			tk.Finish(now, -1, 0)
		}
		for range 1000 {
			next() // as many predictions begin as end
		}
		require.LessOrEqual(t, testing.AllocsPerRun(500, next), 2.0)
	}
}

// A placement that was computed while another request got the same worker is computed again: all workers are used.
func TestConcurrentSpread(t *testing.T) {
	r := fleet(t, 16, nil)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() { r.Offer(request(prompt(byte(i), 500)), start) })
	}
	wg.Wait()
	for _, l := range loads(r, start) {
		require.Equal(t, 1, l.Prefills)
	}
}

// meanwhile is a policy that calls a function before it computes costs.
type meanwhile struct {
	policy.Policy
	do func()
}

func (p *meanwhile) Costs(v *policy.View, r *policy.Request, out []policy.Terms) {
	if do := p.do; do != nil {
		p.do = nil
		do()
	}
	p.Policy.Costs(v, r, out)
}

// A worker that gets the ID of another one after the lookup is not taken to have its blocks.
func TestWorkerReplacedMeanwhile(t *testing.T) {
	p := &meanwhile{Policy: policy.Default()}
	r := fleet(t, 1, &router.Options{Policy: p})
	req := request(prompt('x', 100))
	place(t, r, req, start)
	p.do = func() {
		r.RemoveWorker(0)
		id, err := r.AddWorker(index.Key{Instance: "new"}, policy.Both, nil)
		require.NoError(t, err)
		require.Zero(t, id)
	}
	d := place(t, r, req, start).Decision()
	require.Equal(t, "new", d.Key.Instance)
	require.Zero(t, d.CachedEstimate)
}

// A policy that panics leaves the router usable.
func TestPolicyPanics(t *testing.T) {
	p := &meanwhile{Policy: policy.Default(), do: func() { panic("no") }}
	r := fleet(t, 1, &router.Options{Policy: p})
	require.PanicsWithValue(t, "no", func() { r.Offer(request(nil), start) })
	place(t, r, request(nil), start).Cancel(start)
	require.Zero(t, r.Workers()[0].Load.Prefills)
}

// BenchmarkPlace places and ends requests with a prompt of 1,000 blocks, of which each worker holds a different part or all. Of each
// placement, and of the lookup alone just before, "place" reports the medians.
func BenchmarkPlace(b *testing.B) {
	for _, c := range []struct {
		workers int
		equal   bool
	}{{64, false}, {64, true}, {1024, false}, {1024, true}} {
		r, reqs := warm(b, c.workers, c.equal)
		workers, req := fmt.Sprint(c.workers), reqs[0]
		if c.equal {
			workers += "/depths=equal"
		}
		b.Run(fmt.Sprintf("workers=%s/place", workers), func(b *testing.B) {
			now := start
			var m []index.Match
			var match, place, ratio []float64
			for b.Loop() {
				now = now.Add(time.Millisecond)
				begun := time.Now()
				m = r.Index().AppendMatches(m[:0], req.Hashes)
				matched := time.Since(begun)
				t, err := r.Offer(req, now)
				if err != nil {
					b.Fatal(err)
				}
				placed := time.Since(begun) - matched
				t.FirstToken(now)
				t.Finish(now, -1, 0)
				match, place = append(match, float64(matched)), append(place, float64(placed))
				ratio = append(ratio, float64(placed)/float64(matched))
			}
			for name, list := range map[string][]float64{"ns/match": match, "ns/place": place, "place/match": ratio} {
				slices.Sort(list)
				b.ReportMetric(list[len(list)/2], name)
			}
		})
		b.Run(fmt.Sprintf("workers=%s/turn", workers), func(b *testing.B) {
			now := start
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Millisecond)
				t, err := r.Offer(req, now)
				if err != nil {
					b.Fatal(err)
				}
				t.FirstToken(now)
				t.Finish(now, -1, 0)
			}
		})
		b.Run(fmt.Sprintf("workers=%s/parallel", workers), func(b *testing.B) {
			b.ReportAllocs()
			var n atomic.Int32
			b.RunParallel(func(pb *testing.PB) {
				req := reqs[int(n.Add(1))%len(reqs)]
				for pb.Next() {
					t, err := r.Offer(req, start)
					if err != nil {
						b.Fatal(err)
					}
					t.FirstToken(start)
					t.Finish(start, -1, 0)
				}
			})
		})
	}
}

// warm returns a router whose workers hold prompts of 1,000 blocks, all of them wholly or each a different part, and requests
// with these prompts.
func warm(t testing.TB, workers int, equal bool) (*router.Router, []*router.Request) {
	r := router.New(index.New(16, nil), nil)
	for i := range workers {
		_, err := r.AddWorker(index.Key{Instance: "e", DPRank: uint32(i)}, policy.Both, nil)
		require.NoError(t, err)
	}
	var reqs []*router.Request
	for name := range byte(4) {
		tokens := prompt(name, 16_000)
		h := kvhash.Scheme{}.AppendBlocks(nil, tokens, 16, nil)
		reqs = append(reqs, &router.Request{Hashes: h, Tokens: len(tokens)})
		for i := range workers {
			n := len(h)
			if !equal {
				n = n * (i + 1) / workers
			}
			r.Index().Add(index.WorkerID(i), &kvevent.Event{Kind: kvevent.Stored, BlockHashes: h[:n], TokenIDs: tokens[:16*n]})
		}
	}
	return r, reqs
}

// A worker keeps its learned speed when Update changes only its capacity or its slots.
func TestUpdateKeepsSpeed(t *testing.T) {
	r := router.New(index.New(block, nil), nil)
	now := start
	for i := range 2 {
		_, err := r.AddWorker(index.Key{Instance: string(rune('a' + i))}, policy.Both, nil)
		require.NoError(t, err)
	}
	for k := range 300 {
		for i := range index.WorkerID(2) {
			n := 1000 + k*7%900
			tk := place(t, r, &router.Request{Tokens: n, Only: []index.WorkerID{i}}, now)
			now = now.Add(time.Duration(n*int(1+i)) * 20 * time.Microsecond)
			tk.FirstToken(now)
			tk.Finish(now, 0, 1)
		}
	}
	speed := func() float64 { return r.Workers()[1].Engine.Prefill }
	learned := speed()
	require.InEpsilon(t, 0.04, learned, 0.2)
	r.Update(1, now, func(w *policy.Worker) { w.Engine.Capacity, w.Engine.Slots = 5000, 3 })
	require.InEpsilon(t, learned, speed(), 0.01)
	r.Update(1, now, func(w *policy.Worker) { w.Engine.Prefill = 1 })
	require.Greater(t, speed(), 10*learned)
}
