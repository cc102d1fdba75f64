// SPDX-License-Identifier: Apache-2.0

package router

import (
	"errors"
	"slices"
	"time"

	"github.com/weft-go/weft/router/internal/ledger"
)

// This file preempts requests for requests of a higher tier. The owner of the ticket ends the request to the engine.

// maxPreempted limits how often a request is preempted.
const maxPreempted = 3

// Preemptible permits requests of a higher intent.Intent.Tier to preempt this one before its first token. When one is placed on
// the same worker, or waits for a place there, preempt is called. The owner of the ticket then cancels the engine's request and calls
// [Ticket.Requeue]. Until then, or if the owner ignores the call, the request continues to count.
//
// preempt is called with a lock held and must not call the router. It is called at most three times, and not after FirstToken: an
// owner that calls FirstToken before it passes on output, and then finds that preempt was not called, can pass it on. Requests with
// a deadline and requests with a pair of workers are not preempted.
func (t *Ticket) Preemptible(preempt func()) {
	t.router.mu.Lock()
	defer t.router.mu.Unlock()
	t.preempt = preempt
	if t.worker != nil {
		t.yield()
	}
}

// Requeue withdraws a request that was placed and has not ended, and offers it again. If it has to wait, it is ordered by its
// first arrival, and its tenant and session are not charged for the placement that it loses. req is the request that was placed. As
// after [Router.Offer], Decision is nil while the request waits; call Wait or Tick then. Requeue returns an error if the request has
// not been placed, has ended, or cannot be placed again.
func (t *Ticket) Requeue(req *Request, now time.Time) error {
	r := t.router
	e := r.scratch.Get().(*evaluation)
	defer r.scratch.Put(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.m
	if t.worker == nil {
		return errors.New("router: requeue: the request is not placed")
	}
	if t.prefill != nil {
		m.abandon(t.prefill, now)
	}
	if !m.withdraw(t, now) {
		return errors.New("router: requeue: the request has ended")
	}
	t.entry, t.worker, t.prefill = new(ledger.Entry), nil, nil
	t.first, t.placedc, t.preempting = time.Time{}, nil, false
	m.queue.Refund(&t.queued)
	m.ready = slices.DeleteFunc(m.ready, func(o *Ticket) bool { return o == t })
	m.decide(e, req, now)
	t.err = r.admit(t, e, req, now)
	r.dispatch(now) // for the place that it left
	return t.err
}

// yield adds the ticket, which was placed, to those that can be preempted.
func (t *Ticket) yield() {
	if w := t.worker; t.yields(w) {
		w.preemptible = slices.DeleteFunc(w.preemptible, func(o *Ticket) bool { return o == t || !o.yields(w) })
		w.preemptible = append(w.preemptible, t)
	}
}

// yields reports whether the ticket can be preempted on a worker.
func (t *Ticket) yields(w *worker) bool {
	return t.worker == w && t.entry.Prefilling() && t.preempt != nil && !t.preempting && t.preempted < maxPreempted && !t.firm && t.prefill == nil
}

// preempt preempts the requests of lower tiers.
func (w *worker) preempt(tier uint32) {
	for _, t := range w.preemptible {
		if t.tier < tier && t.yields(w) {
			t.ask()
		}
	}
}

// ask calls preempt.
func (t *Ticket) ask() {
	t.preempting = true
	t.preempted++
	t.preempt()
}

// makeRoom preempts a request for t, which waits: the last one placed of the lowest tier. It preempts no other before that one has
// left its worker or has a token.
func (m *machine) makeRoom(t *Ticket, now time.Time) {
	tier := t.request.Intent.Tier
	if v := t.victim; tier == 0 || v != nil && v.preempting && v.entry.Prefilling() {
		return
	}
	t.victim = nil
	for i, w := range m.workers {
		if len(w.preemptible) == 0 {
			continue
		}
		free := m.view.Workers[i]
		if free.Engine.Slots = 0; !free.Takes(t.request) {
			continue
		}
		for _, v := range w.preemptible {
			if v.tier >= tier || !v.yields(w) || m.opt.Hold > 0 && free.Load.Wait(now)-v.entry.Prefill > m.opt.Hold {
				continue
			}
			if t.victim == nil || v.tier < t.victim.tier || v.tier == t.victim.tier && v.turn > t.victim.turn {
				t.victim = v
			}
		}
	}
	if t.victim != nil {
		t.victim.ask()
	}
}
