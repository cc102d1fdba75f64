// SPDX-License-Identifier: Apache-2.0

package router

import (
	"slices"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/router/internal/ledger"
)

// Ticket is a placed request. It counts toward the worker's load until Finish, Fail or Cancel is called; later calls do
// nothing. It is safe for concurrent use by multiple goroutines.
type Ticket struct {
	router    *Router
	worker    *worker
	decision  Decision
	entry     ledger.Entry
	predicted index.Prediction
	few       [32]uint64 // marks of a prompt that is not too long

	tokens        int // of the prompt
	placed, first time.Time
	alone         bool // its prefill was the only one on the worker
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
	maxTokens  = 1 << 28
	maxOutput  = 1 << 20         // expected tokens
	maxPrefill = 24 * 3600 * 1e3 // ms
)

// reserve adds the request to the load of the worker at index i, and to its session. The caller holds the lock.
func (r *Router) reserve(t *Ticket, i int, req *Request, now time.Time) {
	w, pw, block := t.worker, &r.view.Workers[i], r.view.BlockSize
	compute, load, cached, _ := pw.Estimate(req, block)
	tokens, output := min(max(0, req.Tokens), maxTokens), min(max(0, req.Intent.ExpectedOutput), maxOutput)
	t.tokens = tokens
	t.marks(req.Hashes)
	t.entry.Prefill = time.Duration(min(compute+load, maxPrefill) * float64(time.Millisecond))
	t.entry.Tokens = max(0, tokens-cached)
	t.entry.Blocks = max(0, (tokens+output+block-1)/block-len(t.entry.Marks)*ledger.Stride)
	w.ledger.Reserve(&t.entry, now)
	w.stats.Placed++
	r.book(min(compute+load, maxPrefill), now)
	if r.opt.PredictFor > 0 {
		// Predicted blocks usually follow the confirmed ones. Predicted blocks between confirmed ones keep their
		// deadlines.
		if confirmed := int(pw.Match.Depth - pw.Match.Predicted); confirmed < len(req.Hashes) {
			until := now.Add(pw.Load.Wait + t.entry.Prefill + r.opt.PredictFor)
			t.predicted = r.index.Predict(w.id, req.Hashes, confirmed, until)
		}
	}
	r.sessions.put(&req.Intent, w.key, now)
	var first uint64
	if len(req.Hashes) > 0 {
		first = req.Hashes[0]
	}
	r.firsts[r.view.Turn%uint64(len(r.firsts))] = first
	r.view.Turn++
	pw.Last = r.view.Turn
	t.placed = now
}

// marks sets the marks of the ticket's entry.
func (t *Ticket) marks(hashes []uint64) {
	n := len(hashes) / ledger.Stride
	t.entry.Marks = t.few[:0]
	if n > len(t.few) {
		t.entry.Marks = make([]uint64, 0, n)
	}
	for i := range n {
		t.entry.Marks = append(t.entry.Marks, hashes[(i+1)*ledger.Stride-1])
	}
}

// Decision returns the worker on which the request was placed, and why.
func (t *Ticket) Decision() *Decision { return &t.decision }

// FirstToken ends the request's prefill. Calls after the first, or after the end of the request, do nothing.
func (t *Ticket) FirstToken(now time.Time) {
	t.router.mu.Lock()
	defer t.router.mu.Unlock()
	if t.worker.ledger.FirstToken(&t.entry, now) {
		t.first, t.alone = now, t.entry.Alone()
	}
}

// Finish ends a request whose response is complete. cached is the number of prompt tokens that the engine had cached,
// or -1 if it did not report it; output is the number of tokens that it generated. If no other prefill was on the worker
// between Place and FirstToken, and the engine reported cached, the router learns from it how fast engines are.
func (t *Ticket) Finish(now time.Time, cached, output int) {
	r := t.router
	r.mu.Lock()
	defer r.mu.Unlock()
	if !t.worker.ledger.Release(&t.entry, now) {
		return
	}
	s := &t.worker.stats
	s.Finished++
	s.Output += uint64(max(0, output))
	if !t.first.IsZero() {
		r.responded(now.Sub(t.first))
	}
	if cached < 0 {
		return
	}
	s.CachedEstimate += uint64(t.decision.CachedEstimate)
	s.CachedReported += uint64(cached)
	if t.alone && !r.opt.FixedRates && slices.Contains(r.speeds, &t.worker.speed) {
		cached = min(cached, max(0, t.tokens-1))
		if r.model.Add(float64(t.tokens-cached), float64(cached), float64(t.first.Sub(t.placed))/1e6, &t.worker.speed, r.speeds) {
			r.learned()
		}
	}
}

// responded counts how long a response took after its first token.
func (r *Router) responded(d time.Duration) {
	d = max(0, d)
	if r.view.Decode == 0 {
		r.view.Decode = d
		return
	}
	r.view.Decode += (d - r.view.Decode) / 32
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
