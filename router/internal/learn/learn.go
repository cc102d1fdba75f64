// SPDX-License-Identifier: Apache-2.0

// Package learn fits the speed of a fleet's engines to observed prefills.
//
// A prefill of u tokens after c cached ones takes (base + u·prefill + u·(c+u/2)·attention) / speed, in milliseconds.
// The three rates are the same for the fleet; each worker has a speed, whose geometric mean is 1. Rates are fitted by
// least squares of the relative errors, with slow forgetting and a weak pull toward the values at the start; none
// becomes negative. Speeds follow the rates in small steps, so that prompts of a kind that the rates
// fit badly do not make the worker look slow that gets most of them. Both were chosen because the textbook forms diverge: least
// squares that are cut off at zero, and speeds without a fixed mean, which run away together with the rates.
package learn

import (
	"math"
	"slices"
)

// Rates are base in ms, prefill in ms per token, attention in ms per token and token before it.
type Rates [3]float64

const (
	forget    = 0.999
	ridge     = 1e-4
	step      = 0.005 // of the logarithm of a speed
	sameSpeed = 0.05  // smaller logarithms are treated as 0, so that equal workers have equal costs
	outlier   = 5     // times the estimate, and
	late      = 2000. // ms, are not samples
	instant   = 0.01  // ms; shorter times are not samples
)

// scale is the typical size of each rate, and the unit of the pull toward the start.
var scale = Rates{10, 0.03, 3e-7}

// Model holds the learned rates. Call Start first. It is not safe for concurrent use.
type Model struct {
	start, rates Rates
	a            [3][3]float64 // sums over samples, in units of scale
	b            [3]float64
	samples      int
}

// Start sets the rates that are assumed before any sample.
func (m *Model) Start(r Rates) { m.start, m.rates = r, r }

// Before returns what Start set.
func (m *Model) Before() Rates { return m.start }

// Samples returns the number of samples that counted.
func (m *Model) Samples() int { return m.samples }

// Rates returns the rates of a worker with speed 1.
func (m *Model) Rates() Rates { return m.rates }

// Speed is the speed of a worker; the zero value is 1 until something is learned.
type Speed struct {
	fixed float64 // logarithm of the configured speed
	log   float64 // of what was learned beyond it
}

// NewSpeed returns the speed of a worker that is configured to be factor times as fast as the rates at the start.
func NewSpeed(factor float64) Speed { return Speed{fixed: math.Log(factor)} }

// Factor returns the speed.
func (s *Speed) Factor() float64 {
	if math.Abs(s.log) < sameSpeed {
		return math.Exp(s.fixed)
	}
	return math.Exp(s.fixed + s.log)
}

// Work is what prefills consist of: their number, tokens, and pairs of a token and a token before it. The time of prefills one after
// another follows from the sum of their works.
type Work [3]float64

// Add adds a prefill of n tokens after cached ones.
func (w *Work) Add(n, cached float64) {
	w[0]++
	w[1] += n
	w[2] += n * (cached + n/2)
}

// Add learns from work that took t ms on the worker with speed s. all are the speeds of the fleet, with s among them. It
// reports whether the sample counted.
func (m *Model) Add(x Work, t float64, s *Speed, all []*Speed) bool {
	estimate := m.rates.Time(x)
	own := math.Exp(s.fixed + s.log)
	if !(t >= instant) || x[1] <= 0 || t > outlier*estimate/own+late {
		return false
	}
	if estimate > 0 {
		s.log += step * max(-1, min(1, math.Log(estimate/own/t)))
		var mean float64
		for _, o := range all {
			mean += o.log / float64(len(all))
		}
		for _, o := range all {
			o.log -= mean
		}
		own = math.Exp(s.fixed + s.log)
	}
	t *= own // on a worker with speed 1
	for i := range x {
		x[i] *= scale[i] / t
	}
	m.gather(&x, forget)
	m.samples++
	m.solve(ridge)
	return true
}

// Sample is a work and the time in ms that it took.
type Sample struct {
	Work Work
	Time float64
}

// Time returns the time of work with the rates, in ms.
func (r *Rates) Time(x Work) (ms float64) {
	for i := range x {
		ms += r[i] * x[i]
	}
	return ms
}

// Fit returns the rates with the least relative errors, without those samples whose error is more than three times the median, and
// reports which samples were kept.
func Fit(samples []Sample) (Rates, []bool) {
	keep := make([]bool, len(samples))
	for i := range keep {
		keep[i] = samples[i].Time >= instant
	}
	var m Model
	for range 4 {
		m = Model{}
		var off []float64
		for i, s := range samples {
			if !keep[i] {
				continue
			}
			for k := range s.Work {
				s.Work[k] *= scale[k] / s.Time
			}
			m.gather(&s.Work, 1)
		}
		m.solve(1e-8) // only against singular equations
		errs := make([]float64, len(samples))
		for i, s := range samples {
			errs[i] = math.Abs(m.rates.Time(s.Work)/max(s.Time, instant) - 1)
			if keep[i] {
				off = append(off, errs[i])
			}
		}
		if len(off) == 0 {
			break
		}
		slices.Sort(off)
		limit := max(0.1, 3*off[len(off)/2])
		for i, e := range errs {
			keep[i] = e <= limit && samples[i].Time >= instant
		}
	}
	return m.rates, keep
}

// gather adds an equation whose right side is 1, after those before have lost weight.
func (m *Model) gather(x *Work, forget float64) {
	for i := range x {
		for k := range x {
			m.a[i][k] = forget*m.a[i][k] + x[i]*x[k]
		}
		m.b[i] = forget*m.b[i] + x[i]
	}
}

// solve sets the rates to the minimum without negative ones: it leaves out the rates that come out negative, most negative first.
func (m *Model) solve(ridge float64) {
	free := [3]bool{true, true, true}
	for range 3 {
		var a [3][4]float64 // the normal equations
		for i := range a {
			if !free[i] {
				a[i][i] = 1
				continue
			}
			for k := range 3 {
				if free[k] {
					a[i][k] = m.a[i][k]
				}
			}
			pull := ridge * max(m.a[0][0]+m.a[1][1]+m.a[2][2], 1e-12) / 3
			a[i][i] += pull
			a[i][3] = m.b[i] + pull*m.start[i]/scale[i]
		}
		x := eliminate(a)
		worst := -1
		for i := range x {
			if x[i] < 0 && (worst < 0 || x[i] < x[worst]) {
				worst = i
			}
		}
		if worst < 0 {
			for i := range x {
				m.rates[i] = x[i] * scale[i]
			}
			return
		}
		free[worst] = false
	}
}

// eliminate solves three linear equations with a positive definite matrix.
func eliminate(a [3][4]float64) (x [3]float64) {
	for i := range 3 {
		for k := i + 1; k < 3; k++ {
			f := a[k][i] / a[i][i]
			for j := i; j < 4; j++ {
				a[k][j] -= f * a[i][j]
			}
		}
	}
	for i := 2; i >= 0; i-- {
		x[i] = a[i][3]
		for k := i + 1; k < 3; k++ {
			x[i] -= a[i][k] * x[k]
		}
		x[i] /= a[i][i]
	}
	return x
}
