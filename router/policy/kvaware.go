// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/weft-go/weft/kvhash/index"
)

// KVAware chooses the worker with the lowest cost in milliseconds; see the package comment. The zero value uses the
// defaults. A negative field disables its term.
type KVAware struct {
	// Beta is the time in milliseconds by which each active KV block delays a request; 0 means 0.02.
	Beta float64
	// Gamma is the fraction of a worker's extra work, compared with the cheapest worker, that is added to its cost
	// because later turns repeat it; 0 means 0.5. An estimate is (expected number of further turns) x (probability that
	// they occur) x (probability that they stay on the worker).
	Gamma float64
	// Affinity is the credit, in milliseconds, of the worker that served the session's last request; 0 means 10.
	Affinity float64
	// AffinityWait is the wait above which a worker gets no such credit; 0 means one second.
	AffinityWait time.Duration
	// Weights are the weights of cached tokens, by the worker's [index.State]; 0 means 0.5 for Unknown, 0.8 for Degraded and 1 for
	// Exact. Predicted matches have weight 1.
	Weights [index.Exact + 1]float64
}

// Name returns "cost_ms".
func (KVAware) Name() string { return "cost_ms" }

// Decide implements [Policy]. Among workers with equal cost it draws two at random and chooses the one that holds fewer
// blocks, which spreads prefixes over the fleet. If rnd is nil, it chooses the first of the workers with the fewest
// blocks. O(workers). It allocates the scores and the Why line.
func (p KVAware) Decide(v *View, r *Request, rnd *rand.Rand, now time.Time) (Decision, error) {
	beta, gamma := setting(p.Beta, 0.02), setting(p.Gamma, 0.5)
	affinity, affinityWait := setting(p.Affinity, 10), cmp.Or(p.AffinityWait, time.Second)
	c := newChoice(v, r)
	least := math.Inf(1)
	for i := range v.Workers {
		w, s := &v.Workers[i], &c.scores[i]
		if s.Barred != "" {
			continue
		}
		s.Terms, _, _ = w.Estimate(r, v.BlockSize, p.weight(w.State))
		s.Terms.Wait, s.Terms.Decode = ms(w.Load.Wait), beta*float64(w.Load.Blocks)
		if w.Session && w.Load.Wait <= affinityWait {
			s.Terms.Affinity = affinity
		}
		least = min(least, s.Terms.New+s.Terms.Load)
	}
	for i := range c.scores {
		if s := &c.scores[i]; s.Barred == "" {
			s.Terms.Move = gamma * (s.Terms.New + s.Terms.Load - least)
			s.Cost = s.Terms.Sum()
		}
	}
	return c.lowest(p.Name(), rnd)
}

func (p KVAware) weight(s index.State) float64 {
	def := [...]float64{index.Unknown: 0.5, index.Degraded: 0.8, index.Exact: 1}
	if s > index.Exact {
		s = index.Unknown
	}
	return min(setting(p.Weights[s], def[s]), 1)
}

// setting returns x, or def if x is zero, or 0 if x is negative.
func setting(x, def float64) float64 { return max(0, cmp.Or(x, def)) }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// choice is a decision that is being made.
type choice struct {
	v      *View
	r      *Request
	scores []Score
}

// newChoice returns a choice with a score for each worker, in which only the identity, the estimate and Barred are set.
func newChoice(v *View, r *Request) choice {
	c := choice{v: v, r: r, scores: make([]Score, len(v.Workers))}
	for i := range v.Workers {
		w := &v.Workers[i]
		s := &c.scores[i]
		s.Worker, s.Key = w.ID, w.Key
		if s.Barred = w.Barred(r); s.Barred == "" {
			_, s.CachedEstimate, _ = w.Estimate(r, v.BlockSize, 1)
		}
	}
	return c
}

// fail returns the error if no worker is eligible.
func (c *choice) fail() error {
	if len(c.scores) == 0 {
		return &Error{Err: ErrNoWorkers}
	}
	return &Error{Err: ErrAllBarred, Scores: c.scores}
}

// lowest chooses the worker with the lowest cost.
func (c *choice) lowest(name string, rnd *rand.Rand) (Decision, error) {
	best, second, ties := -1, -1, 0
	for i := range c.scores {
		s := &c.scores[i]
		switch {
		case s.Barred != "":
			continue
		case best < 0 || s.Cost < c.scores[best].Cost:
			second, best, ties = best, i, 1
			continue
		case s.Cost == c.scores[best].Cost:
			ties++
		}
		if second < 0 || s.Cost < c.scores[second].Cost {
			second = i
		}
	}
	if best < 0 {
		return Decision{}, c.fail()
	}
	if ties > 1 {
		best, second = c.tie(best, ties, rnd)
	}
	d := c.decision(name, best)
	why := c.why(best)
	why = append(appendMS(append(why, ": "...), c.scores[best].Cost), " ms = "...)
	why = c.scores[best].Terms.append(why)
	why = c.cached(append(why, "; "...), d)
	switch {
	case ties > 1:
		why = append(strconv.AppendInt(append(why, ", equal on "...), int64(ties), 10), " workers"...)
	case second >= 0:
		why, _ = c.scores[second].Key.AppendText(append(why, "; next "...))
		why = append(appendMS(append(why, ' '), c.scores[second].Cost), " ms"...)
	}
	d.Why = string(why)
	return d, nil
}

// why returns the start of the Why line for the worker at index i, with room for the rest.
func (c *choice) why(i int) []byte {
	b, _ := c.scores[i].Key.AppendText(make([]byte, 0, 256))
	return b
}

// tie chooses among the workers with the same cost as the one at index first.
func (c *choice) tie(first, n int, rnd *rand.Rand) (best, other int) {
	equal := make([]int, 0, n)
	for i := range c.scores {
		if s := &c.scores[i]; s.Barred == "" && s.Cost == c.scores[first].Cost {
			equal = append(equal, i)
		}
	}
	if rnd != nil { // two of them, each pair equally likely
		i, j := rnd.IntN(n), rnd.IntN(n-1)
		if j >= i {
			j++
		}
		equal[0], equal[1] = equal[min(i, j)], equal[max(i, j)]
		equal = equal[:2]
	}
	best, other = equal[0], equal[1]
	for _, i := range equal[1:] {
		if c.v.Workers[i].Blocks < c.v.Workers[best].Blocks {
			best, other = i, best
		}
	}
	return best, other
}

// decision returns the decision for the worker at index i, without Why.
func (c *choice) decision(name string, i int) Decision {
	w := &c.v.Workers[i]
	_, _, predicted := w.Estimate(c.r, c.v.BlockSize, 1)
	return Decision{Score: c.scores[i], Policy: name, PredictedTokens: predicted, State: w.State, Scores: c.scores}
}

// cached appends a description of the estimate of cached tokens.
func (c *choice) cached(b []byte, d Decision) []byte {
	b = append(strconv.AppendInt(b, int64(d.CachedEstimate), 10), " of "...)
	b = append(strconv.AppendInt(b, int64(c.r.Tokens), 10), " tokens cached (estimate, "...)
	b = append(b, d.State.String()...)
	if d.PredictedTokens > 0 {
		b = append(strconv.AppendInt(append(b, ", "...), int64(d.PredictedTokens), 10), " of them predicted"...)
	}
	return append(b, ')')
}
