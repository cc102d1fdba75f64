// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"time"

	"github.com/weft-go/weft/kvhash/index"
)

// This file has policies of other projects that keep no state: their published formulas, on this package's view of a fleet.

// lmetric multiplies the prompt tokens to compute, waiting ones included, by the number of requests in the batch.
type lmetric struct{}

func (lmetric) Name() string  { return "lmetric" }
func (lmetric) Terms() []Term { return []Term{{"product", "tokens x requests"}} }
func (lmetric) Costs(v *View, r *Request, out []Terms) {
	for i := range v.Workers {
		w := &v.Workers[i]
		_, _, cached, _ := v.Estimate(r, i)
		out[i][0] = float64(w.Load.Tokens+max(0, r.Tokens)-cached) * float64(w.Load.Prefills+w.Load.Decodes+1)
	}
}

// dynamo is the cost of NVIDIA Dynamo's KV router 1.6: the blocks to compute, those that wait included, minus a credit for cached ones,
// plus the active blocks.
type dynamo struct {
	scale, credit, decay, host, disk, active, temperature float64
}

func newDynamo(o options) Policy {
	return dynamo{
		o.number("scale", 1), o.number("credit", 1), o.number("decay", 0), o.number("host", 0.75), o.number("disk", 0.25),
		o.number("active", 0), o.number("temperature", 0),
	}
}

func (dynamo) Name() string { return "dynamo" }
func (dynamo) Terms() []Term {
	return []Term{{"prefill", "blocks"}, {"decode", "blocks"}, {"active", "blocks"}, {"draw", "blocks"}}
}

func (p dynamo) Costs(v *View, r *Request, out []Terms) {
	block, pending := float64(max(v.BlockSize, 1)), math.MaxInt
	for i := range v.Workers {
		pending = min(pending, v.Workers[i].Load.Tokens)
	}
	blocks := float64(max(0, r.Tokens)) / block
	low, high := math.Inf(1), math.Inf(-1)
	for i := range v.Workers {
		w, m := &v.Workers[i], &v.Matches[i]
		decay := 1 / (1 + p.decay*float64(w.Load.Tokens-pending)/block/max(blocks, 1))
		credit := p.credit*decay*float64(m.Tiers[0]+m.Predicted) + p.host*float64(m.Tiers[1]) + p.disk*float64(m.Tiers[2])
		out[i][0] = p.scale * max(0, float64(w.Load.Tokens)/block+blocks-credit)
		out[i][1] = float64(w.Load.Blocks) + blocks
		out[i][2] = p.active * float64(w.Load.Prefills+w.Load.Decodes)
		if w.Takes(r) {
			low, high = min(low, out[i].Sum()), max(high, out[i].Sum())
		}
	}
	if p.temperature > 0 && high > low { // the lowest of costs with Gumbel noise is a draw from the softmax
		for i := range out {
			out[i][3] = -(high - low) * p.temperature * gumbel(v.Turn, uint64(i))
		}
	}
}

// gumbel returns a number with a Gumbel distribution.
func gumbel(a, b uint64) float64 { return -math.Log(-math.Log(max(unit(a, b), 1e-300))) }

// llmd adds the scores of llm-d's default profile with their weights: cached part of the prompt 2, short queue 1, free KV
// memory 1. Without a capacity, the worker with the most active blocks counts as full.
type llmd struct{ prefix, queue, kv float64 }

func newLLMD(o options) Policy {
	return llmd{o.number("prefix", 2), o.number("queue", 1), o.number("kv", 1)}
}

func (llmd) Name() string { return "llm_d" }
func (llmd) Terms() []Term {
	return []Term{{"prefix", "score"}, {"queue", "score"}, {"kv", "score"}}
}

func (p llmd) Costs(v *View, r *Request, out []Terms) {
	queue, blocks := 0, 0
	for i := range v.Workers {
		queue, blocks = max(queue, v.Workers[i].Load.Prefills), max(blocks, v.Workers[i].Load.Blocks)
	}
	for i := range v.Workers {
		w := &v.Workers[i]
		_, _, cached, _ := v.Estimate(r, i)
		size := blocks
		if w.Engine.Capacity > 0 {
			size = w.Engine.Capacity
		}
		out[i] = Terms{
			0 - p.prefix*float64(cached)/float64(max(r.Tokens, 1)),
			p.queue * float64(w.Load.Prefills) / float64(max(queue, 1)),
			p.kv * min(1, max(w.KV, float64(w.Load.Blocks)/float64(max(size, 1)))),
		}
	}
}

// preble is Preble's E2: a prompt that is mostly cached goes to the worker that holds most of it, others where the load of
// the last three minutes, what must be computed, and what must be computed again because it is evicted are least. A worker with
// more than twice the load of another one gets no prompt for its cache alone.
type preble struct {
	window  time.Duration
	balance float64
	load    map[index.Key]*windowed
	running map[uint64]*prebleJob
}

type prebleJob struct {
	on    *windowed
	first time.Time
}

func newPreble(o options) Policy {
	return &preble{time.Duration(o.number("window", 180) * float64(time.Second)), o.number("balance", 2), make(map[index.Key]*windowed), make(map[uint64]*prebleJob)}
}

func (*preble) Name() string { return "preble" }
func (*preble) Terms() []Term {
	return []Term{{"load", "ms"}, {"new", "ms"}, {"evict", "ms"}, {"exploit", "ms"}}
}

func (p *preble) Costs(v *View, r *Request, out []Terms) {
	longest, least, most := 0, math.Inf(1), 0.0
	for i := range v.Workers {
		w, t := &v.Workers[i], &out[i]
		if l := p.load[w.Key]; l != nil {
			t[0] = l.sum(v.Now, p.window)
		}
		compute, load, cached, _ := v.Estimate(r, i)
		t[1] = compute + load
		if w.Engine.Capacity > 0 { // the part of the cache that the new blocks replace, at the price of computing it
			needed := float64(max(0, r.Tokens) - cached)
			used := min(1, float64(w.Load.Blocks)/float64(w.Engine.Capacity))
			t[2] = used * w.Engine.compute(needed, 0)
		}
		if w.Takes(r) {
			longest, least, most = max(longest, cached), min(least, t[0]), max(most, t[0])
		}
	}
	if longest <= max(0, r.Tokens)-longest {
		return // most of it must be computed anywhere
	}
	for i := range v.Workers {
		_, _, cached, _ := v.Estimate(r, i)
		heavy := out[i][0] > p.balance*least && out[i][0] > least+1000
		if cached < longest || heavy {
			out[i][3] = 10*most + 1e6
		}
	}
}

func (p *preble) Placed(v *View, r *Request, i int) {
	key := v.Workers[i].Key
	l := p.load[key]
	if l == nil {
		l = &windowed{last: math.MinInt64}
		forgetGone(p.load, v)
		p.load[key] = l
	}
	compute, load, _, _ := v.Estimate(r, i)
	l.add(v.Now, compute+load, p.window)
	p.running[v.Turn] = &prebleJob{on: l}
}

func (p *preble) FirstToken(turn uint64, now time.Time) {
	if j := p.running[turn]; j != nil {
		j.first = now
	}
}

func (p *preble) Ended(turn uint64, now time.Time, _, _ int) {
	j := p.running[turn]
	if delete(p.running, turn); j != nil && !j.first.IsZero() {
		// A response shares its steps with others; Preble's own regression has about this share.
		j.on.add(now, ms(now.Sub(j.first))/16, p.window)
	}
}

// windowed is a sum over the last while, in sixteenths of it.
type windowed struct {
	parts [16]float64
	last  int64 // number of the newest part
}

// at returns the number of the part for a time.
func (*windowed) at(now time.Time, window time.Duration) int64 {
	return now.UnixNano() / max(1, int64(window)/16)
}

func (l *windowed) add(now time.Time, x float64, window time.Duration) {
	n := l.at(now, window)
	for k := max(l.last, n-int64(len(l.parts))) + 1; k <= n; k++ {
		l.parts[uint64(k)%16] = 0
	}
	l.last = max(l.last, n)
	l.parts[uint64(l.last)%16] += x
}

func (l *windowed) sum(now time.Time, window time.Duration) (sum float64) {
	for k := max(l.at(now, window), l.last) - 15; k <= l.last; k++ {
		sum += l.parts[uint64(k)%16]
	}
	return sum
}
