// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"math"
	"slices"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// Result reports what an event changed, in blocks.
type Result struct {
	Stored  int // added, or added to another tier
	Known   int // already stored: nothing changed
	Removed int // removed; a block with two engine hashes counts for each
	Pending int // kept until their parent is known
	Ignored int // of another size or a cache group that does not count, without tokens, unknown, malformed
}

// Add applies an event of the worker. It is for callers that receive events in order and lose none; for batches that
// arrive over a network use a [Stream]. The worker is Exact from its first event on. The event is not retained. An
// event of an unknown worker or of an unknown kind is ignored.
//
// For lookups, the blocks of a Stored event appear in one step, together with pending blocks that follow them; pending
// blocks whose predecessors the worker already has may appear earlier, one sequence after another. If the worker
// already has blocks in another tier, their tiers change run by run. The blocks of a Removed event disappear one after
// another, neighbors together; a Cleared event is one step. O(tokens) for Stored, O(blocks) for Removed, O(runs of
// all workers) for Cleared, in parts between which other updates continue, except if it names a tier. Add allocates only for
// pending blocks and to let tables grow or shrink; memory that a removal releases may be allocated again.
func (x *Index) Add(id WorkerID, ev *kvevent.Event) Result {
	x.lock()
	res := x.add(id, ev)
	x.mu.Unlock()
	if ev.Kind == kvevent.Cleared {
		x.tidy()
	}
	return res
}

func (x *Index) add(id WorkerID, ev *kvevent.Event) Result {
	w := x.worker(id)
	if w == nil {
		return Result{Ignored: len(ev.BlockHashes)}
	}
	if x.addNext(w, ev) {
		return Result{Stored: 1}
	}
	defer x.publish(id, w)
	return x.applyEvent(id, w, ev)
}

func (x *Index) applyEvent(id WorkerID, w *worker, ev *kvevent.Event) Result {
	w.touch()
	if w.paged && w.pages == nil {
		w.unknown = true // it continues from a snapshot
	}
	if w.pages != nil && w.outgrown(ev) {
		x.ungather(id, w)
	}
	if w.pages != nil || x.isPage(w, ev) {
		return x.gather(id, w, ev)
	}
	return x.applyBlocks(id, w, ev)
}

// applyBlocks applies an event about blocks of the index's size or larger ones.
func (x *Index) applyBlocks(id WorkerID, w *worker, ev *kvevent.Event) Result {
	if x.journal != nil {
		return x.applyNoted(id, w, ev)
	}
	return x.apply(id, w, ev)
}

func (x *Index) apply(id WorkerID, source *worker, ev *kvevent.Event) (res Result) {
	id, w := x.holder(id, source, ev)
	source.touch()
	w.touch()
	source.received = true
	switch ev.Kind {
	case kvevent.Stored:
		if ev.Attention != kvevent.FullAttention {
			res = x.storeGroup(source, ev)
		} else {
			res = x.store(w, source, ev)
		}
	case kvevent.Removed:
		if k := source.groups.number(ev.Group); k >= 0 {
			res = x.removeGroup(source, k, ev)
		} else {
			res = x.remove(w, source, ev)
		}
	case kvevent.Cleared:
		switch {
		case ev.Attention != kvevent.FullAttention:
		case ev.Tier > kvevent.NumTiers:
			w.unknown = true
		case ev.Tier == kvevent.AnyTier || w.store != 0:
			x.clear(id, w)
		default:
			x.clearTier(w, ev.Tier)
		}
	default:
		return Result{Ignored: len(ev.BlockHashes)}
	}
	if w != source {
		x.publish(id, w)
	}
	return res
}

// holder returns the worker, or the registered store named by the event, that holds the blocks of an event.
func (x *Index) holder(id WorkerID, w *worker, ev *kvevent.Event) (WorkerID, *worker) {
	if ev.Owner != "" && w.store == 0 {
		if id, ok := x.byKey[Key{Instance: ev.Owner}]; ok && x.workers[id].store != 0 {
			return id, x.workers[id]
		}
	}
	return id, w
}

// plane returns the plane for events about a tier. A store has only one tier.
func (w *worker) plane(t kvevent.Tier) int {
	return int(cmp.Or(w.store, t, kvevent.Device)) - 1
}

// counts reports whether events of this attention kind and group determine the length of a cached prefix. Of several
// groups with full attention only the first one does, because the others hold the same prefixes.
func (w *worker) counts(ev *kvevent.Event) bool {
	if !w.grouped {
		return ev.Attention == kvevent.FullAttention && ev.Kind == kvevent.Stored
	}
	return ev.Attention == kvevent.FullAttention && ev.Group == w.group
}

// setGroup makes the group of a valid event the one that counts, unless an earlier event did so.
func (x *Index) setGroup(w *worker, ev *kvevent.Event) {
	if w.grouped {
		return
	}
	w.grouped, w.group = true, ev.Group
	if w.groups.number(ev.Group) >= 0 {
		x.ungroup(w) // removals do not say which kind of attention they are for
	}
}

// adopt copies the group and the ratio of a worker that stores blocks in w, which may be a store. Other workers may
// only remove blocks.
func (w *worker) adopt(source *worker) {
	if !w.grouped {
		w.grouped, w.group = true, source.group
	}
	w.ratio = max(w.ratio, source.ratio) // the names in a larger block include those in a smaller one
}

// store stores blocks for w. Their parent may be known only to source, the worker that sent the event.
func (x *Index) store(w, source *worker, ev *kvevent.Event) (res Result) {
	n := len(ev.BlockHashes)
	if !source.counts(ev) {
		return Result{Ignored: n}
	}
	if ev.Tier > kvevent.NumTiers || ev.HasParent && slices.Contains(ev.BlockHashes, ev.Parent) {
		source.unknown = true // an unknown tier, or its own parent
		return Result{Ignored: n}
	}
	ratio, ok := x.fits(source, ev)
	if !ok {
		source.refused = source.refused || !isTail(ev, int(source.ratio)*x.block)
		return Result{Ignored: n}
	}
	x.setGroup(source, ev)
	if ev.BlockSize != 0 || len(ev.TokenIDs)+len(ev.LocalHashes)+len(ev.SequenceHashes) > 0 {
		source.size(ratio, ev)
		if g := source.groups; g != nil && g.ratio != ratio {
			x.ungroup(source) // its blocks cannot be compared
		}
	}
	if n > 0 && len(ev.TokenIDs) > x.covered(n*int(ratio)*x.block) && len(ev.LocalHashes)+len(ev.SequenceHashes) == 0 {
		source.ahead = true
	}
	w.adopt(source)
	w.received = true
	if more := n*int(ratio) + w.orphans.blocks; len(x.trash) > 0 && more > x.opt.MaxBlocks-x.tree.slots.live {
		x.sweep(math.MaxInt) // what cleared workers held must not make the index full
	}
	r := blocks{plane: w.plane(ev.Tier)}
	switch {
	case len(ev.SequenceHashes) > 0:
		r.chain, r.chained = ev.SequenceHashes, true
	case !x.opt.Scheme.HasLocal() && len(ev.TokenIDs)/x.block > 0: // the engines' names are the chain
		r.chain, r.chained = ev.BlockHashes[:min(n, len(ev.TokenIDs)/x.block)], true
	case !x.opt.Scheme.HasLocal():
		return x.storeKnown(w, source, ev.BlockHashes, ratio, r.plane)
	case len(ev.LocalHashes) > 0:
		r.chain = ev.LocalHashes
	case len(ev.TokenIDs) > 0:
		var extras *kvhash.Extras
		if len(ev.Objects) > 0 {
			extras = &kvhash.Extras{BlockObjects: ev.Objects}
		}
		tokens := ev.TokenIDs[:min(len(ev.TokenIDs), x.covered(n*int(ratio)*x.block))]
		x.locals = x.opt.Scheme.With(ev.LoRA, ev.Namespace).AppendLocal(x.locals[:0], tokens, x.block, extras)
		r.chain = x.locals
	default:
		return x.storeKnown(w, source, ev.BlockHashes, ratio, r.plane)
	}
	r.hashes = x.expand(ev.BlockHashes, ratio) // about as many as the event has hashes, or tokens for
	// A last block with too few tokens is partial: some engines announce those. It is not yet a block of a prefix.
	whole := min(len(r.hashes), len(r.chain)/int(ratio)*int(ratio))
	res.Ignored = len(r.hashes) - whole
	if res.Ignored > 0 && len(ev.TokenIDs) == 0 {
		w.unknown = true // hashes are missing
	}
	r.hashes, r.chain = r.hashes[:whole], r.chain[:whole]
	if whole == 0 {
		return res
	}
	if whole == 1 || w.names.n > 0 {
		x.touch(w, r.hashes) // before the loads for the parent, each of which waits for the one before
	}
	if !ev.HasParent {
		x.insertJob(w, job{blocks: r, first: true}, &res)
	} else if p := cmp.Or(x.parent(w, ev.Parent), x.parent(source, ev.Parent)); p != 0 {
		x.insertJob(w, job{blocks: r, anchor: p, seq: x.tree.slots.seq.at(p).Load()}, &res)
	} else {
		parked, dropped := w.orphans.park(ev.Parent, r, cmp.Or(x.opt.MaxPending, 1<<16), x.clock.Load())
		if parked {
			res.Pending = whole
		} else {
			res.Ignored += whole
		}
		w.unknown = w.unknown || dropped
		x.wakeForOrphans(w)
	}
	return res
}

// maxRatio limits the number of index blocks in one engine block.
const maxRatio = 1024

// fits returns the number of index blocks in one block of the event, and reports whether the block size of the event
// matches its number of tokens. The last block may be partial; with EAGLE, tokens of the next block may follow.
func (x *Index) fits(w *worker, ev *kvevent.Event) (ratio int32, ok bool) {
	ratio = max(w.ratio, 1)
	if ev.BlockSize != 0 {
		if ev.BlockSize < 0 || int(ev.BlockSize)%x.block != 0 {
			return 0, false
		}
		if ratio = ev.BlockSize / int32(x.block); w.ratio != 0 && ratio != w.ratio && !w.grows(ratio, ev) {
			return 0, false
		}
	}
	if ratio > maxRatio || ratio > 1 && !x.opt.Scheme.HasLocal() {
		return 0, false
	}
	n, tokens, size := len(ev.BlockHashes), int64(len(ev.TokenIDs)), int64(ratio)*int64(x.block)
	if hashes := len(ev.LocalHashes) + len(ev.SequenceHashes); ratio > 1 && hashes > 0 && hashes != n*int(ratio) {
		return 0, false // hashes of blocks of another size; a journal has hashes of this size
	}
	if n == 0 || tokens == 0 || len(ev.LocalHashes)+len(ev.SequenceHashes) > 0 {
		return ratio, true
	}
	before := int64(n-1) * size
	return ratio, before < tokens && (tokens < before+2*size || tokens <= int64(x.covered(n*int(size))))
}

// covered returns the number of tokens that the hashes of blocks with n tokens cover: with EAGLE, some after them.
func (x *Index) covered(n int) int { return n + x.after }

// isTail reports whether an event has the one block, smaller than the worker's blocks of size tokens, with which vLLM since 0.33 announces the
// end of a prompt if blocks of full attention are larger than those that it hashes (block_pool.py, cache_partial_block). It is not yet a block.
func isTail(ev *kvevent.Event, size int) bool {
	return int(ev.BlockSize) < size && isSingle(ev) && size%int(ev.BlockSize) == 0
}

// isSingle reports whether an event has one block of a known size, as an event for the end of a prompt has.
func isSingle(ev *kvevent.Event) bool {
	return len(ev.BlockHashes) == 1 && ev.BlockSize > 0 && len(ev.TokenIDs)/int(ev.BlockSize) == 1
}

// grows reports whether the blocks of an event are whole ones of a worker whose events so far may all have been ends of prompts. Blocks in
// other tiers do not count: connectors of vLLM announce larger chunks there.
func (w *worker) grows(ratio int32, ev *kvevent.Event) bool {
	return w.mayGrow && ratio > w.ratio && ratio%w.ratio == 0 && ev.Tier == kvevent.Device && ev.Owner == "" &&
		(ev.Attention != kvevent.FullAttention || len(ev.TokenIDs) >= int(ev.BlockSize) || len(ev.LocalHashes)+len(ev.SequenceHashes) > 0)
}

// size sets the number of index blocks in one block of the worker, which an event has. Smaller blocks that the worker stored remain
// until they are removed. Those whose parents are unknown are dropped: vLLM announces no block that ends where such a block begins.
func (w *worker) size(ratio int32, ev *kvevent.Event) {
	switch {
	case w.ratio == 0:
		w.mayGrow = isSingle(ev)
	case ratio != w.ratio:
		w.mayGrow, w.orphans = false, orphans{}
	case len(ev.BlockHashes) > 1:
		w.mayGrow = false
	}
	w.ratio = ratio
}

// expand returns names for the index blocks in the engine blocks with the given hashes, ratio names for each. The last
// name is the engine hash, so that following blocks find their parent. The result is valid until the next call.
func (x *Index) expand(hashes []uint64, ratio int32) []uint64 {
	if ratio <= 1 {
		return hashes
	}
	x.names = x.names[:0]
	for _, h := range hashes {
		for i := range ratio - 1 {
			x.names = append(x.names, kvhash.Next(h, uint64(i)))
		}
		x.names = append(x.names, h)
	}
	return x.names
}

// expandAtOnce is the number of engine hashes without tokens that are expanded at once. It bounds the memory that a
// short message can allocate.
const expandAtOnce = 1024

// storeKnown applies a Stored event that has only engine hashes, such as for a copy to another tier.
func (x *Index) storeKnown(w, source *worker, hashes []uint64, ratio int32, plane int) (res Result) {
	x.segs, x.fresh = x.segs[:0], x.fresh[:0]
	var waited []job // orphans of w, a store: only source has names for these blocks
	for part := range slices.Chunk(hashes, expandAtOnce) {
		for _, h := range x.expand(part, ratio) {
			p := cmp.Or(x.last(w, h), x.last(source, h))
			switch {
			case p == 0:
				w.unknown = true
				res.Ignored++
			case !x.name(w, h, p.slot(), plane):
				res.Known++
			default:
				res.Stored++
				last := len(x.segs) - 1
				if last < 0 || p.slot() != x.segs[last].slot+uint32(x.segs[last].n) {
					x.segs = append(x.segs, segment{slot: p.slot(), from: len(x.fresh)})
					last++
				}
				x.segs[last].n++
				x.fresh = append(x.fresh, true)
				for _, o := range w.orphans.claim(h) {
					waited = append(waited, job{blocks: o, seq: x.tree.slots.seq.at(p.slot()).Load(), anchor: p.slot()})
				}
			}
		}
	}
	if len(waited) == 0 {
		x.publishJob(w, x.segs, x.fresh, plane)
		x.staged.publish()
		x.markEngine(w, hashes, ratio)
		return res
	}
	segs, fresh := slices.Clone(x.segs), slices.Clone(x.fresh)
	for _, j := range waited { // hidden until the worker has the blocks before them
		x.insertJob(w, j, &res)
	}
	x.publishJob(w, segs, fresh, plane)
	x.staged.publish()
	x.markEngine(w, hashes, ratio)
	return res
}

// markEngine is mark for engine hashes.
func (x *Index) markEngine(w *worker, hashes []uint64, ratio int32) {
	if w.groups != nil {
		for part := range slices.Chunk(hashes, expandAtOnce) {
			x.mark(w, x.expand(part, ratio))
		}
	}
}

func (x *Index) remove(w, source *worker, ev *kvevent.Event) (res Result) {
	if !source.grouped {
		source = w // another worker stored these blocks
	}
	if !source.counts(ev) {
		return Result{Ignored: len(ev.BlockHashes)}
	}
	if ev.Tier > kvevent.NumTiers {
		w.unknown = true
		return Result{Ignored: len(ev.BlockHashes)}
	}
	ratio := source.ratio
	w.recentSlot = 0
	d := drops{plane: w.plane(ev.Tier)}
	for rest := ev.BlockHashes; len(rest) > 0; {
		part := rest[:min(len(rest), expandAtOnce)]
		rest = rest[len(part):]
		hashes := x.expand(part, ratio)
		for i, h := range hashes {
			if i%touchLen == 0 && len(hashes) > 1 {
				x.touch(w, hashes[i:])
				x.touched += w.names.touchNext(hashes[i:])
			}
			n := x.removeOne(w, h, &d)
			if w.orphans.blocks > 0 && w.orphans.remove(h, d.plane) {
				n++
			}
			// An unknown block does not indicate a loss: partial blocks are removed too, and were never stored.
			if n == 0 {
				res.Ignored++
			}
			res.Removed += n
		}
	}
	x.flush(w, &d)
	x.wash(w)
	x.markEngine(w, ev.BlockHashes, ratio) // names of several blocks may name only one now
	x.tree.reset()
	return res
}

// drops is a range of slots from which a worker is about to be removed in one plane. Engines remove the blocks of a
// prompt one by one from its end; collecting them makes it one change.
type drops struct {
	plane    int
	from, to uint32
	down     bool // the event lists the last block first, so blocks are removed in that order

	first, blocks uint32 // slots of a run, and
	tiers         uint8  // the tiers in which the worker has them
}

// drop removes the worker from one slot in a plane, either immediately or together with adjacent slots.
func (x *Index) drop(w *worker, slot uint32, d *drops) {
	if len(w.extra) > 0 {
		k := ref{slot, uint8(d.plane)}
		if c := w.extra[k]; c > 1 {
			w.extra[k] = c - 1
			return
		} else if c == 1 {
			delete(w.extra, k)
			return
		}
	}
	switch {
	case d.from == d.to:
		d.from, d.to = slot, slot+1
	case slot+1 == d.from && (d.down || d.to == d.from+1):
		d.from, d.down = slot, true
	case slot == d.to && (!d.down || d.to == d.from+1):
		d.to++
		d.down = false
	default:
		x.flush(w, d)
		d.from, d.to = slot, slot+1
	}
}

// flush applies the collected drops.
func (x *Index) flush(w *worker, d *drops) {
	t := &x.tree
	d.blocks = 0
	for d.from < d.to {
		from, to := d.from, d.to
		n := t.slots.run(from)
		if d.down {
			n = t.slots.run(to - 1)
			from = max(from, t.runs.at(n).start.Load())
			d.to = from
		} else {
			to = min(to, t.runs.at(n).start.Load()+t.state(n).length())
			d.from = to
		}
		set := t.sets.edit(t.state(n).set(), w.lane, 0, 1<<d.plane)
		t.sets.ref(set, 1)
		t.repaint(n, from, to, set)
		if !t.sets.held(set, w.lane) {
			w.held -= int(to - from)
			w.plain -= int(to-from) - w.owned.remove(from, to)
		}
		t.sets.ref(set, -1)
	}
}

// removeOne removes all locations of h in the plane and returns their number. An engine hash with several locations
// does not identify the evicted block, so all are removed: a false miss costs less than a false hit.
func (x *Index) removeOne(w *worker, h uint64, d *drops) (n int) {
	m := w.names.mix(h)
	at := w.names.search(m, h)
	if at.g == nil {
		return x.removeCommon(w, h, d)
	}
	w.names.save(m)
	first, bit := at.location(), tierBit(d.plane)
	if w.groups != nil && (w.more[h] != nil || first&^bit == location(first.slot())) {
		w.groups.forgetName(h)
	}
	if more := w.more[h]; more != nil {
		if (first|more.tiers)&bit == 0 {
			return 0
		}
		every := append([]location{first}, more.list...)
		for i := range every {
			if every[i]&bit != 0 {
				every[i] &^= bit
				x.drop(w, every[i].slot(), d)
				n++
			}
		}
		every = slices.DeleteFunc(every, func(p location) bool { return p.tiers() == 0 })
		if delete(w.more, h); len(every) > 1 {
			w.more[h] = newLocations(every[1:])
		}
		if len(every) == 0 {
			w.names.remove(at, m)
		} else {
			at.set(every[0])
		}
		return n
	}
	if first&bit == 0 {
		return 0
	}
	if first &^= bit; first.tiers() == 0 {
		w.names.remove(at, m)
	} else {
		at.set(first)
	}
	x.drop(w, first.slot(), d)
	return 1
}

// removeCommon removes the block with the common name h, if the worker has it under this name, and returns the number of blocks removed.
func (x *Index) removeCommon(w *worker, h uint64, d *drops) int {
	if w.plain == 0 {
		return 0
	}
	slot := x.tree.slots.common.find(h)
	if slot == 0 || d.from <= slot && slot < d.to || w.owned.has(slot) { // slots of d have been removed
		return 0
	}
	if t := &x.tree; slot-d.first >= d.blocks {
		r := t.slots.run(slot)
		st := t.state(r)
		d.first, d.blocks, d.tiers = t.runs.at(r).start.Load(), st.length(), t.sets.tiers(st.set(), w.lane)
	}
	bit := uint8(1) << d.plane
	if d.tiers&bit == 0 {
		return 0
	}
	if w.groups != nil && d.tiers == bit {
		w.groups.forgetName(h)
	}
	x.drop(w, slot, d)
	return 1
}

// clearTier empties one tier of the worker. Predictions belong to the device. For lookups it is one step, because they
// ignore the tier meanwhile.
func (x *Index) clearTier(w *worker, tier kvevent.Tier) {
	x.enroll(func(r *roster) { r.clearing = &clearing{w.lane, int(tier) - 1} })
	defer x.enroll(func(*roster) {})
	hashes := make([]uint64, 0, w.names.n)
	for h := range w.names.all {
		hashes = append(hashes, h)
	}
	w.recentSlot = 0
	d := drops{plane: int(tier) - 1}
	for _, h := range hashes {
		x.removeOne(w, h, &d)
	}
	x.flush(w, &d)
	x.clearCommon(w, d.plane)
	x.wash(w)
	x.markAll(w)
	if tier == kvevent.Device {
		x.unpredictAll(w)
		x.clearGroups(w)
	}
	w.orphans.clearTier(d.plane)
	x.tree.reset()
}

// clearCommon removes the worker from a plane, in which it has blocks only under their common names.
func (x *Index) clearCommon(w *worker, plane int) {
	t := &x.tree
	for at := t.slots.firstLive(1); at < t.slots.end; {
		n := t.slots.run(at)
		st, from := t.state(n), t.runs.at(n).start.Load()
		to := from + st.length()
		at = t.slots.firstLive(to)
		if tiers := t.sets.tiers(st.set(), w.lane); tiers>>plane&1 != 0 {
			if tiers == 1<<plane && w.groups != nil {
				for i := from; i < to; i++ {
					w.groups.forgetName(t.slots.common.at(i))
				}
			}
			d := drops{plane: plane, from: from, to: to}
			x.flush(w, &d)
		}
	}
}
