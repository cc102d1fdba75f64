// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/router/policy"
)

var now = time.Unix(0, 0)

// rates of one millisecond per token make the numbers readable.
var rates = policy.Rates{Prefill: 1, Load: [4]float64{0, 0.25, 2, 0.5}}

func view(workers ...policy.Worker) *policy.View {
	v := &policy.View{BlockSize: 10, Workers: workers}
	for i := range v.Workers {
		w := &v.Workers[i]
		w.ID = index.WorkerID(i)
		w.Key = index.Key{Instance: string(rune('a' + i))}
		w.Rates = rates
	}
	return v
}

// held returns a worker in a state that holds depth blocks, of which some are predicted, and the others in tiers.
func held(s index.State, depth, predicted int, tiers ...int) policy.Worker {
	w := policy.Worker{Worker: index.Worker{State: s}, Match: index.Match{Depth: int32(depth), Predicted: int32(predicted)}}
	for i, n := range tiers {
		w.Match.Tiers[i] = int32(n)
	}
	return w
}

// cached returns a worker that holds n blocks on the device, for certain.
func cached(n int) policy.Worker {
	return held(index.Exact, n, 0, n)
}

func with(w policy.Worker, f func(*policy.Worker)) policy.Worker {
	f(&w)
	return w
}

func TestCost(t *testing.T) {
	tests := []struct {
		name   string
		p      policy.KVAware
		v      *policy.View
		want   string
		scores []policy.Terms
	}{
		{
			name: "the longer prefix", v: view(cached(2), cached(6), cached(0)), want: "b",
			scores: []policy.Terms{{New: 80, Move: 20}, {New: 40}, {New: 100, Move: 30}},
		},
		{
			name: "a prefix is worth so much waiting", want: "a",
			v:      view(with(cached(6), func(w *policy.Worker) { w.Load.Wait = 89 * time.Millisecond }), cached(0)),
			scores: []policy.Terms{{Wait: 89, New: 40}, {New: 100, Move: 30}},
		},
		{
			name: "and no more", want: "b",
			v:      view(with(cached(6), func(w *policy.Worker) { w.Load.Wait = 91 * time.Millisecond }), cached(0)),
			scores: []policy.Terms{{Wait: 91, New: 40}, {New: 100, Move: 30}},
		},
		{
			name: "only time to first token counts without gamma", p: policy.KVAware{Gamma: -1}, want: "b",
			v:      view(with(cached(6), func(w *policy.Worker) { w.Load.Wait = 61 * time.Millisecond }), cached(0)),
			scores: []policy.Terms{{Wait: 61, New: 40}, {New: 100}},
		},
		{
			name: "slower tiers cost their loading, but never more than computing", want: "a",
			v: view(
				held(index.Exact, 6, 0, 2, 4),
				held(index.Exact, 6, 0, 2, 0, 4),
			),
			scores: []policy.Terms{{New: 40, Load: 10}, {New: 40, Load: 40, Move: 15}},
		},
		{
			name: "all cached: the last token is computed", v: view(cached(10)), want: "a",
			scores: []policy.Terms{{New: 1}},
		},
		{
			name: "running requests slow it down", want: "b",
			v:      view(with(cached(0), func(w *policy.Worker) { w.Load.Blocks = 100 }), cached(0)),
			scores: []policy.Terms{{New: 100, Decode: 2}, {New: 100}},
		},
		{
			name: "the session's worker", want: "b",
			v:      view(cached(0), with(cached(0), func(w *policy.Worker) { w.Session, w.Load.Wait = true, 9*time.Millisecond })),
			scores: []policy.Terms{{New: 100}, {Wait: 9, New: 100, Affinity: 10}},
		},
		{
			name: "not if it is overloaded", p: policy.KVAware{Affinity: 5000}, want: "a",
			v:      view(cached(0), with(cached(0), func(w *policy.Worker) { w.Session, w.Load.Wait = true, 1001*time.Millisecond })),
			scores: []policy.Terms{{New: 100}, {Wait: 1001, New: 100}},
		},
		{
			name: "doubtful knowledge weighs less, own predictions weigh fully", want: "c",
			v: view(
				held(index.Degraded, 5, 0, 5),
				held(index.Unknown, 5, 0, 5),
				held(index.Unknown, 5, 5),
			),
			scores: []policy.Terms{{New: 60, Move: 5}, {New: 75, Move: 12.5}, {New: 50}},
		},
		{
			name: "barred workers do not set the standard", want: "b",
			v:      view(with(cached(9), func(w *policy.Worker) { w.Health = policy.Down }), cached(2)),
			scores: []policy.Terms{{}, {New: 80}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := tt.p.Decide(tt.v, &policy.Request{Tokens: 100}, nil, now)
			require.NoError(t, err)
			require.Equal(t, tt.want, d.Key.Instance, d.Why)
			var terms []policy.Terms
			for _, s := range d.Scores {
				terms = append(terms, s.Terms)
				require.InDelta(t, s.Terms.Sum(), s.Cost, 1e-9)
			}
			if diff := cmp.Diff(tt.scores, terms, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhy(t *testing.T) {
	a := with(cached(6), func(w *policy.Worker) {
		w.Session, w.Load.Blocks, w.Match.Predicted, w.Match.Tiers = true, 100, 1, [4]int32{5}
	})
	tests := []struct {
		p    policy.Policy
		v    *policy.View
		want string
	}{
		{policy.KVAware{}, view(a, cached(0)), "a: 32.0 ms = new 40.0 + decode 2.0 - affinity 10.0; 60 of 100 tokens cached (estimate, exact, 10 of them predicted); next b 130.0 ms"},
		{policy.KVAware{}, view(cached(0), cached(0)), "a: 100.0 ms = new 100.0; 0 of 100 tokens cached (estimate, exact), equal on 2 workers"},
		{policy.KVAware{}, view(cached(0)), "a: 100.0 ms = new 100.0; 0 of 100 tokens cached (estimate, exact)"},
		{policy.LeastLoaded{}, view(a, cached(3)), "b: 0.0 ms = 0; 30 of 100 tokens cached (estimate, exact); next a 2.0 ms"},
		{policy.RoundRobin{}, view(a, cached(3)), "a: its turn among 2 workers; 60 of 100 tokens cached (estimate, exact, 10 of them predicted)"},
	}
	for _, tt := range tests {
		d, err := tt.p.Decide(tt.v, &policy.Request{Tokens: 100}, nil, now)
		require.NoError(t, err)
		require.Equal(t, tt.want, d.Why)
		require.Equal(t, tt.p.Name(), d.Policy)
	}
}

func TestErrors(t *testing.T) {
	v := view(
		with(cached(0), func(w *policy.Worker) { w.Health, w.HealthWhy = policy.Down, "connection refused" }),
		with(cached(0), func(w *policy.Worker) { w.Health = policy.Draining }),
		with(cached(0), func(w *policy.Worker) { w.Role = policy.Decode }),
		with(cached(0), func(w *policy.Worker) { w.Role = policy.Prefill }),
		cached(0),
	)
	for _, p := range []policy.Policy{policy.KVAware{}, policy.LeastLoaded{}, policy.RoundRobin{}} {
		_, err := p.Decide(view(), &policy.Request{}, nil, now)
		require.ErrorIs(t, err, policy.ErrNoWorkers)
		require.EqualError(t, err, "router: no workers")

		_, err = p.Decide(v, &policy.Request{Exclude: []index.WorkerID{4}}, nil, now)
		require.ErrorIs(t, err, policy.ErrAllBarred)
		e, ok := errors.AsType[*policy.Error](err)
		require.True(t, ok)
		require.Len(t, e.Scores, 5)
		require.EqualError(t, err, "router: all workers are barred: a down: connection refused, b draining, c serves only decode, d serves only prefill, e excluded by the request")

		d, err := p.Decide(v, &policy.Request{Role: policy.Prefill, Exclude: []index.WorkerID{4}}, nil, now)
		require.NoError(t, err)
		require.Equal(t, "d", d.Key.Instance)
	}
	require.Equal(t, "[both prefill decode]", fmt.Sprint([]policy.Role{policy.Both, policy.Prefill, policy.Decode}))
	require.Equal(t, "healthy", policy.Healthy.String())
}

func TestRoundRobin(t *testing.T) {
	v := view(cached(0), with(cached(0), func(w *policy.Worker) { w.Health = policy.Down }), cached(0))
	var got strings.Builder
	for v.Turn = range 5 {
		d, err := policy.RoundRobin{}.Decide(v, &policy.Request{}, nil, now)
		require.NoError(t, err)
		got.WriteString(d.Key.Instance)
	}
	require.Equal(t, "acaca", got.String())
}

// Among equals the two choices of a random pair go to the one that holds less, so the one that holds most is never taken, and each of the
// others is.
func TestTies(t *testing.T) {
	v := view(cached(0), cached(0), cached(0), cached(0))
	for i := range v.Workers {
		v.Workers[i].Blocks = i
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	got := map[string]int{}
	for range 600 {
		d, err := policy.KVAware{}.Decide(v, &policy.Request{Tokens: 5}, rnd, now)
		require.NoError(t, err)
		got[d.Key.Instance]++
	}
	require.Zero(t, got["d"])
	require.InDelta(t, 300, got["a"], 60)
	require.InDelta(t, 200, got["b"], 60)
	require.InDelta(t, 100, got["c"], 60)
}

// TestPure decides twice on the same arguments, and checks that no other worker would have been cheaper.
func TestPure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ws []policy.Worker
		for range rapid.IntRange(0, 6).Draw(t, "workers") {
			n := rapid.IntRange(0, 12).Draw(t, "depth")
			host := rapid.IntRange(0, n).Draw(t, "host")
			w := held(index.State(rapid.IntRange(0, 2).Draw(t, "state")), n, 0, n-host, host)
			w.Role = policy.Role(rapid.IntRange(0, 2).Draw(t, "role"))
			w.Health = policy.Health(rapid.IntRange(0, 2).Draw(t, "health"))
			w.Session = rapid.Bool().Draw(t, "session")
			w.Load.Wait = time.Duration(rapid.IntRange(0, 200).Draw(t, "wait")) * time.Millisecond
			ws = append(ws, w)
		}
		v := view(ws...)
		r := &policy.Request{Tokens: rapid.IntRange(0, 120).Draw(t, "tokens"), Role: policy.Role(rapid.IntRange(0, 2).Draw(t, "need"))}
		seed := rapid.Uint64().Draw(t, "seed")
		for _, p := range []policy.Policy{policy.KVAware{}, policy.LeastLoaded{}, policy.RoundRobin{}} {
			d, err := p.Decide(v, r, rand.New(rand.NewPCG(seed, 0)), now)
			d2, err2 := p.Decide(v, r, rand.New(rand.NewPCG(seed, 0)), now)
			if diff := cmp.Diff(d, d2); diff != "" || (err == nil) != (err2 == nil) {
				t.Fatal("not pure:", diff, err, err2)
			}
			open := 0
			for i := range v.Workers {
				if v.Workers[i].Barred(r) == "" {
					open++
				}
			}
			if (err == nil) != (open > 0) {
				t.Fatalf("%d workers are open, error %v", open, err)
			}
			if err != nil {
				continue
			}
			if why := v.Workers[d.Worker].Barred(r); why != "" {
				t.Fatalf("%s chose a worker that is %s", p.Name(), why)
			}
			for _, s := range d.Scores {
				if s.Barred == "" && s.Cost < d.Scores[d.Worker].Cost {
					t.Fatalf("%s chose %s, but %s is cheaper", p.Name(), d.Why, s.Key)
				}
			}
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	for _, workers := range []int{2, 16, 256} {
		for _, p := range []policy.Policy{policy.KVAware{}, policy.LeastLoaded{}, policy.RoundRobin{}} {
			b.Run(fmt.Sprintf("policy=%s/workers=%d", p.Name(), workers), func(b *testing.B) {
				var ws []policy.Worker
				for i := range workers {
					ws = append(ws, with(cached(i%7), func(w *policy.Worker) { w.Load.Blocks = i * 31 % 17 }))
				}
				v, r := view(ws...), &policy.Request{Tokens: 100}
				rnd := rand.New(rand.NewPCG(1, 2))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := p.Decide(v, r, rnd, now); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
