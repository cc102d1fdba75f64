// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/weft-go/weft/kvhash/internal/sequence"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// This file is structured as follows: what a caller names, then writing (blocks get numbers, and each worker lists
// those that it holds), then reading, then putting one worker of a snapshot into an index that has others.
//
//	body      = clock version workers blocks residencies
//	version   = 0, or 1 count sum(8 bytes)
//	workers   = count worker...
//	worker    = present(1 byte): 0, or 1 key rank flags group ratio store tier(1 byte) trust(1 byte) why position members
//	members   = of a store: count, then the numbers of those attached
//	blocks    = count list...
//	list      = count back hashes                 back: how far before its first block the one is that it follows, 0 if not known
//	residency = for each worker: segments, further names, hashes at several places, orphans, groups
//	groups    = count of groups; unless 0, need ratio id... count, then hashes with the groups that hold their block(1 byte)
//	segment   = length<<5|named<<4|tiers gap [hashes]      blocks that follow each other in number; gap to the one before; 0 ends
//
// Blocks are numbered from 0 as they are written: walking from those without a known parent, by hash, the child with the least hash first.
// So the order follows from what the index holds and not from how it came to hold it.

// appendAll appends a snapshot of the index; see AppendSnapshot of package replica.
func (x *Index) appendAll(dst []byte) []byte { return x.shoot(kindIndex, 0).append(dst) }

// appendOne appends a snapshot of one worker, with its position in its stream, for [Stream.restore] in an index that has the same worker
// with any ID. An unknown worker appends nothing.
func (x *Index) appendOne(dst []byte, id WorkerID) []byte {
	if s := x.shoot(kindWorker, id); s != nil {
		dst = s.append(dst)
	}
	return dst
}

// where returns the position of the worker's stream. The streams are frozen.
func (w *worker) where() []byte {
	if w.stream != nil {
		return w.stream.in.AppendPosition(nil)
	}
	return w.position
}

// append takes the rest of a snapshot and appends it.
func (s *shot) append(dst []byte) []byte {
	for s.step() {
	}
	from := len(dst)
	dst = appendHeader(dst, s.kind, fingerprint(s.x.block, s.x.opt.Scheme))
	dst = appendUint(dst, uint64(s.x.block))
	dst = binary.AppendVarint(dst, s.clock)
	if s.version == nil {
		dst = append(dst, 0)
	} else {
		dst = appendHash(appendUint(append(dst, 1), s.version.Count), s.version.Sum)
	}
	dst = appendUint(dst, uint64(len(s.workers)))
	for _, w := range s.workers {
		if w == nil {
			dst = append(dst, 0)
			continue
		}
		dst = append(dst, 1)
		dst = appendUint(appendString(dst, w.key.Instance), uint64(w.key.DPRank))
		dst = appendFlags(dst, w.flags)
		dst = append(dst, byte(w.store), bit(w.hasState, 7)|byte(w.state))
		dst = appendString(appendString(dst, w.why), w.position)
		if w.store == 0 {
			continue
		}
		var members []WorkerID
		for _, r := range s.roster.stores {
			if s.kind == kindIndex && r.id == w.id {
				members = s.roster.idsOf(r.members)
			}
		}
		dst = appendUint(dst, uint64(len(members)))
		for _, m := range members {
			dst = appendUint(dst, uint64(m))
		}
	}
	n := s.tree.number(func(v *view) bool {
		if s.kind == kindWorker {
			only := s.workers[0].lane
			for p := range kvevent.NumTiers {
				if v.word(v.plane(p), int(only>>6))>>(only&63)&1 != 0 {
					return true
				}
			}
			return false
		}
		return v.mask != 1<<planePredicted
	})
	dst = n.append(dst, &s.tree)
	s.spans()
	for _, w := range s.workers {
		if w != nil {
			w.addCommon(&s.tree)
			dst = n.appendWorker(dst, &s.tree, w)
			w.keys, w.vals = nil, nil
		}
	}
	return appendChecksum(dst, from)
}

// flags holds the properties of a worker that its events determined.
type flags struct {
	received, unknown, refused, full, grouped, strange, mayGrow, ahead, paged bool
	group, ratio                                                              int32
}

func (w *worker) flags() flags {
	return flags{w.received, w.unknown, w.refused, w.full, w.grouped, w.strange, w.mayGrow, w.ahead, w.paged, w.group, w.ratio}
}

func (w *worker) setFlags(f flags) {
	w.received, w.unknown, w.refused, w.full, w.grouped, w.strange = f.received, f.unknown, f.refused, f.full, f.grouped, f.strange
	w.mayGrow, w.ahead, w.paged, w.group, w.ratio = f.mayGrow, f.ahead, f.paged, f.group, f.ratio
}

func appendFlags(dst []byte, f flags) []byte {
	dst = append(dst, bit(f.received, 0)|bit(f.unknown, 1)|bit(f.refused, 2)|bit(f.full, 3)|bit(f.grouped, 4)|bit(f.strange, 5)|bit(f.mayGrow, 6)|bit(f.ahead, 7), bit(f.paged, 0))
	return appendUint(binary.AppendVarint(dst, int64(f.group)), uint64(f.ratio))
}

func (c *cursor) flags() flags {
	b, paged := c.byte(), c.byte()
	group := c.int()
	c.check(paged < 2 && group == int64(int32(group)))
	return flags{b&1 != 0, b&2 != 0, b&4 != 0, b&8 != 0, b&16 != 0, b&32 != 0, b&64 != 0, b&128 != 0, paged != 0, int32(group), int32(c.uint(maxRatio))}
}

// numbers holds the blocks in the order in which they are written.
type numbers struct {
	of    []uint32 // by slot: kept, forked and, below, one more than the number
	slots []uint32 // by number
	lists []list
	seen  []uint32 // numbers plus one, by hash
}

// list is a sequence of blocks that follow each other; from is the number of the first.
type list struct {
	from, parent uint32 // parent: one more than the number of the block before, or 0
}

const (
	keptBit   = 1 << 31
	forkedBit = 1 << 30
)

// child is a block that follows the one in slot parent, which is not the slot before its own, or a block that walk
// visits next.
type child struct {
	parent uint32
	slot   uint32
	seq    uint64
}

func bySeq(a, b child) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.slot, b.slot)) }

// before returns the slot of the previous block of the one in a slot, or 0 if it is unknown.
func (t *tree) before(slot uint32) uint32 {
	if t.slots.isNext(slot) {
		return slot - 1
	}
	r := t.runs.at(t.slots.run(slot))
	if r.parent != 0 && r.start.Load() == slot && t.slots.isLive(r.parent) && uint32(t.slots.seq.at(r.parent).Load()) == r.check {
		return r.parent
	}
	return 0
}

// eachRun calls f for every run, in order of slots.
func (t *tree) eachRun(f func(start, end uint32, st state)) {
	for i := uint32(1); i < t.slots.end; {
		o := *t.slots.owner.at(i)
		if o&freeBit != 0 {
			i += o & lowBits
			continue
		}
		st := t.state(o & lowBits)
		f(i, i+st.length(), st)
		i += st.length()
	}
}

// number assigns numbers to the blocks whose residents keep accepts.
func (t *tree) number(keep func(*view) bool) *numbers {
	n := &numbers{of: make([]uint32, t.slots.end)}
	kept, known, last := 0, uint32(0), false
	t.eachRun(func(start, end uint32, st state) {
		if st.set() != known {
			v, _ := t.sets.view(st.set())
			known, last = st.set(), keep(&v)
		}
		if last {
			kept += int(end - start)
			for i := start; i < end; i++ {
				n.of[i] = keptBit
			}
		}
	})
	var todo, kids []child
	t.eachRun(func(start, _ uint32, _ state) {
		if n.of[start] == 0 {
			return
		}
		c := child{t.before(start), start, t.slots.seq.at(start).Load()}
		if c.parent == 0 || n.of[c.parent] == 0 {
			c.parent = 0
			todo = append(todo, c)
		} else if c.parent != start-1 {
			kids = append(kids, c)
			n.of[c.parent] |= forkedBit
		}
	})
	slices.SortFunc(kids, func(a, b child) int { return cmp.Or(cmp.Compare(a.parent, b.parent), bySeq(a, b)) })
	slices.SortFunc(todo, func(a, b child) int { return bySeq(b, a) })
	n.slots = make([]uint32, 0, kept)
	n.seen = make([]uint32, 1<<bits.Len(uint(kept+kept/2)))
	n.walk(t, todo, kids)
	if len(n.slots) < kept {
		// Invalid hashes of a publisher may have produced cycles.
		todo = todo[:0]
		for i := uint32(1); i < t.slots.end; i++ {
			if n.of[i]&keptBit != 0 && n.of[i]&lowBits == 0 {
				todo = append(todo, child{0, i, t.slots.seq.at(i).Load()})
			}
		}
		slices.SortFunc(todo, func(a, b child) int { return bySeq(b, a) })
		n.walk(t, todo, kids)
	}
	return n
}

// walk numbers the blocks of todo, the last first, and all blocks after them. The parent of a block in todo is a number
// plus one.
func (n *numbers) walk(t *tree, todo, kids []child) {
	mask := len(n.seen) - 1
	for len(todo) > 0 {
		c := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		open := false
		for before := c.parent; c.slot != 0; {
			if n.of[c.slot]&lowBits != 0 {
				break // a circle
			}
			at := int(t.heads.mix(c.seq)) & mask
			for n.seen[at] != 0 && t.slots.seq.at(n.slots[n.seen[at]-1]).Load() != c.seq {
				at = (at + 1) & mask
			}
			forked := n.of[c.slot]&forkedBit != 0
			if n.seen[at] == 0 {
				if !open {
					n.lists = append(n.lists, list{uint32(len(n.slots)), before})
					open = true
				}
				n.slots = append(n.slots, c.slot)
				n.seen[at] = uint32(len(n.slots))
			} else {
				open = false // a duplicate block: one is enough
			}
			n.of[c.slot] = keptBit | n.seen[at]
			before = n.seen[at]
			slot := c.slot
			c = child{}
			if next := slot + 1; t.slots.isNext(next) && n.of[next] != 0 {
				c = child{before, next, t.slots.seq.at(next).Load()}
			}
			if forked {
				i, _ := slices.BinarySearchFunc(kids, slot, func(k child, s uint32) int { return cmp.Compare(k.parent, s) })
				from := len(todo)
				for ; i < len(kids) && kids[i].parent == slot; i++ {
					todo = append(todo, child{before, kids[i].slot, kids[i].seq})
				}
				if c.slot != 0 {
					todo = append(todo, c)
				}
				slices.SortFunc(todo[from:], func(a, b child) int { return bySeq(b, a) })
				c = todo[len(todo)-1]
				todo = todo[:len(todo)-1]
			}
		}
	}
}

// number returns the number of the block in a slot.
func (n *numbers) number(slot uint32) uint32 { return n.of[slot]&lowBits - 1 }

// end returns the number after the last block of a list.
func (n *numbers) end(list int) uint32 {
	if list+1 < len(n.lists) {
		return n.lists[list+1].from
	}
	return uint32(len(n.slots))
}

// append appends the blocks.
func (n *numbers) append(dst []byte, t *tree) []byte {
	dst = slices.Grow(dst, 8*len(n.slots))
	dst = appendUint(dst, uint64(len(n.slots)))
	for i, l := range n.lists {
		end := n.end(i)
		back := uint32(0)
		if l.parent != 0 {
			back = l.from + 1 - l.parent
		}
		dst = appendUint(appendUint(dst, uint64(end-l.from)), uint64(back))
		for _, slot := range n.slots[l.from:end] {
			dst = appendHash(dst, t.slots.seq.at(slot).Load())
		}
	}
	return dst
}

// further is a location of a name, if the block has another name or the name another location.
type further struct {
	number uint32
	tiers  uint8
	hash   uint64
}

// merge returns the locations of an engine hash by block number: slots with the same block are one location.
func (n *numbers) merge(h uint64, locations []location) (list []further) {
	for _, p := range locations {
		k := n.number(p.slot())
		if i := slices.IndexFunc(list, func(f further) bool { return f.number == k }); i >= 0 {
			list[i].tiers |= p.tiers()
		} else {
			list = append(list, further{k, p.tiers(), h})
		}
	}
	return list
}

// appendWorker appends the blocks of a worker.
func (n *numbers) appendWorker(dst []byte, t *tree, w *workerShot) []byte {
	held := make([]uint64, (len(n.slots)+63)/64)
	at := make([]uint32, len(n.slots)) // position among the names, valid where held
	var rest []further
	several := make(map[uint64][]further)
	keys, vals := w.keys, w.vals
	for i, p := range vals {
		if more := w.more[keys[i]]; more != nil {
			if m := n.merge(keys[i], append([]location{p}, more...)); len(m) > 1 {
				several[keys[i]] = m
			} else {
				rest = append(rest, m[0])
			}
			continue
		}
		k := n.number(p.slot())
		if held[k>>6]>>(k&63)&1 == 0 {
			held[k>>6] |= 1 << (k & 63)
			at[k] = uint32(i)
			continue
		}
		j := uint32(i)
		if keys[j] < keys[at[k]] {
			j, at[k] = at[k], j
		}
		rest = append(rest, further{k, vals[j].tiers(), keys[j]})
	}
	var prev, from, length uint32 // of the segment: end of the one before, first block, blocks
	var kind uint64
	end := func() {
		if length == 0 {
			return
		}
		dst = appendUint(appendUint(dst, uint64(length)<<5|kind), uint64(from-prev))
		if kind&named != 0 {
			for k := from; k < from+length; k++ {
				dst = appendHash(dst, keys[at[k]])
			}
		}
		prev, length = from+length, 0
	}
	for i, word := range held {
		for ; word != 0; word &= word - 1 {
			k := uint32(i*64 + bits.TrailingZeros64(word))
			as := uint64(vals[at[k]].tiers())
			if keys[at[k]] != t.slots.seq.at(n.slots[k]).Load() {
				as |= named
			}
			if length == 0 || k != from+length || as != kind {
				end()
				from, kind = k, as
			}
			length++
		}
	}
	end()
	dst = append(dst, 0)

	slices.SortFunc(rest, func(a, b further) int { return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.hash, b.hash)) })
	dst = appendUint(dst, uint64(len(rest)))
	for _, f := range rest {
		dst = appendHash(append(appendUint(dst, uint64(f.number)), f.tiers), f.hash)
	}
	dst = appendUint(dst, uint64(len(several)))
	for _, h := range slices.Sorted(maps.Keys(several)) {
		dst = appendUint(appendHash(dst, h), uint64(len(several[h])))
		for _, f := range several[h] {
			dst = append(appendUint(dst, uint64(f.number)), f.tiers)
		}
	}
	return append(append(dst, w.orphans...), w.groups...)
}

// named reports that the engine hashes of a segment are not the sequence hashes.
const named = 1 << kvevent.NumTiers

// count returns the number of parked sequences.
func (o *orphans) count() (n int) {
	for p := o.oldest; p != nil; p = p.newer {
		n++
	}
	return n
}

// append appends the parked sequences, oldest first.
func (o *orphans) append(dst []byte) []byte {
	dst = appendUint(dst, uint64(o.count()))
	for o := o.oldest; o != nil; o = o.newer {
		dst = binary.AppendVarint(appendHash(dst, o.parent), o.since)
		dst = append(dst, byte(o.plane)|bit(o.chained, 4)|bit(o.gone != nil, 5))
		dst = appendUint(dst, uint64(len(o.hashes)))
		for i, h := range o.hashes {
			dst = appendHash(appendHash(dst, h), o.chain[i])
			if o.gone != nil {
				dst = append(dst, bit(o.gone[i], 0))
			}
		}
	}
	return dst
}

// load returns the index of a snapshot; see Load of package replica.
func load(data []byte, o *Options, journalBytes int) (*Index, error) {
	return loadKind(data, kindIndex, o, journalBytes)
}

func loadKind(data []byte, kind byte, o *Options, journalBytes int) (*Index, error) {
	c, names, err := open(data, kind)
	if err != nil {
		return nil, err
	}
	block := c.uint(math.MaxInt32)
	if !c.check(block > 0) {
		return nil, c.err
	}
	x := newWithJournal(int(block), o, journalBytes)
	if names != fingerprint(x.block, x.opt.Scheme) {
		return nil, &snapshotError{Offset: int64(len(frameMagic) + 2), Err: errScheme}
	}
	x.clock.Store(c.int())
	if known := c.byte(); known == 1 {
		v := version{c.uint(math.MaxUint64), c.hash()}
		if x.journal == nil {
			x.journal = new(journal)
		}
		x.journal.first, x.journal.last = v, v
		x.follows = true // until the index has a change of its own, or a stream
	} else {
		c.check(known == 0)
		if x.journal != nil {
			x.journal.renew(binary.LittleEndian.Uint64(data[len(data)-frameChecksum:]))
		}
	}
	x.loadWorkers(c, kind)
	parents := x.loadBlocks(c)
	sets := make([]uint32, x.tree.slots.end) // by slot
	x.loading = sets
	for _, w := range x.workers {
		if w != nil && c.err == nil {
			x.loadHeld(c, w, sets)
			x.loadOrphans(c, w)
			x.loadGroups(c, w)
		}
	}
	c.check(c.left() == 0)
	if c.err == nil && slices.Contains(sets[1:], 0) {
		c.fail(errMalformed) // a block that no worker holds
	}
	if c.err != nil {
		return nil, c.err
	}
	x.buildRuns(sets, parents)
	x.loading = nil
	for id, w := range x.workers {
		if w != nil {
			w.reach(1)
			x.markAll(w)
			x.showNeed(w)
			x.publish(WorkerID(id), w)
			x.wakeForOrphans(w)
		}
	}
	return x, nil
}

func (x *Index) loadWorkers(c *cursor, kind byte) {
	n := c.count(1)
	c.check(n <= maxWorkers && (kind != kindWorker || n == 1))
	if c.err != nil {
		return
	}
	x.states.resize(uint32(n))
	x.workers, x.lanes = make([]*worker, n), make([]bool, n)
	var stores []store
	for i := range x.workers {
		id := WorkerID(i)
		present := c.byte()
		if c.check(present <= 1); present == 0 {
			continue
		}
		w := &worker{key: Key{c.string(), uint32(c.uint(math.MaxUint32))}, lane: lane(id)}
		w.names.mixer = x.tree.heads.mixer
		w.setFlags(c.flags())
		w.store = kvevent.Tier(c.byte())
		trust := c.byte()
		w.hasState, w.state = trust>>7 != 0, State(trust&^(1<<7))
		w.why = c.string()
		w.position = slices.Clone(c.bytes(c.uint(math.MaxUint64)))
		if _, err := new(sequence.Tracker).Restore(nil, w.position); err != nil && len(w.position) > 0 {
			c.fail(err)
		}
		_, twice := x.byKey[w.key]
		if !c.check(!twice && w.store <= kvevent.NumTiers && w.state <= Exact) {
			return
		}
		x.workers[i], x.byKey[w.key], x.lanes[i] = w, id, true
		if w.store == 0 {
			continue
		}
		s := store{id: id, lane: w.lane, tier: w.store}
		next := 0
		for range c.count(1) {
			m := int(c.uint(uint64(n - 1)))
			if !c.check(m >= next) {
				return
			}
			next = m + 1
			for len(s.members) <= m>>6 {
				s.members = append(s.members, 0)
			}
			s.members[m>>6] |= 1 << (m & 63)
		}
		stores = append(stores, s)
	}
	if kind == kindWorker {
		c.check(c.err != nil || x.workers[0] != nil)
	}
	if c.err != nil {
		return
	}
	for _, s := range stores {
		for k, word := range s.members {
			for ; word != 0; word &= word - 1 {
				w := x.workers[k*64+bits.TrailingZeros64(word)]
				c.check(w != nil && w.store == 0)
			}
		}
	}
	x.enroll(func(r *roster) {
		r.workers, r.stores, r.lanes = slices.Clone(x.workers), stores, make([]lane, n)
		for id, w := range x.workers {
			if r.lanes[id] = lane(id); w != nil {
				r.show(w, true)
			}
		}
	})
	for k, id := range x.byKey {
		x.keys.Store(k, id)
	}
}

// loadBlocks stores block number n in slot n+1. For lists that follow a block, it returns the slots of both, in the
// order of the lists.
func (x *Index) loadBlocks(c *cursor) (parents []child) {
	t := &x.tree
	n := uint32(c.count(8))
	if n > uint32(x.opt.MaxBlocks) {
		c.fail(errFull)
		n = 0
	}
	t.slots.extend(n + 1)
	seen := make([]uint32, 1<<bits.Len32(n+n/2))
	for at := uint32(1); at <= n && c.err == nil; {
		length := uint32(c.uint(uint64(n + 1 - at)))
		back := uint32(c.uint(uint64(at - 1)))
		b := c.bytes(8 * uint64(length))
		if !c.check(length > 0) {
			return nil
		}
		if back > 1 {
			parents = append(parents, child{parent: at - back, slot: at})
		}
		for i := range length {
			h := binary.LittleEndian.Uint64(b[8*i:])
			mask := len(seen) - 1
			k := int(t.heads.mix(h)) & mask
			for ; seen[k] != 0; k = (k + 1) & mask {
				if t.slots.seq.at(seen[k]).Load() == h {
					c.fail(errMalformed) // the same block twice
					return nil
				}
			}
			seen[k] = at + i
			t.slots.put(at+i, []uint64{h}, i > 0 || back == 1)
		}
		at += length
	}
	return parents
}

// loadHeld reads and stores the names of a worker's blocks, and adds the worker to the sets of the blocks, by slot.
// Each slot is a reference to its set.
func (x *Index) loadHeld(c *cursor, w *worker, sets []uint32) {
	t := &x.tree
	blocks := uint64(len(sets) - 1)
	for at := uint64(0); ; {
		head := c.uint(blocks<<5 | (1<<5 - 1))
		if head == 0 {
			break
		}
		length, tiers := head>>5, uint8(head)&(named-1)
		at += c.uint(blocks)
		var b []byte
		if head&named != 0 {
			b = c.bytes(8 * length)
		}
		if !c.check(length > 0 && tiers != 0 && at+length <= blocks) {
			return
		}
		first := true
		for plane := range kvevent.NumTiers {
			if tiers>>plane&1 == 0 {
				continue
			}
			for i := range uint32(length) {
				slot := uint32(at) + i + 1
				h := t.slots.seq.at(slot).Load()
				if b != nil {
					h = binary.LittleEndian.Uint64(b[8*i:])
				}
				if !c.check(!first || x.get(w, h) == 0) {
					return
				}
				x.name(w, h, slot, plane)
			}
			first = false
		}
		x.include(w.lane, uint32(at)+1, uint32(at+length)+1, tiers, sets)
		x.staged.publish()
		at += length
		w.held += int(length)
	}
	hold := func(slot uint32, tiers uint8) {
		if !t.sets.held(sets[slot], w.lane) {
			w.held++
		}
		for plane := range kvevent.NumTiers {
			if tiers>>plane&1 == 0 {
				continue
			}
			if t.sets.has(sets[slot], w.lane, plane) {
				w.count(slot, plane, 1)
			} else {
				x.include(w.lane, slot, slot+1, 1<<plane, sets)
			}
		}
	}
	where := func() location {
		slot, tiers := uint32(c.uint(blocks))+1, c.byte()
		if !c.check(tiers != 0 && tiers < named && uint64(slot) <= blocks) {
			return 0
		}
		return locationAt(slot, tiers)
	}
	name := func(h uint64, p location) {
		for plane := range kvevent.NumTiers {
			if p.tiers()>>plane&1 != 0 {
				x.name(w, h, p.slot(), plane)
			}
		}
		hold(p.slot(), p.tiers())
		x.staged.publish()
	}
	for range c.count(10) {
		p, h := where(), c.hash()
		if !c.check(p != 0 && x.get(w, h) == 0) {
			return
		}
		name(h, p)
	}
	for range c.count(13) {
		h, n := c.hash(), c.count(2)
		if !c.check(x.get(w, h) == 0 && n > 1) {
			return
		}
		at := make([]uint32, 0, min(n, 16))
		for range n {
			p := where()
			if !c.check(p != 0) {
				return
			}
			at = append(at, p.slot())
			name(h, p)
		}
		slices.Sort(at)
		if !c.check(len(slices.Compact(at)) == n) {
			return
		}
	}
}

// include adds the worker to the sets of the slots [from,to) in the given tiers, in none of which it is yet.
func (x *Index) include(id lane, from, to uint32, tiers uint8, sets []uint32) {
	s := &x.tree.sets
	for from < to {
		old, n := sets[from], uint32(1)
		for from+n < to && sets[from+n] == old {
			n++
		}
		set := s.edit(old, id, tiers, 0)
		for i := from; i < from+n; i++ {
			sets[i] = set
		}
		s.ref(set, int(n))
		s.ref(old, -int(n))
		from += n
	}
}

func (x *Index) loadOrphans(c *cursor, w *worker) {
	last := int64(math.MinInt64)
	for range c.count(10) {
		parent, since := c.hash(), c.int()
		kind := c.byte()
		o := blocks{plane: int(kind & 15), chained: kind>>4&1 != 0}
		size := 16 + int(kind>>5&1)
		n := c.count(size)
		data := c.bytes(uint64(n) * uint64(size))
		if !c.check(o.plane < kvevent.NumTiers && kind < 1<<6 && n > 0 && since >= last) {
			return
		}
		last = since
		left := n
		if size > 16 {
			o.gone = make([]bool, n)
		}
		for i := range n {
			b := data[size*i:]
			o.hashes = append(o.hashes, binary.LittleEndian.Uint64(b))
			o.chain = append(o.chain, binary.LittleEndian.Uint64(b[8:]))
			if o.gone != nil && b[16] != 0 {
				o.gone[i] = true
				left--
			}
		}
		if !c.check(left > 0 && x.last(w, parent) == 0) {
			return
		}
		if _, dropped := w.orphans.park(parent, o, cmp.Or(x.opt.MaxPending, 1<<16), since); dropped {
			w.unknown = true
		}
	}
}

// buildRuns makes runs of the slots, whose sets are given.
func (x *Index) buildRuns(sets []uint32, parents []child) {
	t := &x.tree
	forks := make([]uint32, 0, len(parents))
	for _, p := range parents {
		forks = append(forks, p.parent)
	}
	slices.Sort(forks)
	end := uint32(len(sets))
	var last uint32
	for from := uint32(1); from < end; {
		to := from + 1
		for len(forks) > 0 && forks[0] < from {
			forks = forks[1:]
		}
		stop := min(end, from+maxRun)
		if len(forks) > 0 {
			stop = min(stop, forks[0]+1)
		}
		for to < stop && sets[to] == sets[from] && t.slots.isNext(to) {
			to++
		}
		n := t.add(from, to, sets[from])
		t.sets.ref(sets[from], -int(to-from))
		r := t.runs.at(n)
		for len(forks) > 0 && forks[0] == to-1 {
			r.forks++
			forks = forks[1:]
		}
		if t.slots.isNext(from) {
			t.runs.at(last).next.Store(n)
		} else if len(parents) > 0 && parents[0].slot == from {
			p := parents[0].parent
			r.parent, r.check = p, uint32(t.slots.seq.at(p).Load())
			parents = parents[1:]
		}
		last, from = n, to
	}
}

// graft replaces the worker's blocks with those of the only worker of index y. Lookups see neither.
func (x *Index) graft(w *worker, y *Index) {
	t, u, from := &x.tree, &y.tree, y.workers[0]
	if len(x.trash) > 0 && u.slots.live > x.opt.MaxBlocks-t.slots.live {
		x.sweep(math.MaxInt) // what cleared workers held must not make the index full
	}
	// A block whose predecessor is unknown in this index is found if a run begins with it. Otherwise, if another worker
	// has it, it is inside a run.
	hidden := make(map[uint64]uint32)
	u.eachRun(func(start, _ uint32, _ state) {
		if seq := u.slots.seq.at(start).Load(); u.before(start) == 0 {
			if n, _, _ := t.heads.find(&t.runs, seq); n == 0 {
				hidden[seq] = 0
			}
		}
	})
	if len(hidden) > 0 {
		t.eachRun(func(start, end uint32, _ state) {
			for i := start + 1; i < end; i++ {
				if _, ok := hidden[t.slots.seq.at(i).Load()]; ok {
					hidden[t.slots.seq.at(i).Load()] = i
				}
			}
		})
	}
	// First all blocks get slots, then the worker its names for them, and then the blocks.
	type located struct {
		slot, n uint32
		tiers   uint8
	}
	var all []located
	locations := make([]uint32, u.slots.end)
	var seqs []uint64
	u.eachRun(func(start, end uint32, st state) {
		seqs = seqs[:0]
		for i := start; i < end; i++ {
			seqs = append(seqs, u.slots.seq.at(i).Load())
		}
		prev := locations[u.before(start)]
		if at := hidden[seqs[0]]; at != 0 {
			prev = at - 1
		}
		if x.locate(nil, prev, seqs, nil, nil, false) < len(seqs) {
			x.cuts++
			w.full = true
		}
		tiers := u.sets.tiers(st.set(), from.lane)
		for _, s := range slices.Backward(x.segs) {
			for i := range s.n {
				locations[start+uint32(s.from+i)] = s.slot + uint32(i)
			}
			if s.fresh {
				t.fill(s.prev, s.slot, s.slot+uint32(s.n), 0)
			}
			all = append(all, located{s.slot, uint32(s.n), tiers})
		}
	})
	name := func(h uint64, p location) {
		if at := locations[p.slot()]; at != 0 {
			for plane := range kvevent.NumTiers {
				if p.tiers()>>plane&1 != 0 {
					x.name(w, h, at, plane)
				}
			}
		}
	}
	y.eachName(from, name)
	fresh := slices.Repeat([]bool{true}, maxRun)
	for _, s := range all {
		for plane := range kvevent.NumTiers {
			if s.tiers>>plane&1 != 0 {
				x.grant(w, s.slot, s.slot+s.n, plane, fresh[:s.n])
			}
		}
	}
	x.staged.publish()
	for r, n := range from.extra {
		if at := locations[r.slot]; at != 0 {
			w.count(at, int(r.plane), n)
		}
	}
	w.orphans = from.orphans
	for o := w.orphans.oldest; o != nil; o = o.newer {
		o.since = x.clock.Load() // the other index has another clock
	}
	if w.groups = from.groups; w.groups != nil {
		t.sets.widen()
		for h, b := range w.groups.held {
			b.slot = 0 // of the other index
			w.groups.held[h] = b
		}
		w.groups.more = nil
		x.markAll(w)
	}
	x.showNeed(w)
	full := w.full
	w.setFlags(from.flags())
	w.full = w.full || full
	w.hasState, w.state, w.why = from.hasState, from.state, from.why
	x.wakeForOrphans(w)
}

// load replaces the worker's blocks with those of the only worker of y. Lookups do not report the worker meanwhile.
func (f *Stream) load(y *Index, data []byte) error {
	x, id := f.index, f.worker
	x.lock()
	defer x.mu.Unlock()
	if w := f.current(); w != nil {
		if y.workers[0].store != w.store { // events refer to its blocks in other tiers
			return &snapshotError{Offset: int64(frameHeader), Err: errStore}
		}
		f.rest, f.cleared = false, true
		cuts := x.cuts
		x.clear(id, w)
		x.hide(w, func() { x.graft(w, y) })
		x.publish(id, w)
		if x.journal != nil {
			x.noteRestore(id, data)
		}
		if x.cuts != cuts && x.journal != nil {
			x.journal.discard() // a follower may have room for all
		}
	}
	return nil
}
