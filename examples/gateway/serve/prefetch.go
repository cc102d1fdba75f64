// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/router"
	"github.com/weft-go/weft/router/policy"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// This file computes the known part of a conversation's next prompt after a response, for clients that ask for it and may
// (intent.Intent.Prefetch, intent.Policy.Prefetch). Most templates omit past reasoning once the user has a new question, so that the engine
// has cached other tokens than the next prompt has, from the first reasoning after the last question on.
//
//	collected  copies a response for which it is asked
//	prefetch   begins after the response, in a goroutine of its own
//	claim      ends it when the conversation's next request comes
//
// An engine has one such request at a time, and only while it has no other prompt to compute: the next request that is placed on
// it cancels this one. What was computed until then is usually cached.

// minPrefetch is the shortest time that computing a prompt in advance must save. A request costs an engine a step, which is about as much.
const minPrefetch = 10.0 // ms

// The outcomes of a Prefetch.
const (
	PrefetchDone     = "done"     // the engine has computed Tokens
	PrefetchCanceled = "canceled" // another request, or the next one of the conversation, came before the end
	PrefetchFailed   = "failed"   // the engine failed, or the next prompt cannot be rendered
	PrefetchBusy     = "busy"     // the engine has other prompts to compute, or the key has reached a limit
	PrefetchIdle     = "idle"     // the engine has the prompt, except for less than is worth a request
	PrefetchUsed     = "used"     // the next prompt begins with Tokens that were computed, and is on the same engine
)

// Prefetch describes the computation of the known part of a next prompt. What is never used is the difference of the Tokens that are done and used.
type Prefetch struct {
	Model   string
	Worker  string // name of the engine
	Outcome string
	Tokens  int // of whole cache blocks that the engine did not have
}

// An ahead is the next prompt of a conversation, as far as it is known. Its methods are safe for concurrent use by multiple goroutines.
type ahead struct {
	mu     sync.Mutex
	over   bool               // the next request has come, or another one needs the engine
	cancel context.CancelFunc // of the request to the engine

	// After it is computed, what the engine did not have.
	engine *engine
	hashes []uint64 // of the blocks
	held   int      // blocks that the engine had
}

// begin makes cancel the function that ends it. It returns false if it is over.
func (a *ahead) begin(cancel context.CancelFunc) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancel = cancel
	return !a.over
}

// stop ends it.
func (a *ahead) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over = true; a.cancel != nil {
		a.cancel()
	}
}

// computed records what an engine has computed.
func (a *ahead) computed(e *engine, hashes []uint64, held int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.engine, a.hashes, a.held = e, hashes, held
}

// take returns the number of computed blocks with which a prompt on an engine begins. Later calls return 0.
func (a *ahead) take(e *engine, hashes []uint64) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.engine != e {
		return 0
	}
	n := 0
	for n < min(len(hashes), len(a.hashes)) && hashes[n] == a.hashes[n] {
		n++
	}
	a.engine = nil
	return max(0, n-a.held)
}

// plan begins an ahead if the client asks for it.
func (c tokenBackend) plan() {
	in := &c.route.Intent
	if in.Prefetch && !c.compact && !c.part && !in.Session.Final && in.Evict == 0 && in.Compaction == nil && c.api != wire.Completions && choices(c.req) == 1 {
		c.ahead = &ahead{}
	}
}

// claim ends what was begun after the conversation's previous response.
func (c *call) claim() {
	if c.before != nil {
		c.before.stop()
	}
}

// used reports how much of the prompt was computed in advance.
func (c *call) used() {
	if c.before == nil {
		return
	}
	if n := c.before.take(c.place.engine, c.route.Hashes); n > 0 {
		c.prefetched(c.place.engine, PrefetchUsed, n)
	}
}

func (c *call) prefetched(e *engine, outcome string, blocks int) {
	p := Prefetch{Model: c.deployment.name, Worker: e.name, Outcome: outcome, Tokens: blocks * c.blocks}
	c.g.opt.Logger.Debug("prefetch", "request", c.id, "engine", e.name, "outcome", outcome, "tokens", p.Tokens)
	if c.g.opt.OnPrefetch != nil {
		c.g.opt.OnPrefetch(p)
	}
}

// collected returns an output that copies the response if the next prompt is to be computed.
func (c *call) collected(o output) output {
	if c.ahead == nil {
		return o
	}
	return &collectedOutput{output: o, c: c}
}

type collectedOutput struct {
	output
	c *call
}

func (o *collectedOutput) send(events ...event.Event) {
	o.c.response.Add(events...)
	o.output.send(events...)
}

func (o *collectedOutput) restart(start event.Event) {
	o.c.response = event.Collector{}
	o.output.restart(start)
}

// prefetch computes the known part of the next prompt after the response has ended with err.
func (c *call) prefetch(r *http.Request, err error) {
	if c.ahead == nil || err != nil {
		return
	}
	switch c.choices[0].why {
	case event.Stop, event.StopSequence, event.ToolCalls:
		e := c.place.engine
		if !e.ahead.CompareAndSwap(nil, c.ahead) {
			c.prefetched(e, PrefetchBusy, 0)
			return
		}
		c.g.aside(func() {
			defer e.ahead.Store(nil)
			defer func() {
				if p := recover(); p != nil { // as in net/http
					c.g.opt.Logger.Error("panic", "request", c.id, "panic", p, "stack", string(debug.Stack()))
					c.prefetched(e, PrefetchFailed, 0)
				}
			}()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), c.g.opt.EngineSilence)
			defer cancel()
			defer context.AfterFunc(c.g.ctx, cancel)()
			outcome, blocks, err := c.compute(ctx, cancel, e)
			if err != nil {
				c.g.opt.Logger.Info("prefetch failed", "request", c.id, "engine", e.name, "err", loggable(err))
			}
			c.prefetched(e, outcome, blocks)
		})
	}
}

// compute computes the known part of the next prompt on an engine. It returns the outcome, the blocks that the engine did not have, and the
// reason if it failed.
func (c *call) compute(ctx context.Context, cancel context.CancelFunc, e *engine) (outcome string, blocks int, err error) {
	if !c.ahead.begin(cancel) {
		return PrefetchCanceled, 0, nil
	}
	if c.client.begin(time.Now()) != nil {
		return PrefetchBusy, 0, nil
	}
	defer c.client.end()
	ids, err := c.known(ctx)
	switch {
	case ctx.Err() != nil:
		return PrefetchCanceled, 0, nil
	case err != nil:
		return PrefetchFailed, 0, err
	}
	chain := kvhash.NewChain(c.blocks, kvhash.Scheme{}.With(c.adapter, c.route.Intent.Salt))
	chain.Append(ids...)
	hashes := chain.Blocks()
	ids = ids[:len(hashes)*c.blocks] // an engine caches whole blocks
	workers := c.fleet.router.Workers()
	w := &workers[slices.IndexFunc(workers, func(w policy.Worker) bool { return w.ID == e.id })]
	if w.Load.Wait(time.Now()) > 0 {
		return PrefetchBusy, 0, nil
	}
	req := &router.Request{
		Hashes: hashes, Tokens: len(ids), Only: []index.WorkerID{e.id}, Adapter: c.adapter,
		Intent: intent.Intent{Priority: min(c.route.Intent.Priority, 0) - 1, ExpectedOutput: 1, Pace: intent.Background, Salt: c.route.Intent.Salt, Tenant: c.route.Intent.Tenant},
	}
	p := c.fleet.placeNow(req)
	if p == nil {
		return PrefetchBusy, 0, nil
	}
	defer func() { p.ticket.Cancel(time.Now()) }() // no effect after Finish
	held := p.ticket.Decision().CachedEstimate / c.blocks
	blocks = len(hashes) - held
	if blocks < 1 || float64(blocks*c.blocks)*w.Engine.Prefill < minPrefetch {
		return PrefetchIdle, 0, nil
	}
	cached, err := c.request(ctx, p, req, ids)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return PrefetchCanceled, blocks, nil
	default:
		return PrefetchFailed, blocks, err
	}
	if cached >= 0 { // the engine knows better
		held = min(cached/c.blocks, len(hashes))
	}
	c.ahead.computed(e, hashes, held)
	return PrefetchDone, len(hashes) - held, nil
}

// known returns the known ids of the next prompt.
func (c *call) known(ctx context.Context) ([]uint32, error) {
	if err := c.g.work.take(ctx); err != nil {
		return nil, err
	}
	defer c.g.work.give()
	body, err := c.req.AppendBody(nil)
	if err != nil {
		return nil, err
	}
	req, err := c.api.Decode(body, &block.Limits{Body: int(c.g.opt.MaxBody)})
	if err != nil {
		return nil, err
	}
	ids, err := c.text.Next(req, wire.Turn(&c.response, 0))
	if err == nil && int64(len(ids)) >= c.record().ContextWindow {
		err = apierr.ContextLength(int64(len(ids)), 1, c.record().ContextWindow)
	}
	return ids, err
}

// request makes an engine compute a prompt. It returns the number of tokens that were cached, or -1 if the engine does not report it.
func (c *call) request(ctx context.Context, p *placement, req *router.Request, ids []uint32) (cached int, err error) {
	e, rec := p.engine, Record{
		RequestID: c.id, EngineRequestID: c.g.newID(), API: "prefetch", Model: c.rec.Model, Adapter: c.adapter, Worker: p.engine.name, Decision: *p.ticket.Decision(),
		Hashes: req.Hashes, BlockSize: c.blocks, Tenant: c.rec.Tenant, Intent: req.Intent, Placing: p.took, Finish: event.Length.String(),
	}
	if t := c.g.opt.Tracer; t != nil {
		start, bad := http.NewRequestWithContext(ctx, http.MethodPost, "/", nil)
		if bad != nil {
			return -1, bad
		}
		ctx = t.Start(start, rec.API)
		t.Place(ctx, &rec)
		defer func() {
			var fault *apierr.Error
			if err != nil {
				fault = public(ctx, err)
			}
			t.End(ctx, &rec, fault)
		}()
	}
	if err := c.fleet.verify(ctx, e, 0); err != nil {
		return -1, err
	}
	model, err := c.families.get("passthrough")
	if err != nil {
		return -1, err
	}
	client, raw := block.NewRequest(), model.Raw(ids)
	dec, err := model.NewDecoder(client, raw, &prompt.DecoderOptions{MaxTokens: 1})
	if err != nil {
		return -1, err
	}
	out := &engineRequest{Request: upstream.Request{Model: c.asked.Model, Client: client, Prompt: raw, Choices: 1}}
	if err := out.prepare(c.kind(e), nil, dec); err != nil {
		return -1, err
	}
	c.client.spend(time.Now(), len(ids)+1)
	var hints intent.Out
	if e.hints != nil {
		in := req.Intent
		in.RequestID, in.Session.ID = rec.EngineRequestID, c.route.Intent.Session.ID
		hints = c.emit(e, &in)
	}
	begun := time.Now()
	steps, err := e.complete(ctx, rec.EngineRequestID, out, hints)
	if err != nil {
		return -1, err
	}
	rec.Usage = event.Tokens{Prompt: int64(len(ids)), CachedEstimated: true}
	cached = -1
	for st, err := range steps {
		switch {
		case err != nil:
			return -1, err
		case st.Usage != nil && !st.Usage.CachedEstimated:
			cached = int(st.Usage.Cached)
			rec.Usage.Cached, rec.Usage.CachedEstimated = st.Usage.Cached, false
		case rec.FirstByte == 0 && (len(st.IDs) > 0 || len(st.Text) > 0):
			p.ticket.FirstToken(time.Now())
			rec.FirstByte = time.Since(begun)
		}
	}
	rec.Usage.Output, rec.Total = 1, time.Since(begun)
	p.ticket.Finish(time.Now(), cached, 1)
	return cached, nil
}

// prefetchField returns the field or header that asks for a prefetch.
func (c *call) prefetchField() string {
	for _, path := range [][]string{{"nvext", "agent_hints", "speculative_prefill"}, {"agent", "prefetch"}} {
		if len(c.req.Field(path...)) > 0 {
			return strings.Join(path, ".")
		}
	}
	return "x-weft-prefetch"
}
