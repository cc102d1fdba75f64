// SPDX-License-Identifier: Apache-2.0

package index

import "sync/atomic"

// A run is a range of blocks that follow each other in a prompt, lie in consecutive slots and have the same residents:
// one edge of the tree, but a tree without parents. A lookup finds the first run by the hash of the prompt's first
// block, and every further one by the hash of the block after the previous run. Hashes are chained, so finding one
// implies that everything before it is equal too.
//
// Readers see a run change in one step, when its state is stored: the set of its residents, its length in blocks, and a version that
// counts the changes of this number, so that a reader can tell that nothing changed while it looked. head and start are stored before a
// state makes the run live, and never while it is. A run of length 0 is free.
//
// The writer keeps the blocks after a change reachable: new entries are added to heads before the state that leads to
// them is stored, and obsolete ones are removed afterwards.
type run struct {
	head  atomic.Uint64 // sequence hash of the first block
	state atomic.Uint64 // version:24 length:12 set:28
	start atomic.Uint32 // slot of the first block
	next  atomic.Uint32 // a hint: a run that once followed, or 0; for free runs, the next free run

	// For the writer. Runs end where prompts diverge, so that a lookup searches only in its last run.
	forks  uint32 // runs that follow the last block but are not in the next slots
	parent uint32 // the slot of the previous block if it is not the previous slot, or 0
	check  uint32 // the low half of that block's hash: the slot may have another block by now
}

// maxRun is the maximum length of a run in blocks. It bounds the cost of a split.
const (
	maxRun  = 1024
	maxRoom = 256 // maximum number of slots reserved for the growth of a run

	setBits     = 28
	lengthBits  = 12
	versionUnit = 1 << (setBits + lengthBits)
)

type state uint64

func (s state) set() uint32    { return uint32(s) & (1<<setBits - 1) }
func (s state) length() uint32 { return uint32(s>>setBits) & (1<<lengthBits - 1) }

// tree holds the blocks and the sets of their workers. There is one writer at a time; readers load the atomic words and
// verify afterwards that nothing has changed.
type tree struct {
	heads heads
	runs  slab[run]
	sets  sets
	slots slots

	// changes counts changed states, in steps of a million. If it has advanced far during a lookup, versions may have
	// wrapped around.
	changes atomic.Uint64
	// epoch counts changes that are not part of the states of runs: memory was released, a worker was hidden or shown,
	// or the state of a worker changed. It is incremented after the change and before the next one, so if it has not
	// changed at the end of a lookup, the lookup has seen at most one uncounted change.
	epoch atomic.Uint64

	work work

	_       apart
	changed uint64 // changed states, exactly
	ends    uint32 // runs in use, free ones included; at least 1, because run 0 is not used
	free    uint32 // first free run
	live    int
	_       apart
}

func (t *tree) init(secret uint64) {
	t.heads.mixer, t.sets.mixer, t.slots.common.mixer = mixer(secret), mixer(secret), mixer(secret)
	t.ends, t.slots.end, t.sets.planes = 1, 1, planeWindow
	t.heads.reset()
	t.runs.resize(1)
	t.slots.extend(1)
}

func (t *tree) state(n uint32) state { return state(t.runs.at(n).state.Load()) }

// set changes the state of run n in one step and keeps the count of references to sets.
func (t *tree) set(n uint32, length, set uint32) {
	t.runs.save(n)
	r := t.runs.at(n)
	old := state(r.state.Load())
	if t.changed++; t.changed&(1<<20-1) == 0 {
		t.changes.Store(t.changed)
	}
	setWord(&r.state, uint64(old)&^(versionUnit-1)+versionUnit|uint64(length)<<setBits|uint64(set))
	t.work.step()
	if set != old.set() {
		t.sets.ref(set, 1)
		t.sets.ref(old.set(), -1)
	}
}

// hint records that run n once followed. Usually it is known, and an atomic store costs much more than a load.
func (r *run) hint(n uint32) {
	if r.next.Load() != n {
		setHalf(&r.next, n)
	}
}

// add makes a run of the slots [from,to) and makes it visible to readers.
func (t *tree) add(from, to, set uint32) uint32 {
	n := t.free
	if n != 0 {
		t.free = t.runs.at(n).next.Load()
	} else {
		n = t.ends
		t.ends++
		t.runs.resize(t.ends)
	}
	t.runs.save(n)
	r := t.runs.at(n)
	head := t.slots.seq.at(from).Load()
	setWord(&r.head, head)
	t.work.step()
	setHalf(&r.start, from)
	setHalf(&r.next, 0)
	r.forks, r.parent = 0, 0
	t.set(n, to-from, set)
	t.slots.own(from, to, n)
	t.heads.add(&t.runs, head, n)
	t.work.step()
	t.live++
	return n
}

// remove makes run n unreachable and frees its number. The caller owns its slots.
func (t *tree) remove(n uint32) {
	r := t.runs.at(n)
	t.heads.remove(r.head.Load(), n)
	t.work.step()
	t.set(n, 0, 0)
	parent, check := r.parent, r.check
	setHalf(&r.next, t.free)
	t.free = n
	t.live--
	if parent != 0 {
		t.leave(parent, check)
	}
}

// end returns the first slot after the run that contains a slot, or 0 if no run does.
func (t *tree) end(slot uint32) uint32 {
	if !t.slots.isLive(slot) {
		return 0
	}
	n := t.slots.run(slot) // obsolete inside a free range
	if start := t.runs.at(n).start.Load(); start <= slot && slot < start+t.state(n).length() {
		return start + t.state(n).length()
	}
	return 0
}

// find returns the slot of the block with hash seq that follows the one in slot prev, or begins a prompt if prev is 0;
// it returns 0 if absent. Slots that were allocated but not filled are ignored: hashes that are not a chain may reach
// them again.
func (t *tree) find(prev uint32, seq uint64) uint32 {
	if prev != 0 && t.slots.isNext(prev+1) && t.slots.run(prev+1) != 0 {
		if t.slots.seq.at(prev+1).Load() == seq {
			return prev + 1
		}
	}
	n, r, _ := t.heads.find(&t.runs, seq)
	if n == 0 {
		return 0
	}
	if prev != 0 {
		t.runs.at(t.slots.run(prev)).hint(n)
	}
	return r.start.Load()
}

// follow records that run n follows the block in slot prev, which is not the slot before it.
func (t *tree) follow(prev, n uint32) {
	r := t.runs.at(n)
	check := uint32(t.slots.seq.at(prev).Load())
	l := t.slots.run(prev)
	end := t.runs.at(l).start.Load() + t.state(l).length()
	if r.parent == prev && r.check == check && t.runs.at(l).forks > 0 && prev+1 == end {
		return // otherwise the block was absent since
	}
	t.runs.save(n)
	r.parent, r.check = prev, check
	if prev+1 < end {
		t.split(l, prev+1, end)
	}
	t.runs.at(l).forks++
	t.runs.at(l).hint(n)
}

// split ends run n before slot at and makes a new run of the rest.
func (t *tree) split(n, at, end uint32) {
	r, st := t.runs.at(n), t.state(n)
	rest := t.add(at, end, st.set())
	t.runs.at(rest).forks = r.forks
	t.set(n, at-r.start.Load(), st.set())
	r.forks = 0
}

// leave records that a run that followed the block in slot prev was removed. If it was the last reason to keep two runs
// separate, they are joined.
func (t *tree) leave(prev, check uint32) {
	if !t.slots.isLive(prev) || uint32(t.slots.seq.at(prev).Load()) != check {
		return
	}
	n := t.slots.run(prev)
	r, st := t.runs.at(n), t.state(n)
	start := r.start.Load()
	if prev+1 != start+st.length() || r.forks == 0 {
		return
	}
	r.forks--
	t.join(n)
}

// join merges run n with the run directly after it, if they have the same residents and no prompts diverge between
// them.
func (t *tree) join(n uint32) {
	r, st := t.runs.at(n), t.state(n)
	start := r.start.Load()
	at := start + st.length()
	if r.forks > 0 || !t.slots.isNext(at) {
		return
	}
	m := t.slots.run(at)
	if sm := t.state(m); sm.set() == st.set() && sm.length()+st.length() <= maxRun {
		end := at + sm.length()
		t.slots.own(at, end, n)
		t.set(n, end-start, st.set())
		r.forks = t.runs.at(m).forks
		t.remove(m)
	}
}

// repaint changes the set of the blocks in slots [a,b), which are part of run n. It splits and merges runs, so that
// adjacent runs differ unless prompts diverge between them. Blocks with an empty set are freed. For readers it is one
// step.
func (t *tree) repaint(n, a, b, set uint32) {
	r, st := t.runs.at(n), t.state(n)
	if set == st.set() {
		return
	}
	start := r.start.Load()
	end := start + st.length()
	t.sets.ref(set, 1) // merging may remove the run that refers to it
	rest, forks := b, uint32(0)
	right := uint32(0) // a following run with the same set, to be merged
	if b < end {
		z := t.add(b, end, st.set())
		t.runs.at(z).forks, r.forks = r.forks, 0
	} else if forks = r.forks; forks == 0 && set != 0 && t.slots.isNext(b) {
		if m := t.slots.run(b); t.state(m).set() == set && b-a+t.state(m).length() <= maxRun {
			right, rest, forks = m, b+t.state(m).length(), t.runs.at(m).forks
		}
	}
	switch {
	case a > start:
		if set != 0 {
			m := t.add(a, rest, set)
			t.runs.at(m).forks = forks
			setHalf(&r.next, m)
		}
		r.forks = 0
		t.set(n, a-start, st.set())
	case set == 0:
		t.remove(n)
	default:
		if left := t.left(a, rest-a, set); left != 0 {
			t.slots.own(a, rest, left)
			t.set(left, rest-t.runs.at(left).start.Load(), set)
			t.runs.at(left).forks = forks
			t.remove(n)
		} else {
			t.slots.own(b, rest, n)
			t.set(n, rest-a, set)
			r.forks = forks
		}
	}
	if right != 0 {
		t.remove(right)
	}
	if set == 0 {
		t.slots.live -= int(b - a)
		t.slots.release(a, b)
	}
	t.sets.ref(set, -1)
}

// left returns the run that ends directly before slot a, if n more blocks with the set can join it, or 0.
func (t *tree) left(a, n, set uint32) uint32 {
	if !t.slots.isNext(a) {
		return 0
	}
	l := t.slots.run(a - 1)
	if st := t.state(l); l == 0 || st.set() != set || st.length()+n > maxRun || t.runs.at(l).forks > 0 {
		return 0
	}
	return l
}

// alone returns the set of one worker in one plane. Usually the block in slot prev has it.
func (t *tree) alone(prev uint32, w lane, plane int) uint32 {
	if prev != 0 && t.slots.run(prev) != 0 {
		if set := t.state(t.slots.run(prev)).set(); t.sets.isAlone(set, w, plane) {
			return set
		}
	}
	return t.sets.edit(0, w, 1<<plane, 0)
}

// fill makes runs of the allocated slots [from,to), and makes them visible to readers, the deepest first. They follow
// the block in slot prev, or begin a prompt if prev is 0. A new set gets its first reference here.
func (t *tree) fill(prev, from, to, set uint32) {
	// The previous run is extended as far as possible.
	join := from
	l := uint32(0)
	if l = t.left(from, 1, set); l != 0 {
		join = min(to, t.runs.at(l).start.Load()+maxRun)
	}
	var next uint32
	for to > join {
		at := max(join, to-min(maxRun, to-join))
		n := t.add(at, to, set)
		setHalf(&t.runs.at(n).next, next)
		next, to = n, at
	}
	if l != 0 {
		t.slots.own(from, join, l)
		if next != 0 {
			setHalf(&t.runs.at(l).next, next)
		}
		t.set(l, join-t.runs.at(l).start.Load(), set)
	} else if prev != 0 && prev != from-1 {
		t.follow(prev, next)
	}
}

// reset releases memory if the tree is empty.
func (t *tree) reset() {
	if t.slots.live > 0 || t.runs.chunks() <= 1 && t.slots.seq.chunks() <= 2 && t.sets.words.chunks() <= 1 {
		return
	}
	t.heads.reset()
	t.work.step()
	t.sets.reset()
	t.slots.reset()
	t.work.step()
	t.ends, t.free = 1, 0
	t.runs.resize(1) // the remaining runs keep their versions
	t.epoch.Add(1)
}
