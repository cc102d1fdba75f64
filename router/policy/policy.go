// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/weft-go/weft/kvhash/index"
)

// Policy chooses a worker. [KVAware], [LeastLoaded] and [RoundRobin] are policies; users write others.
type Policy interface {
	// Name returns the policy's name in lower case with underscores.
	Name() string
	// Decide returns the worker for the request. The result must depend only on the arguments. If rnd is nil, ties must
	// be broken by the view. now is the time of the view. The error is an [*Error]. Decide may be called concurrently
	// with different arguments. The router calls it with a lock held, so it must not call the router.
	Decide(v *View, r *Request, rnd *rand.Rand, now time.Time) (Decision, error)
}

// Decision is a chosen worker and the reasons.
type Decision struct {
	// Score is the score of the chosen worker.
	Score
	Policy string // its name
	// PredictedTokens is the part of the Score's CachedEstimate that no event has confirmed.
	PredictedTokens int
	// State is the state of the worker in the index.
	State index.State
	// Scores are the costs of all workers, in the order of the view.
	Scores []Score
	// Why is the reason, in one line.
	Why string
}

// Score is the cost of one worker in a decision.
type Score struct {
	Worker index.WorkerID
	Key    index.Key
	// Barred is the reason why the worker was not eligible, or "". The other fields are then zero.
	Barred string
	// CachedEstimate is the number of prompt tokens that the worker holds according to the index.
	CachedEstimate int
	Terms          Terms
	Cost           float64 // ms; the value that the policy compares
}

// Terms are the parts of a cost, in milliseconds; see the package comment. Terms that a policy does not use are zero.
type Terms struct {
	Wait, New, Load, Decode, Move, Affinity float64
}

// Sum returns the cost: the sum of all terms, from which Affinity is subtracted.
func (t Terms) Sum() float64 { return t.Wait + t.New + t.Load + t.Decode + t.Move - t.Affinity }

// append appends what String returns.
func (t Terms) append(b []byte) []byte {
	n := len(b)
	for _, p := range [...]struct {
		name string
		ms   float64
	}{{"wait ", t.Wait}, {"new ", t.New}, {"load ", t.Load}, {"decode ", t.Decode}, {"move ", t.Move}, {"affinity ", -t.Affinity}} {
		switch {
		case p.ms == 0:
			continue
		case p.ms < 0:
			b = append(b, " - "...)
		case len(b) > n:
			b = append(b, " + "...)
		}
		b = appendMS(append(b, p.name...), max(p.ms, -p.ms))
	}
	if len(b) == n {
		b = append(b, '0')
	}
	return b
}

func appendMS(b []byte, ms float64) []byte { return strconv.AppendFloat(b, ms, 'f', 1, 64) }

// String returns the terms that are not zero, as in "wait 12.0 + new 3.4 - affinity 10.0".
func (t Terms) String() string { return string(t.append(nil)) }

// The reasons why no worker is chosen.
var (
	// ErrNoWorkers means that no worker is registered.
	ErrNoWorkers = errors.New("no workers")
	// ErrAllBarred means that there are workers and none of them is eligible for the request.
	ErrAllBarred = errors.New("all workers are barred")
)

// Error is the error of [Policy.Decide] if it chooses no worker. It wraps the reason.
type Error struct {
	Err    error   // ErrNoWorkers, ErrAllBarred, or a reason of a user's policy
	Scores []Score // with the reason for each worker in Barred
}

// Error returns the reason and, for each worker, why it was barred.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("router: ")
	b.WriteString(e.Err.Error())
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
func (e *Error) Unwrap() error { return e.Err }
