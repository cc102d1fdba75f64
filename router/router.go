// SPDX-License-Identifier: Apache-2.0

package router

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/router/internal/ledger"
	"github.com/weft-go/weft/router/policy"
)

// The types of package policy that every user of a router needs.
type (
	// Request describes the request to place.
	Request = policy.Request
	// Decision is a chosen worker and the reasons.
	Decision = policy.Decision
	// Rates are the speed of a worker.
	Rates = policy.Rates
)

// Options configure a [Router].
type Options struct {
	// Policy decides; nil means policy.KVAware{}.
	Policy policy.Policy
	// Rand breaks ties. The router uses it under its lock. nil means that ties go to the worker that holds fewest blocks, then
	// to the lowest ID.
	Rand *rand.Rand
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
	index *index.Index
	opt   Options

	mu       sync.Mutex // guards the following fields; acquired before the index's lock
	workers  []*worker  // ascending by id
	sessions sessions
	turn     uint64
	view     policy.View // scratch memory for decisions
	matches  []index.Match
	known    []index.Worker
}

// worker is a registered worker. Tickets may refer to it after it was removed.
type worker struct {
	id     index.WorkerID
	key    index.Key
	role   policy.Role
	rates  Rates
	health policy.Health
	why    string
	ledger ledger.Ledger
	stats  Stats
}

// New returns a router without workers. x is the index of the model's cached blocks, to which the caller adds events;
// nil means a new index for blocks of 64 tokens. Without events, an index holds only the router's predictions. nil
// options mean the defaults.
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

// Index returns the index that the router uses. The caller adds events to it.
func (r *Router) Index() *index.Index { return r.index }

// AddWorker adds a healthy worker without load, and returns its ID in the index. nil rates, and rates that are not
// positive, mean the defaults; see [policy.Rates]. It returns an error if the router already has a worker with this
// key.
func (r *Router) AddWorker(key index.Key, role policy.Role, rates *Rates) (index.WorkerID, error) {
	var speed Rates
	if rates != nil {
		speed = *rates
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id := r.index.AddWorker(key)
	i, found := r.find(id)
	if found {
		return id, fmt.Errorf("router: add worker %s: already registered", key)
	}
	r.workers = slices.Insert(r.workers, i, &worker{id: id, key: key, role: role, rates: speed.Defaults()})
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
	r.index.RemoveWorker(id)
	return true
}

// SetHealth specifies whether the worker accepts requests; why is the reason in errors and scores. It reports whether
// the worker is registered.
func (r *Router) SetHealth(id index.WorkerID, h policy.Health, why string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, found := r.find(id)
	if found {
		r.workers[i].health, r.workers[i].why = h, why
	}
	return found
}

// Place chooses a worker and reserves the request on it. The request is not retained. The error is a [*policy.Error] if
// no worker is eligible. O(workers + blocks).
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
		return nil, fmt.Errorf("router: place: policy %s chose unknown worker %d", r.opt.Policy.Name(), d.Worker)
	}
	r.turn++
	d.Key, d.Policy = r.workers[i].key, cmp.Or(d.Policy, r.opt.Policy.Name())
	return r.reserve(r.workers[i], &v.Workers[i], req, d, now), nil
}

// Explain returns the decision that Place would make, without changing anything. Ties are broken as if Rand were nil.
func (r *Router) Explain(req *Request, now time.Time) (Decision, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.opt.Policy.Decide(r.look(req, now), req, nil, now)
}

// Workers returns all workers, in ascending order of IDs, as in a decision for an empty prompt.
func (r *Router) Workers(now time.Time) []policy.Worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.look(&Request{}, now).Workers)
}

// look fills the view for one request. The result is valid until the next call.
func (r *Router) look(req *Request, now time.Time) *policy.View {
	r.index.Expire(now)
	r.matches = r.index.AppendMatches(r.matches[:0], req.Hashes)
	r.known = r.index.AppendWorkers(r.known[:0])
	sticky, hasSession := r.sessions.worker(&req.Intent, now)

	v := &r.view
	v.BlockSize, v.Turn, v.Workers = r.index.BlockSize(), r.turn, v.Workers[:0]
	m, k := 0, 0 // both are in ascending order of ID, like the workers
	for _, w := range r.workers {
		pw := policy.Worker{
			Worker: index.Worker{ID: w.id, Key: w.key}, Role: w.role, Health: w.health, HealthWhy: w.why, Rates: w.rates,
			Load: w.ledger.At(now), Session: hasSession && sticky == w.key,
		}
		for k < len(r.known) && r.known[k].ID < w.id {
			k++
		}
		if k < len(r.known) && r.known[k].ID == w.id {
			pw.Worker = r.known[k]
		}
		for m < len(r.matches) && r.matches[m].Worker < w.id {
			m++
		}
		if m < len(r.matches) && r.matches[m].Worker == w.id {
			pw.Match = r.matches[m]
		}
		v.Workers = append(v.Workers, pw)
	}
	return v
}

// find returns the index of the worker with the given ID, or the index at which it would be inserted.
func (r *Router) find(id index.WorkerID) (int, bool) {
	return slices.BinarySearchFunc(r.workers, id, func(w *worker, id index.WorkerID) int { return cmp.Compare(w.id, id) })
}
