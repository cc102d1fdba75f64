// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/router/policy"
)

func simulate(t testing.TB, o Options, name string) *Result {
	p, err := policy.Named(name)
	require.NoError(t, err)
	o.Policy = p
	r, err := Run(&o)
	require.NoError(t, err)
	return r
}

// cost_ms is never much slower than another policy. BenchmarkPolicies compares them at greater length.
func TestPolicies(t *testing.T) {
	workloads := []string{"chat"}
	duration := 5 * time.Minute
	if testing.Short() {
		t.Skip("simulates minutes of four engines")
	}
	if os.Getenv("WEFT_TEST") == "long" {
		workloads = append(workloads, "agents")
		duration = 20 * time.Minute
	}
	for _, workload := range workloads {
		o := Options{Workload: workload, Workers: 4, Load: 0.9, Duration: duration}
		own := simulate(t, o, "cost_ms").Mean()
		for _, other := range []string{"lmetric", "llm_d", "least_loaded"} {
			got := simulate(t, o, other).Mean()
			t.Logf("%s: %s takes %.2f times as long as cost_ms (%v)", workload, other, float64(got)/float64(own), own)
			if float64(own) > 1.15*float64(got) {
				t.Errorf("%s: cost_ms takes %v, %s %v", workload, own, other, got)
			}
		}
	}
}

// BenchmarkPolicies simulates an hour of 8 engines, or 20 seconds with -short, with another seed each time. Run it with -benchtime 1x or more.
func BenchmarkPolicies(b *testing.B) {
	for _, w := range []string{"agents", "chat"} {
		for _, load := range []float64{0.5, 0.75, 0.9} {
			for _, name := range policy.Names() {
				b.Run(fmt.Sprintf("work=%s/load=%.2f/policy=%s", w, load, name), func(b *testing.B) {
					o := Options{Workload: w, Load: load}
					if testing.Short() { // does it run at all?
						o.Duration = 20 * time.Second
					}
					var mean, p90 time.Duration
					var hit float64
					for b.Loop() {
						r := simulate(b, o, name)
						o.Seed++
						mean, p90, hit = mean+r.Mean(), p90+r.Percentile(90), hit+r.hit
					}
					n := float64(b.N)
					b.ReportMetric(float64(mean)/n/1e6, "ms-mean")
					b.ReportMetric(float64(p90)/n/1e6, "ms-p90")
					b.ReportMetric(100*hit/n, "%cached")
				})
			}
		}
	}
}

// The same seed gives the same run.
func TestRepeats(t *testing.T) {
	o := Options{Workload: "chat", Workers: 3, Duration: time.Minute, slow: 2}
	a := simulate(t, o, "cost_ms")
	require.Equal(t, a, simulate(t, o, "cost_ms"))
	o.Seed = 1
	require.NotEqual(t, a, simulate(t, o, "cost_ms"))
	require.NotZero(t, a.Requests())
	require.True(t, slices.IsSorted(a.first))
	require.LessOrEqual(t, a.Percentile(50), a.Percentile(90))
	_, err := Run(&Options{Workload: "x"})
	require.EqualError(t, err, `sim: unknown workload "x" (want agents or chat)`)
}

func TestInvalidOptions(t *testing.T) {
	for _, o := range []Options{{Workers: -1}, {Load: -0.5}, {Load: math.NaN()}, {Load: math.Inf(1)}, {Duration: -time.Second}} {
		_, err := Run(&o)
		require.ErrorContains(t, err, "must be positive", o)
	}
}

// An engine with a single request takes the time that follows from its costs.
func TestEngine(t *testing.T) {
	r := simulate(t, Options{Workers: 1, Load: 1e-4, Duration: 4 * time.Hour, create: func(*rand.Rand) chain {
		return chain{turns: []turn{{tokens: 6400, output: 3}, {pause: time.Hour, tokens: 64, output: 2}}}
	}}, "cost_ms")
	require.NotZero(t, r.Requests())
	require.InDelta(t, 64*0.03+64*3e-7*(6400+32), float64(r.first[0])/1e6, 0.001, "the second turn: only what is new")
	require.InDelta(t, 6400*0.03+6400*3e-7*3200, float64(r.first[len(r.first)-1])/1e6, 0.001)
}

// A small cache evicts.
func TestCapacity(t *testing.T) {
	o := Options{Workload: "chat", Workers: 2, Load: 0.5, Duration: 2 * time.Minute}
	large := simulate(t, o, "cost_ms")
	o.capacity = 100_000
	small := simulate(t, o, "cost_ms")
	require.Less(t, small.Hit(), large.Hit())
	require.Greater(t, small.Mean(), large.Mean())
}
