// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"maps"
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

// placed contains the blocks that a worker is assumed to hold.
type placed struct {
	byHash map[uint64]int32
	blocks []placedBlock // blocks[0] is both ends of the list of those that are held, most recently used first
	unused []int32
	limit  int // on the number of blocks
}

// placedBlock is a block, with its neighbors in the list. next is one that followed it in a prompt when it was last looked up; others may
// have taken its place.
type placedBlock struct {
	hash         uint64
	held         bool // in the list
	newer, older int32
	next         int32
}

func newPlaced(limit int) *placed {
	return &placed{byHash: make(map[uint64]int32), blocks: make([]placedBlock, 1), limit: limit}
}

// find returns the index of the block with a hash, or 0. before is the block before it in a prompt, or 0. Most prompts were placed in the
// order in which they are looked up, so that this reads neighbors and not the map.
func (w *placed) find(hash uint64, before int32) int32 {
	b := &w.blocks[before]
	if x := &w.blocks[b.next]; x.held && x.hash == hash {
		return b.next
	}
	i := w.byHash[hash]
	if i != 0 {
		b.next = i
	}
	return i
}

// depth returns how many leading blocks of a prompt the worker is assumed to hold. Without a worker it is 0.
func (w *placed) depth(hashes []uint64) int {
	if w == nil {
		return 0
	}
	last := int32(0)
	for i, h := range hashes {
		if last = w.find(h, last); last == 0 {
			return i
		}
	}
	return len(hashes)
}

// use makes a block the one that was used last, and reports whether it was not held.
func (w *placed) use(hash uint64) bool {
	i, held := w.byHash[hash]
	switch n := len(w.unused); {
	case held:
		w.unlink(i)
	case n > 0:
		i, w.unused = w.unused[n-1], w.unused[:n-1]
	default:
		i = int32(len(w.blocks))
		w.blocks = append(w.blocks, placedBlock{})
	}
	if !held {
		w.byHash[hash] = i
		w.blocks[i] = placedBlock{hash: hash, held: true}
	}
	first := w.blocks[0].older
	w.blocks[i].newer, w.blocks[i].older = 0, first
	w.blocks[first].newer, w.blocks[0].older = i, i
	return !held
}

// remove removes a block if it is held.
func (w *placed) remove(hash uint64) {
	if i, ok := w.byHash[hash]; ok {
		w.unlink(i)
		delete(w.byHash, hash)
		w.blocks[i] = placedBlock{}
		w.unused = append(w.unused, i)
	}
}

func (w *placed) unlink(i int32) {
	b := &w.blocks[i]
	w.blocks[b.newer].older, w.blocks[b.older].newer = b.older, b.newer
}

// shrink removes what was used least recently, until the rest is within the limit.
func (w *placed) shrink() {
	for len(w.byHash) > max(w.limit, 1) {
		w.remove(w.blocks[w.blocks[0].newer].hash)
	}
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

// Placed adds the blocks of a prompt.
func (p *placements) Placed(v *View, r *Request, i int) {
	key := v.Workers[i].Key
	w := p.workers[key]
	if w == nil {
		w = newPlaced(p.limit)
		if n := v.Workers[i].Engine.Capacity; n > 0 {
			w.limit = n
		}
		forgetGone(p.workers, v)
		p.workers[key] = w
	}
	j := placedPrompt{on: w, assumed: w.depth(r.Hashes) * v.BlockSize, block: v.BlockSize, busy: v.Workers[i].Load.Prefills > 0}
	for _, h := range slices.Backward(r.Hashes) { // the first block is the last to go
		if w.use(h) {
			j.added = append(j.added, h)
		}
	}
	w.shrink()
	p.running[v.Turn] = j
}

// forgetGone removes what is known of workers that are gone. It is called when there is a new one.
func forgetGone[T any](known map[index.Key]T, v *View) {
	if len(known) < len(v.Workers) {
		return
	}
	there := make(map[index.Key]bool, len(v.Workers))
	for i := range v.Workers {
		there[v.Workers[i].Key] = true
	}
	maps.DeleteFunc(known, func(k index.Key, _ T) bool { return !there[k] })
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
			j.on.remove(h)
		}
	case cached >= 0 && !j.busy && cached+2*j.block < j.assumed:
		j.on.limit = min(j.on.limit, len(j.on.byHash)) * 63 / 64
		j.on.shrink()
	case cached > j.assumed+2*j.block && len(j.on.byHash) >= j.on.limit:
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
		n := int32(p.workers[v.Workers[i].Key].depth(r.Hashes))
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
			deepest = max(deepest, p.workers[w.Key].depth(r.Hashes))
		}
	}
	switch {
	case float64(most-least) > p.absolute && float64(most) > p.relative*float64(least):
		for i := range v.Workers {
			out[i][0] = float64(v.Workers[i].Load.Prefills + v.Workers[i].Load.Decodes)
		}
	case deepest > 0 && float64(deepest) > p.match*float64(len(r.Hashes)):
		for i := range v.Workers {
			out[i][1] = -float64(p.workers[v.Workers[i].Key].depth(r.Hashes)) / float64(len(r.Hashes))
		}
	default:
		for i := range v.Workers {
			if w := p.workers[v.Workers[i].Key]; w != nil {
				out[i][2] = float64(len(w.byHash))
			}
		}
	}
}
