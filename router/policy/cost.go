// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// costMS is the default; see the package comment.
type costMS struct{}

func (costMS) Name() string { return "cost_ms" }

func (costMS) Terms() []Term { return costTerms[:] }

var costTerms = [...]Term{{"wait", "ms"}, {"new", "ms"}, {"load", "ms"}, {"move", "ms"}, {"decode", "ms"}, {"room", "ms"}}

// Constants of costMS.
const (
	perBlock = 0.02 // ms by which each active block slows a request down
	full     = 0.95 // part of an engine's KV blocks that can be active before requests wait for room
)

func (costMS) Costs(v *View, r *Request, out []Terms) {
	gamma := v.Busy / (1 - min(v.Busy, 0.95))
	least := -1.0
	for i := range v.Workers {
		w, t := &v.Workers[i], &out[i]
		compute, load, _, _ := w.Estimate(r, v.BlockSize)
		if work := compute + load; (least < 0 || work < least) && w.Barred(r) == "" {
			least = work
		}
		// One at a time: a composite literal takes twice as long.
		t[0], t[1], t[2], t[4] = ms(w.Load.Wait), compute, load, perBlock*float64(w.Load.Blocks)
		t[5] = w.room(v, r)
	}
	for i := range out {
		t := &out[i]
		t[3] = gamma * (t[1] + t[2] - least)
	}
}

// room returns the time in milliseconds until the worker's engine has room for the request: the part of its running requests that
// must end first, times the time that they take.
func (w *Worker) room(v *View, r *Request) float64 {
	active := float64(w.Load.Blocks)
	if w.Engine.Capacity <= 0 || active == 0 {
		return 0
	}
	needed := float64(max(0, r.Tokens)/max(v.BlockSize, 1) - int(w.Match.Depth))
	over := active + max(needed, 0) - full*float64(w.Engine.Capacity)
	return max(0, ms(v.Decode)*min(1, over/active))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
