// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"runtime"
	"slices"
)

// Pair is two ways to do the same work, measured side by side: both see the same noise.
type Pair struct {
	Name         string
	Bytes        int // per call, for the rate; 0: none
	Ours, Theirs func()
	Goal         float64 // the ratio to reach
}

// Verdict is the outcome of a Pair: CPU time per call, medians of the rounds; allocations of ours per call; and the median of
// the ratios of the rounds.
type Verdict struct {
	Name     string  `json:"name"`
	OursNS   float64 `json:"ours_ns"`
	TheirsNS float64 `json:"theirs_ns"`
	Ratio    float64 `json:"ratio"`
	Goal     float64 `json:"goal"`
	Allocs   float64 `json:"allocs"`
	MBs      float64 `json:"mb_per_s,omitempty"`
	Met      bool    `json:"met"`
}

// Measure runs the two in turn, round after round.
func (p *Pair) Measure(rounds int) Verdict {
	n := func(f func()) int {
		for n := 1; ; n *= 2 {
			t := cpuTime()
			for range n {
				f()
			}
			if d := cpuTime() - t; d > slice/4 {
				return max(1, int(float64(n)*float64(slice)/float64(d)))
			}
		}
	}
	run := func(f func(), n int) float64 {
		t := cpuTime()
		for range n {
			f()
		}
		return float64(cpuTime()-t) / float64(n)
	}
	a, b := n(p.Ours), n(p.Theirs)
	var ours, theirs, ratios []float64
	for range rounds {
		runtime.GC()
		x, y := run(p.Ours, a), run(p.Theirs, b)
		ours, theirs, ratios = append(ours, x), append(theirs, y), append(ratios, x/y)
	}
	slices.Sort(ratios)
	v := Verdict{
		Name: p.Name, OursNS: round(median(ours), 10), TheirsNS: round(median(theirs), 10), Ratio: round(median(ratios), 1000),
		Goal: p.Goal, Allocs: allocs(p.Ours),
	}
	v.Met = v.Ratio <= p.Goal
	if p.Bytes > 0 {
		v.MBs = round(float64(p.Bytes)/median(ours)*1e3, 1)
	}
	return v
}

// allocs returns the allocations of a warm call.
func allocs(f func()) float64 {
	const n = 100
	var a, b runtime.MemStats
	f()
	runtime.ReadMemStats(&a)
	for range n {
		f()
	}
	runtime.ReadMemStats(&b)
	return float64(b.Mallocs-a.Mallocs) / n
}
