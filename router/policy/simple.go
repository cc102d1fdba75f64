// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// RoundRobin chooses the workers in turn. It ignores load and caches.
type RoundRobin struct{}

// Name returns "round_robin".
func (RoundRobin) Name() string { return "round_robin" }

// Decide implements [Policy]. The result is the eligible worker at index View.Turn modulo the number of eligible
// workers.
func (p RoundRobin) Decide(v *View, r *Request, _ *rand.Rand, _ time.Time) (Decision, error) {
	c := newChoice(v, r)
	var open uint64
	for i := range c.scores {
		if c.scores[i].Barred == "" {
			open++
		}
	}
	if open == 0 {
		return Decision{}, c.fail()
	}
	turn := v.Turn % open
	for i := range c.scores {
		if c.scores[i].Barred != "" {
			continue
		}
		if turn > 0 {
			turn--
			continue
		}
		d := c.decision(p.Name(), i)
		why := append(c.why(i), ": its turn among "...)
		why = append(strconv.AppendUint(why, open, 10), " workers; "...)
		d.Why = string(c.cached(why, d))
		return d, nil
	}
	panic("unreachable")
}

// LeastLoaded chooses the worker with the shortest wait, to which each block of running requests adds Beta
// milliseconds. It ignores caches.
type LeastLoaded struct {
	// Beta is the same as in [KVAware].
	Beta float64
}

// Name returns "least_loaded".
func (LeastLoaded) Name() string { return "least_loaded" }

// Decide implements [Policy]. Ties are broken as by [KVAware].
func (p LeastLoaded) Decide(v *View, r *Request, rnd *rand.Rand, _ time.Time) (Decision, error) {
	c := newChoice(v, r)
	for i := range c.scores {
		if s := &c.scores[i]; s.Barred == "" {
			s.Terms = Terms{Wait: ms(v.Workers[i].Load.Wait), Decode: setting(p.Beta, 0.02) * float64(v.Workers[i].Load.Blocks)}
			s.Cost = s.Terms.Sum()
		}
	}
	return c.lowest(p.Name(), rnd)
}
