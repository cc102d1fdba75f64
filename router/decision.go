// SPDX-License-Identifier: Apache-2.0

package router

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/router/policy"
)

// Decision is a chosen worker and the reasons.
type Decision struct {
	// Score is the score of the chosen worker.
	Score
	// PredictedTokens is the part of the Score's CachedEstimate that no event has confirmed.
	PredictedTokens int
	// State is the state of the worker in the index.
	State index.State

	tokens   int       // of the prompt
	ties     int       // workers with the same cost, this one included
	next     index.Key // the second best, if nextCost is finite
	nextCost float64
}

// Score is the cost of one worker in a decision.
type Score struct {
	Worker index.WorkerID
	Key    index.Key
	// Barred is the reason why the worker was not eligible, or "". The other fields are then zero.
	Barred string
	// CachedEstimate is the number of prompt tokens that the worker holds according to the index.
	CachedEstimate int
	// Cost is the sum of the policy's terms. The router chooses the lowest.
	Cost float64

	policy policy.Policy
	terms  policy.Terms
}

// Policy returns the name of the policy that computed the cost.
func (s *Score) Policy() string {
	if s.policy == nil {
		return ""
	}
	return s.policy.Name()
}

// Term returns the part of the cost with a name, and 0 if the policy has no such term.
func (s *Score) Term(name string) float64 {
	if s.policy != nil {
		for i, t := range s.policy.Terms() {
			if t.Name == name {
				return s.terms[i]
			}
		}
	}
	return 0
}

// String returns the cost and the terms that are not zero, as in "12.3 ms = wait 8.9 + new 3.4", or why the worker was barred.
func (s *Score) String() string { return string(s.append(nil)) }

func (s *Score) append(b []byte) []byte {
	if s.Barred != "" || s.policy == nil {
		return append(b, s.Barred...)
	}
	terms := s.policy.Terms()
	unit := func(b []byte, u string) []byte {
		if u == "1" {
			return b
		}
		return append(append(b, ' '), u...)
	}
	if len(terms) == 0 {
		return appendNumber(b, s.Cost)
	}
	same := true
	for _, t := range terms {
		same = same && t.Unit == terms[0].Unit
	}
	b = appendNumber(b, s.Cost)
	if same {
		b = unit(b, terms[0].Unit)
	}
	b = append(b, " = "...)
	n := len(b)
	for i, t := range terms {
		x := s.terms[i]
		switch {
		case x == 0:
			continue
		case x < 0 && len(b) == n:
			b = append(b, "- "...)
		case x < 0:
			b = append(b, " - "...)
		case len(b) > n:
			b = append(b, " + "...)
		}
		b = appendNumber(append(append(b, t.Name...), ' '), math.Abs(x))
		if !same {
			b = unit(b, t.Unit)
		}
	}
	if len(b) == n {
		b = append(b, '0')
	}
	return b
}

func appendNumber(b []byte, x float64) []byte { return strconv.AppendFloat(b, x, 'f', 1, 64) }

// Why returns the reason for the decision in one line: the worker, its cost, what it holds of the prompt, and the second
// best worker.
func (d *Decision) Why() string {
	b, _ := d.Key.AppendText(make([]byte, 0, 256))
	b = d.Score.append(append(b, ": "...))
	b = append(strconv.AppendInt(append(b, "; "...), int64(d.CachedEstimate), 10), " of "...)
	b = append(strconv.AppendInt(b, int64(d.tokens), 10), " tokens cached (estimate, "...)
	b = append(b, d.State.String()...)
	if d.PredictedTokens > 0 {
		b = append(strconv.AppendInt(append(b, ", "...), int64(d.PredictedTokens), 10), " of them predicted"...)
	}
	b = append(b, ')')
	switch {
	case d.ties > 1:
		b = append(strconv.AppendInt(append(b, ", equal on "...), int64(d.ties), 10), " workers"...)
	case !math.IsInf(d.nextCost, 1):
		b, _ = d.next.AppendText(append(b, "; next "...))
		b = appendNumber(append(b, ' '), d.nextCost)
	}
	return string(b)
}

// Next returns the second best worker and its cost, and false if no other worker was eligible. It may cost the same.
func (d *Decision) Next() (key index.Key, cost float64, ok bool) {
	return d.next, d.nextCost, !math.IsInf(d.nextCost, 1)
}

// The reasons why no worker is chosen.
var (
	// ErrNoWorkers means that no worker is registered.
	ErrNoWorkers = errors.New("no workers")
	// ErrAllBarred means that there are workers and none of them is eligible for the request.
	ErrAllBarred = errors.New("all workers are barred")
)

// Error is the error of [Router.Place] if no worker is chosen. It wraps ErrNoWorkers or
// ErrAllBarred.
type Error struct {
	Scores []Score // with the reason for each worker in Barred

	err error
}

// Error returns the reason and, for each worker, why it was barred.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("router: ")
	b.WriteString(e.err.Error())
	sep := ": "
	for _, s := range e.Scores {
		if s.Barred != "" {
			fmt.Fprintf(&b, "%s%s %s", sep, s.Key, s.Barred)
			sep = ", "
		}
	}
	return b.String()
}

// Unwrap returns ErrNoWorkers or ErrAllBarred.
func (e *Error) Unwrap() error { return e.err }

// barred returns why a worker is not eligible, or "".
func barred(w *policy.Worker, req *Request, sum float64) string {
	if why := w.Barred(req); why != "" {
		return why
	}
	if math.IsNaN(sum) || math.IsInf(sum, 1) {
		return "excluded by the policy"
	}
	return ""
}

// cost computes the costs of all workers in r.view. The caller holds the lock.
func (r *Router) cost(req *Request) {
	n := len(r.view.Workers)
	if cap(r.costs) < n {
		r.costs = make([]policy.Terms, n)
	}
	r.costs = r.costs[:n]
	clear(r.costs)
	r.opt.Policy.Costs(&r.view, req, r.costs)
}

// scores returns the scores of all workers after cost. The caller holds the lock.
func (r *Router) scores(req *Request) []Score {
	out := make([]Score, len(r.view.Workers))
	for i := range out {
		out[i] = r.score(req, i)
	}
	return out
}

func (r *Router) score(req *Request, i int) Score {
	w, t := &r.view.Workers[i], &r.costs[i]
	s := Score{Worker: w.ID, Key: w.Key, Barred: barred(w, req, t.Sum())}
	if s.Barred == "" {
		_, _, s.CachedEstimate, _ = w.Estimate(req, r.view.BlockSize)
		s.policy, s.terms, s.Cost = r.opt.Policy, *t, t.Sum()
	}
	return s
}

// choose returns the index in the view of the worker with the lowest cost, or -1 if no worker is eligible; the number of
// workers with that cost; and the index and the cost of the second best. The caller holds the lock.
func (r *Router) choose(req *Request) (best, ties int, next int, nextCost float64) {
	best, next = -1, -1
	var least float64
	nextCost = math.Inf(1)
	for i := range r.view.Workers {
		w := &r.view.Workers[i]
		sum := r.costs[i].Sum()
		if barred(w, req, sum) != "" {
			continue
		}
		switch {
		case best < 0 || sum < least:
			if best >= 0 {
				next, nextCost = best, least
			}
			best, least, ties = i, sum, 1
		case sum == least:
			ties++
			next, nextCost = i, sum
			if preferred(w, &r.view.Workers[best]) {
				best, next = i, best
			}
		case sum < nextCost:
			next, nextCost = i, sum
		}
	}
	return best, ties, next, nextCost
}

// preferred reports whether a is chosen rather than b, which costs the same and has a lower ID.
func preferred(a, b *policy.Worker) bool {
	switch {
	case a.Session != b.Session:
		return a.Session
	case a.Load.Blocks != b.Load.Blocks:
		return a.Load.Blocks < b.Load.Blocks
	}
	return a.Last < b.Last
}

// decide returns the decision for the worker at index best of the view.
func (r *Router) decide(req *Request, best, ties, next int, nextCost float64) Decision {
	d := Decision{Score: r.score(req, best), tokens: req.Tokens, ties: ties, nextCost: nextCost}
	w := &r.view.Workers[best]
	_, _, _, d.PredictedTokens = w.Estimate(req, r.view.BlockSize)
	d.State = w.State
	if next >= 0 {
		d.next = r.view.Workers[next].Key
	}
	return d
}
