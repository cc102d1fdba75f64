// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"container/list"
	"math"
	"slices"
	"time"

	"github.com/weft-go/weft/kvhash/index"
)

// placements is what a policy without events assumes of caches: for each worker the blocks of the prompts that were placed there, least recently
// used first, and corrected by what engines report.
type placements struct {
	limit   int // blocks of a worker whose capacity is unknown
	workers map[index.Key]*placed
	running map[uint64]placedPrompt
}

type placed struct {
	blocks map[uint64]*list.Element // of uint64
	used   list.List                // most recent first
	limit  int                      // on the number of blocks
}

type placedPrompt struct {
	on      *placed
	added   []uint64 // blocks that were not assumed before
	assumed int      // tokens that were
	block   int
	busy    bool // it may share blocks with prompts that were being computed, and that were therefore assumed too early
}

func newPlacements(o options) placements {
	return placements{int(o.number("blocks", 1<<17)), make(map[index.Key]*placed), make(map[uint64]placedPrompt)}
}

// depth returns how many leading blocks of a prompt the worker is assumed to hold.
func (p *placements) depth(key index.Key, hashes []uint64) int {
	w := p.workers[key]
	if w == nil {
		return 0
	}
	for i, h := range hashes {
		if w.blocks[h] == nil {
			return i
		}
	}
	return len(hashes)
}

// Placed adds the blocks of a prompt.
func (p *placements) Placed(v *View, r *Request, i int) {
	key := v.Workers[i].Key
	w := p.workers[key]
	if w == nil {
		w = &placed{blocks: make(map[uint64]*list.Element), limit: p.limit}
		if n := v.Workers[i].Engine.Capacity; n > 0 {
			w.limit = n
		}
		p.workers[key] = w
	}
	j := placedPrompt{on: w, assumed: p.depth(key, r.Hashes) * v.BlockSize, block: v.BlockSize, busy: v.Workers[i].Load.Prefills > 0}
	for _, h := range slices.Backward(r.Hashes) { // the first block is the last to go
		if e := w.blocks[h]; e != nil {
			w.used.MoveToFront(e)
		} else {
			w.blocks[h] = w.used.PushFront(h)
			j.added = append(j.added, h)
		}
	}
	w.shrink()
	p.running[v.Turn] = j
}

func (w *placed) shrink() {
	for len(w.blocks) > max(w.limit, 1) {
		delete(w.blocks, w.used.Remove(w.used.Back()).(uint64))
	}
}

// FirstToken implements [Observer].
func (p *placements) FirstToken(uint64, time.Time) {}

// Ended removes the blocks of a prompt that was not computed. If the engine had fewer tokens than assumed, although it was computing no
// other prompt, its cache is smaller than assumed, and if it had more, it is larger.
func (p *placements) Ended(turn uint64, _ time.Time, cached, output int) {
	j, ok := p.running[turn]
	delete(p.running, turn)
	switch {
	case !ok:
	case output < 0:
		for _, h := range j.added {
			if e := j.on.blocks[h]; e != nil {
				j.on.used.Remove(e)
				delete(j.on.blocks, h)
			}
		}
	case cached >= 0 && !j.busy && cached+2*j.block < j.assumed:
		j.on.limit = min(j.on.limit, len(j.on.blocks)) * 63 / 64
		j.on.shrink()
	case cached > j.assumed+2*j.block && len(j.on.blocks) >= j.on.limit:
		j.on.limit += j.on.limit/64 + 1
	}
}

// prefixLRU is cost_ms with assumed caches instead of the index.
type prefixLRU struct {
	costMS
	placements
}

func newPrefixLRU(o options) Policy { return &prefixLRU{newCost(o).(costMS), newPlacements(o)} }

func (*prefixLRU) Name() string { return "prefix_lru" }

func (p *prefixLRU) Costs(v *View, r *Request, out []Terms) {
	own := *v
	own.Matches = make([]index.Match, len(v.Workers))
	for i := range own.Matches {
		n := int32(p.depth(v.Workers[i].Key, r.Hashes))
		own.Matches[i] = index.Match{Depth: n, Predicted: n}
	}
	p.costMS.Costs(&own, r, out)
}

// smg is the cache_aware policy of smg 1.13: the worker with the fewest requests if loads differ much, else the one that was
// given most of the prompt if that is enough of it, else the one that was given least of all.
type smg struct {
	placements
	absolute, relative, match float64
}

func newSMG(o options) Policy {
	return &smg{newPlacements(o), o.number("absolute", 64), o.number("relative", 1.5), o.number("match", 0.3)}
}

func (*smg) Name() string { return "smg" }
func (*smg) Terms() []Term {
	return []Term{{"requests", "requests"}, {"prefix", "part"}, {"tree", "blocks"}}
}

func (p *smg) Costs(v *View, r *Request, out []Terms) {
	least, most, deepest := math.MaxInt, 0, 0
	for i := range v.Workers {
		w := &v.Workers[i]
		n := w.Load.Prefills + w.Load.Decodes
		least, most = min(least, n), max(most, n)
		if w.Takes(r) {
			deepest = max(deepest, p.depth(w.Key, r.Hashes))
		}
	}
	switch {
	case float64(most-least) > p.absolute && float64(most) > p.relative*float64(least):
		for i := range v.Workers {
			out[i][0] = float64(v.Workers[i].Load.Prefills + v.Workers[i].Load.Decodes)
		}
	case deepest > 0 && float64(deepest) > p.match*float64(len(r.Hashes)):
		for i := range v.Workers {
			out[i][1] = -float64(p.depth(v.Workers[i].Key, r.Hashes)) / float64(len(r.Hashes))
		}
	default:
		for i := range v.Workers {
			if w := p.workers[v.Workers[i].Key]; w != nil {
				out[i][2] = float64(len(w.blocks))
			}
		}
	}
}
