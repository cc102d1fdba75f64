// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/protocols/preamble"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/wire"
)

// This file handles hints, the preamble and returned reasoning:
//
//	readHints     reads hints, stabilizes the preamble, checks reasoning, applies the policy
//	locate        converts cache breakpoints to token positions
//	follow        compares the prompt with the previous one of its session
//	engineHints   writes the hints in the engine's dialect

// readHints reads the hints of the request, stabilizes its preamble, checks returned reasoning, and limits the hints by
// policy.
func (c *call) readHints(r *http.Request) error {
	g := c.g
	in, faults := intent.Read(intent.Source{API: c.rec.API, Header: r.Header, Field: c.field, Priority: g.opt.PriorityIs})
	if c.api != wire.Completions && (g.opt.StripPreamble || g.opt.Relocate || g.opt.SortTools) {
		report, err := preamble.Stabilize(c.req, c.preambleOptions())
		if err != nil {
			return err
		}
		c.rec.Stripped = report.Bytes()
	}

	// Reasoning is bound to its tenant and cache salt.
	c.signer = g.opt.Signer.With(c.rec.Tenant + "\x00" + in.Salt)
	found, err := wire.CheckReasoning(c.req, c.signer)
	if err != nil {
		return err
	}
	c.rec.Reasoning = found
	c.noteReasoning()

	if in.Breakpoints == nil {
		in.Breakpoints, _ = wire.Breakpoints(c.req) // positions after Stabilize; locate reports the faults
	}
	if in.Trigger == "" {
		in.Trigger = wire.Trigger(c.req)
	}
	policy, ok := g.opt.Policies[c.rec.Tenant]
	if !ok {
		policy = g.opt.Policy
	}
	policy.Isolate = policy.Isolate || c.rec.Tenant != "" && !g.opt.Shared[c.rec.Tenant]
	salt := in.Salt
	in, c.rec.Limited = policy.Clamp(c.rec.Tenant, in)
	c.isolated = in.Salt != salt
	c.rec.Intent, c.route.Intent = in, in
	c.addFaults(faults)
	for _, x := range c.rec.Limited {
		g.opt.Logger.Info("hint limited by policy", "request", c.id, "hint", x.Hint, "why", x.Why)
	}
	return nil
}

// addFaults records and logs invalid hints.
func (c *call) addFaults(faults []intent.Fault) {
	c.rec.Faults = append(c.rec.Faults, faults...)
	for _, f := range faults {
		c.g.opt.Logger.Info("invalid hint", "request", c.id, "where", f.Where, "why", f.Why)
	}
}

// locate sets the number of prompt tokens before each granted breakpoint and, from these, the cache blocks to retain.
func (c *call) locate() {
	marks, faults := c.text.Breakpoints(c.req)
	c.addFaults(faults)
	in := &c.route.Intent
	at := make(map[intent.Breakpoint]int, len(marks))
	place := func(b intent.Breakpoint) intent.Breakpoint {
		return intent.Breakpoint{Tool: b.Tool, Turn: b.Turn, Block: b.Block, Inner: b.Inner}
	}
	for _, b := range c.text.Tokens(c.model.Tokenizer(), marks, c.prompt, c.text.Cuts()...) {
		at[place(b)] = b.Tokens
	}
	in.Breakpoints = slices.Clone(in.Breakpoints)
	for i := range in.Breakpoints {
		if n, ok := at[place(in.Breakpoints[i])]; ok {
			in.Breakpoints[i].Tokens = n
		}
	}
	c.rec.Intent = *in
	c.rec.Holds = intent.Holds(in.Breakpoints, c.blocks)
}

// noteReasoning logs the results of checking past reasoning, the first of each kind.
func (c *call) noteReasoning() {
	type kind struct {
		verdict           replay.Verdict
		restored, dropped bool
	}
	times := make(map[kind]int)
	for _, f := range c.rec.Reasoning {
		times[kind{f.Verdict, f.Restored, f.Dropped}]++
	}
	for _, f := range c.rec.Reasoning {
		k := kind{f.Verdict, f.Restored, f.Dropped}
		if n := times[k]; n > 0 {
			c.g.opt.Logger.Info("reasoning checked", "request", c.id, "found", f, "times", n)
			delete(times, k)
		}
	}
}

// preambleOptions returns the options for preamble.Stabilize; nil removes only the billing header.
func (c *call) preambleOptions() *preamble.Options {
	opt := &c.g.opt
	if !opt.Relocate && !opt.SortTools {
		return nil
	}
	return &preamble.Options{Relocate: opt.Relocate, SortTools: opt.SortTools, Prompt: c.layout}
}

// follow compares the prompt with the previous one of its session.
func (c *call) follow() {
	in := &c.route.Intent
	if in.Session.ID == "" {
		return
	}
	c.rec.Prefix = c.g.histories.next(historyKey{c.rec.Tenant, in.Salt, in.Session.ID}, c.req, &preamble.CompareOptions{Prompt: c.layout})
	if p := &c.rec.Prefix; p.Known && p.Relation != preamble.Extends && p.Relation != preamble.Same {
		d := p.Divergence
		d.A.Excerpt, d.B.Excerpt = "", "" // text of the prompts
		c.g.opt.Logger.Info("prompt diverged from previous prompt in session", "request", c.id, "session", in.Session.ID, "divergence", d)
	}
}

// emit writes hints in the dialect of an engine that takes some, with the session that claims blocks of its cache.
func (c *call) emit(e *engine, in *intent.Intent) intent.Out {
	if e.claims.path != "" && in.Session.ID != "" {
		if in.Session.ID = c.claimant(); !e.claims.add(in.Session.ID) {
			in.Session = intent.Session{}
		}
	}
	return e.hints.Emit(in)
}

// engineHints returns the hints in the dialect of an engine.
func (c *call) engineHints(ctx context.Context, e *engine) intent.Out {
	if e.hints == nil {
		return intent.Out{}
	}
	in := c.route.Intent
	in.RequestID = c.unique
	in.Prefetch = in.Prefetch && c.managed() // otherwise, the gateway does it
	out := c.emit(e, &in)
	log := c.g.opt.Logger
	if !log.Enabled(ctx, slog.LevelDebug) {
		return out
	}
	for _, x := range out.Changes {
		log.DebugContext(ctx, "hint not supported by engine", "request", c.id, "engine", e.name, "hint", x.Hint, "why", x.Why)
	}
	return out
}

const (
	maxHistories = 1024             // sessions that are remembered, in at most 72 KiB each
	historyFor   = 10 * time.Minute // after their last request
)

// histories holds the last prompt of recently used sessions. It is safe for concurrent use by multiple goroutines.
type histories struct {
	cache *otter.Cache[historyKey, *history]
}

// historyKey identifies a session. Session ids are scoped by tenant and cache salt.
type historyKey struct{ tenant, salt, session string }

type history struct {
	mu sync.Mutex
	preamble.History
	used time.Time
}

func newHistories() (*histories, error) {
	c, err := otter.New(&otter.Options[historyKey, *history]{MaximumSize: maxHistories})
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	return &histories{c}, nil
}

// next compares a request with the previous one of its session and replaces it.
func (t *histories) next(k historyKey, r *block.Request, o *preamble.CompareOptions) Prefix {
	e, _ := t.cache.ComputeIfAbsent(k, func() (*history, bool) { return &history{used: time.Now()}, false })
	e.mu.Lock()
	defer e.mu.Unlock()
	e.used = time.Now()
	d := e.Next(r, o)
	return Prefix{Known: d.A.Bytes > 0, Divergence: d}
}

// trim removes the sessions that were not used for historyFor.
func (t *histories) trim(now time.Time) {
	for k, e := range t.cache.All() {
		e.mu.Lock()
		over := now.Sub(e.used) > historyFor
		e.mu.Unlock()
		if over {
			t.cache.Invalidate(k)
		}
	}
}
