// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/router/internal/queue"
	"github.com/weft-go/weft/router/policy"
)

// This file has the queue: its order, and the part of the router that waits.

// Constants of the order. A request is due when it arrives, plus the time that it takes, divided by its weight; each step of
// priority is worth step of waiting and doubles the weight.
const (
	step        = 10 * time.Second
	maxPriority = 1000
)

// enqueue adds the ticket to the queue after an evaluation, or returns why it cannot wait.
func (m *machine) enqueue(t *Ticket, e *evaluation, req *Request, now time.Time) error {
	if open, later := m.outlook(req, now); open && e.best < 0 || !open && !later {
		return m.refuse(e, req)
	}
	t.request = req
	in := &req.Intent
	it := &t.queued
	*it = queue.Item[*Ticket]{Value: t, Class: class(req), Tenant: in.Tenant, Session: in.Session.ID, Tier: in.Tier, Arrival: it.Arrival}
	prefill, total := m.length(e, req)
	p := max(-maxPriority, min(maxPriority, int(in.Priority)))
	stretch := float64(total)
	for range min(max(p, -p), 10) {
		if p > 0 {
			stretch /= 2
		} else {
			stretch *= 2
		}
	}
	it.Due = it.Arrival - int64(p)*int64(step) + int64(stretch)
	if in.TTFT > 0 {
		it.Due = min(it.Due, plus(it.Arrival, in.TTFT-prefill))
	}
	if in.Deadline > 0 {
		it.Expires = plus(it.Arrival, in.Deadline)
		it.Due = min(it.Due, plus(it.Arrival, in.Deadline-prefill))
	}
	m.queue.Add(it)
	return nil
}

// plus returns the time d after at, in ns, or the last one if that is too late.
func plus(at int64, d time.Duration) int64 {
	if d > 0 && at > math.MaxInt64-int64(d) {
		return math.MaxInt64
	}
	return at + int64(d)
}

// length estimates the time of a request's prefill where it is shortest, and of the whole request, if it is alone.
func (m *machine) length(e *evaluation, req *Request) (prefill, total time.Duration) {
	least := maxPrefill
	for i := range m.view.Workers {
		compute, load, _, _ := e.view.Estimate(req, i)
		least = min(least, compute+load)
	}
	prefill = time.Duration(least * float64(time.Millisecond))
	total = prefill + m.view.Decode
	if n := min(req.Intent.ExpectedOutput, maxOutput); n > 0 && m.output > 0 {
		// With a tiny mean this is longer than a time.Duration can be.
		total = prefill + time.Duration(min(float64(m.view.Decode)*float64(n)/m.output, float64(time.Hour)))
	}
	return prefill, min(total, time.Hour)
}

// class returns the name of the class of requests that may be placed on the same workers.
func class(req *Request) string {
	if req.Only == nil && len(req.Exclude) == 0 {
		return string(rune('0' + req.Role))
	}
	b := []byte{'0' + byte(req.Role)}
	for _, ids := range [2][]index.WorkerID{req.Only, req.Exclude} {
		ids = slices.Sorted(slices.Values(ids))
		b = append(b, '|')
		for _, id := range ids {
			b = binary.LittleEndian.AppendUint32(b, uint32(id))
		}
	}
	return string(b)
}

// outlook reports whether a worker is eligible now and has little enough pending, and if not, whether one will be.
func (m *machine) outlook(req *Request, now time.Time) (open, later bool) {
	if req.Role == policy.Split {
		var r [3]Request
		var o, l [3]bool
		for i, role := range []policy.Role{policy.Both, policy.Prefill, policy.Decode} {
			r[i] = *req
			r[i].Role = role
			o[i], l[i] = m.outlook(&r[i], now)
			l[i] = l[i] || o[i]
		}
		return o[0] || o[1] && o[2], l[0] || l[1] && l[2]
	}
	for i := range m.view.Workers {
		w := &m.view.Workers[i]
		takes := w.Takes(req)
		if takes && (m.opt.Hold <= 0 || w.Load.Wait(now) <= m.opt.Hold) {
			return true, false
		}
		if !takes && w.Engine.Slots > 0 {
			free := *w
			free.Engine.Slots = 0
			takes = free.Takes(req)
		}
		later = later || takes
	}
	return false, later
}

// drain estimates the time in which the queue becomes empty.
func (m *machine) drain() time.Duration {
	slots := 0
	for i := range m.view.Workers {
		slots += max(1, m.view.Workers[i].Engine.Slots)
	}
	d := time.Duration(float64(m.view.Decode) * float64(m.queue.Len()) / float64(max(slots, 1)))
	return max(time.Second, min(d, time.Minute))
}

// dispatch places what can be placed and drops what has expired.
func (m *machine) dispatch(now time.Time) {
	if m.queue.Len() == 0 {
		return
	}
	for {
		it := m.queue.Expire(now.UnixNano())
		if it == nil {
			break
		}
		it.Value.err, it.Value.request = &Error{err: ErrDeadline}, nil
		m.announce(it.Value)
	}
	m.queue.Unblock()
	for {
		it := m.queue.Next()
		if it == nil {
			return
		}
		t, e := it.Value, &m.again
		open, later := m.outlook(t.request, now)
		if !open && later {
			if !t.offering || m.queue.Len() <= m.opt.MaxQueue { // otherwise it may be refused
				m.makeRoom(t, now)
			}
			m.queue.Block(it)
			continue
		}
		m.decide(e, t.request, now)
		if e.best < 0 { // its workers are gone
			m.queue.Remove(it)
			t.err = m.refuse(e, t.request)
		} else {
			m.commit(t, e, t.request, now)
			work := t.entry.Prefill
			if t.prefill != nil {
				work = t.prefill.entry.Prefill
			}
			m.queue.Charge(it, work, len(m.workers), now.UnixNano())
		}
		t.request = nil
		m.announce(t)
	}
}

// announce tells the owner of a ticket that it has left the queue.
func (m *machine) announce(t *Ticket) {
	if t.placedc != nil {
		close(t.placedc)
	} else if !t.offering {
		m.ready = append(m.ready, t)
	}
}

// next returns when dispatch may have something to do although no ticket has changed, or false if never.
func (m *machine) next(now time.Time) (at time.Time, ok bool) {
	if ns, found := m.queue.Expires(); found {
		at, ok = now.Round(0).Add(time.Duration(ns-now.UnixNano())), true // ns is only within centuries of now
	}
	if m.opt.Hold > 0 && m.queue.Len() > 0 {
		for i := range m.view.Workers {
			l := &m.view.Workers[i].Load
			if t := l.Free.Add(l.Pending - m.opt.Hold); l.Prefills > 0 && l.Pending <= m.opt.Hold && t.After(now) && (!ok || t.Before(at)) {
				at, ok = t, true
			}
		}
	}
	return at, ok
}

// dispatch places what can be placed. The caller holds the lock.
func (r *Router) dispatch(now time.Time) {
	r.m.dispatch(now)
	if r.timer == nil {
		return
	}
	if at, ok := r.m.next(now); ok && !at.Equal(r.armed) {
		r.armed = at
		r.timer.Reset(time.Until(at))
	}
}

// wake makes the timer dispatch at once, where the time is not known.
func (r *Router) wake() {
	if r.timer != nil {
		r.timer.Reset(0)
	}
}

// Tick places requests that wait and have become due to the passing of time, and returns the tickets of [Router.Offer]
// that were placed or refused since the last call, and the time at which the next call may have something to do; that is
// zero if only a change of a ticket or of the workers can change something.
func (r *Router) Tick(now time.Time) (placed []*Ticket, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dispatch(now)
	placed, r.m.ready = r.m.ready, nil
	next, _ = r.m.next(now)
	return placed, next
}

// Place is like Offer, with the time from the clock, and waits until the request is placed; see [Ticket.Wait].
func (r *Router) Place(ctx context.Context, req *Request) (*Ticket, error) {
	t, err := r.Offer(req, time.Now())
	if err == nil {
		err = t.Wait(ctx)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Wait waits until the request is placed. Tick then does not return the ticket. If the context ends first, the request leaves
// the queue and the error is the context's cause. Other errors are those of Err. It must not be called by several goroutines.
func (t *Ticket) Wait(ctx context.Context) error {
	waits, err := t.router.watch(t)
	if !waits {
		return err
	}
	select {
	case <-t.placedc:
		return t.Err()
	case <-ctx.Done():
		t.Cancel(time.Now())
		return context.Cause(ctx)
	}
}

// watch reports whether the ticket waits, and arms the timer for it if it does. Otherwise it returns the ticket's error.
func (r *Router) watch(t *Ticket) (waits bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.queued.Value == nil || t.err != nil || t.worker != nil {
		if i := slices.Index(r.m.ready, t); i >= 0 {
			r.m.ready = slices.Delete(r.m.ready, i, i+1)
		}
		return false, t.err
	}
	t.placedc = make(chan struct{})
	if r.timer == nil {
		r.timer = time.AfterFunc(time.Hour, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.armed = time.Time{}
			r.dispatch(time.Now())
		})
	}
	r.dispatch(time.Now())
	return true, nil
}
