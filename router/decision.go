// SPDX-License-Identifier: Apache-2.0

package router

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/router/policy"
)

// Decision is a chosen worker and the reasons.
type Decision struct {
	// Score is the score of the chosen worker.
	Score

	predicted int
	state     index.State
	tokens    int       // of the prompt
	ties      int       // workers with the same cost, this one included
	next      index.Key // the second best, if nextCost is finite
	nextCost  float64
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
	b = append(b, d.state.String()...)
	if d.predicted > 0 {
		b = append(strconv.AppendInt(append(b, ", "...), int64(d.predicted), 10), " of them predicted"...)
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

// Predicted returns the part of CachedEstimate that no event has confirmed.
func (d *Decision) Predicted() int { return d.predicted }

// State returns the state of the worker in the index: how exactly its blocks are known. It is Unknown if the worker holds
// nothing of the prompt.
func (d *Decision) State() index.State { return d.state }

// Next returns the second best worker and its cost, and false if no other worker was eligible. It may cost the same.
func (d *Decision) Next() (key index.Key, cost float64, ok bool) {
	return d.next, d.nextCost, !math.IsInf(d.nextCost, 1)
}

// The reasons why a request is not placed.
var (
	// ErrNoWorkers means that no worker is registered.
	ErrNoWorkers = errors.New("no workers")
	// ErrAllBarred means that there are workers and none of them is eligible for the request.
	ErrAllBarred = errors.New("all workers are barred")
	// ErrQueueFull means that no worker has room and that too many requests wait already.
	ErrQueueFull = errors.New("too many requests wait")
	// ErrDeadline means that the request waited until its deadline, intent.Intent.Deadline.
	ErrDeadline = errors.New("waited until its deadline")
)

// Error is the error of a request that is not placed. It wraps one of the reasons.
type Error struct {
	Scores []Score // with the reason for each worker in Barred

	err   error
	after time.Duration
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

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.err }

// RetryAfter returns an estimate of when a request like this one would find room, or 0 if waiting does not help.
func (e *Error) RetryAfter() time.Duration { return e.after }

// refuse returns the error if no worker is eligible.
func (m *machine) refuse(e *evaluation, req *Request) *Error {
	if len(m.workers) == 0 {
		return &Error{err: ErrNoWorkers}
	}
	return &Error{err: ErrAllBarred, Scores: e.scores(m.opt.Policy, req)}
}

// barred returns why worker i is not eligible, or "".
func (e *evaluation) barred(req *Request, i int) string {
	if why := e.view.Workers[i].Barred(req); why != "" {
		return why
	}
	if sum := e.costs[i].Sum(); math.IsInf(sum, 1) || math.IsNaN(sum) {
		return "excluded by the policy"
	}
	return ""
}

// scores returns the scores of all workers.
func (e *evaluation) scores(p policy.Policy, req *Request) []Score {
	out := make([]Score, len(e.costs))
	for i := range out {
		out[i] = e.score(p, req, i)
	}
	return out
}

// ranked returns the scores of all workers, in the order in which they would be chosen.
func (e *evaluation) ranked(p policy.Policy, req *Request) []Score {
	order := make([]int, len(e.costs))
	for i := range order {
		order[i] = i
	}
	all := e.scores(p, req)
	slices.SortStableFunc(order, func(i, k int) int {
		a, b := &all[i], &all[k]
		switch {
		case (a.Barred == "") != (b.Barred == ""):
			if a.Barred == "" {
				return -1
			}
			return 1
		case a.Barred != "":
			return 0
		case a.Cost != b.Cost:
			return cmp.Compare(a.Cost, b.Cost)
		case e.preferred(i, k):
			return -1
		case e.preferred(k, i):
			return 1
		}
		return 0
	})
	out := make([]Score, len(order))
	for n, i := range order {
		out[n] = all[i]
	}
	return out
}

func (e *evaluation) score(p policy.Policy, req *Request, i int) Score {
	w, t := &e.view.Workers[i], &e.costs[i]
	s := Score{Worker: w.ID, Key: w.Key, Barred: e.barred(req, i)}
	if s.Barred == "" {
		_, _, s.CachedEstimate, _ = e.view.Estimate(req, i)
		s.policy, s.terms, s.Cost = p, *t, t.Sum()
	}
	return s
}

// decision returns the decision for the best worker.
func (e *evaluation) decision(p policy.Policy, req *Request) Decision {
	d := Decision{Score: e.score(p, req, e.best), tokens: req.Tokens, ties: e.ties, nextCost: math.Inf(1)}
	_, _, _, d.predicted = e.view.Estimate(req, e.best)
	d.state = e.view.Matches[e.best].State
	if e.next >= 0 {
		d.next, d.nextCost = e.view.Workers[e.next].Key, e.costs[e.next].Sum()
	}
	return d
}
