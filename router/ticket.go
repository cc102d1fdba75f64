// SPDX-License-Identifier: Apache-2.0

package router

import (
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/router/load"
	"github.com/weft-go/weft/router/policy"
)

// Ticket is a placed request. It holds the worker's load until one of Finish, Fail and Cancel is called; the first of them counts,
// later calls do nothing. Safe for concurrent use.
type Ticket struct {
	router    *Router
	worker    *worker
	decision  Decision
	entry     load.Entry
	predicted index.Prediction
}

// Usage is what the engine said about a finished request.
type Usage struct {
	// Cached is how many tokens of the prompt the engine had cached, -1 if it did not say.
	Cached int
	// Output is how many tokens it generated.
	Output int
}

// Stats count what became of the requests of one worker.
type Stats struct {
	Placed, Finished, Failed, Canceled uint64
	// CachedEstimate and CachedReported sum, over finished requests whose engine said how much was cached, what the index believed and
	// what the engine said, in tokens. When the first is well above the second, the index believes too much.
	CachedEstimate, CachedReported uint64
	// Output is the number of tokens generated.
	Output uint64
}

// Bounds of what one request can add to a worker's account, so that sums stay far from overflow.
const (
	maxOutput  = 1 << 20         // expected tokens
	maxPrefill = 24 * 3600 * 1e3 // ms
)

// reserve books the request on w and remembers it. The caller holds the lock.
func (r *Router) reserve(w *worker, pw *policy.Worker, req *Request, d Decision, now time.Time) *Ticket {
	block := r.index.BlockSize()
	e := pw.Estimate(req, block, 1)
	t := &Ticket{router: r, worker: w, decision: d}
	tokens, output := max(0, req.Tokens), min(max(0, req.Intent.ExpectedOutput), maxOutput)
	t.entry = load.Entry{
		Prefill: time.Duration(min(e.New+e.Load, maxPrefill) * float64(time.Millisecond)),
		Tokens:  tokens - e.Cached,
		Blocks:  (tokens + output + block - 1) / block,
	}
	w.ledger.Reserve(&t.entry, now)
	w.stats.Placed++
	if r.opt.PredictFor > 0 {
		// Predictions mostly follow what is confirmed. Those in between, beside a hole, keep the time they have.
		if confirmed := pw.Cache.Depth - pw.Cache.Predicted; confirmed < len(req.Hashes) {
			until := now.Add(pw.Load.Wait + t.entry.Prefill + r.opt.PredictFor)
			t.predicted = r.index.Predict(w.id, req.Hashes, confirmed, until)
		}
	}
	r.sessions.put(&req.Intent, w.info.Key, now)
	return t
}

// Decision returns where the request was placed and why.
func (t *Ticket) Decision() *Decision { return &t.decision }

// Worker returns the number of the worker.
func (t *Ticket) Worker() index.WorkerID { return t.decision.Worker }

// Key returns the identity of the worker.
func (t *Ticket) Key() index.Key { return t.decision.Key }

// FirstToken says that the prompt has been computed: from now on the request decodes. Calls after the first, or after the end, do
// nothing.
func (t *Ticket) FirstToken(now time.Time) {
	t.router.mu.Lock()
	defer t.router.mu.Unlock()
	t.worker.ledger.FirstToken(&t.entry, now)
}

// Finish says that the answer is complete.
func (t *Ticket) Finish(now time.Time, u Usage) {
	t.router.mu.Lock()
	defer t.router.mu.Unlock()
	if !t.worker.ledger.Release(&t.entry, now) {
		return
	}
	s := &t.worker.stats
	s.Finished++
	s.Output += uint64(max(0, u.Output))
	if u.Cached >= 0 {
		s.CachedEstimate += uint64(t.decision.CachedEstimate)
		s.CachedReported += uint64(u.Cached)
	}
}

// Fail says that the worker could not do it. If it had not answered with a token yet, its blocks are no longer expected there, unless
// a later request expects them too. What that says about the worker's health is the caller's to judge: see [Router.SetHealth].
func (t *Ticket) Fail(now time.Time) {
	t.router.mu.Lock()
	defer t.router.mu.Unlock()
	if t.abandon(now) {
		t.worker.stats.Failed++
	}
}

// Cancel says that nobody waits for the answer any more. Its blocks are treated as by [Ticket.Fail].
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

// Stats returns the counts of the worker; false if it is not registered.
func (r *Router) Stats(id index.WorkerID) (Stats, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, found := r.find(id)
	if !found {
		return Stats{}, false
	}
	return r.workers[i].stats, true
}
