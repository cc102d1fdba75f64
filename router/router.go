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
	// Policy computes the costs; nil means policy.Default(). A policy that is a [policy.Observer] must not be shared by
	// routers.
	Policy policy.Policy
	// FixedRates keeps the rates that [Router.AddWorker] was called with. Otherwise the router learns them from the times in
	// which workers had prefills without pause; see [Ticket.Finish].
	FixedRates bool
	// PredictFor limits how long, after its estimated prefill, a prompt is treated as cached on its worker without a
	// confirming event; 0 means 5 minutes, a negative value disables predictions. It should be longer than sessions
	// pause: without events, or where events were lost, predictions are the only information about a cache. On each worker,
	// only as many blocks are predicted as its Engine.Capacity, or 131,072 if that is unknown.
	PredictFor time.Duration
	// SessionFor limits how long the worker of a session is stored after the session's last request; 0 means 10
	// minutes. At most 65,536 sessions are stored.
	SessionFor time.Duration
	// Hold makes requests wait in the queue while every eligible worker has prefills pending that take longer than
	// this; 0 means that they do not wait for that. Requests always wait while all workers have as many requests as
	// policy.Engine.Slots permits.
	Hold time.Duration
	// MaxQueue limits the number of requests that wait; 0 means 65,536, a negative value means none.
	MaxQueue int
	// Drop is called with blocks of a worker that no request will need again, in the order of their prompt; the blocks after
	// the last one are not needed either. An engine that removes them, or evicts them first, has room for others. They are the
	// blocks of a session after its last request (intent.Session.Final, intent.EvictSession), after a compaction
	// (intent.Intent.Compaction), and of sub-agents when a tool result reaches their parent; but not those that other
	// sessions use. Drop is called with a lock held and must not call the router. It must not modify or retain the hashes. nil
	// means that no engine can remove blocks.
	Drop func(id index.WorkerID, hashes []uint64)
	// Weight returns a tenant's part of the fleet while requests wait, in proportion to the weights of other tenants.
	// nil, or a result that is not positive or not finite, means the number of its sessions that wait. It must return the same
	// value for as long as the router is used.
	Weight func(tenant string) float64
}

const maxSessions = 1 << 16

// Router places requests on workers. It is safe for concurrent use by multiple goroutines. Only [Router.Place] and
// [Ticket.Wait] block and use the clock; all other methods take the time from the caller, and it should not go backwards.
type Router struct {
	index   *index.Index
	scratch sync.Pool // of *evaluation

	mu    sync.Mutex
	m     *machine
	timer *time.Timer // calls tick for tickets in Wait; nil if there are none
	armed time.Time   // when
}

// New returns a router without workers. x is the index of the model's cached blocks, to which the caller adds events;
// nil means a new index for blocks of 64 tokens. Without events, an index holds only the router's predictions. nil
// options mean the defaults.
func New(x *index.Index, o *Options) *Router {
	if x == nil {
		x = index.New(64, nil)
	}
	var opt Options
	if o != nil {
		opt = *o
	}
	if opt.Policy == nil {
		opt.Policy = policy.Default()
	}
	opt.PredictFor = cmp.Or(opt.PredictFor, 5*time.Minute)
	opt.SessionFor = cmp.Or(opt.SessionFor, 10*time.Minute)
	opt.MaxQueue = cmp.Or(opt.MaxQueue, 1<<16)
	r := &Router{index: x, m: newMachine(x, &opt)}
	r.scratch.New = func() any { return new(evaluation) }
	return r
}

// Index returns the index that the router uses. The caller adds events to it.
func (r *Router) Index() *index.Index { return r.index }

// AddWorker adds a worker without load, and returns its ID in the index. nil means an engine with the defaults; see
// [policy.Engine]. It returns an error if the router already has a worker with this key, or the role is not Both, Prefill or
// Decode.
func (r *Router) AddWorker(key index.Key, role policy.Role, e *Engine) (index.WorkerID, error) {
	switch {
	case role == policy.Split:
		return 0, fmt.Errorf("router: add worker %s: a worker cannot have the role split", key)
	case role > policy.Split:
		return 0, fmt.Errorf("router: add worker %s: unknown role %d", key, role)
	}
	var engine Engine
	if e != nil {
		engine = *e
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.m
	id := r.index.AddWorker(key)
	if m.find(id) >= 0 {
		return id, fmt.Errorf("router: add worker %s: already registered", key)
	}
	i, _ := slices.BinarySearchFunc(m.workers, id, func(w *worker, id index.WorkerID) int { return cmp.Compare(w.id, id) })
	w := &worker{id: id, key: key, ledger: ledger.Ledger{Stride: m.stride()}}
	m.workers = slices.Insert(m.workers, i, w)
	m.view.Workers = slices.Insert(m.view.Workers, i, policy.Worker{ID: id, Key: key, Role: role})
	m.configure(i, engine)
	m.enlist()
	r.wake()
	return id, nil
}

// configure sets the engine of the worker at index i.
func (m *machine) configure(i int, e Engine) {
	e = e.Defaults()
	only := m.model.Samples() == 0 && (len(m.workers) == 1 || m.model.Before() == learn.Rates{})
	if only {
		m.model.Start(learn.Rates{e.Base, e.Prefill, e.Attention})
	}
	w := m.workers[i]
	if o := w.engine; only || o.Prefill != e.Prefill || o.Base != e.Base || o.Attention != e.Attention {
		w.speed = learn.NewSpeed(m.model.Before()[1] / e.Prefill)
	}
	if w.engine.Capacity != e.Capacity {
		m.index.SetCapacity(w.id, e.Capacity)
	}
	w.engine, m.view.Workers[i].Engine = e, e
}

// RemoveWorker removes the worker, also from the index. Its tickets stay valid. It reports whether the worker was
// registered.
func (r *Router) RemoveWorker(id index.WorkerID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.m
	i := m.find(id)
	if i < 0 {
		return false
	}
	m.workers[i].at = -1
	m.workers = slices.Delete(m.workers, i, i+1)
	m.view.Workers = slices.Delete(m.view.Workers, i, i+1)
	m.enlist()
	r.index.RemoveWorker(id)
	r.wake()
	return true
}

// Update calls change with the worker, of which it may set Role, Down, Engine, Waiting, KV and Adapters, and reports whether the
// worker is registered. A role that [Router.AddWorker] refuses changes nothing, and a KV that is negative or not finite means
// unknown. Engine has the configured values; a changed rate replaces what was learned about the worker's speed. change is called
// with a lock held and must not call the router.
func (r *Router) Update(id index.WorkerID, now time.Time, change func(w *policy.Worker)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.m
	i := m.find(id)
	if i < 0 {
		return false
	}
	w := &m.view.Workers[i]
	c := *w
	c.Engine, c.Adapters = m.workers[i].engine, slices.Clone(w.Adapters)
	change(&c)
	if !(c.KV >= 0) || math.IsInf(c.KV, 1) {
		c.KV = 0 // NaN would bar the worker
	}
	if c.Role >= policy.Split {
		c.Role = w.Role // no request would go to the worker
	}
	w.Role, w.Down, w.Waiting, w.KV, w.Adapters = c.Role, c.Down, c.Waiting, c.KV, slices.Clone(c.Adapters)
	if c.Engine != m.workers[i].engine {
		m.configure(i, c.Engine)
		m.learned()
	}
	m.change(i)
	r.dispatch(now)
	return true
}

// Offer chooses a worker for a request and reserves the request on it. If no worker has room now, the request waits in
// the queue: [Ticket.Decision] is nil, [Router.Tick] returns the ticket when it was placed, and the caller must not modify
// req until then. If the request is placed at once, it is not retained. The error is an [*Error] if no worker is eligible or
// the queue is full. O(workers + runs of blocks in the index); most of it, and the lookup in the index, runs in
// parallel with other calls.
func (r *Router) Offer(req *Request, now time.Time) (*Ticket, error) {
	t := &Ticket{router: r}
	t.entry, t.queued.Arrival = &t.own, now.UnixNano()
	if err := r.offer(t, req, now); err != nil {
		return nil, err
	}
	return t, nil
}

func (r *Router) offer(t *Ticket, req *Request, now time.Time) error {
	e := r.scratch.Get().(*evaluation)
	defer r.scratch.Put(e)
	m := r.m
	alone := m.observer == nil && req.Role != policy.Split
	if alone {
		m.lookup(e, req, now)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if alone {
		m.observe(e, req, now)
		func() {
			r.mu.Unlock()
			defer r.mu.Lock() // also if the policy panics
			e.evaluate(m.opt.Policy, req)
		}()
		m.settle(e, req, now)
	} else {
		m.decide(e, req, now)
	}
	if err := r.admit(t, e, req, now); err != nil {
		return err
	}
	if t.request != nil && m.queue.Len() > m.opt.MaxQueue {
		m.queue.Remove(&t.queued)
		err := m.refuse(e, req)
		err.err, err.after = ErrQueueFull, m.drain()
		return err
	}
	return nil
}

// admit places a request after an evaluation, or lets it wait.
func (r *Router) admit(t *Ticket, e *evaluation, req *Request, now time.Time) error {
	m := r.m
	if e.best >= 0 && m.queue.Len() == 0 {
		open := m.opt.Hold <= 0
		if !open {
			open, _ = m.outlook(req, now)
		}
		if open {
			m.commit(t, e, req, now)
			return nil
		}
	}
	if err := m.enqueue(t, e, req, now); err != nil {
		return err
	}
	t.offering = true
	r.dispatch(now) // it may be the first of its class
	t.offering = false
	return t.err
}

// Explain returns the scores of all workers, the one that Offer would choose first and those that are barred last, and the
// decision that Offer would make, without changing anything. If Offer would choose a pair of workers, the scores and the
// decision are for the worker that generates the response. Requests that wait are ignored.
func (r *Router) Explain(req *Request, now time.Time) ([]Score, Decision, error) {
	e := new(evaluation)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.m.decide(e, req, now)
	if e.best < 0 {
		return nil, Decision{}, r.m.refuse(e, req)
	}
	if e.pair {
		d := *req
		d.Role = policy.Decode
		req = &d
	}
	return e.ranked(r.m.opt.Policy, req), e.decision(r.m.opt.Policy, req), nil
}

// Workers returns all workers with their loads, in ascending order of IDs.
func (r *Router) Workers() []policy.Worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.m.view.Workers)
}

// Waiting returns the number of requests in the queue.
func (r *Router) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.m.queue.Len()
}
