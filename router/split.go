// SPDX-License-Identifier: Apache-2.0

package router

import (
	"time"

	"github.com/weft-go/weft/router/policy"
)

// This file places requests with policy.Split: the prompt on one worker and the response on another, which receives the KV data, unless
// one worker for both costs less. The ticket has the worker of the response, and a second ticket inside it has the worker of the prompt.

// decideSplit does what decide does, after the lookup. If a pair of workers costs less than the cheapest single one, e is
// the evaluation of workers for the response, e.pair is set, and m.prefill is the evaluation of workers for the prompt.
func (m *machine) decideSplit(e *evaluation, req *Request, now time.Time) {
	for _, part := range []struct {
		e    *evaluation
		role policy.Role
	}{{e, policy.Both}, {&m.prefill, policy.Prefill}, {&m.response, policy.Decode}} {
		r := *req
		r.Role = part.role
		part.e.found = append(part.e.found[:0], e.found...)
		m.observe(part.e, &r, now)
		part.e.evaluate(m.opt.Policy, &r)
	}
	p, d := &m.prefill, &m.response
	if p.best < 0 || d.best < 0 || p.best == d.best || e.best >= 0 && e.costs[e.best].Sum() <= p.costs[p.best].Sum()+d.costs[d.best].Sum() {
		return
	}
	*e, *d = *d, *e
	e.pair = true
}

// commitPrefill places the prompt of a pair.
func (m *machine) commitPrefill(t *Ticket, req *Request, now time.Time) {
	r := *req
	r.Role = policy.Prefill
	t.prefill = &Ticket{router: t.router, part: true}
	t.prefill.entry = &t.prefill.own
	m.commit(t.prefill, &m.prefill, &r, now)
}

// prefilled ends the part of a pair's prefill worker, if it has not ended.
func (m *machine) prefilled(t *Ticket, now time.Time, cached int) {
	p := t.prefill
	if p == nil || !p.worker.ledger.FirstToken(p.entry, now) {
		return
	}
	m.book(p, now)
	p.worker.ledger.Release(p.entry, now)
	m.loaded(p.worker)
	if m.observer != nil {
		m.observer.FirstToken(p.turn, now)
		m.observer.Ended(p.turn, now, cached, 0)
	}
	m.report(p, cached)
}

// Prefill returns the worker that computes the prompt, and why, if it is not the worker of Decision; otherwise nil. See
// [policy.Split].
func (t *Ticket) Prefill() *Decision {
	t.router.mu.Lock()
	defer t.router.mu.Unlock()
	if t.prefill == nil {
		return nil
	}
	return t.prefill.decision
}

// Prefilled reports that the worker returned by Prefill has computed the prompt, and ends its part of the request. cached is
// the number of prompt tokens that it had in its cache, or -1 if it did not report it. Without a call, that part ends with
// the first token or the request.
func (t *Ticket) Prefilled(now time.Time, cached int) {
	r := t.router
	r.mu.Lock()
	defer r.mu.Unlock()
	r.m.prefilled(t, now, cached)
	r.dispatch(now)
}
