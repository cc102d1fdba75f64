// SPDX-License-Identifier: Apache-2.0

package policy

import (
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
)

// String returns the role in lower case.
func (r Role) String() string {
	switch r {
	case Prefill:
		return "prefill"
	case Decode:
		return "decode"
	}
	return "both"
}

// Health specifies whether a worker takes requests. The zero Health is Healthy.
type Health uint8

// The states of health.
const (
	Healthy  Health = iota
	Draining        // finishes its requests, but gets no new ones
	Down
)

// String returns the state in lower case.
func (h Health) String() string {
	switch h {
	case Draining:
		return "draining"
	case Down:
		return "down"
	}
	return "healthy"
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
	// Exclude lists workers that must not be chosen, such as those on which this request has failed.
	Exclude []index.WorkerID
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
	// Workers are in ascending order of ID.
	Workers []Worker
}

// Worker is one worker in a [View].
type Worker struct {
	index.Worker             // its description by the index: ID, Key, State, Blocks
	Match        index.Match // how much of the prompt it holds; zero if none
	Role         Role
	Health       Health
	HealthWhy    string
	Engine       Engine // as configured or learned
	Load         Load
	// Session reports whether the previous request of the same session was placed on this worker.
	Session bool
	// Last is the number of the request that was placed here last, from 1, or 0.
	Last uint64
}

// Load is the load of a worker at one moment.
type Load struct {
	// Wait is the predicted time until a request placed now begins its prefill.
	Wait time.Duration
	// Prefills and Decodes are the numbers of requests without and with a first token.
	Prefills, Decodes int
	// Tokens is the number of prompt tokens that the requests without a first token must compute.
	Tokens int
	// Blocks is the number of KV blocks of all requests, prompt and expected output. Prompt blocks that several requests
	// share count once, except for up to 32 at the end of what they share.
	Blocks int
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
	e.Capacity = max(e.Capacity, 0)
	return e
}

// compute returns the time in milliseconds to compute n tokens after cached ones.
func (e *Engine) compute(n, cached float64) float64 {
	return e.Base + n*(e.Prefill+e.Attention*(cached+n/2))
}

// Barred returns the reason why the worker is not eligible for the request, or "" if it is.
func (w *Worker) Barred(r *Request) string {
	switch {
	case w.Health != Healthy:
		if w.HealthWhy != "" {
			return w.Health.String() + ": " + w.HealthWhy
		}
		return w.Health.String()
	case w.Role != Both && w.Role != r.Role:
		return "serves only " + w.Role.String()
	case slices.Contains(r.Exclude, w.ID):
		return "excluded by the request"
	}
	return ""
}

// Estimate returns the time in milliseconds to compute the request's prompt on w and to load what is in slower tiers,
// and how many tokens of it are cached; predicted of these are not confirmed by an event. Computing counts confirmed
// tokens by half if the state of the worker is Unknown and by four fifths if it is Degraded; predicted ones count
// fully, because the router itself placed them. At least the last token is always computed, and loading never takes longer than computing.
func (w *Worker) Estimate(r *Request, blockSize int) (compute, load float64, cached, predicted int) {
	tokens := max(0, r.Tokens)
	m, e := &w.Match, &w.Engine
	if m.Depth <= 0 {
		return e.compute(float64(tokens), 0), 0, 0, 0
	}
	cached = max(0, min(int(m.Depth)*blockSize, tokens-1))
	predicted = min(int(m.Predicted)*blockSize, cached)
	trust := w.trust()
	held := float64(predicted) + trust*float64(cached-predicted)
	compute = e.compute(float64(tokens)-held, held)
	if e.Load[0] > 0 || int(m.Tiers[0]+m.Predicted) < int(m.Depth) { // something must be loaded
		for i, n := range m.Tiers {
			load += trust * float64(int(n)*blockSize) * min(e.Load[i], e.Prefill)
		}
	}
	return compute, load, cached, predicted
}

func (w *Worker) trust() float64 {
	switch w.State {
	case index.Exact:
		return 1
	case index.Degraded:
		return 0.8
	}
	return 0.5
}
