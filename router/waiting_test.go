// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/router"
	"github.com/weft-go/weft/router/policy"
)

// slots returns a router over n workers that take a number of requests at the same time.
func slots(t testing.TB, n, each int, o *router.Options) *router.Router {
	r := router.New(index.New(block, nil), o)
	for i := range n {
		_, err := r.AddWorker(index.Key{Instance: string(rune('a' + i))}, policy.Both, &router.Engine{Prefill: 1, Slots: each})
		require.NoError(t, err)
	}
	return r
}

func offer(t testing.TB, r *router.Router, in intent.Intent, now time.Time) *router.Ticket {
	tk, err := r.Offer(&router.Request{Tokens: 100, Intent: in}, now)
	require.NoError(t, err)
	return tk
}

func TestQueueOrder(t *testing.T) {
	r := slots(t, 1, 1, nil)
	running := offer(t, r, intent.Intent{}, start)
	require.NotNil(t, running.Decision())
	names := map[*router.Ticket]string{}
	add := func(name string, in intent.Intent, after time.Duration) *router.Ticket {
		tk := offer(t, r, in, start.Add(after))
		require.Nil(t, tk.Decision())
		names[tk] = name
		return tk
	}
	add("first", intent.Intent{}, time.Second)
	add("second", intent.Intent{}, 2*time.Second)
	add("high", intent.Intent{Priority: 1}, 9*time.Second)
	add("too late to overtake", intent.Intent{Priority: 1}, 13*time.Second)
	add("tier", intent.Intent{Tier: 1}, 14*time.Second)
	add("target", intent.Intent{TTFT: time.Second}, 0)
	canceled := add("canceled", intent.Intent{Tier: 9}, 15*time.Second)
	require.Equal(t, 7, r.Waiting())
	canceled.Cancel(start)
	canceled.Cancel(start)
	require.ErrorIs(t, canceled.Wait(t.Context()), context.Canceled)
	now := start.Add(15 * time.Second)
	var order []string
	for running != nil {
		running.FirstToken(now)
		running.Finish(now, 0, 1)
		placed, _ := r.Tick(now)
		require.LessOrEqual(t, len(placed), 1)
		running = nil
		if len(placed) == 1 {
			running = placed[0]
			require.NotNil(t, running.Decision())
			require.NoError(t, running.Err())
			order = append(order, names[running])
		}
	}
	require.Equal(t, []string{"tier", "high", "target", "first", "second", "too late to overtake"}, order)
	require.Zero(t, r.Waiting())
}

// Short requests come before long ones that arrived at the same time, by what they must compute and by their output.
func TestShortFirst(t *testing.T) {
	r := slots(t, 1, 1, nil)
	running := offer(t, r, intent.Intent{}, start)
	running.FirstToken(start.Add(time.Second))
	running.Finish(start.Add(10*time.Second), 0, 900) // 100 tokens take a second
	now := start.Add(20 * time.Second)
	running = offer(t, r, intent.Intent{}, now)
	want := map[*router.Ticket]int{}
	for i, in := range []intent.Intent{{ExpectedOutput: 5000}, {ExpectedOutput: 10}, {ExpectedOutput: 1000}} {
		want[offer(t, r, in, now)] = i
	}
	var order []int
	for range 3 {
		running.Finish(now, 0, 0)
		placed, _ := r.Tick(now)
		running = placed[0]
		order = append(order, want[running])
	}
	require.Equal(t, []int{1, 2, 0}, order)
}

// So they do if hardly any response has had a token.
func TestShortFirstAfterEmptyResponses(t *testing.T) {
	r := slots(t, 1, 1, nil)
	now := start
	for i := range 2000 {
		tk := offer(t, r, intent.Intent{}, now)
		tk.FirstToken(now)
		now = now.Add(10 * time.Second)
		tk.Finish(now, 0, max(0, 100-100*i))
	}
	running := offer(t, r, intent.Intent{}, now)
	first, long := offer(t, r, intent.Intent{}, now), offer(t, r, intent.Intent{ExpectedOutput: 1000}, now)
	running.Cancel(now)
	require.NotNil(t, first.Decision())
	require.Nil(t, long.Decision())
}

func TestQueueLimits(t *testing.T) {
	r := slots(t, 1, 1, &router.Options{MaxQueue: 1})
	offer(t, r, intent.Intent{}, start)
	waiting := offer(t, r, intent.Intent{Deadline: 3 * time.Second}, start)
	_, err := r.Offer(&router.Request{}, start)
	require.ErrorIs(t, err, router.ErrQueueFull)
	require.EqualError(t, err, "router: too many requests wait: a full: 1 requests")
	e, ok := errors.AsType[*router.Error](err)
	require.True(t, ok)
	require.GreaterOrEqual(t, e.RetryAfter(), time.Second)

	placed, next := r.Tick(start.Add(time.Second))
	require.Empty(t, placed)
	require.Equal(t, start.Add(3*time.Second).UnixNano(), next.UnixNano())
	placed, next = r.Tick(next)
	require.Equal(t, []*router.Ticket{waiting}, placed)
	require.True(t, next.IsZero())
	require.Nil(t, waiting.Decision())
	require.ErrorIs(t, waiting.Err(), router.ErrDeadline)

	r = slots(t, 1, 1, &router.Options{MaxQueue: -1})
	offer(t, r, intent.Intent{}, start)
	_, err = r.Offer(&router.Request{}, start)
	require.ErrorIs(t, err, router.ErrQueueFull)
}

// A clock may begin anywhere, also at the zero time.
func TestClockFromZero(t *testing.T) {
	for _, begin := range []time.Time{{}, start, time.Unix(-1e9, 0), time.Unix(0, 0)} {
		r := slots(t, 1, 1, nil)
		running := offer(t, r, intent.Intent{}, begin)
		long, err := r.Offer(&router.Request{Tokens: 10_000}, begin)
		require.NoError(t, err)
		short, err := r.Offer(&router.Request{Tokens: 10, Intent: intent.Intent{Tenant: "b", Deadline: time.Hour}}, begin.Add(time.Minute))
		require.NoError(t, err)
		now := begin.Add(2 * time.Minute)
		running.Cancel(now)
		require.NotNil(t, long.Decision())
		require.Nil(t, short.Decision())
		placed, next := r.Tick(now)
		require.Equal(t, []*router.Ticket{long}, placed)
		require.True(t, next.Equal(begin.Add(61*time.Minute)), next)
		placed, _ = r.Tick(next.Add(-1))
		require.Empty(t, placed)
		placed, _ = r.Tick(next)
		require.Equal(t, []*router.Ticket{short}, placed)
		require.ErrorIs(t, short.Err(), router.ErrDeadline)
	}
}

// Times that are too long for the clock never come.
func TestLongestTargets(t *testing.T) {
	now := time.Unix(1.7e9, 0)
	for _, in := range []intent.Intent{{Deadline: math.MaxInt64}, {TTFT: math.MaxInt64}} {
		r := slots(t, 1, 1, nil)
		running, first := offer(t, r, intent.Intent{}, now), offer(t, r, intent.Intent{}, now)
		second := offer(t, r, in, now.Add(time.Second))
		require.NoError(t, second.Err())
		now = now.Add(time.Hour)
		running.Cancel(now)
		require.NotNil(t, first.Decision())
		require.Nil(t, second.Decision())
		first.Cancel(now)
		require.NotNil(t, second.Decision())
	}
}

// A request that can only be placed on a worker that is full does not delay others, and is refused when that worker goes.
func TestQueueClasses(t *testing.T) {
	r := slots(t, 2, 1, nil)
	a, ok := r.Index().Lookup(index.Key{Instance: "a"})
	require.True(t, ok)
	only := &router.Request{Tokens: 1, Only: []index.WorkerID{a}}
	first, err := r.Offer(only, start)
	require.NoError(t, err)
	second, err := r.Offer(only, start)
	require.NoError(t, err)
	require.Equal(t, "a", first.Decision().Key.Instance)
	require.Nil(t, second.Decision())
	other := offer(t, r, intent.Intent{}, start)
	require.Equal(t, "b", other.Decision().Key.Instance, "placed at once")
	placed, _ := r.Tick(start)
	require.Empty(t, placed, "Offer has returned it")
	_, err = r.Offer(&router.Request{Only: []index.WorkerID{}}, start)
	require.EqualError(t, err, "router: all workers are barred: a not among the workers that the request permits, b not among the workers that the request permits")

	require.True(t, r.Update(a, start, func(w *policy.Worker) { w.Down = "draining" }))
	placed, _ = r.Tick(start)
	require.Equal(t, []*router.Ticket{second}, placed)
	require.ErrorIs(t, second.Err(), router.ErrAllBarred)
}

// A full queue does not refuse a request that a worker has room for.
func TestFullQueueOfOthers(t *testing.T) {
	r := slots(t, 2, 1, &router.Options{MaxQueue: 1})
	only := &router.Request{Tokens: 1, Only: []index.WorkerID{0}}
	for range 2 {
		place(t, r, only, start)
	}
	_, err := r.Offer(only, start)
	require.ErrorIs(t, err, router.ErrQueueFull)
	require.Equal(t, "b", offer(t, r, intent.Intent{}, start).Decision().Key.Instance)
	_, err = r.Offer(&router.Request{}, start)
	require.ErrorIs(t, err, router.ErrQueueFull)
	require.Equal(t, 1, r.Waiting())
}

// A request that waits in Place is placed when a worker comes, and refused when the last one goes.
func TestPlaceWhenWorkersChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := slots(t, 1, 1, nil)
		offer(t, r, intent.Intent{}, time.Now())
		begun := time.Now()
		for range 2 {
			go func() {
				tk, err := r.Place(t.Context(), &router.Request{Tokens: 1})
				if err != nil {
					require.ErrorIs(t, err, router.ErrNoWorkers)
					require.Equal(t, 2*time.Second, time.Since(begun))
					return
				}
				require.Equal(t, "z", tk.Decision().Key.Instance)
				require.Equal(t, time.Second, time.Since(begun))
			}()
		}
		time.Sleep(time.Second)
		require.Equal(t, 2, r.Waiting())
		_, err := r.AddWorker(index.Key{Instance: "z"}, policy.Both, &router.Engine{Slots: 1})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 1, r.Waiting())
		time.Sleep(time.Second)
		for _, w := range r.Workers() {
			require.True(t, r.RemoveWorker(w.ID))
		}
		synctest.Wait()
		require.Zero(t, r.Waiting())
	})
}

// With Hold, requests wait while all workers have more than that pending, and the time of the next Tick is when one has not.
func TestHold(t *testing.T) {
	r := fleet(t, 2, &router.Options{Hold: 20 * time.Millisecond})
	for range 2 {
		require.NotNil(t, offer(t, r, intent.Intent{}, start).Decision())
	}
	held := offer(t, r, intent.Intent{}, start)
	require.Nil(t, held.Decision())
	placed, next := r.Tick(start)
	require.Empty(t, placed)
	require.Equal(t, start.Add(80*time.Millisecond), next)
	placed, next = r.Tick(next)
	require.Equal(t, []*router.Ticket{held}, placed)
	require.True(t, next.IsZero())
}

func TestMove(t *testing.T) {
	r := fleet(t, 2, nil)
	req := request(prompt('x', 100))
	tk := place(t, r, req, start)
	from := tk.Decision().Worker
	require.NoError(t, tk.Move(req, from, start))
	require.NoError(t, tk.Move(req, 1-from, start))
	require.Equal(t, from, tk.Decision().Worker)
	require.Equal(t, 0, loads(r, start)[from].Prefills)
	require.Equal(t, 1, loads(r, start)[1-from].Prefills)
	require.Equal(t, 100*time.Millisecond, loads(r, start)[1-from].Pending)
	scores, _, err := r.Explain(req, start)
	require.NoError(t, err)
	for _, s := range scores {
		require.Equal(t, s.Worker != from, s.CachedEstimate > 0, "the prefix is expected on the other worker")
	}
	require.EqualError(t, tk.Move(req, 7, start), "router: move to worker 7: not registered")
	tk.FirstToken(start)
	require.EqualError(t, tk.Move(req, from, start), "router: move to worker "+string(rune('a'+from))+": the request is not waiting for its first token")
	tk.Finish(start, 0, 1)
	require.Equal(t, make([]policy.Load, 2), loads(r, start))
}

// A decision that the caller has does not change, and can be read while the request is moved or offered again.
func TestDecisionsStay(t *testing.T) {
	r := fleet(t, 2, nil)
	req := request(prompt('x', 100))
	tk := place(t, r, req, start)
	first := tk.Decision()
	why := first.Why()
	var reader sync.WaitGroup
	reader.Go(func() {
		for range 100 {
			_ = first.Why()
		}
	})
	for i := range 10 {
		require.NoError(t, tk.Move(req, index.WorkerID(i%2), start))
		require.Equal(t, why, tk.Decision().Why())
	}
	require.NoError(t, tk.Requeue(&router.Request{Tokens: 100, Exclude: []index.WorkerID{first.Worker}}, start))
	reader.Wait()
	require.Equal(t, why, first.Why())
	require.NotEqual(t, first.Worker, tk.Decision().Worker)
}

// A period of prefills that a moved request has left teaches nothing.
func TestMovedAreNotLearnedFrom(t *testing.T) {
	r := fleet(t, 2, nil)
	req := &router.Request{Tokens: 1000, Only: []index.WorkerID{0}}
	moved, stays := place(t, r, req, start), place(t, r, req, start)
	require.NoError(t, moved.Move(req, 1, start))
	now := start.Add(3 * time.Second)
	stays.FirstToken(now)
	stays.Finish(now, 0, 1)
	for _, w := range r.Workers() {
		require.Equal(t, 1.0, w.Engine.Prefill)
	}
	moved.FirstToken(now)
	moved.Finish(now, 0, 1)
	require.NotEqual(t, 1.0, r.Workers()[1].Engine.Prefill)
}

// witness is a policy that records what it observes.
type witness struct {
	policy.Policy
	placed, first, ended map[uint64]int
}

func (w *witness) Placed(v *policy.View, _ *policy.Request, _ int) { w.placed[v.Turn]++ }
func (w *witness) FirstToken(turn uint64, _ time.Time)             { w.first[turn]++ }
func (w *witness) Ended(turn uint64, _ time.Time, cached, output int) {
	w.ended[turn] += 10*cached + output
}

func TestObserver(t *testing.T) {
	w := &witness{policy.Default(), map[uint64]int{}, map[uint64]int{}, map[uint64]int{}}
	r := slots(t, 1, 2, &router.Options{Policy: w})
	a, b, c := offer(t, r, intent.Intent{}, start), offer(t, r, intent.Intent{}, start), offer(t, r, intent.Intent{}, start)
	a.FirstToken(start)
	a.FirstToken(start)
	a.Finish(start, 3, 7)
	b.Cancel(start)
	b.Finish(start, 3, 7)
	c.Cancel(start)
	require.Equal(t, map[uint64]int{0: 1, 1: 1, 2: 1}, w.placed)
	require.Equal(t, map[uint64]int{0: 1}, w.first)
	require.Equal(t, map[uint64]int{0: 37, 1: -11, 2: -11}, w.ended)
}

// What engines report and which adapters they have loaded counts.
func TestGaugesAndAdapters(t *testing.T) {
	r := fleet(t, 2, nil)
	a, _ := r.Index().Lookup(index.Key{Instance: "a"})
	r.Update(a, start, func(w *policy.Worker) { w.Waiting = 3 })
	require.Equal(t, "b", place(t, r, &router.Request{Tokens: 1}, start).Decision().Key.Instance)
	r.Update(a, start, func(w *policy.Worker) { w.Waiting, w.Adapters = 0, []string{"sql"} })
	d := place(t, r, &router.Request{Tokens: 1, Adapter: "sql"}, start).Decision()
	require.Equal(t, "a", d.Key.Instance, d.Why())
	require.Zero(t, d.Term("load"))
	require.NotZero(t, place(t, r, &router.Request{Tokens: 1, Adapter: "x", Exclude: []index.WorkerID{a}}, start).Decision().Term("load"))
	require.Zero(t, place(t, r, &router.Request{Tokens: 1, Adapter: "x", Exclude: []index.WorkerID{a}}, start).Decision().Term("load"), "it was loaded for the last one")
	r.Update(a, start, func(w *policy.Worker) { w.Engine.Prefill = 1000 })
	require.Equal(t, "b", place(t, r, &router.Request{Tokens: 1, Adapter: "sql"}, start).Decision().Key.Instance)
}

// A gauge that is not a number is ignored.
func TestStrangeGauges(t *testing.T) {
	for _, name := range policy.Names() {
		r := router.New(index.New(block, nil), &router.Options{Policy: named(t, name)})
		id, err := r.AddWorker(index.Key{}, policy.Both, &router.Engine{Capacity: 100})
		require.NoError(t, err)
		for _, kv := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
			require.True(t, r.Update(id, start, func(w *policy.Worker) { w.KV = kv }))
			_, err = r.Offer(request(prompt('x', 100)), start)
			require.NoError(t, err, "%s, %v", name, kv)
			require.Zero(t, r.Workers()[0].KV)
		}
	}
}

// Clients in virtual time: all are served exactly once, no worker ever has more requests than it may, and a client that leaves
// leaves nothing.
func TestPlaceWaits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		workers, each := rapid.IntRange(1, 3).Draw(rt, "workers"), rapid.IntRange(1, 3).Draw(rt, "slots")
		hold := rapid.SampledFrom([]time.Duration{0, time.Millisecond}).Draw(rt, "hold")
		seed := rapid.Uint64().Draw(rt, "seed")
		clients := rapid.IntRange(1, 30).Draw(rt, "clients")
		synctest.Test(t, func(t *testing.T) {
			r := slots(t, workers, each, &router.Options{Hold: hold})
			var mu sync.Mutex
			running := map[index.WorkerID]int{}
			var wg sync.WaitGroup
			for c := range clients {
				rnd := rand.New(rand.NewPCG(seed, uint64(c)))
				arrive, prefill, decode, patience := time.Duration(rnd.IntN(3000)), time.Duration(rnd.IntN(400)), time.Duration(rnd.IntN(2000)), time.Duration(1+rnd.IntN(4000))
				in := intent.Intent{Priority: int32(rnd.IntN(3)), Tenant: fmt.Sprint(rnd.IntN(2)), Session: intent.Session{ID: fmt.Sprint(rnd.IntN(4))}}
				if rnd.IntN(3) == 0 {
					in.Deadline = time.Duration(1+rnd.IntN(2000)) * time.Millisecond
				}
				wg.Go(func() {
					time.Sleep(arrive * time.Millisecond)
					begun := time.Now()
					ctx, cancel := context.WithTimeout(context.Background(), patience*time.Millisecond)
					defer cancel()
					tk, err := r.Place(ctx, &router.Request{Tokens: 100, Intent: in})
					waited := time.Since(begun)
					switch {
					case errors.Is(err, router.ErrDeadline) && in.Deadline > 0 && waited == in.Deadline:
						return
					case errors.Is(err, context.DeadlineExceeded) && waited == patience*time.Millisecond:
						return
					case err != nil:
						t.Errorf("after %v: %v", waited, err)
						return
					}
					w := tk.Decision().Worker
					mu.Lock()
					if running[w]++; running[w] > each {
						t.Errorf("%d requests on worker %d", running[w], w)
					}
					mu.Unlock()
					time.Sleep(prefill * time.Millisecond)
					tk.FirstToken(time.Now())
					time.Sleep(decode * time.Millisecond)
					mu.Lock()
					running[w]--
					mu.Unlock()
					tk.Finish(time.Now(), 0, 10)
				})
			}
			wg.Wait()
			require.Zero(t, r.Waiting())
			require.Equal(t, make([]policy.Load, workers), loads(r, time.Now()))
		})
	})
}

// While requests wait, workers have no free slot: nothing that could run waits.
func TestWorkConserving(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := router.New(nil, nil)
		for i := range 3 {
			r.AddWorker(index.Key{Instance: fmt.Sprint(i)}, policy.Both, &router.Engine{Slots: 2})
		}
		now := start
		var open []*router.Ticket
		t.Repeat(map[string]func(*rapid.T){
			"offer": func(t *rapid.T) {
				req := &router.Request{Tokens: rapid.IntRange(0, 100).Draw(t, "tokens"), Intent: intent.Intent{Priority: rapid.Int32Range(-2, 2).Draw(t, "priority")}}
				if id := rapid.IntRange(0, 5).Draw(t, "only"); id < 3 {
					req.Only = []index.WorkerID{index.WorkerID(id)}
				}
				tk, err := r.Offer(req, now)
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, tk)
			},
			"end": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip("no tickets")
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "ticket")
				if open[i].Decision() == nil || rapid.Bool().Draw(t, "cancel") {
					open[i].Cancel(now)
				} else {
					open[i].Finish(now, 0, 1)
				}
				open = append(open[:i], open[i+1:]...)
			},
			"time": func(*rapid.T) { now = now.Add(time.Second) },
			"": func(t *rapid.T) {
				waiting, placed := 0, 0
				for _, tk := range open {
					if tk.Decision() == nil {
						waiting++
					} else {
						placed++
					}
				}
				if waiting != r.Waiting() {
					t.Fatal(waiting, "tickets without a decision,", r.Waiting(), "wait")
				}
				free, running := 0, 0
				for _, w := range r.Workers() {
					n := w.Load.Prefills + w.Load.Decodes
					running += n
					if n < 2 {
						free++
					}
				}
				if running != placed || waiting > 0 && free == 3 {
					t.Fatal(running, placed, waiting, free)
				}
			},
		})
	})
}

// BenchmarkWaiting offers and ends requests while many wait.
func BenchmarkWaiting(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", n), func(b *testing.B) {
			r := slots(b, 16, 1, &router.Options{MaxQueue: 2 * n})
			now := start
			i := 0
			var running []*router.Ticket
			add := func() {
				i++
				now = now.Add(time.Millisecond)
				if tk := offer(b, r, intent.Intent{Tenant: fmt.Sprint(i % 7), Session: intent.Session{ID: fmt.Sprint(i % (n / 4))}}, now); tk.Decision() != nil {
					running = append(running, tk)
				}
			}
			for range n + 16 {
				add()
			}
			b.ReportAllocs()
			for b.Loop() {
				add()
				tk := running[0]
				tk.Finish(now, 0, 1)
				placed, _ := r.Tick(now)
				running = append(running[1:], placed...)
			}
		})
	}
}
