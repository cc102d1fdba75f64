// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"

	"github.com/weft-go/weft/kvhash"
)

// This file stores blocks whose position in a prompt is known: it finds or allocates their slots, records the worker's
// names for them, and assigns them to the worker.

// blocks is a sequence of blocks that follow each other, for one plane.
type blocks struct {
	hashes  []uint64 // engine hashes
	chain   []uint64 // local hashes, or sequence hashes if chained; len(chain) == len(hashes)
	chained bool
	gone    []bool // removed while parked; nil if none
	plane   int
}

// isRemoved reports whether block i was removed while it was parked.
func (b *blocks) isRemoved(i int) bool { return b.gone != nil && b.gone[i] }

// job is a list of blocks with a known position: they follow the block with sequence hash seq, or begin a prompt.
type job struct {
	blocks
	first  bool
	seq    uint64
	anchor uint32   // the slot before them, or 0
	path   []uint64 // sequence hashes of the blocks between the anchor, or the start of the prompt, and the first block; at most the last maxRun
}

// segment is a range of blocks of a job in consecutive slots.
type segment struct {
	slot    uint32
	from, n int // in the job
	fresh   bool
	prev    uint32 // the slot of the block before, or 0
}

// insertJob stores a job and every orphan that waited for one of its blocks. [Index.Add] documents what lookups report
// meanwhile.
func (x *Index) insertJob(w *worker, j job, res *Result) {
	if !w.orphans.awaits(j.hashes) {
		x.locateJob(w, &j, res)
		x.publishJob(w, x.segs, x.fresh, j.plane)
		x.staged.publish()
		x.mark(w, j.hashes)
		return
	}
	// Deeper blocks must be present before their predecessors, so no worker holds any of the blocks until all have
	// slots.
	type located struct {
		hashes []uint64
		segs   []segment
		fresh  []bool
		plane  int
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
		all = append(all, located{next.hashes, slices.Clone(x.segs), slices.Clone(x.fresh), next.plane})
		todo = x.claim(todo, w, &next)
	}
	for _, l := range slices.Backward(all) {
		x.publishJob(w, l.segs, l.fresh, l.plane)
	}
	x.staged.publish()
	for _, l := range all { // a name may be in several
		x.mark(w, l.hashes)
	}
}

// claim appends to todo the orphans that waited for a block of the job just stored.
func (x *Index) claim(todo []job, w *worker, j *job) []job {
	anchor, path := j.anchor, slices.Clone(j.path) // jobs share it
	segs := x.segs
	for i, h := range j.hashes {
		if j.isRemoved(i) {
			if path = append(path, x.seqs[i]); len(path) > maxRun {
				anchor, path = 0, path[1:] // not needed to find a present block: its run does not begin farther away
			}
		} else {
			for i >= segs[0].from+segs[0].n {
				segs = segs[1:]
			}
			anchor, path = segs[0].slot+uint32(i-segs[0].from), nil
		}
		for _, o := range w.orphans.claim(h) {
			todo = append(todo, job{blocks: o, seq: x.seqs[i], anchor: anchor, path: slices.Clip(path)})
		}
	}
	return todo
}

// locateJob finds or allocates slots for the blocks of a job and records the worker's names for them. It sets x.seqs to
// their sequence hashes, x.segs to their segments, and x.fresh to whether each name is new. If the index is full, it
// truncates the job.
func (x *Index) locateJob(w *worker, j *job, res *Result) {
	x.seqs = append(x.seqs[:0], j.chain...)
	if !j.chained {
		seq, rest := j.seq, x.seqs
		if j.first {
			seq, rest = rest[0], rest[1:]
		}
		for i, local := range rest {
			seq = kvhash.Next(seq, local)
			rest[i] = seq
		}
	}
	prev := j.anchor
	for _, h := range j.path {
		prev = x.tree.find(prev, h)
	}
	if n := x.locate(w, prev, x.seqs, j.hashes, j.gone, false); n < len(j.hashes) {
		w.full = true
		x.cuts++
		res.Ignored += len(j.hashes) - n
		j.hashes, j.chain, x.seqs = j.hashes[:n], j.chain[:n], x.seqs[:n]
	}
	x.fresh = slices.Grow(x.fresh[:0], len(j.hashes))[:len(j.hashes)]
	for _, s := range x.segs {
		end := s.from + s.n
		for at := s.from; at < end; {
			to := min(end, at+touchLen)
			if s.fresh || w.names.n > 0 {
				x.touch(w, j.hashes[to:min(end, to+touchLen)]) // the next part, while this one is stored
				x.touched += w.names.touchNext(j.hashes[at:to])
			}
			n := 0
			switch names, slot, fresh := j.hashes[at:to], s.slot+uint32(at-s.from), x.fresh[at:to]; {
			case w.alike < 0:
				n = x.nameOwn(w, names, slot, j.plane, fresh)
			case s.fresh:
				n = x.nameNew(w, names, slot, j.plane, fresh)
			default:
				n = x.nameKnown(w, names, slot, j.plane, fresh)
			}
			res.Stored += n
			res.Known += to - at - n
			at = to
		}
	}
	if n := len(x.segs); n > 0 && len(w.more) == 0 {
		s := &x.segs[n-1]
		w.recent, w.recentSlot = j.hashes[s.from+s.n-1], s.slot+uint32(s.n)-1
	}
}

// publishJob assigns the blocks of segments to the worker in a plane, the deepest first. For lookups it is one step.
func (x *Index) publishJob(w *worker, segs []segment, fresh []bool, plane int) {
	for _, s := range slices.Backward(segs) {
		if s.fresh {
			w.reach(s.slot)
			x.tree.fill(s.prev, s.slot, s.slot+uint32(s.n), x.tree.alone(s.prev, w.lane, plane))
			w.held += s.n
		} else {
			x.grant(w, s.slot, s.slot+uint32(s.n), plane, fresh[s.from:s.from+s.n])
		}
	}
	x.tree.hang(segs)
}

// hang links existing segments to the blocks before them, which may be new.
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

// locate finds the slots of blocks with the given sequence hashes, which follow the block in slot prev (0 if it is
// absent or they begin a prompt), and allocates slots for absent blocks. The segments are in x.segs; new ones must be
// passed to fill. Removed blocks are skipped. chained specifies that the hashes are known to be a chain, so that it takes
// one comparison to find a run. It returns the number of blocks processed, which is less than len(seqs) if the index is
// full.
func (x *Index) locate(w *worker, prev uint32, seqs, names []uint64, gone []bool, chained bool) int {
	t := &x.tree
	x.segs = x.segs[:0]
	for i := 0; i < len(seqs); {
		slot := t.find(prev, seqs[i])
		if gone != nil && gone[i] {
			prev = slot
			i++
			continue
		}
		part := seqs[i:]
		if gone != nil {
			if n := slices.Index(gone[i:], true); n >= 0 {
				part = part[:n]
			}
		}
		n := 1
		if slot != 0 {
			switch {
			case prev == 0:
			case slot == prev+1:
				t.slots.tie(slot) // the block before may have been absent
			case t.slots.run(prev) != 0:
				t.follow(prev, t.slots.run(slot))
			}
			n += t.following(slot, part[1:], chained)
			x.segs = append(x.segs, segment{slot: slot, from: i, n: n, prev: prev})
		} else {
			if w != nil && w.alike >= 0 {
				x.touched += t.slots.common.touch(names[i:])
			}
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
			n += t.heads.fresh(&t.runs, part[1:min(int(got), len(part))])
			t.slots.put(slot, part[:n], cont)
			if n < int(got) {
				t.slots.release(slot+uint32(n), slot+got)
			}
			x.segs = append(x.segs, segment{slot: slot, from: i, n: n, fresh: true, prev: prev})
		}
		prev = slot + uint32(n) - 1
		i += n
	}
	return len(seqs)
}

// grant assigns the blocks in slots [from,to) to the worker in a plane, the deepest first. fresh reports for each block
// whether its name in the plane is new. A block without a new name is already assigned, or will be by the job that
// named it.
func (x *Index) grant(w *worker, from, to uint32, plane int, fresh []bool) {
	t := &x.tree
	w.reach(from)
	for to > from {
		n := t.slots.run(to - 1)
		at := max(from, t.runs.at(n).start.Load())
		set := t.state(n).set()
		if t.sets.has(set, w.lane, plane) {
			for i := at; i < to; i++ {
				if fresh[i-from] {
					w.count(i, plane, 1)
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
		if !t.sets.held(set, w.lane) {
			w.held += int(end - to)
		}
		if t.sets.has(set, w.lane, planePredicted) {
			x.assign(w, to, end, nil)
		}
		t.repaint(n, to, end, t.sets.edit(set, w.lane, 1<<plane, 1<<planePredicted))
	}
}
