// SPDX-License-Identifier: Apache-2.0

package learn_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/router/internal/learn"
)

// fleet returns n workers that are assumed to need 1/70 ms for each token.
func fleet(n int) (*learn.Model, []*learn.Speed) {
	m := &learn.Model{}
	m.Start(learn.Rates{0, 1.0 / 70, 0})
	var all []*learn.Speed
	for range n {
		s := learn.NewSpeed(1)
		all = append(all, &s)
	}
	return m, all
}

// prefill draws a prefill and how long it takes on an engine with the given rates.
func prefill(rnd *rand.Rand, r learn.Rates) (n, cached, t float64) {
	n, cached = math.Floor(math.Exp(2+8*rnd.Float64())), math.Floor(100_000*rnd.Float64())
	return n, cached, r[0] + r[1]*n + r[2]*n*(cached+n/2)
}

// The rates and the speeds of a fleet in which a quarter of the workers is slower are found from noisy samples.
func TestLearn(t *testing.T) {
	truth := learn.Rates{12, 0.03, 3e-7}
	m, all := fleet(8)
	rnd := rand.New(rand.NewPCG(1, 2))
	slow := func(i int) float64 {
		if i < 2 {
			return 0.6
		}
		return 1
	}
	for range 4000 {
		i := rnd.IntN(len(all))
		n, c, ms := prefill(rnd, truth)
		m.Add(work(n, c), ms/slow(i)*math.Exp(0.1*rnd.NormFloat64()), all[i], all)
	}
	require.Greater(t, m.Samples(), 3900)
	var worst float64
	for range 1000 {
		i := rnd.IntN(len(all))
		n, c, ms := prefill(rnd, truth)
		r := m.Rates()
		got := (r[0] + r[1]*n + r[2]*n*(c+n/2)) / all[i].Factor()
		worst = max(worst, math.Abs(got/(ms/slow(i))-1))
	}
	require.Less(t, worst, 0.15, "%v", m.Rates())
}

// A worker that gets most of the prompts of a kind that the rates fit badly does not look slow at once.
func TestSpeedsAreCautious(t *testing.T) {
	m, all := fleet(4)
	for i := range 40 {
		m.Add(work(1000, 0), 30, all[i%4], all)
		m.Add(work(1000, 0), 60, all[0], all)
	}
	require.Greater(t, all[0].Factor(), 0.8)
}

// Whatever is measured, rates stay finite and not negative, and the geometric mean of the learned speeds stays 1.
func TestBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, all := fleet(rapid.IntRange(1, 4).Draw(t, "workers"))
		times := rapid.SliceOfN(rapid.Float64(), 1, 60).Draw(t, "times")
		for i, ms := range times {
			n := float64(rapid.IntRange(-1, 1<<20).Draw(t, "tokens"))
			m.Add(work(n, float64(rapid.IntRange(0, 1<<20).Draw(t, "cached"))), ms, all[i%len(all)], all)
		}
		for _, r := range m.Rates() {
			if !(r >= 0) || math.IsInf(r, 1) {
				t.Fatal(m.Rates())
			}
		}
		product := 1.0
		for _, s := range all {
			product *= s.Factor()
		}
		if math.Abs(math.Log(product)) > 0.05*float64(len(all)) { // small ones are treated as 1
			t.Fatal(product)
		}
	})
}

// Samples that are much too slow are not counted: an engine that was stopped, a lost connection.
func TestOutliers(t *testing.T) {
	m, all := fleet(1)
	require.False(t, m.Add(work(100, 0), 60_000, all[0], all))
	require.False(t, m.Add(work(0, 100), 5, all[0], all))
	require.False(t, m.Add(work(100, 0), math.NaN(), all[0], all))
	require.False(t, m.Add(work(100, 0), -5, all[0], all))
	require.Equal(t, learn.Rates{0, 1.0 / 70, 0}, m.Rates())
	require.True(t, m.Add(work(70_000, 0), 3000, all[0], all))
}

// A configured speed is kept until something is learned, and small differences do not count.
func TestSpeeds(t *testing.T) {
	m, _ := fleet(0)
	a, b := learn.NewSpeed(2), learn.NewSpeed(1)
	all := []*learn.Speed{&a, &b}
	require.InDelta(t, 2, a.Factor(), 1e-12)
	m.Add(work(7000, 0), 50.1, &a, all) // estimated 50
	require.InDelta(t, 2, a.Factor(), 1e-12)
	require.InDelta(t, 1, b.Factor(), 1e-12)
	for range 400 {
		m.Add(work(7000, 0), 50, &a, all)
		m.Add(work(7000, 0), 200, &b, all)
	}
	require.InDelta(t, 4, a.Factor()/b.Factor(), 0.5)
}

func work(n, cached float64) (w learn.Work) {
	w.Add(n, cached)
	return w
}
