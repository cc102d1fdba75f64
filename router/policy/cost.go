// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"slices"
	"time"
)

// costMS is the default; see the package comment.
type costMS struct {
	decode float64 // ms by which 64 active tokens slow a request down
	end    float64 // share of the own prefill's time that counts for each response in progress: it delays them
}

func newCost(o options) Policy {
	return costMS{o.number("decode", perTokens), o.number("end", 0.01)}
}

func (costMS) Name() string { return "cost_ms" }

func (costMS) Terms() []Term { return costTerms[:] }

var costTerms = [...]Term{{"wait", "ms"}, {"new", "ms"}, {"load", "ms"}, {"move", "ms"}, {"decode", "ms"}, {"room", "ms"}}

// Constants of costMS.
const (
	perTokens   = 0.02 // ms by which 64 active tokens slow a request down
	full        = 0.95 // part of an engine's KV blocks that can be active before requests wait for room
	loadAdapter = 100  // ms to load a LoRA adapter
)

func (p costMS) Costs(v *View, r *Request, out []Terms) {
	gamma := v.Busy / (1 - min(v.Busy, 0.95))
	least := math.Inf(1)
	active := p.decode * float64(v.BlockSize) / 64
	for i := range v.Workers {
		w, t := &v.Workers[i], &out[i]
		compute, load, _, _ := v.Estimate(r, i)
		if work := compute + load; work < least && w.Takes(r) {
			least = work
		}
		// One at a time: a composite literal takes twice as long.
		t[1], t[2], t[4] = compute, load, active*float64(w.Load.Blocks)
		if w.Load.Prefills > 0 {
			t[0] = ms(w.Load.Wait(v.Now))
		}
		if w.Engine.Capacity > 0 {
			t[5] = w.room(v, r, int(v.Matches[i].Depth))
		}
		if r.Adapter != "" && !slices.Contains(w.Adapters, r.Adapter) {
			t[2] += loadAdapter
		}
		if n := w.Waiting - w.Load.Prefills; n > 0 {
			each := compute // others' requests are assumed to be like the own ones
			if w.Load.Prefills > 0 {
				each = w.Engine.compute(float64(w.Load.Tokens)/float64(w.Load.Prefills), 0)
			}
			t[0] += float64(n) * each
		}
		if p.end > 0 {
			t[4] += p.end * float64(w.Load.Decodes) * compute
		}
	}
	if gamma > 0 && r.Role != Decode {
		for i := range out {
			t := &out[i]
			t[3] = gamma * (t[1] + t[2] - least)
		}
	}
}

// room returns the time in milliseconds until the worker's engine has room for the request, of which it holds depth blocks: running
// requests must end first whose blocks those that wait, and this one, need.
func (w *Worker) room(v *View, r *Request, depth int) float64 {
	active, size := float64(w.Load.Blocks), float64(w.Engine.Capacity)
	active = max(active, w.KV*size)
	if active == 0 {
		return 0
	}
	needed := max(0, r.Tokens)/max(v.BlockSize, 1) - depth
	over := active + float64(max(needed, 0)) - full*size
	if over <= 0 {
		return 0
	}
	return ms(v.Decode) * min(1, over/active)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
