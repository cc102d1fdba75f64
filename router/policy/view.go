// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"slices"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/router/load"
)

// Role says what part of a request a worker serves. The zero Role is both.
type Role uint8

// The roles.
const (
	Both    Role = iota // prompt and answer on one worker
	Prefill             // only prompts
	Decode              // only answers, from KV data computed elsewhere
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

// Health says whether a worker takes requests. The zero Health is Healthy.
type Health uint8

// The states of health.
const (
	Healthy  Health = iota
	Draining        // finishes what it has, gets nothing new
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

// Request is what a decision needs to know about a request.
type Request struct {
	// Hashes are the sequence hashes of the prompt's complete blocks, as [kvhash.Chain.Blocks] gives them. Without them only
	// load decides.
	Hashes []uint64
	// Tokens is the length of the whole prompt; below 0 counts as 0.
	Tokens int
	// Intent is what the caller knows: session, expected output, priority.
	Intent intent.Intent
	// Role is what the worker has to do.
	Role Role
	// Exclude are workers not to use, such as those where this request failed before.
	Exclude []index.WorkerID
}

// View is what is known about all workers, at one moment and for one request. Policies must not change or keep it.
type View struct {
	// BlockSize is the number of tokens in a block.
	BlockSize int
	// Turn counts the requests placed before this one.
	Turn uint64
	// Workers are in ascending order of ID.
	Workers []Worker
}

// Worker is one worker in a [View].
type Worker struct {
	ID        index.WorkerID
	Key       index.Key
	Role      Role
	Health    Health
	HealthWhy string
	Rates     Rates
	Load      load.Load
	Cache     Cache
	// Session says that the last request of the same session went here.
	Session bool
}

// Rates say how fast a worker is, in milliseconds per token. What is not a positive number means the default.
type Rates struct {
	// Prefill is the time to compute one token of a prompt. The default is 1/70, that is 70,000 tokens/s.
	Prefill float64
	// Load is the time to bring one token's KV data from a tier to the device; tier t has the index t-1. The default is none for the
	// device, 0.003 for host, 0.027 for disk, 0.005 for remote.
	Load [kvevent.NumTiers]float64
}

// Defaults returns r with the defaults filled in.
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

// Cache is what the index believes a worker holds of the prompt.
type Cache struct {
	// Depth is the number of leading blocks of the prompt, Tiers splits them by tier, Predicted counts those not confirmed. See
	// [index.Match].
	Depth     int
	Tiers     [kvevent.NumTiers]int
	Predicted int
	// Held is the number of blocks the worker holds in all.
	Held int
	// Trust says how far this can be believed, Why gives the reason if not fully.
	Trust kvevent.Trust
	Why   string
}

// Barred returns why the worker must not get the request, "" if it may.
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

// Estimate is what a prompt would cost on a worker.
type Estimate struct {
	Cached    int     // tokens held in any tier or predicted
	Predicted int     // of these, tokens not confirmed by an event
	New       float64 // ms to compute the others
	Load      float64 // ms to load those that lie in a slower tier
}

// Estimate returns what the prompt of r would cost on w. Cached tokens count with the given weight between 0 and 1, those only
// predicted fully: they are the router's own news. At least the last token is always computed.
func (w *Worker) Estimate(r *Request, blockSize int, weight float64) Estimate {
	tokens := max(0, r.Tokens)
	e := Estimate{
		Cached:    max(0, min(w.Cache.Depth*blockSize, tokens-1)),
		Predicted: w.Cache.Predicted * blockSize,
	}
	e.Predicted = min(e.Predicted, e.Cached)
	e.New = (float64(tokens-e.Predicted) - weight*float64(e.Cached-e.Predicted)) * w.Rates.Prefill
	for i, n := range w.Cache.Tiers {
		e.Load += weight * float64(n*blockSize) * min(w.Rates.Load[i], w.Rates.Prefill)
	}
	return e
}
