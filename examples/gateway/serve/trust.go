// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"math"
	"sync/atomic"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/router/policy"
)

// This file compares what the router estimated to be cached with what the engine reports, for each request. An engine that
// has less than estimated, because its predictions outlive its cache or its events are misread, is trusted less: the
// part of the prompt that it will probably lack is a cost. If it often has less, what is known of its cache is dropped. A single
// request corrects nothing: its events may be on their way, and the engine has just computed what it lacked.

// trustAge is the number of requests after which most of the trust in an engine follows from later ones.
const trustAge = 8

// A trust is the expected part of the estimated tokens that an engine has cached. It is safe for concurrent use by
// multiple goroutines.
type trust struct {
	lost atomic.Uint64 // bits of 1 minus that part

	// Under fleet.mu:
	low   bool // it was below lowTrust, and not above highTrust since
	stale bool // what is known of the cache is to be dropped
}

// lowTrust is the trust at which what is known of a cache is dropped, after six requests in a row of which all was missing.
// It happens again only if the trust was above highTrust meanwhile.
const (
	lowTrust  = 0.5
	highTrust = 0.9
)

// value returns the part.
func (t *trust) value() float64 { return 1 - math.Float64frombits(t.lost.Load()) }

// judge compares the estimate for a request with the tokens that the engine reported, and changes the trust in it. It returns
// the tokens that the engine had in excess of the estimate, which are negative if it had fewer, and 0 if the difference is
// within a block of the cache. The caller must not call it concurrently.
func (t *trust) judge(estimate int, used event.Tokens, block int) (excess int64) {
	if used.CachedEstimated || used.Prompt == 0 {
		return 0
	}
	expected := min(int64(estimate), used.Prompt-1) // the last token of a prompt is always computed
	if expected >= int64(block) {
		part := min(1, float64(used.Cached+int64(block))/float64(expected))
		lost := 1 - t.value()
		t.lost.Store(math.Float64bits(lost + (1-part-lost)/trustAge))
	}
	if excess = used.Cached - expected; excess >= -int64(block) && excess <= int64(block) {
		return 0
	}
	return excess
}

// judge changes the trust in an engine. See trust.judge.
func (f *fleet) judge(e *engine, estimate int, used event.Tokens, block int) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	excess := e.trust.judge(estimate, used, block)
	switch v := e.trust.value(); {
	case v > highTrust:
		e.trust.low = false
	case v < lowTrust && !e.trust.low:
		e.trust.low, e.trust.stale = true, true
	}
	return excess
}

// renew drops what is known of the cache of an engine, if that is to be done, and subscribes to its events again, which begin
// with those that it keeps. It must not be called concurrently for one engine.
func (f *fleet) renew(e *engine) {
	f.mu.Lock()
	stale := e.trust.stale
	e.trust.stale = false
	f.mu.Unlock()
	if !stale {
		return
	}
	f.log.Warn("what is known of the engine's cache is dropped: it often had less", "engine", e.name)
	const why = "the engine had fewer tokens cached than estimated"
	if e.follow == nil {
		e.stream.Forget(why)
		return
	}
	if e.cancel != nil {
		e.cancel()
	}
	e.stream = e.newStream() // what ended the subscription may have marked the old one
	e.stream.Forget(why)
	if err := e.follow(); err != nil {
		f.log.Error("no events from the engine", "engine", e.name, "err", err)
	}
}

// trusting is a policy with costs in milliseconds that adds one for what engines will probably not have cached.
type trusting struct {
	policy.Policy
	terms []policy.Term
	of    map[index.WorkerID]*trust
}

// withTrust returns the policy, or nil for the default one, with the trust in engines, if its costs are times. Trust in engines
// that are added to of later counts too.
func withTrust(p policy.Policy, of map[index.WorkerID]*trust) policy.Policy {
	if p == nil {
		p = policy.Default()
	}
	terms := p.Terms()
	if _, learns := p.(policy.Observer); learns || len(terms) == len(policy.Terms{}) {
		return p
	}
	for _, t := range terms {
		if t.Unit != "ms" {
			return p
		}
	}
	return &trusting{p, append(terms[:len(terms):len(terms)], policy.Term{Name: "distrust", Unit: "ms"}), of}
}

// Terms implements policy.Policy.
func (p *trusting) Terms() []policy.Term { return p.terms }

// Costs implements policy.Policy.
func (p *trusting) Costs(v *policy.View, r *policy.Request, out []policy.Terms) {
	p.Policy.Costs(v, r, out)
	var cold policy.View // without anything cached
	for i := range v.Workers {
		t := p.of[v.Workers[i].ID]
		if t == nil || v.Matches[i].Depth <= 0 {
			continue
		}
		part := t.value()
		if part > 0.99 {
			continue
		}
		if cold.Matches == nil {
			cold = *v
			cold.Matches = make([]index.Match, len(v.Matches))
		}
		whole, _, _, _ := cold.Estimate(r, i)
		rest, load, _, _ := v.Estimate(r, i)
		out[i][len(p.terms)-1] = (1 - part) * max(0, whole-rest-load)
	}
}
