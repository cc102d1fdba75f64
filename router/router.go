// SPDX-License-Identifier: Apache-2.0

package router

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/router/load"
	"github.com/weft-go/weft/router/policy"
)

// The vocabulary of decisions is package policy's; these are the names users of a router need most.
type (
	// Request is what a decision needs to know about a request.
	Request = policy.Request
	// View is what is known about all workers, at one moment and for one request.
	View = policy.View
	// Decision is a chosen worker and the reasons.
	Decision = policy.Decision
	// Score is what a decision thought of one worker.
	Score = policy.Score
	// Policy chooses a worker.
	Policy = policy.Policy
	// Role says what part of a request a worker serves.
	Role = policy.Role
	// Health says whether a worker takes requests.
	Health = policy.Health
	// Rates say how fast a worker is.
	Rates = policy.Rates
	// Error is what Place returns when it chooses no worker.
	Error = policy.Error
)

// Reasons for errors; see [errors.Is].
var (
	// ErrNoWorkers says that no worker is registered.
	ErrNoWorkers = policy.ErrNoWorkers
	// ErrAllBarred says that there are workers and none of them may get the request.
	ErrAllBarred = policy.ErrAllBarred
	// ErrBadDecision says that a policy chose a worker that is not registered.
	ErrBadDecision = errors.New("policy chose an unknown worker")
	// ErrDuplicate says that a worker with this key is registered already.
	ErrDuplicate = errors.New("worker is registered already")
)

// Options configure a [Router].
type Options struct {
	// Policy decides; nil means policy.KVAware{}.
	Policy Policy
	// Rand breaks ties. The router uses it under its lock. nil means that ties go to the worker that holds fewest blocks, then
	// to the lowest number.
	Rand *rand.Rand
	// PredictFor is how long, after its estimated prefill, a prompt counts as cached where it was sent although no event said so; 0 means
	// 5 seconds. For engines without events 2 minutes is a good value: the router then knows only what it placed. Negative: not at
	// all.
	PredictFor time.Duration
	// SessionFor is how long a session remembers its worker after its last request; 0 means 10 minutes.
	SessionFor time.Duration
	// MaxSessions bounds how many sessions are remembered; 0 means 65,536. The one unused longest is forgotten first.
	MaxSessions int
}

// WorkerInfo describes a worker to [Router.AddWorker].
type WorkerInfo struct {
	Key   index.Key
	Role  Role
	Rates Rates // what is not positive means the default; see [policy.Rates]
}

// Router places requests. Safe for concurrent use.
type Router struct {
	index *index.Index
	opt   Options

	mu       sync.Mutex // guards what follows; taken before the index's own lock
	workers  []*worker  // ascending by id
	sessions sessions
	turn     uint64
	view     View // scratch of one decision
	matches  []index.Match
	states   []index.State
}

// worker is a registered worker. Tickets keep it after it was removed.
type worker struct {
	id     index.WorkerID
	info   WorkerInfo
	health Health
	why    string
	ledger load.Ledger
	stats  Stats
}

// New returns a router without workers. x is the index of the model's cached blocks, which the caller keeps up to date; nil
// means a fresh one for blocks of 64 tokens, which then holds only what the router predicts. nil options mean the defaults.
func New(x *index.Index, o *Options) *Router {
	if x == nil {
		x = index.New(64, nil)
	}
	r := &Router{index: x}
	if o != nil {
		r.opt = *o
	}
	if r.opt.Policy == nil {
		r.opt.Policy = policy.KVAware{}
	}
	r.opt.PredictFor = cmp.Or(r.opt.PredictFor, 5*time.Second)
	r.sessions.keep = cmp.Or(r.opt.SessionFor, 10*time.Minute)
	r.sessions.limit = cmp.Or(r.opt.MaxSessions, 1<<16)
	return r
}

// Index returns the index the router looks prefixes up in. Events are applied to it directly.
func (r *Router) Index() *index.Index { return r.index }

// AddWorker registers a worker, healthy and without load, and returns its number in the index. Registered twice, it fails with
// [ErrDuplicate].
func (r *Router) AddWorker(info WorkerInfo) (index.WorkerID, error) {
	info.Rates = info.Rates.Defaults()
	r.mu.Lock()
	defer r.mu.Unlock()
	id := r.index.AddWorker(info.Key)
	i, found := r.find(id)
	if found {
		return id, fmt.Errorf("router: %w: %s", ErrDuplicate, info.Key)
	}
	r.workers = slices.Insert(r.workers, i, &worker{id: id, info: info})
	return id, nil
}

// RemoveWorker forgets the worker and what the index knows of it. Its tickets stay valid. It reports whether the worker was registered.
func (r *Router) RemoveWorker(id index.WorkerID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, found := r.find(id)
	if !found {
		return false
	}
	r.workers = slices.Delete(r.workers, i, i+1)
	r.index.RemoveWorker(id)
	return true
}

// SetHealth says whether the worker takes requests; why goes into errors and scores. It reports whether the worker is registered.
func (r *Router) SetHealth(id index.WorkerID, h Health, why string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, found := r.find(id)
	if found {
		r.workers[i].health, r.workers[i].why = h, why
	}
	return found
}

// Place decides for a worker and reserves the request there. The request is not retained. The error is an [*Error], or wraps
// [ErrBadDecision]. O(workers + blocks).
func (r *Router) Place(req *Request, now time.Time) (*Ticket, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.look(req, now)
	d, err := r.opt.Policy.Decide(v, req, r.opt.Rand, now)
	if err != nil {
		return nil, err
	}
	i, found := r.find(d.Worker)
	if !found {
		return nil, fmt.Errorf("router: %w: %d by %s", ErrBadDecision, d.Worker, r.opt.Policy.Name())
	}
	r.turn++
	d.Key, d.Policy = r.workers[i].info.Key, cmp.Or(d.Policy, r.opt.Policy.Name())
	return r.reserve(r.workers[i], &v.Workers[i], req, d, now), nil
}

// Explain returns the decision Place would make, and changes nothing. Ties are decided as without Rand.
func (r *Router) Explain(req *Request, now time.Time) (Decision, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.opt.Policy.Decide(r.look(req, now), req, nil, now)
}

// Workers returns what is known about all workers, in ascending order of numbers, as a decision about an empty prompt would see it.
func (r *Router) Workers(now time.Time) []policy.Worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.look(&Request{}, now).Workers)
}

// look fills the view for one request. The result is valid until the next call.
func (r *Router) look(req *Request, now time.Time) *View {
	r.index.Expire(now)
	r.matches = r.index.Match(r.matches[:0], req.Hashes)
	r.states = r.index.AppendStates(r.states[:0])
	sticky, hasSession := r.sessions.worker(&req.Intent, now)

	v := &r.view
	v.BlockSize, v.Turn, v.Workers = r.index.BlockSize(), r.turn, v.Workers[:0]
	m, s := 0, 0 // both ascend by number, as the workers do
	for _, w := range r.workers {
		pw := policy.Worker{
			ID: w.id, Key: w.info.Key, Role: w.info.Role, Health: w.health, HealthWhy: w.why, Rates: w.info.Rates,
			Load: w.ledger.At(now), Session: hasSession && sticky == w.info.Key,
		}
		for s < len(r.states) && r.states[s].Worker < w.id {
			s++
		}
		if s < len(r.states) && r.states[s].Worker == w.id {
			pw.Cache.Held, pw.Cache.Trust, pw.Cache.Why = r.states[s].Blocks, r.states[s].Trust, r.states[s].Why
		}
		for m < len(r.matches) && r.matches[m].Worker < w.id {
			m++
		}
		if m < len(r.matches) && r.matches[m].Worker == w.id {
			pw.Cache.Depth, pw.Cache.Predicted = int(r.matches[m].Depth), int(r.matches[m].Predicted)
			for t, n := range r.matches[m].Tiers {
				pw.Cache.Tiers[t] = int(n)
			}
		}
		v.Workers = append(v.Workers, pw)
	}
	return v
}

// find returns the position of the worker with the given number, or where it would be.
func (r *Router) find(id index.WorkerID) (int, bool) {
	return slices.BinarySearchFunc(r.workers, id, func(w *worker, id index.WorkerID) int { return cmp.Compare(w.id, id) })
}
