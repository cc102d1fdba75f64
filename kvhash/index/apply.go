// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"slices"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// Result says what an event did, in blocks.
type Result struct {
	Stored  int // placed, or placed in a further tier
	Known   int // stored before: nothing changed
	Removed int // removed; a block with two engine hashes counts for each
	Parked  int // stored, waiting for their parent
	Ignored int // of another size, of another kind of attention, without tokens, unknown, malformed
}

// Apply applies an event of the worker. The event is not retained. An event of an unknown worker, or of an unknown kind, is ignored.
// O(tokens) for Stored, O(blocks) for Removed, O(blocks the worker holds) for Cleared.
func (x *Index) Apply(id WorkerID, ev *kvevent.Event) Result {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.worker(id)
	if w == nil {
		return Result{Ignored: len(ev.BlockHashes)}
	}
	return x.apply(id, w, ev)
}

func (x *Index) apply(id WorkerID, w *worker, ev *kvevent.Event) Result {
	w.heard = true
	switch ev.Kind {
	case kvevent.Stored:
		return x.store(id, w, ev)
	case kvevent.Removed:
		return x.remove(id, w, ev)
	case kvevent.Cleared:
		if ev.Tier == kvevent.AnyTier {
			x.clear(id, w)
		} else if ev.Tier <= kvevent.NumTiers {
			x.clearTier(id, w, ev.Tier)
		}
		return Result{}
	}
	return Result{Ignored: len(ev.BlockHashes)}
}

// ApplyBatch applies the events of b in order. Lookups may run between them.
func (x *Index) ApplyBatch(id WorkerID, b *kvevent.Batch) {
	for i := range b.Events {
		x.Apply(id, &b.Events[i])
	}
}

// counts reports whether events of this kind of attention and group say how long a cached prefix is. Of several groups with full
// attention the first one counts; the others hold the same prefixes.
func (w *worker) counts(ev *kvevent.Event) bool {
	if ev.Attention != kvevent.FullAttention {
		return false
	}
	if !w.grouped && ev.Kind == kvevent.Stored {
		w.grouped, w.group = true, ev.Group
	}
	return w.grouped && w.group == ev.Group
}

func (x *Index) store(id WorkerID, w *worker, ev *kvevent.Event) Result {
	n := len(ev.BlockHashes)
	tier := cmp.Or(ev.Tier, kvevent.Device)
	if tier > kvevent.NumTiers || !w.counts(ev) {
		return Result{Ignored: n}
	}
	if ev.HasParent && slices.Contains(ev.BlockHashes, ev.Parent) {
		return Result{Ignored: n} // its own parent
	}
	if !x.fits(ev) {
		w.refused = true
		return Result{Ignored: n}
	}
	if len(ev.TokenIDs) == 0 && len(ev.LocalHashes) == 0 {
		return x.storeKnown(id, w, ev, tier)
	}
	locals := ev.LocalHashes
	if len(locals) == 0 {
		x.scratch = x.scheme(ev).AppendLocal(x.scratch[:0], ev.TokenIDs, x.block, ev.Objects)
		locals = x.scratch
	}
	// A last block with too few tokens is partial: some engines announce those. It is no block of a prefix yet.
	whole := min(n, len(locals))
	r := run{hashes: ev.BlockHashes[:whole], locals: locals[:whole], tier: tier}
	var res Result
	if p, ok := w.last(ev.Parent); !ev.HasParent {
		res = x.placeRun(id, w, waiting{run: r, first: true, prev: noNode})
	} else if ok {
		res = x.placeRun(id, w, waiting{run: r, seq: x.nodes.info[p].seq, prev: p})
	} else if whole > 0 {
		res.Parked = whole
		if w.orphans.park(ev.Parent, r, cmp.Or(x.opt.MaxOrphans, 1<<16)) {
			w.unknown = true
		}
	}
	res.Ignored += n - whole
	return res
}

// fits reports whether the event's blocks have the index's size, by what it says and by how many tokens it has. The last block may be
// partial; with Eagle, one token of the next may follow.
func (x *Index) fits(ev *kvevent.Event) bool {
	if ev.BlockSize != 0 && int64(ev.BlockSize) != int64(x.block) {
		return false
	}
	n, tokens := len(ev.BlockHashes), int64(len(ev.TokenIDs))
	if n == 0 || tokens == 0 {
		return true
	}
	before := int64(n-1) * int64(x.block)
	return before < tokens && tokens <= before+int64(x.opt.Base.Window(x.block))
}

// scheme returns how blocks of the event are named.
func (x *Index) scheme(ev *kvevent.Event) kvhash.Scheme {
	return x.opt.Base.With(ev.LoRA, ev.Namespace)
}

// run is a sequence of blocks that follow each other.
type run struct {
	hashes []uint64 // engine hashes
	locals []uint64 // len(locals) == len(hashes)
	gone   []bool   // removed while parked; nil if none
	tier   kvevent.Tier
}

// waiting is a run whose place is known: after a block with sequence hash seq, or at the beginning of a prompt.
type waiting struct {
	run
	first bool
	seq   uint64
	prev  uint32 // that block's node, or noNode
}

// placeRun places a run, and then every orphan that waited for one of its blocks.
func (x *Index) placeRun(id WorkerID, w *worker, next waiting) (res Result) {
	var todo []waiting
	for {
		todo = x.place(id, w, next, todo, &res)
		if len(todo) == 0 {
			return res
		}
		next, todo = todo[0], todo[1:]
	}
}

// place places one run and appends the orphans it frees to todo.
func (x *Index) place(id WorkerID, w *worker, r waiting, todo []waiting, res *Result) []waiting {
	seq, prev := r.seq, r.prev
	for i, local := range r.locals {
		if r.first && i == 0 {
			seq = local
		} else {
			seq = kvhash.Next(seq, local)
		}
		if r.gone == nil || !r.gone[i] {
			prev = x.nodes.get(prev, seq)
			if x.hold(id, w, r.hashes[i], prev, r.tier) {
				res.Stored++
			} else {
				res.Known++
			}
		} else {
			prev = noNode // removed while it was parked: the chain goes on, but there may be no node
		}
		if w.orphans.blocks > 0 {
			for _, o := range w.orphans.claim(r.hashes[i]) {
				todo = append(todo, waiting{run: o, seq: seq, prev: prev})
			}
		}
	}
	return todo
}

// storeKnown handles an event that names blocks only by engine hashes, as for a copy to another tier.
func (x *Index) storeKnown(id WorkerID, w *worker, ev *kvevent.Event, tier kvevent.Tier) (res Result) {
	for _, h := range ev.BlockHashes {
		p, ok := w.last(h)
		if !ok {
			w.unknown = true
			res.Ignored++
			continue
		}
		if x.hold(id, w, h, p, tier) {
			res.Stored++
		} else {
			res.Known++
		}
	}
	return res
}

// last returns the node an engine hash stands for; if it stands for several, the one announced last.
func (w *worker) last(h uint64) (uint32, bool) {
	p, ok := w.blocks[h]
	if m := w.more[h]; len(m) > 0 {
		p = m[len(m)-1]
	}
	return p.node, ok
}

// hold notes that the worker holds node n in the tier under engine hash h. It reports whether that is new.
func (x *Index) hold(id WorkerID, w *worker, h uint64, n uint32, tier kvevent.Tier) bool {
	bit := uint8(1) << tier
	p, ok := w.blocks[h]
	switch {
	case !ok:
		w.blocks[h] = place{n, bit}
	case p.node == n:
		if p.tiers&bit != 0 {
			return false
		}
		w.blocks[h] = place{n, p.tiers | bit}
	default:
		m := w.more[h]
		i := slices.IndexFunc(m, func(q place) bool { return q.node == n })
		switch {
		case i < 0:
			if w.more == nil {
				w.more = make(map[uint64][]place)
			}
			w.more[h] = append(m, place{n, bit})
		case m[i].tiers&bit != 0:
			return false
		default:
			m[i].tiers |= bit
		}
	}
	if x.nodes.has(n, int(tier), id) {
		x.extra[ref{n, id, tier}]++
		return true
	}
	if x.nodes.set(n, int(tier), id, true) {
		w.held++
	}
	x.confirm(id, n)
	return true
}

// drop undoes one hold.
func (x *Index) drop(id WorkerID, w *worker, n uint32, tier kvevent.Tier) {
	if len(x.extra) > 0 {
		k := ref{n, id, tier}
		if c := x.extra[k]; c > 1 {
			x.extra[k] = c - 1
			return
		} else if c == 1 {
			delete(x.extra, k)
			return
		}
	}
	if x.nodes.set(n, int(tier), id, false) {
		w.held--
		x.nodes.release(n)
	}
}

func (x *Index) dropAll(id WorkerID, w *worker, p place) {
	for t := kvevent.Device; t <= kvevent.NumTiers; t++ {
		if p.tiers>>t&1 != 0 {
			x.drop(id, w, p.node, t)
		}
	}
}

func (x *Index) remove(id WorkerID, w *worker, ev *kvevent.Event) (res Result) {
	tier := cmp.Or(ev.Tier, kvevent.Device)
	if tier > kvevent.NumTiers || !w.counts(ev) {
		return Result{Ignored: len(ev.BlockHashes)}
	}
	for _, h := range ev.BlockHashes {
		n := x.removeOne(id, w, h, tier)
		if w.orphans.remove(h, tier) {
			n++
		}
		// An unknown block is no sign of a loss: partial blocks are removed too, and were not placed.
		if n == 0 {
			res.Ignored++
		}
		res.Removed += n
	}
	return res
}

// removeOne drops every place of h in the tier. An engine hash that stands at several places says not which one it lost; a false
// miss costs less than a false hit.
func (x *Index) removeOne(id WorkerID, w *worker, h uint64, tier kvevent.Tier) (n int) {
	p, ok := w.blocks[h]
	if !ok {
		return 0
	}
	bit := uint8(1) << tier
	if m := w.more[h]; len(m) > 0 {
		all := append([]place{p}, m...)
		for i := range all {
			if all[i].tiers&bit != 0 {
				all[i].tiers &^= bit
				x.drop(id, w, all[i].node, tier)
				n++
			}
		}
		all = slices.DeleteFunc(all, func(q place) bool { return q.tiers == 0 })
		delete(w.more, h)
		delete(w.blocks, h)
		if len(all) > 0 {
			w.blocks[h] = all[0]
		}
		if len(all) > 1 {
			w.more[h] = all[1:]
		}
		return n
	}
	if p.tiers&bit == 0 {
		return 0
	}
	if p.tiers &^= bit; p.tiers == 0 {
		delete(w.blocks, h)
	} else {
		w.blocks[h] = p
	}
	x.drop(id, w, p.node, tier)
	return 1
}

// clearTier empties one tier of the worker. Predictions are of the device.
func (x *Index) clearTier(id WorkerID, w *worker, tier kvevent.Tier) {
	hashes := make([]uint64, 0, len(w.blocks))
	for h := range w.blocks {
		hashes = append(hashes, h)
	}
	for _, h := range hashes {
		x.removeOne(id, w, h, tier)
	}
	if tier == kvevent.Device {
		x.unpredictAll(id, w)
	}
	w.orphans.clearTier(tier)
}
