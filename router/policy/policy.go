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
	"github.com/weft-go/weft/kvhash/kvevent"
)

// Policy chooses a worker. [KVAware], [LeastLoaded] and [RoundRobin] are policies; users write others.
type Policy interface {
	// Name returns the policy's name in lower case with underscores.
	Name() string
	// Decide returns the worker for the request. It depends on nothing but its arguments; rnd may be nil, and then ties are
	// broken by the view. now is the time of the view. The error is an [*Error]. Decide may run on several goroutines with
	// different arguments, and inside a lock of the router: it must not call the router.
	Decide(v *View, r *Request, rnd *rand.Rand, now time.Time) (Decision, error)
}

// Decision is a chosen worker and the reasons.
type Decision struct {
	Worker index.WorkerID
	Key    index.Key
	Policy string // its name
	// CachedEstimate is how many tokens of the prompt the worker is believed to hold. It is an estimate of the index, to be
	// replaced by the engine's own count when that comes. PredictedTokens of them are expected there but not confirmed.
	CachedEstimate  int
	PredictedTokens int
	// Trust says how far the estimate can be believed.
	Trust kvevent.Trust
	// Scores are the costs of all workers, in the order of the view.
	Scores []Score
	// Why says in one line why this worker.
	Why string
}

// Score is what a decision thought of one worker.
type Score struct {
	Worker index.WorkerID
	Key    index.Key
	// Barred says why the worker was not considered, "" if it was. The other fields are then zero.
	Barred         string
	CachedEstimate int // tokens
	Trust          kvevent.Trust
	Terms          Terms
	Cost           float64 // ms; what the policy compared
}

// Terms are the parts of a cost, in milliseconds. See the package comment. Policies leave those they do not use zero.
type Terms struct {
	Wait, New, Load, Decode, Move, Affinity float64
}

// Sum returns the cost: all terms together, Affinity being a credit.
func (t Terms) Sum() float64 { return t.Wait + t.New + t.Load + t.Decode + t.Move - t.Affinity }

// AppendText appends the terms that are not zero, as in "wait 12.0 + new 3.4 - affinity 10.0". The error is nil.
func (t Terms) AppendText(b []byte) ([]byte, error) {
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
	return b, nil
}

func appendMS(b []byte, ms float64) []byte { return strconv.AppendFloat(b, ms, 'f', 1, 64) }

// String returns what [Terms.AppendText] appends.
func (t Terms) String() string {
	b, _ := t.AppendText(nil)
	return string(b)
}

// The reasons for which no worker is chosen.
var (
	// ErrNoWorkers says that no worker is registered.
	ErrNoWorkers = errors.New("no workers")
	// ErrAllBarred says that there are workers and none of them may get the request.
	ErrAllBarred = errors.New("all workers are barred")
)

// Error is what [Policy.Decide] returns when it chooses no worker. It wraps the reason.
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
