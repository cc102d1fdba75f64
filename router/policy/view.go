// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/protocols/intent"
)

// Role specifies which part of a request a worker serves. The zero Role is both.
type Role uint8

// The roles.
const (
	Both    Role = iota // prompt and response on one worker
	Prefill             // prompts only
	Decode              // only responses, from KV data that another worker computed
	Split               // of a request: a Prefill and a Decode worker, chosen together, or one for Both if that costs less
)

// String returns the role in lower case.
func (r Role) String() string {
	switch r {
	case Both:
		return "both"
	case Prefill:
		return "prefill"
	case Decode:
		return "decode"
	case Split:
		return "split"
	}
	return fmt.Sprintf("role(%d)", uint8(r))
}

// Request describes the request to decide for.
type Request struct {
	// Hashes are the sequence hashes of the prompt's complete blocks, as [kvhash.Chain.Blocks] returns them. If empty,
	// the decision depends only on load.
	Hashes []uint64
	// Tokens is the length of the whole prompt; negative values are treated as 0.
	Tokens int
	// Intent holds the client's hints: session, expected output, priority.
	Intent intent.Intent
	// Role is the part of the request that the worker must serve.
	Role Role
	// Only lists the workers that may be chosen; nil means all. Exclude lists workers that must not be chosen, such as
	// those on which this request has failed.
	Only, Exclude []index.WorkerID
	// Adapter is the name of the LoRA adapter that the request needs, or "".
	Adapter string
}

// View describes all workers at one moment, for one request. Policies must not modify or retain it.
type View struct {
	Now       time.Time
	BlockSize int // tokens in a block
	// Turn is the number of requests placed before this one.
	Turn uint64
	// Busy is the fraction of the fleet's time that prefills took in the last minute, as estimated, from 0 to 0.95.
	Busy float64
	// Decode is the mean time from the first token to the end of recent responses.
	Decode time.Duration
	// Workers are in ascending order of ID, and Matches[i] is how much of the prompt Workers[i] holds; zero if none.
	Workers []Worker
	Matches []index.Match
	// Session is the index of the worker of the session's previous request, or -1.
	Session int
	// Waiting is the number of requests in the router's queue.
	Waiting int
}

// Worker is one worker in a [View].
type Worker struct {
	ID   index.WorkerID
	Key  index.Key
	Role Role
	// Down is the reason why the worker takes no requests, such as "draining", or "" if it does.
	Down   string
	Engine Engine // as configured or learned
	Load   Load
	// Waiting is the number of requests that wait in the engine, and KV the fraction of its KV blocks that requests use, as
	// its own metrics report them, the requests of others included; 0 if unknown.
	Waiting int
	KV      float64
	// Adapters are the LoRA adapters that are loaded: those that were set, and those of requests placed since.
	Adapters []string
	// Last is the number of the request that was placed here last, from 1, or 0.
	Last uint64
}

// Load is the load of a worker: the requests that this router placed on it and that have not ended.
type Load struct {
	// Free is when the running prefill is expected to end. It may be in the past.
	Free time.Time
	// Pending is the estimated time of the prefills that run after that one.
	Pending time.Duration
	// Prefills and Decodes are the numbers of requests without and with a first token.
	Prefills, Decodes int
	// Tokens is the number of prompt tokens that the requests without a first token must compute.
	Tokens int
	// Blocks is the number of distinct KV blocks of all requests, prompt and expected output. Blocks that several
	// requests share count once, except for up to 512 tokens at the end of what they share.
	Blocks int
}

// Wait returns the predicted time until the worker begins the prefill of a request placed now.
func (l *Load) Wait(now time.Time) time.Duration {
	if l.Prefills == 0 {
		return l.Pending
	}
	return max(0, l.Free.Sub(now)) + l.Pending
}

// Engine holds the rates and the capacity of a worker's engine. Values that are zero, negative or not finite mean the default.
type Engine struct {
	// Prefill is the time to compute one token of a prompt, in milliseconds. The default is 1/70, that is 70,000
	// tokens/s.
	Prefill float64
	// Base is the time of any prefill, in milliseconds. The default is 0.
	Base float64
	// Attention is the time to compute one token, in milliseconds per token before it. The default is 0.
	Attention float64
	// Load is the time to load one token's KV data from a tier to the device, in milliseconds; tier t has the index t-1. The
	// default is 0 for the device, 0.003 for host, 0.027 for disk and 0.005 for remote.
	Load [kvevent.NumTiers]float64
	// Capacity is the number of KV blocks that the device holds; 0 means unknown.
	Capacity int
	// Slots is the number of requests that the engine takes at the same time; 0 means any.
	Slots int
}

// Defaults returns e with default values in place of those that are not positive or not finite.
func (e Engine) Defaults() Engine {
	fill := func(rate *float64, def float64) {
		if !(*rate > 0) || math.IsInf(*rate, 1) { // NaN is not above 0
			*rate = def
		}
	}
	fill(&e.Prefill, 1.0/70)
	fill(&e.Base, 0)
	fill(&e.Attention, 0)
	for i, def := range [kvevent.NumTiers]float64{0, 0.003, 0.027, 0.005} {
		fill(&e.Load[i], def)
	}
	e.Capacity, e.Slots = max(e.Capacity, 0), max(e.Slots, 0)
	return e
}

// compute returns the time in milliseconds to compute n tokens after cached ones.
func (e *Engine) compute(n, cached float64) float64 {
	return e.Base + n*(e.Prefill+e.Attention*(cached+n/2))
}

// Barred returns the reason why the worker is not eligible for the request, or "" if it is.
func (w *Worker) Barred(r *Request) string {
	switch {
	case w.Takes(r):
		return ""
	case w.Down != "":
		return w.Down
	case w.Role != Both && w.Role != r.Role:
		return "serves only " + w.Role.String()
	case r.Only != nil && !slices.Contains(r.Only, w.ID):
		return "not among the workers that the request permits"
	case slices.Contains(r.Exclude, w.ID):
		return "excluded by the request"
	}
	return fmt.Sprintf("full: %d requests", w.Load.Prefills+w.Load.Decodes)
}

// Takes reports whether the worker is eligible for the request. See [Worker.Barred] for the reason.
func (w *Worker) Takes(r *Request) bool {
	return w.Down == "" && (w.Role == Both || w.Role == r.Role) &&
		(w.Engine.Slots == 0 || w.Load.Prefills+w.Load.Decodes < w.Engine.Slots) &&
		(r.Only == nil || slices.Contains(r.Only, w.ID)) && (len(r.Exclude) == 0 || !slices.Contains(r.Exclude, w.ID))
}

// Estimate returns the time in milliseconds to compute the request's prompt on v.Workers[i] and to load what is in slower
// tiers, and how many tokens of it are cached; predicted of these are not confirmed by an event. Confirmed tokens count by
// half if no events of the worker are expected to arrive (index.Unknown). At least the last token is always computed,
// and loading never takes longer than computing. A worker that must only decode computes nothing and loads what it does not hold
// from the worker that has computed it, at the rate of the remote tier.
func (v *View) Estimate(r *Request, i int) (compute, load float64, cached, predicted int) {
	tokens := max(0, r.Tokens)
	m, e := &v.Matches[i], &v.Workers[i].Engine
	if r.Role == Decode {
		cached = min(int(m.Depth)*v.BlockSize, tokens)
		return 0, float64(tokens-cached) * e.Load[kvevent.Remote-1], cached, min(int(m.Predicted)*v.BlockSize, cached)
	}
	if m.Depth <= 0 {
		return e.compute(float64(tokens), 0), 0, 0, 0
	}
	cached = max(0, min(int(m.Depth)*v.BlockSize, tokens-1))
	predicted = min(int(m.Predicted)*v.BlockSize, cached)
	held, trust := float64(cached), 1.0
	if m.State == index.Unknown {
		trust = 0.5
		held = float64(predicted) + trust*float64(cached-predicted)
	}
	compute = e.compute(float64(tokens)-held, held)
	if e.Load[0] > 0 || int(m.Tiers[0]+m.Predicted) < int(m.Depth) { // something must be loaded
		for t, n := range m.Tiers {
			load += trust * float64(int(n)*v.BlockSize) * min(e.Load[t], e.Prefill)
		}
	}
	return compute, load, cached, predicted
}
