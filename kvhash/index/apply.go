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
//
// To lookups, the blocks of a Stored event appear in one step, and with them those that waited for them; but where the worker has all that
// leads to some of them already, these come before, one sequence after another. In which tiers a worker has what it had before changes run by
// run. The blocks of a Removed event vanish one after another, neighbours together; Cleared is one step. O(tokens) for Stored, O(blocks) for Removed, O(blocks the
// worker holds) for Cleared. No allocation but for what grows.
func (x *Index) Apply(id WorkerID, ev *kvevent.Event) Result {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.applyOne(id, ev)
}

// ApplyBatch applies the events of b in order. Lookups see each by itself.
func (x *Index) ApplyBatch(id WorkerID, b *kvevent.Batch) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range b.Events {
		x.applyOne(id, &b.Events[i])
	}
}

func (x *Index) applyOne(id WorkerID, ev *kvevent.Event) Result {
	w := x.worker(id)
	if w == nil {
		return Result{Ignored: len(ev.BlockHashes)}
	}
	defer x.publish(id, w)
	return x.applyEvent(id, w, ev)
}

func (x *Index) applyEvent(id WorkerID, w *worker, ev *kvevent.Event) Result {
	if x.journal != nil {
		return x.applyNoted(id, w, ev)
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
		if ev.Attention != kvevent.FullAttention {
			return Result{}
		}
		id, w = x.holder(id, w, ev)
		switch {
		case ev.Tier > kvevent.NumTiers:
			w.unknown = true
		case ev.Tier == kvevent.AnyTier || w.store != 0:
			x.clear(id, w)
		default:
			x.clearTier(id, w, ev.Tier)
		}
		x.publish(id, w)
		return Result{}
	}
	return Result{Ignored: len(ev.BlockHashes)}
}

// holder returns who holds the blocks of an event: the worker, or a registered store that the event names.
func (x *Index) holder(id WorkerID, w *worker, ev *kvevent.Event) (WorkerID, *worker) {
	if ev.Owner != "" && w.store == 0 {
		if id, ok := x.byKey[Key{Instance: ev.Owner}]; ok && x.workers[id].store != 0 {
			return id, x.workers[id]
		}
	}
	return id, w
}

// plane returns where a worker's events about a tier go; a store has one tier.
func (w *worker) plane(t kvevent.Tier) int {
	return int(cmp.Or(w.store, t, kvevent.Device)) - 1
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

func (x *Index) store(id WorkerID, w *worker, ev *kvevent.Event) (res Result) {
	n := len(ev.BlockHashes)
	if !w.counts(ev) {
		return Result{Ignored: n}
	}
	if ev.Tier > kvevent.NumTiers || ev.HasParent && slices.Contains(ev.BlockHashes, ev.Parent) {
		w.unknown = true // an unknown tier, or its own parent
		return Result{Ignored: n}
	}
	ratio, ok := x.fits(w, ev)
	if !ok {
		w.refused = true
		return Result{Ignored: n}
	}
	if ev.BlockSize != 0 || len(ev.TokenIDs)+len(ev.LocalHashes)+len(ev.SequenceHashes) > 0 {
		w.ratio = ratio
	}
	// The blocks may be the store's; what they follow may still be known to the worker only.
	teller := w
	id, w = x.holder(id, w, ev)
	w.heard = true
	r := blocks{hashes: x.expand(ev.BlockHashes, ratio), plane: w.plane(ev.Tier)}
	switch {
	case len(ev.SequenceHashes) > 0:
		r.chain, r.chained = ev.SequenceHashes, true
	case !x.opt.Base.HasLocal() && len(ev.TokenIDs)/x.block > 0: // the engines' names are the chain
		r.chain, r.chained = ev.BlockHashes[:min(len(r.hashes), len(ev.TokenIDs)/x.block)], true
	case !x.opt.Base.HasLocal():
		return x.storeKnown(id, w, teller, r)
	case len(ev.LocalHashes) > 0:
		r.chain = ev.LocalHashes
	case len(ev.TokenIDs) > 0:
		x.locals = x.opt.Base.With(ev.LoRA, ev.Namespace).AppendLocal(x.locals[:0], ev.TokenIDs, x.block, ev.Objects)
		r.chain = x.locals
	default:
		return x.storeKnown(id, w, teller, r)
	}
	// A last block with too few tokens is partial: some engines announce those. It is no block of a prefix yet.
	whole := min(len(r.hashes), len(r.chain)/int(ratio)*int(ratio))
	res.Ignored = len(r.hashes) - whole
	if res.Ignored > 0 && len(ev.TokenIDs) == 0 {
		w.unknown = true // hashes are missing
	}
	r.hashes, r.chain = r.hashes[:whole], r.chain[:whole]
	if whole == 0 {
		return res
	}
	if !ev.HasParent {
		x.place(id, w, job{blocks: r, first: true}, &res)
	} else if p := cmp.Or(w.parent(ev.Parent), teller.parent(ev.Parent)); p != 0 {
		x.place(id, w, job{blocks: r, anchor: p, seq: x.tree.slots.seq.at(p).Load()}, &res)
	} else {
		parked, dropped := w.orphans.park(ev.Parent, r, cmp.Or(x.opt.MaxOrphans, 1<<16), x.clock.Load())
		if parked {
			res.Parked = whole
		} else {
			res.Ignored += whole
		}
		w.unknown = w.unknown || dropped
		x.wakeForOrphans(w)
	}
	if w != teller {
		x.publish(id, w)
	}
	return res
}

// maxRatio is how many of the index's blocks an engine block can be at most.
const maxRatio = 1024

// fits returns how many of the index's blocks a block of the event is, and whether the event makes sense by what it says and by how
// many tokens it has. The last block may be partial; with Eagle, one token of the next may follow.
func (x *Index) fits(w *worker, ev *kvevent.Event) (ratio int32, ok bool) {
	ratio = max(w.ratio, 1)
	if ev.BlockSize != 0 {
		if ev.BlockSize < 0 || int(ev.BlockSize)%x.block != 0 {
			return 0, false
		}
		if ratio = ev.BlockSize / int32(x.block); w.ratio != 0 && ratio != w.ratio {
			return 0, false
		}
	}
	if ratio > maxRatio || ratio > 1 && !x.opt.Base.HasLocal() {
		return 0, false
	}
	n, tokens, size := len(ev.BlockHashes), int64(len(ev.TokenIDs)), int64(ratio)*int64(x.block)
	if hashes := len(ev.LocalHashes) + len(ev.SequenceHashes); ratio > 1 && hashes > 0 && hashes != n*int(ratio) {
		return 0, false // hashes of blocks of another size; a journal has ours
	}
	if n == 0 || tokens == 0 || len(ev.LocalHashes)+len(ev.SequenceHashes) > 0 {
		return ratio, true
	}
	before := int64(n-1) * size
	return ratio, before < tokens && tokens <= before+size+int64(x.opt.Base.Window(x.block)-x.block)
}

// expand returns names for the index's blocks in engine blocks with the given hashes, ratio for each: the last one has the engine's
// hash, so that it is the parent of what follows. The result is valid until the next call.
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

// blocks is a sequence of blocks that follow each other, for one plane.
type blocks struct {
	hashes  []uint64 // engine hashes
	chain   []uint64 // local hashes, or sequence hashes if chained; len(chain) == len(hashes)
	chained bool
	gone    []bool // removed while parked; nil if none
	plane   int
}

// isGone reports whether block i was removed while it was parked.
func (b *blocks) isGone(i int) bool { return b.gone != nil && b.gone[i] }

// job is blocks whose place is known: they follow a block with sequence hash seq, or begin a prompt.
type job struct {
	blocks
	first  bool
	seq    uint64
	anchor uint32   // a slot in front of them, or 0
	path   []uint64 // sequence hashes of the blocks between the anchor, or the beginning, and the first of them
}

// segment is blocks of a job that lie in consecutive slots.
type segment struct {
	slot    uint32
	from, n int // in the job
	fresh   bool
	prev    uint32 // the slot of the block before, or 0
}

// place places a job, and with it every orphan that waited for one of its blocks. See Apply for how lookups see it.
func (x *Index) place(id WorkerID, w *worker, j job, res *Result) {
	if w.orphans.blocks == 0 {
		x.locateJob(w, &j, res)
		x.publishJob(id, w, x.segs, x.fresh, j.plane)
		return
	}
	// What is deeper in a prompt must be there before what leads to it, so nobody holds any of the blocks until all have their slots.
	type located struct {
		segs  []segment
		fresh []bool
		plane int
	}
	var all []located
	for todo := []job{j}; len(todo) > 0; todo = todo[1:] {
		next := todo[0]
		x.locateJob(w, &next, res)
		for i := range x.segs {
			if s := &x.segs[i]; s.fresh {
				x.tree.fill(s.prev, s.slot, s.slot+uint32(s.n), 0)
				s.fresh = false
			}
		}
		all = append(all, located{slices.Clone(x.segs), slices.Clone(x.fresh), next.plane})
		todo = x.claim(todo, w, &next)
	}
	for _, l := range slices.Backward(all) {
		x.publishJob(id, w, l.segs, l.fresh, l.plane)
	}
}

// claim appends to todo the orphans that waited for a block of a job just placed.
func (x *Index) claim(todo []job, w *worker, j *job) []job {
	anchor, path := j.anchor, slices.Clone(j.path)
	segs := x.segs
	for i, h := range j.hashes {
		if j.isGone(i) {
			path = append(path, x.seqs[i])
		} else {
			for i >= segs[0].from+segs[0].n {
				segs = segs[1:]
			}
			anchor, path = segs[0].slot+uint32(i-segs[0].from), nil
		}
		for _, o := range w.orphans.claim(h) {
			todo = append(todo, job{blocks: o, seq: x.seqs[i], anchor: anchor, path: slices.Clone(path)})
		}
	}
	return todo
}

// locateJob finds or takes slots for the blocks of a job and lets the worker name them. It leaves their sequence hashes in x.seqs, their
// segments in x.segs, and in x.fresh of which the name is new. When the index is full it cuts the job.
func (x *Index) locateJob(w *worker, j *job, res *Result) {
	x.touched += w.names.touch(j.hashes[:min(len(j.hashes), touchLen)])
	x.seqs = x.seqs[:0]
	if seq := j.seq; j.chained {
		x.seqs = append(x.seqs, j.chain...)
	} else {
		for i, local := range j.chain {
			if seq = kvhash.Next(seq, local); j.first && i == 0 {
				seq = local
			}
			x.seqs = append(x.seqs, seq)
		}
	}
	prev := j.anchor
	for _, h := range j.path {
		prev = x.tree.find(prev, h)
	}
	if n := x.locate(prev, x.seqs, j.gone); n < len(j.hashes) {
		w.full = true
		x.cuts++
		res.Ignored += len(j.hashes) - n
		j.hashes, j.chain, x.seqs = j.hashes[:n], j.chain[:n], x.seqs[:n]
	}
	x.fresh = slices.Grow(x.fresh[:0], len(j.hashes))[:len(j.hashes)]
	for _, s := range x.segs {
		for i := range s.n {
			if at := s.from + i; at > 0 && at%touchLen == 0 {
				x.touched += w.names.touch(j.hashes[at:min(len(j.hashes), at+touchLen)])
			}
			f := w.name(j.hashes[s.from+i], s.slot+uint32(i), j.plane)
			if x.fresh[s.from+i] = f; f {
				res.Stored++
			} else {
				res.Known++
			}
		}
	}
	if n := len(x.segs); n > 0 && len(w.more) == 0 {
		s := &x.segs[n-1]
		w.recent, w.recentSlot = j.hashes[s.from+s.n-1], s.slot+uint32(s.n)-1
	}
}

// publishJob gives the worker the blocks of segments, in a plane, the deepest first: to lookups it is one step.
func (x *Index) publishJob(id WorkerID, w *worker, segs []segment, fresh []bool, plane int) {
	for _, s := range slices.Backward(segs) {
		if s.fresh {
			x.tree.fill(s.prev, s.slot, s.slot+uint32(s.n), x.tree.alone(s.prev, id, plane))
			w.held += s.n
		} else {
			x.grant(id, w, s.slot, s.slot+uint32(s.n), plane, fresh[s.from:s.from+s.n])
		}
	}
	x.tree.hang(segs)
}

// hang ties segments that were there to the blocks before, which may be new.
func (t *tree) hang(segs []segment) {
	for i, s := range segs {
		switch {
		case s.fresh || s.prev == 0:
		case s.slot == s.prev+1:
			t.join(t.slots.run(s.prev))
		case i > 0 && segs[i-1].fresh:
			t.follow(s.prev, t.slots.run(s.slot))
		}
	}
}

// locate finds the slots of blocks with the given sequence hashes, which follow the one in slot prev (0 if it is not there or they begin a
// prompt), and takes new ones for those that are not there. The segments are in x.segs; new ones wait for fill. Gone blocks are passed over.
// It returns how many blocks it came to: fewer than all if the index is full.
func (x *Index) locate(prev uint32, seqs []uint64, gone []bool) int {
	t := &x.tree
	x.segs = x.segs[:0]
	for i := 0; i < len(seqs); {
		slot := t.find(prev, seqs[i])
		if gone != nil && gone[i] {
			prev = slot
			i++
			continue
		}
		end := i + 1
		if slot != 0 {
			switch {
			case prev == 0:
			case slot == prev+1:
				t.slots.tie(slot) // the one before may have been away
			case t.slots.run(prev) != 0:
				t.follow(prev, t.slots.run(slot))
			}
			for end < len(seqs) && (gone == nil || !gone[end]) {
				if next := slot + uint32(end-i); !t.slots.isNext(next) || t.slots.seq.at(next).Load() != seqs[end] {
					break
				}
				end++
			}
			x.segs = append(x.segs, segment{slot: slot, from: i, n: end - i, prev: prev})
		} else {
			want := uint32(max(0, min(len(seqs)-i, x.opt.MaxBlocks-t.slots.live)))
			if want == 0 {
				return i
			}
			got, cont := uint32(0), false
			if prev != 0 {
				got = t.slots.grow(prev, want, maxRoom)
				slot, cont = prev+1, true
			}
			if got == 0 {
				room := max(want, 4)
				if prev != 0 {
					room = max(room, t.state(t.slots.run(prev)).length())
				}
				slot, got = t.slots.alloc(want, min(room, maxRoom))
				cont = false
			}
			if got == 0 {
				return i
			}
			t.slots.put(slot, seqs[i], cont)
			for ; end < i+int(got); end++ {
				if gone != nil && gone[end] {
					break
				}
				if n, _, _ := t.heads.find(&t.runs, seqs[end]); n != 0 {
					break
				}
				t.slots.put(slot+uint32(end-i), seqs[end], true)
			}
			if rest := slot + got; end < i+int(got) {
				t.slots.release(slot+uint32(end-i), rest)
			}
			x.segs = append(x.segs, segment{slot: slot, from: i, n: end - i, fresh: true, prev: prev})
		}
		prev = slot + uint32(end-i) - 1
		i = end
	}
	return len(seqs)
}

// grant gives the worker the blocks in slots [from,to) in a plane, the deepest first. fresh says of each whether its name there is new. One
// that is not is there already, or waits for the job that named it.
func (x *Index) grant(id WorkerID, w *worker, from, to uint32, plane int, fresh []bool) {
	t := &x.tree
	for to > from {
		n := t.slots.run(to - 1)
		at := max(from, t.runs.at(n).start.Load())
		set := t.state(n).set()
		if t.sets.has(set, id, plane) {
			for i := at; i < to; i++ {
				if fresh[i-from] {
					x.extra[ref{i, id, uint8(plane)}]++
				}
			}
			to = at
			continue
		}
		for to > at && !fresh[to-1-from] {
			to--
		}
		end := to
		for to > at && fresh[to-1-from] {
			to--
		}
		if to == end {
			continue
		}
		if !t.sets.held(set, id) {
			w.held += int(end - to)
		}
		if t.sets.has(set, id, planePredicted) {
			x.confirm(id, to, end)
		}
		t.repaint(n, to, end, t.sets.edit(set, id, 1<<plane, 1<<planePredicted))
	}
}

// storeKnown handles an event that names blocks only by engine hashes, as for a copy to another tier.
func (x *Index) storeKnown(id WorkerID, w, teller *worker, b blocks) (res Result) {
	x.fresh = x.fresh[:0]
	from, to := uint32(0), uint32(0) // slots to grant
	for _, h := range b.hashes {
		p := cmp.Or(w.last(h), teller.last(h))
		if p == 0 {
			w.unknown = true
			res.Ignored++
			continue
		}
		if !w.name(h, p.slot(), b.plane) {
			res.Known++
			continue
		}
		res.Stored++
		if p.slot() != to || to == 0 {
			x.grant(id, w, from, to, b.plane, x.fresh)
			from, x.fresh = p.slot(), x.fresh[:0]
		}
		to = p.slot() + 1
		x.fresh = append(x.fresh, true)
	}
	x.grant(id, w, from, to, b.plane, x.fresh)
	return res
}

// parent returns the slot that the engine hash of a parent stands for, or 0. Mostly it is the block announced last.
func (w *worker) parent(h uint64) uint32 {
	if w.recent == h && w.recentSlot != 0 && len(w.more) == 0 {
		return w.recentSlot
	}
	return w.last(h).slot()
}

// last returns the place an engine hash stands for; if it stands for several, the one announced last; 0 if for none.
func (w *worker) last(h uint64) place {
	if len(w.more) > 0 {
		if m := w.more[h]; m != nil {
			return m.list[len(m.list)-1]
		}
	}
	return w.names.get(h)
}

// name notes that the worker calls the block in the slot h, in the plane. It reports whether that is new.
func (w *worker) name(h uint64, slot uint32, plane int) bool {
	bit := place(1) << (slotBits + plane)
	p := w.names.find(h)
	if p == nil {
		w.names.add(h, placeAt(slot, 1<<plane))
		return true
	}
	if p.slot() == slot {
		return p.add(bit)
	}
	m := w.more[h]
	if m == nil {
		if w.more == nil {
			w.more = make(map[uint64]*places)
		}
		m = new(places)
		w.more[h] = m
	}
	return m.add(slot, plane)
}

// add adds the bit of a tier. It reports whether that is new.
func (p *place) add(bit place) bool {
	if *p&bit != 0 {
		return false
	}
	*p |= bit
	return true
}

func (x *Index) remove(id WorkerID, w *worker, ev *kvevent.Event) (res Result) {
	if !w.counts(ev) {
		return Result{Ignored: len(ev.BlockHashes)}
	}
	if ev.Tier > kvevent.NumTiers {
		w.unknown = true
		return Result{Ignored: len(ev.BlockHashes)}
	}
	ratio := w.ratio
	id, w = x.holder(id, w, ev)
	w.recentSlot = 0
	d := drops{plane: w.plane(ev.Tier)}
	hashes := x.expand(ev.BlockHashes, ratio)
	for i, h := range hashes {
		if i%touchLen == 0 && len(hashes) > 1 {
			x.touched += w.names.touch(hashes[i:min(len(hashes), i+touchLen)])
		}
		n := x.removeOne(id, w, h, &d)
		if w.orphans.blocks > 0 && w.orphans.remove(h, d.plane) {
			n++
		}
		// An unknown block is no sign of a loss: partial blocks are removed too, and were not placed.
		if n == 0 {
			res.Ignored++
		}
		res.Removed += n
	}
	x.flush(id, w, &d)
	x.tree.reset()
	if ev.Owner != "" {
		x.publish(id, w)
	}
	return res
}

// drops is a range of slots that a worker is about to lose in a plane. Engines remove blocks one by one from the end of a prompt;
// taken together they cost one change.
type drops struct {
	plane    int
	from, to uint32
	down     bool // named from the last one to the first, so they go in that order
}

// drop undoes one hold: at once, or with those before and after.
func (x *Index) drop(id WorkerID, w *worker, slot uint32, d *drops) {
	if len(x.extra) > 0 {
		k := ref{slot, id, uint8(d.plane)}
		if c := x.extra[k]; c > 1 {
			x.extra[k] = c - 1
			return
		} else if c == 1 {
			delete(x.extra, k)
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
		x.flush(id, w, d)
		d.from, d.to = slot, slot+1
	}
}

// flush carries out the drops.
func (x *Index) flush(id WorkerID, w *worker, d *drops) {
	t := &x.tree
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
		set := t.sets.edit(t.state(n).set(), id, 0, 1<<d.plane)
		t.sets.ref(set, 1)
		t.repaint(n, from, to, set)
		if !t.sets.held(set, id) {
			w.held -= int(to - from)
		}
		t.sets.ref(set, -1)
	}
}

// removeOne drops every place of h in the plane and returns how many there were. An engine hash that stands at several places says not
// which one it lost; a false miss costs less than a false hit.
func (x *Index) removeOne(id WorkerID, w *worker, h uint64, d *drops) (n int) {
	first := w.names.find(h)
	if first == nil {
		return 0
	}
	bit := place(1) << (slotBits + d.plane)
	if m := w.more[h]; m != nil {
		if (*first|m.tiers)&bit == 0 {
			return 0
		}
		every := append([]place{*first}, m.list...)
		for i := range every {
			if every[i]&bit != 0 {
				every[i] &^= bit
				x.drop(id, w, every[i].slot(), d)
				n++
			}
		}
		every = slices.DeleteFunc(every, func(p place) bool { return p.tiers() == 0 })
		if delete(w.more, h); len(every) > 1 {
			w.more[h] = newPlaces(every[1:])
		}
		if len(every) == 0 {
			w.names.remove(h)
		} else {
			*first = every[0]
		}
		return n
	}
	if *first&bit == 0 {
		return 0
	}
	slot := first.slot()
	if *first&^bit == place(slot) {
		w.names.remove(h)
	} else {
		*first &^= bit
	}
	x.drop(id, w, slot, d)
	return 1
}

// clearTier empties one tier of the worker. Predictions are of the device. To lookups it is one step: they leave the tier out meanwhile.
func (x *Index) clearTier(id WorkerID, w *worker, tier kvevent.Tier) {
	x.enroll(func(r *roster) { r.clearing = &clearing{id, int(tier) - 1} })
	defer x.enroll(func(*roster) {})
	hashes := make([]uint64, 0, w.names.n)
	for h := range w.names.all {
		hashes = append(hashes, h)
	}
	w.recentSlot = 0
	d := drops{plane: int(tier) - 1}
	for _, h := range hashes {
		x.removeOne(id, w, h, &d)
	}
	x.flush(id, w, &d)
	if tier == kvevent.Device {
		x.unpredictAll(id, w)
	}
	w.orphans.clearTier(d.plane)
	x.tree.reset()
}
