// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/router/internal/ledger"
	"github.com/weft-go/weft/router/internal/queue"
)

// Ticket is a request that was placed or waits. It counts toward the worker's load until Finish or Cancel is called;
// later calls do nothing. It is safe for concurrent use by multiple goroutines.
type Ticket struct {
	router    *Router
	worker    *worker       // nil while it waits
	decision  *Decision     // &made, or another one after Requeue; callers may have it, so that it does not change
	made      Decision      // of the first worker
	entry     *ledger.Entry // &own, or another one after Move and Requeue
	own       ledger.Entry  // of the first worker, whose period of prefills may refer to it
	predicted index.Prediction
	few       [32]uint64 // marks of a prompt that is not too long

	turn          uint64 // number of the placement
	tokens        int    // of the prompt
	placed, first time.Time

	prefill  *Ticket // of the prompt, if another worker computes it
	part     bool    // it is such a ticket
	received bool    // another worker computes the prompt

	child  *session // of the request, if Options.Drop is set and it has a parent
	last   []uint64 // blocks that no request needs after this one, from number shared on; nil if none
	shared int

	preempt    func()  // nil if the ticket must not be preempted
	victim     *Ticket // that was preempted for this one, which waits
	tier       uint32
	preempted  uint8 // calls of preempt
	preempting bool  // preempt was called for this placement
	firm       bool  // it has a deadline

	queued   queue.Item[*Ticket] // its arrival is set by Offer
	request  *Request            // while it waits
	placedc  chan struct{}       // closed when it leaves the queue; nil if nobody waits
	offering bool                // in Offer
	err      error               // why it left the queue without a worker
}

// sharing is the number of tokens in units of which requests on a worker share blocks of their prompts in its ledger.
const sharing = 512

// stride returns the same in blocks.
func (m *machine) stride() int { return max(1, sharing/m.view.BlockSize) }

// mark sets the marks of the ticket's entry.
func (t *Ticket) mark(hashes []uint64, stride int) {
	n := len(hashes) / stride
	t.entry.Marks = t.few[:0]
	if n > len(t.few) {
		t.entry.Marks = make([]uint64, 0, n)
	}
	for i := range n {
		t.entry.Marks = append(t.entry.Marks, hashes[(i+1)*stride-1])
	}
}

// Decision returns the worker on which the request was placed, and why, or nil if it was not placed. It does not change
// when the request is moved; after Requeue there is another one.
func (t *Ticket) Decision() *Decision {
	t.router.mu.Lock()
	defer t.router.mu.Unlock()
	if t.worker == nil {
		return nil
	}
	return t.decision
}

// Err returns why the request left the queue without being placed, an [*Error] or context.Canceled, or nil.
func (t *Ticket) Err() error {
	t.router.mu.Lock()
	defer t.router.mu.Unlock()
	return t.err
}

// FirstToken ends the request's prefill. Calls after the first, or after the end of the request, do nothing.
func (t *Ticket) FirstToken(now time.Time) {
	r := t.router
	r.mu.Lock()
	defer r.mu.Unlock()
	r.m.firstToken(t, now)
	r.dispatch(now)
}

// Finish ends a request whose response is complete. cached is the number of prompt tokens that the engine had cached,
// or -1 if it did not report it; output is the number of tokens that it generated. The router learns how fast engines are from
// times in which a worker had prefills without pause and whose cached tokens are all reported.
func (t *Ticket) Finish(now time.Time, cached, output int) {
	r := t.router
	r.mu.Lock()
	defer r.mu.Unlock()
	r.m.finish(t, now, cached, output)
	r.dispatch(now)
}

// Cancel ends a request that failed, was canceled, or is no longer to wait. If no token arrived, its predicted blocks are
// withdrawn, except blocks that an earlier or a later request also predicts. It does not change whether the worker takes requests: see
// [Router.Update].
func (t *Ticket) Cancel(now time.Time) {
	r := t.router
	r.mu.Lock()
	defer r.mu.Unlock()
	r.m.abandon(t, now)
	r.dispatch(now)
}

// Move moves a placed request without a first token to another worker, because something other than the router, such as a
// proxy with a list of endpoints, sent it there. req is the request that was placed.
func (t *Ticket) Move(req *Request, id index.WorkerID, now time.Time) error {
	r := t.router
	e := r.scratch.Get().(*evaluation)
	defer r.scratch.Put(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.m
	i := m.find(id)
	switch {
	case i < 0:
		return fmt.Errorf("router: move to worker %d: not registered", id)
	case t.prefill != nil:
		return fmt.Errorf("router: move to worker %s: the request has a pair of workers", m.workers[i].key)
	case !t.entry.Prefilling():
		return fmt.Errorf("router: move to worker %s: the request is not waiting for its first token", m.workers[i].key)
	case t.worker.at == i:
		return nil
	}
	m.withdraw(t, now)
	t.entry = new(ledger.Entry)
	m.decide(e, req, now) // without the prediction
	e.best, e.pair = i, false
	decision := t.decision
	m.commit(t, e, req, now)
	t.decision = decision
	r.dispatch(now)
	return nil
}
