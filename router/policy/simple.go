// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
)

// leastLoaded ignores caches.
type leastLoaded struct{}

func (leastLoaded) Name() string  { return "least_loaded" }
func (leastLoaded) Terms() []Term { return []Term{{"wait", "ms"}, {"decode", "ms"}} }
func (leastLoaded) Costs(v *View, _ *Request, out []Terms) {
	for i := range v.Workers {
		l := &v.Workers[i].Load
		out[i] = Terms{ms(l.Wait(v.Now)), perTokens / 64 * float64(v.BlockSize*l.Blocks)}
	}
}

// roundRobin chooses the worker that got a request least recently.
type roundRobin struct{}

func (roundRobin) Name() string  { return "round_robin" }
func (roundRobin) Terms() []Term { return []Term{{"last", "request"}} }
func (roundRobin) Costs(v *View, _ *Request, out []Terms) {
	for i := range v.Workers {
		out[i][0] = float64(v.Workers[i].Last)
	}
}

// random chooses any worker, by a hash of the request's number.
type random struct{}

func (random) Name() string  { return "random" }
func (random) Terms() []Term { return []Term{{"hash", "1"}} }
func (random) Costs(v *View, _ *Request, out []Terms) {
	for i := range v.Workers {
		out[i][0] = unit(v.Turn, uint64(i))
	}
}

// powerOfTwo chooses the less loaded of two eligible workers drawn at random.
type powerOfTwo struct{}

func (powerOfTwo) Name() string  { return "power_of_two" }
func (powerOfTwo) Terms() []Term { return []Term{{"wait", "ms"}, {"decode", "ms"}, {"drawn", "1"}} }
func (powerOfTwo) Costs(v *View, r *Request, out []Terms) {
	leastLoaded{}.Costs(v, r, out)
	a, b := -1, -1 // lowest hashes
	for i := range v.Workers {
		out[i][2] = math.Inf(1)
		if !v.Workers[i].Takes(r) {
			continue
		}
		switch x := unit(v.Turn, uint64(i)); {
		case a < 0 || x < unit(v.Turn, uint64(a)):
			a, b = i, a
		case b < 0 || x < unit(v.Turn, uint64(b)):
			b = i
		}
	}
	for _, i := range [...]int{a, b} {
		if i >= 0 {
			out[i][2] = 0
		}
	}
}

// unit returns a number from 0 to 1, exclusive, that looks random. [splitmix64]
//
// [splitmix64]: https://prng.di.unimi.it/splitmix64.c
func unit(a, b uint64) float64 {
	x := a*0x9e3779b97f4a7c15 + b*0xd1b54a32d192ed03
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// consistentHash chooses by a hash of the session and the worker's key (rendezvous hashing), so that few sessions move
// when workers come and go. Requests without a session are hashed by their first block.
type consistentHash struct{}

func (consistentHash) Name() string  { return "consistent_hash" }
func (consistentHash) Terms() []Term { return []Term{{"hash", "1"}} }
func (consistentHash) Costs(v *View, r *Request, out []Terms) {
	var key uint64
	switch {
	case r.Intent.Session.ID != "":
		key = fnv(fnv(fnv(0, r.Intent.Salt), "\x00"), r.Intent.Session.ID)
	case len(r.Hashes) > 0:
		key = r.Hashes[0]
	default:
		key = v.Turn
	}
	for i := range v.Workers {
		out[i][0] = unit(key, fnv(uint64(v.Workers[i].Key.DPRank), v.Workers[i].Key.Instance))
	}
}

// fnv returns the FNV-1a hash of s, the same in every process, continued from h.
func fnv(h uint64, s string) uint64 {
	h ^= 14695981039346656037
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// sticky keeps a session on its worker, unless that waits a second longer than another; other requests go to the least
// loaded.
type sticky struct{}

func (sticky) Name() string  { return "sticky" }
func (sticky) Terms() []Term { return []Term{{"wait", "ms"}, {"decode", "ms"}, {"session", "ms"}} }
func (sticky) Costs(v *View, r *Request, out []Terms) {
	leastLoaded{}.Costs(v, r, out)
	if v.Session >= 0 {
		out[v.Session][2] = -1000
	}
}
