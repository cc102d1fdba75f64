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

// View describes all workers at one instant, for one request. Policies must not modify or retain it.
type View struct {
	// BlockSize is the number of tokens in a block.
	BlockSize int
	// Turn is the number of requests placed before this one.
	Turn uint64
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
	Rates        Rates
	Load         Load
	// Session reports whether the previous request of the same session was placed on this worker.
	Session bool
}

// Load is the load of a worker at one instant.
type Load struct {
	// Wait is the predicted time until a request placed now begins its prefill.
	Wait time.Duration
	// Prefills is the number of requests without a first token.
	Prefills int
	// Blocks is the number of KV blocks of all requests, prompt and expected output. Shared blocks count for each
	// request, because attention reads them for each.
	Blocks int
}

// Rates are the speed of a worker, in milliseconds per token. Values that are not positive mean the default.
type Rates struct {
	// Prefill is the time to compute one token of a prompt. The default is 1/70, that is 70,000 tokens/s.
	Prefill float64
	// Load is the time to load one token's KV data from a tier to the device; tier t has the index t-1. The default is
	// 0 for the device, 0.003 for host, 0.027 for disk and 0.005 for remote.
	Load [kvevent.NumTiers]float64
}

// Defaults returns r with default values in place of those that are not positive or not finite.
func (r Rates) Defaults() Rates {
	fill := func(rate *float64, def float64) {
		if !(*rate > 0) || math.IsInf(*rate, 1) { // NaN is not above 0
			*rate = def
		}
	}
	fill(&r.Prefill, 1.0/70)
	for i, def := range [kvevent.NumTiers]float64{0, 0.003, 0.027, 0.005} {
		fill(&r.Load[i], def)
	}
	return r
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

// Estimate returns the terms New and Load of the request's prompt on w, and how many tokens of it are cached; predicted of these are not
// confirmed by an event. Cached tokens are multiplied by weight, between 0 and 1; predicted ones count fully, because the router itself
// placed them. At least the last token is always computed.
func (w *Worker) Estimate(r *Request, blockSize int, weight float64) (t Terms, cached, predicted int) {
	tokens := max(0, r.Tokens)
	cached = max(0, min(int(w.Match.Depth)*blockSize, tokens-1))
	predicted = min(int(w.Match.Predicted)*blockSize, cached)
	t.New = (float64(tokens-predicted) - weight*float64(cached-predicted)) * w.Rates.Prefill
	for i, n := range w.Match.Tiers {
		t.Load += weight * float64(int(n)*blockSize) * min(w.Rates.Load[i], w.Rates.Prefill)
	}
	return t, cached, predicted
}
