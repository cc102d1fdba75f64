// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math/bits"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// This file maps engine hashes, the names that workers have for blocks, to slots. A worker uses common names and names of its own:
//
//   - a worker has a block under the common name, in the tiers of the block's set, unless it owns the slot;
//   - for a slot that it owns, all its names are in worker.names and worker.more, also the common one, each with its tiers.
//
// No name of a worker is in both. So a name is looked up among the worker's own names, if there are any, and then among the common ones.

// owned holds the slots for which a worker has names of its own.
type owned struct {
	pages map[uint32]*ownedPage
	most  int        // pages that there were at once
	page  *ownedPage // the last one used, or an empty one for reuse; nil if there was none
	at    uint32     // its number
}

type ownedPage [1 << ownedBits / 64]uint64

const (
	ownedBits = 10
	noPage    = 1<<32 - 1
	keepPages = 16 // a map of more is released when it is empty, because maps do not shrink
)

func (o *owned) find(number uint32) *ownedPage {
	if o.page == nil || o.at != number {
		if p := o.pages[number]; p != nil {
			o.page, o.at = p, number
		} else {
			return nil
		}
	}
	return o.page
}

func (o *owned) has(slot uint32) bool {
	if len(o.pages) == 0 {
		return false
	}
	p := o.find(slot >> ownedBits)
	return p != nil && p[slot>>6%uint32(len(p))]>>(slot&63)&1 != 0
}

func (o *owned) add(slot uint32) {
	p := o.find(slot >> ownedBits)
	if p == nil {
		if o.pages == nil {
			o.pages = make(map[uint32]*ownedPage)
		}
		if p = o.page; p == nil || o.at != noPage {
			p = new(ownedPage)
		}
		o.pages[slot>>ownedBits], o.page, o.at = p, p, slot>>ownedBits
		o.most = max(o.most, len(o.pages))
	}
	p[slot>>6%uint32(len(p))] |= 1 << (slot & 63)
}

// remove removes the slots [from,to), and returns how many there were.
func (o *owned) remove(from, to uint32) (n int) {
	for from < to && len(o.pages) > 0 {
		page := from >> ownedBits
		end := min(to, (page+1)<<ownedBits)
		if p := o.find(page); p != nil {
			for ; from < end; from++ {
				word := &p[from>>6%uint32(len(p))]
				n += int(*word >> (from & 63) & 1)
				*word &^= 1 << (from & 63)
			}
			if *p == (ownedPage{}) {
				delete(o.pages, page)
				o.at = noPage
			}
		}
		from = end
	}
	if len(o.pages) == 0 && o.most > keepPages {
		*o = owned{}
	}
	return n
}

// staged holds the blocks that an update is about to give a worker under their common names, because their sets do not have the worker
// yet. An update seldom needs more than a few spans of slots.
type staged struct {
	lane  lane
	n     int
	spans [8]struct {
		from, to uint32
		tiers    uint8
	}
	more map[uint32]*[1 << stagedBits]uint8 // tiers of further slots
}

const stagedBits = 8

// add adds the slots [from,to) in a plane.
func (s *staged) add(l lane, from, to uint32, plane int) {
	s.lane = l
	if last := s.n - 1; last >= 0 && s.spans[last].to == from && s.spans[last].tiers == 1<<plane {
		s.spans[last].to = to
		return
	}
	if s.n < len(s.spans) {
		p := &s.spans[s.n]
		p.from, p.to, p.tiers = from, to, 1<<plane
		s.n++
		return
	}
	if s.more == nil {
		s.more = make(map[uint32]*[1 << stagedBits]uint8)
	}
	for from < to {
		page := s.more[from>>stagedBits]
		if page == nil {
			page = new([1 << stagedBits]uint8)
			s.more[from>>stagedBits] = page
		}
		for end := min(to, (from>>stagedBits+1)<<stagedBits); from < end; from++ {
			page[from%uint32(len(page))] |= 1 << plane
		}
	}
}

// tiers returns the tiers in which a slot is about to be given to a lane.
func (s *staged) tiers(l lane, slot uint32) (tiers uint8) {
	if s.n == 0 || l != s.lane {
		return 0
	}
	for i := range s.spans[:s.n] {
		if p := &s.spans[i]; p.from <= slot && slot < p.to {
			tiers |= p.tiers
		}
	}
	if page := s.more[slot>>stagedBits]; page != nil {
		tiers |= page[slot%uint32(len(page))]
	}
	return tiers
}

// overlaps reports whether any slot of [from,to) may be staged for a lane.
func (s *staged) overlaps(l lane, from, to uint32) bool {
	if s.n == 0 || l != s.lane {
		return false
	}
	for i := range s.spans[:s.n] {
		if p := &s.spans[i]; p.from < to && from < p.to {
			return true
		}
	}
	return s.more != nil
}

// publish is called when the sets have the staged blocks.
func (s *staged) publish() { s.n, s.more = 0, nil }

// tiers returns the tiers in which a worker has the block in a slot, those included that it is about to get.
func (x *Index) tiers(w *worker, slot uint32) uint8 {
	return x.tree.sets.tiers(x.setAt(slot), w.lane) | x.staged.tiers(w.lane, slot)
}

// setAt returns the set of the block in a slot.
func (x *Index) setAt(slot uint32) uint32 {
	if x.loading != nil {
		return x.loading[slot]
	}
	return x.tree.state(x.tree.slots.run(slot)).set()
}

// get returns the location of a worker's engine hash, the first one if it has several, or 0.
func (x *Index) get(w *worker, h uint64) location {
	if w.names.n > 0 {
		if p := w.names.get(h); p != 0 {
			return p
		}
	}
	if w.plain == 0 {
		return 0
	}
	slot := x.tree.slots.common.find(h)
	if slot == 0 || w.owned.has(slot) {
		return 0
	}
	if tiers := x.tiers(w, slot); tiers != 0 {
		return locationAt(slot, tiers)
	}
	return 0
}

// last returns the latest location of an engine hash, or 0.
func (x *Index) last(w *worker, h uint64) location {
	if len(w.more) > 0 {
		if m := w.more[h]; m != nil {
			return m.list[len(m.list)-1]
		}
	}
	return x.get(w, h)
}

// parent returns the slot of a parent's engine hash, or 0. Usually the parent is the block that was stored last.
func (x *Index) parent(w *worker, h uint64) uint32 {
	if w.recent == h && w.recentSlot != 0 && len(w.more) == 0 {
		return w.recentSlot
	}
	return x.last(w, h).slot()
}

// differ notes that n names of blocks with common names were not these or, if n is negative, that they were. A worker whose names differ
// does not make its names common.
func (w *worker) differ(n int) { w.alike = max(-maxAlike, min(maxAlike, w.alike-n)) }

const maxAlike = 64

// nameNew records the names of blocks that have just been stored, in slots from the given one on, in a plane. It sets fresh to whether each name is new,
// and returns the number of those.
func (x *Index) nameNew(w *worker, hashes []uint64, slot uint32, plane int, fresh []bool) (n int) {
	c := &x.tree.slots.common
	x.staged.add(w.lane, slot, slot+uint32(len(hashes)), plane)
	c.call(slot, hashes)
	for i, h := range hashes {
		at := slot + uint32(i)
		if (w.names.n == 0 || w.names.find(h).g == nil) && c.enter(h, at) {
			w.plain++
			fresh[i] = true
		} else {
			*c.of.at(at) = 0
			fresh[i] = x.name(w, h, at, plane)
		}
		if fresh[i] {
			n++
		}
	}
	return n
}

// nameKnown is nameNew for blocks that may have been there before.
func (x *Index) nameKnown(w *worker, hashes []uint64, slot uint32, plane int, fresh []bool) (n int) {
	t := &x.tree
	for i := 0; i < len(hashes); {
		at := slot + uint32(i)
		r := t.slots.run(at)
		end := i + 1
		if r != 0 {
			end = min(len(hashes), i+int(t.runs.at(r).start.Load()+t.state(r).length()-at))
		}
		same := 0
		if !x.staged.overlaps(w.lane, at, at+uint32(end-i)) {
			same = t.slots.common.equal(at, hashes[i:end])
		}
		for k := 0; k < same && w.names.n > 0; k++ {
			if w.owned.has(at+uint32(k)) || w.names.find(hashes[i+k]).g != nil {
				same = k
			}
		}
		if same == 0 {
			if fresh[i] = x.name(w, hashes[i], at, plane); fresh[i] {
				n++
			}
			i++
			continue
		}
		tiers := t.sets.tiers(t.state(r).set(), w.lane)
		is := tiers>>plane&1 == 0
		for k := range fresh[i : i+same] {
			fresh[i+k] = is
		}
		if is {
			x.staged.add(w.lane, at, at+uint32(same), plane)
			n += same
		}
		if tiers == 0 {
			w.plain += same
			w.differ(-same)
		}
		i += same
	}
	return n
}

// nameOwn is nameKnown for a worker whose names differ.
func (x *Index) nameOwn(w *worker, hashes []uint64, slot uint32, plane int, fresh []bool) (n int) {
	c := &x.tree.slots.common
	for i, h := range hashes {
		at := slot + uint32(i)
		// Usually the worker has neither the block under its common name nor another one under this name.
		if common := c.at(at); common != h && (w.plain == 0 || c.find(h) == 0 && (w.owned.has(at) || x.tiers(w, at) == 0)) {
			if common != 0 {
				w.differ(1)
			}
			w.owned.add(at)
			fresh[i] = w.name(h, at, plane)
		} else {
			fresh[i] = x.name(w, h, at, plane)
		}
		if fresh[i] {
			n++
		}
	}
	return n
}

// name records that h is the worker's name of the block in the slot, in the plane. It reports whether this is new.
func (x *Index) name(w *worker, h uint64, slot uint32, plane int) bool {
	if w.names.n == 0 || w.names.find(h).g == nil {
		c := &x.tree.slots.common
		if common := c.at(slot); !w.owned.has(slot) {
			tiers := x.tiers(w, slot)
			if common != 0 && tiers == 0 {
				n := 1
				if common == h {
					n = -1
				}
				w.differ(n)
			}
			if h != 0 && common == h || common == 0 && tiers == 0 && w.alike >= 0 && c.place(h, slot) {
				if tiers == 0 {
					w.plain++
				}
				if tiers>>plane&1 != 0 {
					return false
				}
				x.staged.add(w.lane, slot, slot+1, plane)
				return true
			}
		}
		if w.plain > 0 {
			if other := c.find(h); other != 0 && other != slot {
				x.own(w, other)
			}
		}
	}
	x.own(w, slot)
	w.owned.add(slot)
	return w.name(h, slot, plane)
}

// own makes the common name of a block the worker's own, if the worker uses it.
func (x *Index) own(w *worker, slot uint32) {
	h := x.tree.slots.common.at(slot)
	if h == 0 || w.owned.has(slot) {
		return
	}
	if tiers := x.tiers(w, slot); tiers != 0 {
		w.names.add(h, locationAt(slot, tiers))
		w.owned.add(slot)
		w.plain--
	}
}

// tiers returns the tiers of a worker in a set, one bit each. For the writer.
func (s *sets) tiers(id uint32, w lane) (tiers uint8) {
	if id == 0 {
		return 0
	}
	v, _ := s.view(id)
	for mask := v.mask & tiersMask; mask != 0; mask &= mask - 1 {
		p := bits.TrailingZeros8(mask)
		tiers |= uint8(v.word(v.plane(p), int(w>>6))>>(w&63)&1) << p
	}
	return tiers
}

// This does not compile if the first planes are not the tiers.
const _ = uint(planePredicted - kvevent.NumTiers)

// touch prefetches what is needed to find up to touchLen engine hashes of a worker, so that the cache misses overlap.
func (x *Index) touch(w *worker, hashes []uint64) {
	if w.plain > 0 || w.alike >= 0 {
		x.touched += x.tree.slots.common.touch(hashes)
	}
	if w.names.n > 0 {
		x.touched += w.names.touch(hashes)
	}
}

// eachName calls f for each location of each name of a worker, in order for each name.
func (x *Index) eachName(w *worker, f func(uint64, location)) {
	for h, p := range w.names.all {
		f(h, p)
		if m := w.more[h]; m != nil {
			for _, p := range m.list {
				f(h, p)
			}
		}
	}
	t := &x.tree
	t.eachRun(func(start, end uint32, st state) {
		if tiers := t.sets.tiers(st.set(), w.lane); tiers != 0 {
			for i := start; i < end; i++ {
				if !w.owned.has(i) {
					f(t.slots.common.at(i), locationAt(i, tiers))
				}
			}
		}
	})
}
