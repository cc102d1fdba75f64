// SPDX-License-Identifier: Apache-2.0

package router

import (
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/router/internal/ledger"
	"github.com/weft-go/weft/router/policy"
)

// Ticket is a placed request. It counts toward the worker's load until Finish, Fail or Cancel is called; later calls do
// nothing. It is safe for concurrent use by multiple goroutines.
type Ticket struct {
	router    *Router
	worker    *worker
	decision  Decision
	entry     ledger.Entry
	predicted index.Prediction
}

// Stats holds request and token counters for one worker.
type Stats struct {
	Placed, Finished, Failed, Canceled uint64
	// CachedEstimate and CachedReported are the numbers of cached tokens according to the index and to the engine,
	// summed over finished requests for which the engine reported the number. If the first is much greater than the
	// second, the index is missing removals.
	CachedEstimate, CachedReported uint64
	// Output is the number of tokens generated.
	Output uint64
}

// Bounds for the amounts that one request can add to a worker's load, so that sums do not overflow.
const (
	maxOutput  = 1 << 20         // expected tokens
	maxPrefill = 24 * 3600 * 1e3 // ms
)

// reserve adds the request to w's load and its session. The caller holds the lock.
func (r *Router) reserve(w *worker, pw *policy.Worker, req *Request, d Decision, now time.Time) *Ticket {
	block := r.index.BlockSize()
	cost, cached, _ := pw.Estimate(req, block, 1)
	t := &Ticket{router: r, worker: w, decision: d}
	tokens, output := max(0, req.Tokens), min(max(0, req.Intent.ExpectedOutput), maxOutput)
	t.entry = ledger.Entry{
		Prefill: time.Duration(min(cost.New+cost.Load, maxPrefill) * float64(time.Millisecond)),
		Tokens:  tokens - cached,
		Blocks:  (tokens + output + block - 1) / block,
	}
	w.ledger.Reserve(&t.entry, now)
	w.stats.Placed++
	if r.opt.PredictFor > 0 {
		// Predicted blocks usually follow the confirmed ones. Predicted blocks between confirmed ones keep their
		// deadlines.
		if confirmed := int(pw.Match.Depth - pw.Match.Predicted); confirmed < len(req.Hashes) {
			until := now.Add(pw.Load.Wait + t.entry.Prefill + r.opt.PredictFor)
			t.predicted = r.index.Predict(w.id, req.Hashes, confirmed, until)
		}
	}
	r.sessions.put(&req.Intent, w.key, now)
	return t
}

// Decision returns the worker on which the request was placed, and why.
func (t *Ticket) Decision() *Decision { return &t.decision }

// FirstToken ends the request's prefill. Calls after the first, or after the end of the request, do nothing.
func (t *Ticket) FirstToken(now time.Time) {
	t.router.mu.Lock()
	defer t.router.mu.Unlock()
	t.worker.ledger.FirstToken(&t.entry, now)
}

// Finish ends a request whose response is complete. cached is the number of prompt tokens that the engine had cached,
// or -1 if it did not report it; output is the number of tokens that it generated.
func (t *Ticket) Finish(now time.Time, cached, output int) {
	t.router.mu.Lock()
	defer t.router.mu.Unlock()
	if !t.worker.ledger.Release(&t.entry, now) {
		return
	}
	s := &t.worker.stats
	s.Finished++
	s.Output += uint64(max(0, output))
	if cached >= 0 {
		s.CachedEstimate += uint64(t.decision.CachedEstimate)
		s.CachedReported += uint64(cached)
	}
}

// Fail ends a request that failed on the worker. If no token arrived, its predicted blocks are withdrawn, unless a
// later request also predicts them. It does not change the worker's health: see [Router.SetHealth].
func (t *Ticket) Fail(now time.Time) {
	t.router.mu.Lock()
	defer t.router.mu.Unlock()
	if t.abandon(now) {
		t.worker.stats.Failed++
	}
}

// Cancel ends a request that was canceled. Its predicted blocks are treated as by [Ticket.Fail].
func (t *Ticket) Cancel(now time.Time) {
	t.router.mu.Lock()
	defer t.router.mu.Unlock()
	if t.abandon(now) {
		t.worker.stats.Canceled++
	}
}

// abandon ends the ticket, with its predictions if the prompt was not computed. It reports whether the ticket was open. The caller
// holds the lock.
func (t *Ticket) abandon(now time.Time) bool {
	prefilling := t.entry.Prefilling()
	if !t.worker.ledger.Release(&t.entry, now) {
		return false
	}
	if i, found := t.router.find(t.worker.id); prefilling && found && t.router.workers[i] == t.worker {
		t.router.index.Unpredict(t.predicted)
	}
	t.predicted = index.Prediction{}
	return true
}

// Stats returns the counters of the worker, or false if it is not registered.
func (r *Router) Stats(id index.WorkerID) (Stats, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, found := r.find(id)
	if !found {
		return Stats{}, false
	}
	return r.workers[i].stats, true
}
