// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/router/policy"
)

// milli is an engine that needs a millisecond for each token, which makes the numbers readable.
var milli = policy.Engine{Prefill: 1, Load: [4]float64{0, 0.25, 2, 0.5}}

var now = time.Unix(1000, 0)

// holder is a worker and what it holds of the prompt.
type holder struct {
	policy.Worker
	index.Match
}

func view(workers ...holder) *policy.View {
	v := &policy.View{Now: now, BlockSize: 10, Session: -1}
	for i := range workers {
		v.Workers, v.Matches = append(v.Workers, workers[i].Worker), append(v.Matches, workers[i].Match)
		w := &v.Workers[i]
		w.ID = index.WorkerID(i)
		w.Key = index.Key{Instance: string(rune('a' + i))}
		if w.Engine == (policy.Engine{}) {
			w.Engine = milli
		}
	}
	return v
}

// held returns a worker in a state that holds depth blocks, of which some are predicted, and the others in tiers.
func held(s index.State, depth, predicted int, tiers ...int) holder {
	w := holder{Match: index.Match{State: s, Depth: int32(depth), Predicted: int32(predicted)}}
	for i, n := range tiers {
		w.Match.Tiers[i] = int32(n)
	}
	return w
}

// cached returns a worker that certainly holds n blocks on the device.
func cached(n int) holder { return held(index.Exact, n, 0, n) }

func with(w holder, f func(*holder)) holder {
	f(&w)
	return w
}

func named(t testing.TB, name string) policy.Policy {
	p, err := policy.Named(name)
	require.NoError(t, err)
	return p
}

func costs(p policy.Policy, v *policy.View, r *policy.Request) []policy.Terms {
	out := make([]policy.Terms, len(v.Workers))
	p.Costs(v, r, out)
	return out
}

// cost_ms, term by term: wait, new, load, move, decode, room.
func TestCost(t *testing.T) {
	tests := []struct {
		name string
		busy float64
		v    *policy.View
		want []policy.Terms
	}{
		{"what is cached need not be computed", 0, view(cached(2), cached(6), cached(0)), []policy.Terms{{0, 80}, {0, 40}, {0, 100}}},
		{"a busy fleet does not do work twice", 0.5, view(cached(2), cached(6), cached(0)), []policy.Terms{{0, 80, 0, 40}, {0, 40}, {0, 100, 0, 60}}},
		{"nearly saturated", 0.9, view(cached(6), cached(0)), []policy.Terms{{0, 40}, {0, 100, 0, 540}}},
		{
			"slower tiers cost their loading, but never more than computing", 0,
			view(held(index.Exact, 6, 0, 2, 4), held(index.Exact, 6, 0, 2, 0, 4)),
			[]policy.Terms{{0, 40, 10}, {0, 40, 40}},
		},
		{"all cached: the last token is computed", 0, view(cached(10)), []policy.Terms{{0, 1}}},
		{
			"requests that wait, and those that run", 0,
			view(with(cached(0), func(w *holder) { w.Load.Prefills, w.Load.Pending, w.Load.Blocks = 1, 9*time.Millisecond, 100 })),
			[]policy.Terms{{9, 100, 0, 0, 0.3125}},
		},
		{
			"blocks of unknown age count less, predicted ones fully", 0,
			view(held(index.Degraded, 5, 0, 5), held(index.Unknown, 5, 0, 5), held(index.Unknown, 5, 5)),
			[]policy.Terms{{0, 50}, {0, 75}, {0, 50}},
		},
		{
			"the comparison is with workers that are eligible", 0.5,
			view(with(cached(9), func(w *holder) { w.Down = "down" }), cached(2)),
			[]policy.Terms{{0, 10, 0, -70}, {0, 80}},
		},
		{
			"attention makes long prompts slower", 0,
			view(with(cached(5), func(w *holder) { w.Engine = policy.Engine{Base: 3, Prefill: 1, Attention: 0.01} })),
			[]policy.Terms{{0, 3 + 50*(1+0.01*(50+25))}},
		},
		{
			"no room until a tenth of what runs has ended", 0,
			view(with(cached(0), func(w *holder) { w.Engine.Prefill, w.Engine.Capacity, w.Load.Blocks = 1, 200, 200 })),
			[]policy.Terms{{0, 100, 0, 0, 0.625, 100}}, // 10 blocks needed, 200 active, 190 allowed: 20 of 200, times a second
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.v.Busy, tt.v.Decode = tt.busy, time.Second
			got := costs(policy.Default(), tt.v, &policy.Request{Tokens: 100})
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// lowest returns the keys of the cheapest workers.
func lowest(p policy.Policy, v *policy.View, r *policy.Request) (keys string) {
	all := costs(p, v, r)
	least := math.Inf(1)
	for i := range all {
		least = min(least, all[i].Sum())
	}
	for i := range all {
		if all[i].Sum() == least {
			keys += v.Workers[i].Key.Instance
		}
	}
	return keys
}

// The other policies on the same fleet: a has the prompt and much work, b has half of the prompt and some work, c is idle.
func TestOthers(t *testing.T) {
	v := view(
		with(cached(10), func(w *holder) {
			w.Load, w.Last = policy.Load{Pending: 900 * time.Millisecond, Prefills: 3, Decodes: 5, Tokens: 900, Blocks: 95}, 2
		}),
		with(cached(5), func(w *holder) {
			w.Load, w.Last = policy.Load{Pending: 30 * time.Millisecond, Prefills: 1, Tokens: 30, Blocks: 3}, 1
		}),
		with(cached(0), func(w *holder) { w.Last = 3 }),
	)
	v.Session = 0
	r := &policy.Request{Tokens: 100, Hashes: []uint64{7}}
	for name, want := range map[string]string{
		"least_loaded": "c", "round_robin": "b", "sticky": "a",
		"lmetric": "c", // 901·9, 80·2, 100·1
		"dynamo":  "c", // 90.1+105, 8+13, 10+10
		"llm_d":   "b", // -2·0.99+1+1, -1+1/3+3/95, 0
	} {
		require.Equal(t, want, lowest(named(t, name), v, r), name)
	}

	drawn, home := map[string]bool{}, lowest(named(t, "consistent_hash"), v, r)
	require.Len(t, home, 1)
	for v.Turn = range 40 {
		drawn[lowest(named(t, "random"), v, r)] = true
		require.Equal(t, home, lowest(named(t, "consistent_hash"), v, r), "the first block is the same")
	}
	require.Len(t, drawn, 3)
	drawn = map[string]bool{}
	for v.Turn = range 40 {
		k := lowest(named(t, "power_of_two"), v, r)
		require.NotEqual(t, "a", k, "the other one of a pair is always less loaded")
		drawn[k] = true
	}
	require.Len(t, drawn, 2)
}

// A session stays where it is when a worker leaves that it does not use.
func TestConsistentHash(t *testing.T) {
	p := named(t, "consistent_hash")
	var ws []holder
	for range 8 {
		ws = append(ws, cached(0))
	}
	used := map[string]int{}
	for i := range 400 {
		r := &policy.Request{Intent: intent.Intent{Session: intent.Session{ID: fmt.Sprint(i)}}}
		v := view(slices.Clone(ws)...)
		home := lowest(p, v, r)
		used[home]++
		v.Workers = slices.DeleteFunc(v.Workers, func(w policy.Worker) bool { return w.Key.Instance == "d" })
		if home != "d" {
			require.Equal(t, home, lowest(p, v, r))
		}
	}
	require.Len(t, used, 8)
	for k, n := range used {
		require.Less(t, n, 100, k)
	}
}

func TestBarred(t *testing.T) {
	v := view(
		with(cached(0), func(w *holder) { w.Down = "connection refused" }),
		with(cached(0), func(w *holder) { w.Down = "draining" }),
		with(cached(0), func(w *holder) { w.Role = policy.Decode }),
		with(cached(0), func(w *holder) { w.Role = policy.Prefill }),
		cached(0),
		cached(0),
	)
	var got []string
	for i := range v.Workers {
		got = append(got, v.Workers[i].Barred(&policy.Request{Exclude: []index.WorkerID{4}}))
	}
	require.Equal(t, []string{"connection refused", "draining", "serves only decode", "serves only prefill", "excluded by the request", ""}, got)
	require.Empty(t, v.Workers[3].Barred(&policy.Request{Role: policy.Prefill}))
	require.Equal(t, "[both prefill decode]", fmt.Sprint([]policy.Role{policy.Both, policy.Prefill, policy.Decode}))
}

// Every policy is a pure function whose costs are numbers, and names what it computes.
func TestPure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ws []holder
		for range rapid.IntRange(0, 6).Draw(t, "workers") {
			n := rapid.IntRange(0, 12).Draw(t, "depth")
			host := rapid.IntRange(0, n).Draw(t, "host")
			w := held(index.State(rapid.IntRange(0, 2).Draw(t, "state")), n, 0, n-host, host)
			w.Role = policy.Role(rapid.IntRange(0, 2).Draw(t, "role"))
			w.Down = rapid.SampledFrom([]string{"", "down"}).Draw(t, "down")
			w.Load.Prefills = 1
			w.Load.Pending = time.Duration(rapid.IntRange(0, 200).Draw(t, "wait")) * time.Millisecond
			w.Load.Blocks = rapid.IntRange(0, 300).Draw(t, "blocks")
			w.Engine = policy.Engine{Capacity: rapid.IntRange(0, 200).Draw(t, "capacity")}.Defaults()
			ws = append(ws, w)
		}
		v := view(ws...)
		v.Session = rapid.IntRange(-1, len(ws)-1).Draw(t, "session")
		v.Turn, v.Busy = rapid.Uint64().Draw(t, "turn"), rapid.Float64Range(0, 1).Draw(t, "busy")
		r := &policy.Request{Tokens: rapid.IntRange(-1, 120).Draw(t, "tokens"), Role: policy.Role(rapid.IntRange(0, 2).Draw(t, "need"))}
		before := slices.Clone(v.Workers)
		for _, name := range policy.Names() {
			p, err := policy.Named(name)
			if err != nil || p.Name() != name {
				t.Fatal(name, err)
			}
			a, b := costs(p, v, r), costs(p, v, r)
			if d := cmp.Diff(a, b); d != "" {
				t.Fatal(name, "is not pure:", d)
			}
			for i := range a {
				for k, x := range a[i] {
					if k >= len(p.Terms()) && x != 0 || math.IsNaN(x) {
						t.Fatal(name, a[i])
					}
				}
			}
		}
		if d := cmp.Diff(before, v.Workers); d != "" {
			t.Fatal("the view changed:", d)
		}
	})
}

// Preble's window does not depend on where the clock begins.
func TestPrebleOnAnyClock(t *testing.T) {
	for _, begin := range []time.Time{now, {}, time.Unix(0, 0), time.Unix(-1e9, 0)} {
		p := named(t, "preble").(policy.Observer)
		v := view(cached(0))
		r := &policy.Request{Tokens: 100}
		v.Now = begin
		p.Placed(v, r, 0)
		var loads []float64
		for _, after := range []time.Duration{0, time.Minute, time.Hour} {
			v.Now = begin.Add(after)
			loads = append(loads, costs(p, v, r)[0][0])
		}
		require.Equal(t, []float64{100, 100, 0}, loads, begin)
	}
}

// What a policy knows of workers that are gone does not stay: each replaced engine may have a name of its own.
func TestWorkersThatAreGone(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, name := range policy.Names() {
		p, ok := named(t, name).(policy.Observer)
		if !ok {
			continue
		}
		r := &policy.Request{Hashes: make([]uint64, 50), Tokens: 500}
		for i := range r.Hashes {
			r.Hashes[i] = uint64(i) + 1
		}
		v := view(cached(0), cached(0))
		replace := func(from, to int) {
			for i := from; i < to; i++ {
				v.Turn = uint64(i)
				v.Workers[i%2].Key.Instance = fmt.Sprint(i)
				costs(p, v, r)
				p.Placed(v, r, i%2)
				p.Ended(v.Turn, now, 0, 1)
			}
		}
		replace(0, 100)
		before := heap()
		replace(100, 3000)
		require.Less(t, heap()-before, int64(100<<10), name)
		runtime.KeepAlive(p)
	}
}

func TestNamed(t *testing.T) {
	_, err := policy.Named("cost")
	require.EqualError(t, err, `policy: unknown name "cost" (want consistent_hash, cost_ms, dynamo, least_loaded, llm_d, lmetric, power_of_two, preble, prefix_lru, random, round_robin, smg, sticky, thompson)`)
	require.Equal(t, "cost_ms", policy.Default().Name())
}

func BenchmarkCosts(b *testing.B) {
	for _, workers := range []int{2, 16, 256} {
		for _, name := range []string{"cost_ms", "least_loaded", "llm_d"} {
			b.Run(fmt.Sprintf("policy=%s/workers=%d", name, workers), func(b *testing.B) {
				var ws []holder
				for i := range workers {
					ws = append(ws, with(cached(i%7), func(w *holder) { w.Load.Blocks = i * 31 % 17 }))
				}
				v, r, p := view(ws...), &policy.Request{Tokens: 100}, named(b, name)
				out := make([]policy.Terms, workers)
				b.ReportAllocs()
				for b.Loop() {
					p.Costs(v, r, out)
				}
				b.ReportMetric(float64(b.Elapsed())/float64(b.N*workers), "ns/worker")
			})
		}
	}
}

// prefix_lru does not take a cache for smaller than it is because prompts with the same beginning are computed at the same time.
func TestPrefixLRUSharesRunningPrompts(t *testing.T) {
	const blocks = 64
	r := &policy.Request{Tokens: 16*blocks + 1}
	for i := range uint64(blocks) {
		r.Hashes = append(r.Hashes, i+1)
	}
	// found returns the blocks of the prompt that are assumed after it was placed 40 times, and the engine had none of it.
	found := func(prefills int) float64 {
		p, err := policy.Named("prefix_lru")
		require.NoError(t, err)
		o := p.(policy.Observer)
		v := &policy.View{BlockSize: 16, Workers: []policy.Worker{{Engine: policy.Engine{Prefill: 1, Capacity: 1000}}}}
		v.Workers[0].Load.Prefills = prefills
		for range 40 {
			v.Turn++
			o.Placed(v, r, 0)
			o.Ended(v.Turn, time.Time{}, 0, 1)
		}
		v.Workers[0].Load = policy.Load{}
		out := make([]policy.Terms, 1)
		p.Costs(v, r, out)
		return blocks - (out[0][1]-1)/16
	}
	require.InDelta(t, blocks, found(1), 1)
	require.Less(t, found(0), 50.0, "the cache is smaller")
}
