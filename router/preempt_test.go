// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"context"
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

// of returns the request that offer offers.
func of(in intent.Intent) *router.Request { return &router.Request{Tokens: 100, Intent: in} }

// A request that waits preempts one of the lowest tier, the last one of these, and one at a time.
func TestPreemptForSlot(t *testing.T) {
	r := slots(t, 3, 1, nil)
	var asked []string
	add := func(name string, tier uint32) *router.Ticket {
		tk := offer(t, r, intent.Intent{Tier: tier}, start)
		tk.Preemptible(func() { asked = append(asked, name) })
		return tk
	}
	middle, first, last := add("middle", 1), add("first", 0), add("last", 0)
	same := add("same", 0)
	require.Nil(t, same.Decision())
	require.Empty(t, asked)
	high, next := add("high", 2), add("next", 2)
	r.Tick(start)
	require.Equal(t, []string{"last"}, asked, "not again, and no other one")
	require.NoError(t, last.Requeue(of(intent.Intent{}), start))
	require.Nil(t, last.Decision())
	require.NotNil(t, high.Decision())
	require.Equal(t, []string{"last", "first"}, asked, "for the next one")

	first.FirstToken(start) // the owner ignores it
	r.Tick(start)
	require.Equal(t, []string{"last", "first", "middle"}, asked)
	require.NoError(t, middle.Requeue(of(intent.Intent{Tier: 1}), start))
	require.NotNil(t, next.Decision())
	r.Tick(start)
	require.Len(t, asked, 3)

	first.Finish(start, 0, 1)
	require.NotNil(t, middle.Decision(), "of a higher tier than those that wait")
	high.Finish(start, 0, 1)
	require.NotNil(t, same.Decision(), "was offered first after the others")
	next.Finish(start, 0, 1)
	require.NotNil(t, last.Decision())
	for _, tk := range []*router.Ticket{middle, same, last} {
		tk.Cancel(start)
		require.EqualError(t, tk.Requeue(of(intent.Intent{}), start), "router: requeue: the request has ended")
	}
	require.Equal(t, make([]policy.Load, 3), loads(r, start))
}

// A request that is refused because too many wait preempts none.
func TestRefusedPreemptsNone(t *testing.T) {
	for _, most := range []int{-1, 1} {
		r := slots(t, 1, 1, &router.Options{MaxQueue: most})
		running := offer(t, r, intent.Intent{}, start)
		for range max(most, 0) {
			offer(t, r, intent.Intent{}, start)
		}
		asked := 0
		running.Preemptible(func() { asked++ })
		_, err := r.Offer(of(intent.Intent{Tier: 1}), start)
		require.ErrorIs(t, err, router.ErrQueueFull)
		require.Zero(t, asked)
	}
}

// A request that is placed preempts all of lower tiers on its worker that have no token yet, each at most three times.
func TestPreemptOnWorker(t *testing.T) {
	r := fleet(t, 1, nil)
	asked := map[string]int{}
	add := func(name string, in intent.Intent) *router.Ticket {
		tk := offer(t, r, in, start)
		tk.Preemptible(func() { asked[name]++ })
		return tk
	}
	running := add("running", intent.Intent{})
	running.FirstToken(start)
	add("deadline", intent.Intent{Deadline: time.Minute})
	add("high", intent.Intent{Tier: 2})
	low := add("low", intent.Intent{})
	offer(t, r, intent.Intent{}, start) // not preemptible
	for range 5 {
		add("above", intent.Intent{Tier: 1})
		add("above", intent.Intent{Tier: 1})
		require.NoError(t, low.Requeue(of(intent.Intent{}), start))
		require.NotNil(t, low.Decision(), "nothing limits the requests of a worker")
	}
	require.Equal(t, map[string]int{"low": 3}, asked)
}

// Tick does not return a ticket for a place that it has left, but when it is placed again.
func TestRequeueBeforeTick(t *testing.T) {
	r := slots(t, 1, 1, nil)
	first, second := offer(t, r, intent.Intent{}, start), offer(t, r, intent.Intent{}, start)
	first.Finish(start, 0, 1)
	require.NotNil(t, second.Decision())
	require.NoError(t, second.Requeue(of(intent.Intent{}), start))
	require.NotNil(t, second.Decision(), "at once")
	placed, _ := r.Tick(start)
	require.Empty(t, placed)
	high := offer(t, r, intent.Intent{Tier: 1}, start)
	require.NoError(t, second.Requeue(of(intent.Intent{}), start))
	placed, _ = r.Tick(start)
	require.Equal(t, []*router.Ticket{high}, placed)
	high.Finish(start, 0, 1)
	placed, _ = r.Tick(start)
	require.Equal(t, []*router.Ticket{second}, placed)
}

// The order of the queue after requests were preempted is the one without that.
func TestRequeueKeepsTheOrder(t *testing.T) {
	order := func(preempted int) (order []string) {
		r := slots(t, 1, 1, nil)
		now, names := start, map[*router.Ticket]string{}
		at := func(name string, tokens int, tier uint32) (*router.Ticket, *router.Request) {
			now = now.Add(time.Millisecond)
			req := &router.Request{Tokens: tokens, Intent: intent.Intent{Tenant: name[:1], Session: intent.Session{ID: name}, Tier: tier}}
			tk, err := r.Offer(req, now)
			require.NoError(t, err)
			names[tk] = name
			return tk, req
		}
		first, _ := at("x", 100, 1)
		a, req := at("a", 20_000, 0)
		at("b", 30_000, 0)
		first.Finish(now, 0, 1)
		require.NotNil(t, a.Decision())
		a.Preemptible(func() {})
		for range preempted {
			high, _ := at("x", 100, 1)
			require.NoError(t, a.Requeue(req, now))
			require.NotNil(t, high.Decision())
			high.Finish(now, 0, 1)
			require.NotNil(t, a.Decision(), "it arrived before b")
		}
		r.Tick(now)
		at("a2", 100, 0)
		waiting, _ := at("c", 60_000, 0)
		require.EqualError(t, waiting.Requeue(req, now), "router: requeue: the request is not placed")
		for running := a; running != nil; {
			running.Finish(now, 0, 1)
			placed, _ := r.Tick(now)
			if running = nil; len(placed) > 0 {
				running = placed[0]
				order = append(order, names[running])
			}
		}
		return order
	}
	want := order(0)
	require.Equal(t, []string{"b", "a2", "c"}, want, "by length, and a has had 20 s, of which two sessions waited")
	require.Equal(t, want, order(1))
	require.Equal(t, want, order(3))
}

// Clients in virtual time, of which some give way late or never: all are served exactly once, no worker has more requests than it
// may, none is asked after its first token or more than three times, and only for higher tiers.
func TestPreemptedAreServed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		workers, each := rapid.IntRange(1, 3).Draw(rt, "workers"), rapid.IntRange(0, 3).Draw(rt, "slots")
		hold := rapid.SampledFrom([]time.Duration{0, time.Millisecond}).Draw(rt, "hold")
		seed := rapid.Uint64().Draw(rt, "seed")
		clients := rapid.IntRange(1, 30).Draw(rt, "clients")
		synctest.Test(t, func(t *testing.T) {
			r := slots(t, workers, each, &router.Options{Hold: hold})
			var mu sync.Mutex
			running := map[index.WorkerID]int{}
			count := func(w index.WorkerID, n int) {
				mu.Lock()
				defer mu.Unlock()
				if running[w] += n; each > 0 && running[w] > each {
					t.Errorf("%d requests on worker %d", running[w], w)
				}
			}
			var wg sync.WaitGroup
			for c := range clients {
				rnd := rand.New(rand.NewPCG(seed, uint64(c)))
				arrive, prefill, decode, delay := rnd.IntN(3000), rnd.IntN(400), rnd.IntN(2000), rnd.IntN(100)
				in := intent.Intent{Tier: rnd.Uint32N(3), Tenant: string(rune('a' + rnd.IntN(2)))}
				yields := rnd.IntN(4) > 0
				wg.Go(func() {
					sleep := func(ms int) { time.Sleep(time.Duration(ms) * time.Millisecond) }
					sleep(arrive)
					tk, err := r.Place(context.Background(), of(in))
					require.NoError(t, err)
					asked, calls, first := make(chan struct{}, 9), 0, false
					tk.Preemptible(func() {
						if calls++; calls > 3 || first || in.Tier == 2 {
							t.Errorf("preempted %d times, after the first token %v, in tier %d", calls, first, in.Tier)
						}
						asked <- struct{}{}
					})
					w := tk.Decision().Worker
					count(w, 1)
					for done := false; !done; {
						select {
						case <-asked:
							if sleep(delay); !yields {
								continue
							}
							count(w, -1)
							require.NoError(t, tk.Requeue(of(in), time.Now()))
							require.NoError(t, tk.Wait(context.Background()))
							w = tk.Decision().Worker
							count(w, 1)
						case <-time.After(time.Duration(prefill) * time.Millisecond):
							done = true
						}
					}
					tk.FirstToken(time.Now())
					tk.Preemptible(func() { t.Error("preempted after the first token") })
					sleep(decode)
					count(w, -1)
					tk.Finish(time.Now(), 0, 10)
				})
			}
			wg.Wait()
			require.Zero(t, r.Waiting())
			require.Equal(t, make([]policy.Load, workers), loads(r, time.Now()))
		})
	})
}
