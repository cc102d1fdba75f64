// SPDX-License-Identifier: Apache-2.0

package router

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/router/internal/learn"
	"github.com/weft-go/weft/router/internal/ledger"
	"github.com/weft-go/weft/router/policy"
)

// The types of package policy that every user of a router needs.
type (
	// Request describes the request to place.
	Request = policy.Request
	// Engine holds the rates and the capacity of a worker's engine.
	Engine = policy.Engine
)

// Options configure a [Router].
type Options struct {
	// Policy computes the costs; nil means policy.Default().
	Policy policy.Policy
	// FixedRates keeps the rates that [Router.AddWorker] was called with. Otherwise the router learns them from requests
	// whose prefill was the only one on their worker; see [Ticket.Finish].
	FixedRates bool
	// PredictFor limits how long, after its estimated prefill, a prompt is treated as cached on its worker without a
	// confirming event; 0 means 5 seconds, a negative value disables predictions. For engines without events, 2 minutes
	// is a good value, because predictions are then the only information about their caches.
	PredictFor time.Duration
	// SessionFor limits how long the worker of a session is stored after the session's last request; 0 means 10
	// minutes.
	SessionFor time.Duration
	// MaxSessions limits the number of stored sessions; 0 means 65,536. The least recently used is dropped first.
	MaxSessions int
}

// Router places requests on workers. It is safe for concurrent use by multiple goroutines.
type Router struct {
	index   *index.Index
	opt     Options
	scratch sync.Pool // of *lookup

	mu       sync.Mutex  // guards the following fields; acquired before the index's lock
	workers  []*worker   // ascending by id
	view     policy.View // of the same workers
	costs    []policy.Terms
	sessions sessions
	firsts   [64]uint64 // first hashes of the last requests placed, by number
	model    learn.Model
	speeds   []*learn.Speed // of workers
	booked   float64        // ms of prefill placed in about the last minute
	bookedAt time.Time
}

// worker is a registered worker. Tickets may refer to it after it was removed.
type worker struct {
	id     index.WorkerID
	key    index.Key
	engine Engine // as configured
	speed  learn.Speed
	ledger ledger.Ledger
	stats  Stats
}

// lookup holds the results of the index for a request.
type lookup struct {
	turn    uint64 // requests placed before it
	matches []index.Match
	known   []index.Worker
}

// New returns a router without workers. x is the index of the model's cached blocks, to which the caller adds events;
// nil means a new index for blocks of 64 tokens. Without events, an index holds only the router's predictions. nil
// options mean the defaults.
func New(x *index.Index, o *Options) *Router {
	if x == nil {
		x = index.New(64, nil)
	}
	r := &Router{index: x}
	r.scratch.New = func() any { return new(lookup) }
	if o != nil {
		r.opt = *o
	}
	if r.opt.Policy == nil {
		r.opt.Policy = policy.Default()
	}
	r.opt.PredictFor = cmp.Or(r.opt.PredictFor, 5*time.Second)
	r.sessions.keep = cmp.Or(r.opt.SessionFor, 10*time.Minute)
	r.sessions.limit = cmp.Or(r.opt.MaxSessions, 1<<16)
	r.view.BlockSize = x.BlockSize()
	return r
}

// Index returns the index that the router uses. The caller adds events to it.
func (r *Router) Index() *index.Index { return r.index }

// AddWorker adds a healthy worker without load, and returns its ID in the index. nil means an engine with the defaults;
// see [policy.Engine]. It returns an error if the router already has a worker with this key.
func (r *Router) AddWorker(key index.Key, role policy.Role, e *Engine) (index.WorkerID, error) {
	var engine Engine
	if e != nil {
		engine = *e
	}
	engine = engine.Defaults()
	r.mu.Lock()
	defer r.mu.Unlock()
	id := r.index.AddWorker(key)
	i, found := r.find(id)
	if found {
		return id, fmt.Errorf("router: add worker %s: already registered", key)
	}
	if len(r.workers) == 0 && r.model.Samples() == 0 {
		r.model.Start(learn.Rates{engine.Base, engine.Prefill, engine.Attention})
	}
	w := &worker{id: id, key: key, engine: engine, speed: learn.NewSpeed(r.model.Before()[1] / engine.Prefill)}
	r.workers = slices.Insert(r.workers, i, w)
	r.view.Workers = slices.Insert(r.view.Workers, i, policy.Worker{Worker: index.Worker{ID: id, Key: key}, Role: role, Engine: engine})
	r.enlist()
	return id, nil
}

// RemoveWorker removes the worker, also from the index. Its tickets stay valid. It reports whether the worker was
// registered.
func (r *Router) RemoveWorker(id index.WorkerID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, found := r.find(id)
	if !found {
		return false
	}
	r.workers = slices.Delete(r.workers, i, i+1)
	r.view.Workers = slices.Delete(r.view.Workers, i, i+1)
	r.enlist()
	r.index.RemoveWorker(id)
	return true
}

// enlist lists the speeds of the workers, and sets the rates that were learned.
func (r *Router) enlist() {
	r.speeds = r.speeds[:0]
	for _, w := range r.workers {
		r.speeds = append(r.speeds, &w.speed)
	}
	r.learned()
}

// learned sets the rates of all workers to what was learned.
func (r *Router) learned() {
	if r.model.Samples() == 0 {
		return
	}
	rates := r.model.Rates()
	for i, w := range r.workers {
		e, f := &r.view.Workers[i].Engine, w.speed.Factor()
		e.Base, e.Prefill, e.Attention = rates[0]/f, rates[1]/f, rates[2]/f
	}
}

// SetHealth specifies whether the worker accepts requests; why is the reason in errors and scores. It reports whether
// the worker is registered.
func (r *Router) SetHealth(id index.WorkerID, h policy.Health, why string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, found := r.find(id)
	if found {
		r.view.Workers[i].Health, r.view.Workers[i].HealthWhy = h, why
	}
	return found
}

// Place chooses a worker and reserves the request on it. The request is not retained. The error is an [*Error] if no
// worker is eligible. O(workers + blocks); the lookup in the index, which is most of it, runs in parallel with other calls.
func (r *Router) Place(req *Request, now time.Time) (*Ticket, error) {
	l := r.lookup(req, now)
	defer r.scratch.Put(l)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look(l, req, now)
	r.cost(req)
	best, ties, next, nextCost := r.choose(req)
	if best < 0 {
		return nil, r.refuse(req)
	}
	t := &Ticket{router: r, worker: r.workers[best], decision: r.decide(req, best, ties, next, nextCost)}
	r.reserve(t, best, req, now)
	return t, nil
}

// refuse returns the error if no worker is eligible.
func (r *Router) refuse(req *Request) error {
	if len(r.workers) == 0 {
		return &Error{err: ErrNoWorkers}
	}
	return &Error{err: ErrAllBarred, Scores: r.scores(req)}
}

// Explain returns the scores of all workers, in ascending order of IDs, and the decision that Place would make, without
// changing anything.
func (r *Router) Explain(req *Request, now time.Time) ([]Score, Decision, error) {
	l := r.lookup(req, now)
	defer r.scratch.Put(l)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look(l, req, now)
	r.cost(req)
	best, ties, next, nextCost := r.choose(req)
	if best < 0 {
		return nil, Decision{}, r.refuse(req)
	}
	return r.scores(req), r.decide(req, best, ties, next, nextCost), nil
}

// Workers returns all workers, in ascending order of IDs, as in a decision for an empty prompt.
func (r *Router) Workers(now time.Time) []policy.Worker {
	req := &Request{}
	l := r.lookup(req, now)
	defer r.scratch.Put(l)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look(l, req, now)
	return slices.Clone(r.view.Workers)
}

// lookup asks the index about a request, without the lock.
func (r *Router) lookup(req *Request, now time.Time) *lookup {
	r.mu.Lock()
	turn := r.view.Turn
	r.mu.Unlock()
	l := r.scratch.Get().(*lookup)
	l.turn = turn
	r.index.Expire(now)
	l.known = r.index.AppendWorkers(l.known[:0])
	l.matches = r.index.AppendMatches(l.matches[:0], req.Hashes)
	return l
}

// look fills the view for one request. If a request with the same first block was placed since l was made, it looks it up again, because
// its prediction counts for this one. The caller holds the lock.
func (r *Router) look(l *lookup, req *Request, now time.Time) {
	if len(req.Hashes) > 0 && r.view.Turn != l.turn {
		for n := l.turn; n < r.view.Turn; n++ {
			if r.view.Turn-l.turn > uint64(len(r.firsts)) || r.firsts[n%uint64(len(r.firsts))] == req.Hashes[0] {
				l.matches = r.index.AppendMatches(l.matches[:0], req.Hashes)
				break
			}
		}
	}
	sticky, hasSession := r.sessions.worker(&req.Intent, now)
	v := &r.view
	v.Now, v.Busy = now, r.busy(now)
	m, k := 0, 0 // both are in ascending order of ID, like the workers
	for i, w := range r.workers {
		pw := &v.Workers[i]
		for k < len(l.known) && l.known[k].ID < w.id {
			k++
		}
		if k < len(l.known) && l.known[k].ID == w.id && l.known[k].Key == w.key {
			pw.Worker = l.known[k]
		}
		for m < len(l.matches) && l.matches[m].Worker < w.id {
			m++
		}
		pw.Match = index.Match{}
		if m < len(l.matches) && l.matches[m].Worker == w.id {
			pw.Match = l.matches[m]
		}
		pw.Load, pw.Session = w.ledger.At(now), hasSession && sticky == w.key
	}
}

// busy returns the fraction of the fleet's time that prefills of the last minute take.
func (r *Router) busy(now time.Time) float64 {
	if len(r.workers) == 0 || r.booked == 0 {
		return 0
	}
	const minute = 60e3
	age := max(0, float64(now.Sub(r.bookedAt))/1e6)
	return min(0.95, r.booked*math.Exp(-age/minute)/(minute*float64(len(r.workers))))
}

// book adds ms of prefill to what busy counts.
func (r *Router) book(ms float64, now time.Time) {
	if age := float64(now.Sub(r.bookedAt)) / 1e6; age > 0 {
		r.booked *= math.Exp(-age / 60e3)
		r.bookedAt = now
	}
	r.booked += ms
}

// find returns the index of the worker with the given ID, or the index at which it would be inserted.
func (r *Router) find(id index.WorkerID) (int, bool) {
	return slices.BinarySearchFunc(r.workers, id, func(w *worker, id index.WorkerID) int { return cmp.Compare(w.id, id) })
}
