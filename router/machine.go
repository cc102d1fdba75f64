// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/router/internal/learn"
	"github.com/weft-go/weft/router/internal/ledger"
	"github.com/weft-go/weft/router/internal/queue"
	"github.com/weft-go/weft/router/policy"
)

// This file is structured as follows. A machine is the state of a router: workers, loads, sessions, learned rates and the
// queue. It has no lock, clock or goroutine; Router adds the lock, and Router.Place the clock.
//
// A placement has four steps. lookup asks the index. observe copies what has changed on the workers since the evaluation
// was last used. evaluate computes what each worker costs. commit reserves the request on the cheapest one; before that, settle
// repeats what other placements have made obsolete. Only observe, settle and commit need the machine for themselves, and
// their time does not depend on the number of workers, unless most of them have changed.

// machine is the state of a router.
type machine struct {
	index    *index.Index
	opt      Options
	observer policy.Observer // the policy if it is one

	workers  []*worker   // ascending by id
	view     policy.View // of the same workers, without what depends on a request
	at       []int32     // index in workers of each WorkerID, or -1; replaced when workers come or go
	changed  [256]int32  // indexes of workers in the order of their changes, the last at number changes-1
	changes  uint64
	epoch    atomic.Uint64 // incremented when workers come or go
	sessions sessions
	model    learn.Model
	speeds   []*learn.Speed // of workers
	booked   float64        // ms of prefill placed in about the last minute
	bookedAt time.Time

	turn   atomic.Uint64 // number of requests placed
	recent [64]uint64    // by turn: the hash of the first block

	output float64 // mean number of tokens of a response
	queue  queue.Queue[*Ticket]
	ready  []*Ticket // placed from the queue, or refused, and not returned by Tick
	again  evaluation

	prefill, response evaluation // of requests with policy.Split
}

// worker is a registered worker. Tickets may refer to it after it was removed.
type worker struct {
	id     index.WorkerID
	key    index.Key
	engine policy.Engine // as configured
	speed  learn.Speed
	ledger ledger.Ledger
	at     int // index in machine.workers, or -1 if removed

	preemptible []*Ticket // in the order of their placement; some have ended
}

// evaluation is what a request costs on each worker. It is reused, and keeps a copy of the workers.
type evaluation struct {
	turn    uint64 // requests placed before the lookup
	looked  uint64 // epoch of the machine before the lookup
	epoch   uint64 // of the machine when the workers were copied
	changes uint64
	at      []int32
	found   []index.Match // by the index
	view    policy.View
	costs   []policy.Terms
	best    int  // index of the cheapest worker, or -1 if none is eligible
	pair    bool // best is for the response only; see decideSplit
	ties    int  // workers with the same cost, this one included
	next    int  // index of the second best, or -1
}

func newMachine(x *index.Index, o *Options) *machine {
	m := &machine{index: x, opt: *o}
	m.observer, _ = o.Policy.(policy.Observer)
	m.sessions.keep, m.sessions.limit = o.SessionFor, maxSessions
	m.view.BlockSize = x.BlockSize()
	m.queue.Init(queue.Options{Weight: o.Weight})
	return m
}

// find returns the index of the worker with the given ID, or -1.
func (m *machine) find(id index.WorkerID) int {
	if int64(id) < int64(len(m.at)) {
		return int(m.at[id])
	}
	return -1
}

// enlist updates what is kept by index after workers were added or removed.
func (m *machine) enlist() {
	m.epoch.Add(1)
	m.speeds = m.speeds[:0]
	m.at = slices.Clone(m.at)
	for i := range m.at {
		m.at[i] = -1
	}
	for i, w := range m.workers {
		m.speeds = append(m.speeds, &w.speed)
		for int(w.id) >= len(m.at) {
			m.at = append(m.at, -1)
		}
		m.at[w.id], w.at = int32(i), i
	}
	m.learned()
}

// change records that a worker has changed.
func (m *machine) change(i int) {
	m.changed[m.changes%uint64(len(m.changed))] = int32(i)
	m.changes++
}

// learned sets the rates of all workers to what was learned.
func (m *machine) learned() {
	if m.model.Samples() == 0 {
		return
	}
	rates := m.model.Rates()
	for i, w := range m.workers {
		e, f := &m.view.Workers[i].Engine, w.speed.Factor()
		next := *e
		next.Base, next.Prefill, next.Attention = rates[0]/f, rates[1]/f, rates[2]/f
		// Differences that do not matter are not worth a copy of all workers.
		if a, b := e.Base+typical*(e.Prefill+typical*e.Attention), next.Base+typical*(next.Prefill+typical*next.Attention); math.Abs(a-b) > 0.002*a {
			*e = next
			m.change(i)
		}
	}
}

// typical is a number of tokens by which rates are compared.
const typical = 4000

// lookup asks the index which workers hold the prompt. It needs no lock.
func (m *machine) lookup(e *evaluation, req *Request, now time.Time) {
	e.turn, e.looked = m.turn.Load(), m.epoch.Load()
	m.index.Expire(now)
	e.found = m.index.AppendMatches(e.found[:0], req.Hashes[:m.usable(req)])
}

// usable returns the number of blocks of a prompt that an engine can take from its cache. Engines compute a prompt's last
// token in any case, and with it its block. With a sliding window, what they serve of the blocks before depends on it.
func (m *machine) usable(req *Request) int {
	if req.Tokens <= 0 {
		return len(req.Hashes)
	}
	return min(len(req.Hashes), (req.Tokens-1)/m.index.BlockSize())
}

// observe copies the workers that have changed, and what else a policy sees.
func (m *machine) observe(e *evaluation, req *Request, now time.Time) {
	workers := e.view.Workers
	if n := m.changes - e.changes; e.epoch != m.epoch.Load() || n > uint64(len(m.changed)) || n > uint64(len(workers)) {
		workers = append(workers[:0], m.view.Workers...)
	} else {
		for c := e.changes; c < m.changes; c++ {
			i := m.changed[c%uint64(len(m.changed))]
			workers[i] = m.view.Workers[i]
		}
	}
	e.epoch, e.changes, e.at = m.epoch.Load(), m.changes, m.at
	matches := e.view.Matches
	e.view = m.view
	e.view.Workers, e.view.Matches = workers, matches
	e.view.Now, e.view.Busy, e.view.Turn, e.view.Waiting = now, m.busy(now), m.turn.Load(), m.queue.Len()
	e.view.Session = -1
	if s := m.sessions.get(&req.Intent, now); s != nil {
		e.view.Session = s.worker.at
	}
}

// evaluate computes the costs of all workers after lookup and observe, and chooses one.
func (e *evaluation) evaluate(p policy.Policy, req *Request) {
	n := len(e.view.Workers)
	if cap(e.costs) < n {
		e.costs, e.view.Matches = make([]policy.Terms, n), make([]index.Match, n)
	}
	e.costs, e.view.Matches = e.costs[:n], e.view.Matches[:n]
	clear(e.costs)
	clear(e.view.Matches)
	for k := range e.found {
		if id := e.found[k].Worker; int(id) < len(e.at) && e.at[id] >= 0 {
			e.view.Matches[e.at[id]] = e.found[k]
		}
	}
	p.Costs(&e.view, req, e.costs)
	e.choose(req)
}

// decide does all that comes before commit.
func (m *machine) decide(e *evaluation, req *Request, now time.Time) {
	m.lookup(e, req, now)
	if req.Role == policy.Split {
		m.decideSplit(e, req, now)
		return
	}
	m.observe(e, req, now)
	e.evaluate(m.opt.Policy, req)
}

// choose sets best, ties and next.
func (e *evaluation) choose(req *Request) {
	e.best, e.next, e.ties, e.pair = -1, -1, 0, false
	least, second := math.Inf(1), math.Inf(1)
	for i := range e.costs {
		sum := e.costs[i].Sum()
		if !(sum <= second) || math.IsInf(sum, 1) || !e.view.Workers[i].Takes(req) {
			continue
		}
		switch {
		case sum < least:
			e.next, second = e.best, least
			e.best, least, e.ties = i, sum, 1
		case sum == least:
			e.ties++
			e.next, second = i, sum
			if e.preferred(i, e.best) {
				e.best, e.next = i, e.best
			}
		case sum < second:
			e.next, second = i, sum
		}
	}
}

// preferred reports whether worker i is chosen rather than k, which costs the same and has a lower ID.
func (e *evaluation) preferred(i, k int) bool {
	a, b := &e.view.Workers[i], &e.view.Workers[k]
	switch {
	case i == e.view.Session || k == e.view.Session:
		return i == e.view.Session
	case a.Load.Blocks != b.Load.Blocks:
		return a.Load.Blocks < b.Load.Blocks
	}
	return a.Last < b.Last
}

// settle repeats the evaluation if the chosen worker has changed since, or if requests were placed that have the same first
// block, because their predictions count for this one.
func (m *machine) settle(e *evaluation, req *Request, now time.Time) {
	turn := m.turn.Load()
	look := turn-e.turn > uint64(len(m.recent)) || e.looked != m.epoch.Load() // an ID may have been given to another worker
	for n := e.turn; n < turn && !look; n++ {
		look = len(req.Hashes) > 0 && m.recent[n%uint64(len(m.recent))] == req.Hashes[0]
	}
	repeat := m.changes-e.changes > uint64(len(m.changed)) || e.best < 0 && m.changes != e.changes
	for c := e.changes; c < m.changes && !repeat; c++ {
		repeat = int(m.changed[c%uint64(len(m.changed))]) == e.best
	}
	if look {
		m.lookup(e, req, now)
	}
	if look || repeat {
		m.observe(e, req, now)
		e.evaluate(m.opt.Policy, req)
	}
	e.turn = turn
}

// busy returns the fraction of the fleet's time that prefills of the last minute take.
func (m *machine) busy(now time.Time) float64 {
	if len(m.workers) == 0 || m.booked == 0 {
		return 0
	}
	const minute = 60e3
	age := max(0, float64(now.Sub(m.bookedAt))/1e6)
	return min(0.95, m.booked*math.Exp(-age/minute)/(minute*float64(len(m.workers))))
}

// book adds the prefill of a ticket, which has ended, to what busy counts. What was only placed has not kept the fleet busy: many
// requests at one moment go to idle workers as the first of them would alone.
func (m *machine) book(t *Ticket, now time.Time) {
	if t.received {
		return
	}
	if age := float64(now.Sub(m.bookedAt)) / 1e6; age > 0 {
		m.booked *= math.Exp(-age / 60e3)
		m.bookedAt = now
	}
	m.booked += float64(t.entry.Prefill) / 1e6
}

// Bounds for the amounts that one request can add to a worker's load, so that sums do not overflow.
const (
	maxTokens  = 1 << 28
	maxOutput  = 1 << 20         // expected tokens
	maxPrefill = 24 * 3600 * 1e3 // ms
)

// commit places t on the best worker of the evaluation.
func (m *machine) commit(t *Ticket, e *evaluation, req *Request, now time.Time) {
	if e.pair {
		m.commitPrefill(t, req, now)
		r := *req
		r.Role = policy.Decode
		req = &r
	}
	i := e.best
	t.worker = m.workers[i]
	if t.decision == nil {
		t.decision = &t.made
	} else {
		t.decision = new(Decision)
	}
	*t.decision = e.decision(m.opt.Policy, req)
	t.turn = m.turn.Load()
	e.view.Turn = t.turn
	m.reserve(t, &e.view, i, req, now)
	if !t.part {
		if s, known := m.sessions.put(&req.Intent, t.worker, now); s != nil {
			m.retire(t, s, known, e, req)
		}
	}
	first := &m.recent[t.turn%uint64(len(m.recent))]
	*first = 0
	if len(req.Hashes) > 0 {
		*first = req.Hashes[0]
	}
	if m.observer != nil {
		m.observer.Placed(&e.view, req, i)
	}
	m.turn.Store(t.turn + 1)
	w := &m.view.Workers[i]
	w.Last = t.turn + 1
	adapt(w, req.Adapter)
	m.change(i)
	t.placed = now
	t.tier, t.firm = req.Intent.Tier, req.Intent.Deadline > 0
	t.worker.preempt(t.tier)
	t.yield()
}

// maxAdapters limits the adapters that a worker is assumed to have loaded.
const maxAdapters = 64

// adapt adds the adapter to those that the worker has loaded, as the most recent one.
func adapt(w *policy.Worker, name string) {
	if name == "" {
		return
	}
	w.Adapters = append(slices.DeleteFunc(slices.Clone(w.Adapters), func(a string) bool { return a == name }), name)
	w.Adapters = w.Adapters[max(0, len(w.Adapters)-maxAdapters):]
}

// reserve adds the request to the load of v.Workers[i].
func (m *machine) reserve(t *Ticket, v *policy.View, i int, req *Request, now time.Time) {
	w := m.workers[i]
	compute, load, cached, _ := v.Estimate(req, i)
	tokens, output := min(max(0, req.Tokens), maxTokens), min(max(0, req.Intent.ExpectedOutput), maxOutput)
	t.tokens = tokens
	t.received = req.Role == policy.Decode
	if req.Role == policy.Prefill {
		output = 0
	}
	t.mark(req.Hashes, w.ledger.Stride)
	t.entry.Prefill = time.Duration(min(compute+load, maxPrefill) * float64(time.Millisecond))
	if t.entry.Tokens = max(0, tokens-cached); t.received {
		t.entry.Tokens = 0
	}
	t.entry.Blocks = max(0, (tokens+output+v.BlockSize-1)/v.BlockSize-len(t.entry.Marks)*w.ledger.Stride)
	wait := m.view.Workers[i].Load.Wait(now)
	w.ledger.Reserve(t.entry, now)
	m.loaded(w)
	if m.opt.PredictFor > 0 {
		// Predicted blocks usually follow the confirmed ones. Predicted blocks between confirmed ones keep their
		// deadlines.
		if confirmed := int(v.Matches[i].Depth - v.Matches[i].Predicted); confirmed < m.usable(req) {
			until := now.Add(wait + t.entry.Prefill).Add(m.opt.PredictFor) // the sum of all may overflow
			t.predicted = m.index.Predict(w.id, req.Hashes, confirmed, until)
		}
	}
}

// loaded updates the view after the ledger of a worker has changed.
func (m *machine) loaded(w *worker) {
	if w.at >= 0 {
		m.view.Workers[w.at].Load = w.ledger.Load()
		m.change(w.at)
	}
}

// responded counts how long a response of n tokens took after its first one.
func (m *machine) responded(d time.Duration, n int) {
	d, n = max(0, d), max(0, min(n, maxOutput))
	if m.view.Decode == 0 {
		m.view.Decode, m.output = d, float64(n)
		return
	}
	m.view.Decode += (d - m.view.Decode) / 32
	m.output += (float64(n) - m.output) / 32
}

// firstToken ends the prefill of a ticket.
func (m *machine) firstToken(t *Ticket, now time.Time) {
	m.prefilled(t, now, -1)
	if t.worker == nil || !t.worker.ledger.FirstToken(t.entry, now) {
		return
	}
	m.book(t, now)
	m.loaded(t.worker)
	t.first = now
	if m.observer != nil {
		m.observer.FirstToken(t.turn, now)
	}
}

// finish ends a ticket whose response is complete.
func (m *machine) finish(t *Ticket, now time.Time, cached, output int) {
	m.prefilled(t, now, -1)
	if t.worker == nil {
		return
	}
	if t.entry.Prefilling() { // the first token was not reported
		m.book(t, now)
	}
	if !t.worker.ledger.Release(t.entry, now) {
		return
	}
	m.loaded(t.worker)
	t.leave()
	if m.observer != nil {
		m.observer.Ended(t.turn, now, cached, max(0, output))
	}
	if !t.first.IsZero() {
		m.responded(now.Sub(t.first), output)
	}
	m.drop(t.last, t.shared)
	m.report(t, cached)
}

// report learns from the period of the ticket's prefill when the cached tokens of all its prefills are known; -1 means unknown.
func (m *machine) report(t *Ticket, cached int) {
	p := t.entry.Period()
	if p == nil || m.opt.FixedRates {
		return
	}
	if cached < 0 || t.received {
		p.Broken = true
	} else {
		cached = min(cached, max(0, t.tokens-1))
		p.Work.Add(float64(t.tokens-cached), float64(cached))
	}
	p.Reported++
	p.Work[0] = float64(p.Steps) // and not the number of its prefills, which may share steps
	if w := t.worker; !p.End.IsZero() && p.Reported == p.Members && !p.Broken && w.at >= 0 &&
		m.model.Add(p.Work, float64(p.End.Sub(p.Begin))/1e6, &w.speed, m.speeds) {
		m.learned()
	}
}

// abandon ends a ticket whose response is not complete, and withdraws what was predicted of its prompt if it was not
// computed, or removes it from the queue.
func (m *machine) abandon(t *Ticket, now time.Time) {
	if t.worker == nil {
		if m.queue.Remove(&t.queued) {
			t.err, t.request = context.Canceled, nil
			if t.placedc != nil {
				close(t.placedc)
			}
		}
		return
	}
	if t.prefill != nil {
		m.abandon(t.prefill, now)
	}
	m.withdraw(t, now)
}

// withdraw ends the work of a ticket on its worker, and reports whether it had not ended.
func (m *machine) withdraw(t *Ticket, now time.Time) bool {
	prefilling := t.entry.Prefilling()
	if !t.worker.ledger.Release(t.entry, now) {
		return false
	}
	m.loaded(t.worker)
	t.leave()
	if prefilling && t.worker.at >= 0 {
		m.index.Unpredict(t.predicted)
	}
	t.predicted = index.Prediction{}
	m.report(t, -1)
	if m.observer != nil {
		m.observer.Ended(t.turn, now, -1, -1)
	}
	return true
}
