// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// Check returns an error if an invariant of the index does not hold. It is slow.
func (x *Index) Check() error { return x.check(true) }

// CheckInvalidChains is Check for an index that received invalid chains: a block may then be present twice.
func (x *Index) CheckInvalidChains() error { return x.check(false) }

func (x *Index) check(unique bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := &x.tree
	if err := t.check(unique); err != nil {
		return err
	}
	blocks := make(map[uint32]uint32) // slot to set
	t.each(func(_ uint32, r *run, st state) {
		for i := range st.length() {
			blocks[r.start.Load()+i] = st.set()
		}
	})
	refs := make(map[held]int)
	wasteSpans := 0
	trash := make(map[lane]bool)
	for _, d := range x.trash {
		trash[d.lane] = true
		until := 0
		if d.expects != nil {
			for _, list := range d.expects.pages {
				until += len(list)
			}
		}
		wasteSpans += until
	}
	if x.garbage.Load() != (len(trash) > 0) {
		return fmt.Errorf("%d lanes of trash, not noted", len(trash))
	}
	for l, used := range x.lanes {
		n := 0
		if trash[lane(l)] {
			n++
		}
		for _, w := range x.workers {
			if w != nil && int(w.lane) == l {
				n++
			}
		}
		if (n == 1) != used || n > 1 {
			return fmt.Errorf("lane %d has %d workers", l, n)
		}
	}
	for id, w := range x.workers {
		if w == nil {
			continue
		}
		count := func(p location) {
			for t := range kvevent.NumTiers {
				if p.tiers()>>t&1 != 0 {
					refs[held{w, ref{p.slot(), uint8(t)}}]++
				}
			}
		}
		n, own := 0, make(map[uint32]bool)
		for h, p := range w.names.all {
			n++
			count(p)
			if w.names.get(h) != p {
				return fmt.Errorf("worker %d: a name that is not found", id)
			}
			own[p.slot()] = true
		}
		if n != w.names.n {
			return fmt.Errorf("worker %d: %d names, counted %d", id, n, w.names.n)
		}
		for h, m := range w.more {
			if w.names.get(h) == 0 || len(m.list) == 0 {
				return fmt.Errorf("worker %d: further places of an unknown hash", id)
			}
			for _, p := range m.list {
				count(p)
				own[p.slot()] = true
			}
		}
		for slot := range own {
			if !w.owned.has(slot) {
				return fmt.Errorf("worker %d: slot %d has a name, but is not owned", id, slot)
			}
		}
		if n := w.owned.count(); n != len(own) {
			return fmt.Errorf("worker %d: %d slots are owned, %d have names", id, n, len(own))
		}
		holds, plain := 0, 0
		for slot, set := range blocks {
			if t.sets.held(set, w.lane) {
				holds++
				if slot < w.low {
					return fmt.Errorf("worker %d: slot %d is before %d", id, slot, w.low)
				}
			}
			if tiers := t.sets.tiers(set, w.lane); tiers != 0 && !own[slot] {
				count(locationAt(slot, tiers))
				plain++
				if h := t.slots.common.at(slot); h == 0 || w.names.find(h).g != nil {
					return fmt.Errorf("worker %d: slot %d has the name %x", id, slot, h)
				}
			}
		}
		if plain != w.plain {
			return fmt.Errorf("worker %d: %d blocks with common names, counted %d", id, plain, w.plain)
		}
		if holds != w.held || uint64(holds) != w.shown.Load() {
			return fmt.Errorf("worker %d holds %d blocks, counted %d, shown %d", id, holds, w.held, w.shown.Load())
		}
		if err := w.orphans.check(); err != nil {
			return fmt.Errorf("worker %d: %w", id, err)
		}
	}
	for k, c := range refs {
		if !t.sets.has(blocks[k.slot], k.w.lane, int(k.plane)) {
			return fmt.Errorf("no bit for %v", k)
		}
		if int(k.w.extra[k.ref]) != c-1 {
			return fmt.Errorf("%v: %d references, %d extra", k, c, k.w.extra[k.ref])
		}
	}
	for _, w := range x.workers {
		if w == nil {
			continue
		}
		for k := range w.extra {
			if refs[held{w, k}] < 2 {
				return fmt.Errorf("extra for %v with %d references", k, refs[held{w, k}])
			}
		}
	}
	n, windows, expect, until, spans := 0, 0, 0, 0, 0
	for id, w := range x.workers {
		if w == nil || w.expects == nil {
			continue
		}
		until += w.expects.blocks
		n, err := w.expects.check()
		if err != nil {
			return fmt.Errorf("worker %d: %w", id, err)
		}
		spans += n
		for serial, p := range w.expects.all {
			if p.serial != serial || p.worker != WorkerID(id) || p.at >= len(w.expects.queue) || w.expects.queue[p.at] != p {
				return fmt.Errorf("worker %d: prediction %d is not in its place", id, serial)
			}
		}
		if all := len(w.expects.all); all != len(w.expects.queue) {
			return fmt.Errorf("worker %d: %d predictions, %d in the queue", id, all, len(w.expects.queue))
		}
		if live := slices.DeleteFunc(slices.Clone(w.expects.order), (*prediction).ended); len(live) != len(w.expects.all) ||
			!slices.IsSortedFunc(live, func(a, b *prediction) int { return cmp.Compare(a.serial, b.serial) }) {
			return fmt.Errorf("worker %d: %d predictions, %d in order", id, len(w.expects.all), len(live))
		}
	}
	spans += wasteSpans
	if spans != x.pred.spans {
		return fmt.Errorf("%d spans, counted %d", spans, x.pred.spans)
	}
	for slot, set := range blocks {
		v, _ := t.sets.view(set)
		for p := range numPlanes {
			row := v.plane(p)
			for i := range row {
				for word := row[i].Load(); word != 0; word &= word - 1 {
					l := lane((v.lo+i)*64 + bits.TrailingZeros64(word))
					if trash[l] {
						continue
					}
					id := slices.IndexFunc(x.workers, func(w *worker) bool { return w != nil && w.lane == l })
					if id < 0 {
						return fmt.Errorf("slot %d: lane %d has no worker", slot, l)
					}
					if p == planeWindow {
						windows++
						continue
					}
					if p == planePredicted {
						expect++
						if e := x.workers[id].expects; e == nil || e.at(slot) == nil {
							return fmt.Errorf("slot %d worker %d: no prediction", slot, id)
						}
						continue
					}
					n++
				}
			}
		}
	}
	for id, w := range x.workers {
		if w == nil || w.groups == nil {
			continue
		}
		names := make(map[uint32]int)
		for h, b := range w.groups.held {
			if b.in == 0 || b.in > w.groups.all() || b.slot != 0 && (b.in != w.groups.all() || x.last(w, h).slot() != b.slot) {
				return fmt.Errorf("worker %d: slot %d in groups %b", id, b.slot, b.in)
			}
			if b.slot == 0 && b.in == w.groups.all() && x.last(w, h) != 0 && w.more[h] == nil {
				return fmt.Errorf("worker %d: slot %d is not marked", id, x.last(w, h).slot())
			}
			if b.slot != 0 {
				names[b.slot]++
			}
		}
		for slot, n := range names {
			if !t.sets.has(blocks[slot], w.lane, planeWindow) || w.groups.more[slot] != n-1 {
				return fmt.Errorf("worker %d: slot %d with %d names in groups", id, slot, n)
			}
			windows--
		}
		for slot := range w.groups.more {
			if names[slot] < 2 {
				return fmt.Errorf("worker %d: slot %d with %d names in groups", id, slot, names[slot])
			}
		}
	}
	if windows != 0 {
		return fmt.Errorf("%d more blocks in planeWindow than in groups", windows)
	}
	if n != len(refs) || expect != until {
		return fmt.Errorf("%d bits, %d references; %d expected, %d predictions", n, len(refs), expect, until)
	}
	return nil
}

// held is a worker's hold on a block.
type held struct {
	w *worker
	ref
}

// at returns the prediction to which the block in a slot belongs, or nil.
func (e *expects) at(slot uint32) *prediction {
	for _, s := range e.pages[slot>>pageBits] {
		if s.from <= slot && slot < s.to {
			return s.of
		}
	}
	return nil
}

// check returns the number of spans.
func (e *expects) check() (spans int, err error) {
	blocks, of := 0, make(map[*prediction]int)
	for page, list := range e.pages {
		if len(list) == 0 {
			return 0, fmt.Errorf("page %d is empty", page)
		}
		for i, s := range list {
			if s.from >= s.to || s.from>>pageBits != page || (s.to-1)>>pageBits != page || e.all[s.of.serial] != s.of {
				return 0, fmt.Errorf("page %d: span %d-%d of prediction %d", page, s.from, s.to, s.of.serial)
			}
			if i > 0 && (list[i-1].to > s.from || list[i-1].to == s.from && list[i-1].of == s.of) {
				return 0, fmt.Errorf("page %d: span %d-%d after %d-%d", page, s.from, s.to, list[i-1].from, list[i-1].to)
			}
			for slot := s.from; slot < s.to; slot++ {
				if !slices.ContainsFunc(s.of.parts, func(p part) bool { return p.from <= slot && slot < p.to }) {
					return 0, fmt.Errorf("slot %d is in no part of prediction %d", slot, s.of.serial)
				}
			}
			of[s.of] += int(s.to - s.from)
			blocks += int(s.to - s.from)
		}
		spans += len(list)
	}
	for serial, p := range e.all {
		if p.blocks == 0 || p.blocks != of[p] {
			return 0, fmt.Errorf("prediction %d has %d blocks, counted %d", serial, of[p], p.blocks)
		}
	}
	if blocks != e.blocks || (blocks == 0) != (e.all == nil) {
		return 0, fmt.Errorf("%d blocks are predicted, counted %d", blocks, e.blocks)
	}
	return spans, nil
}

// each calls f for every run that can be found.
func (t *tree) each(f func(n uint32, r *run, st state)) {
	all := func(words []atomic.Uint64) {
		for i := range words {
			if n := uint32(words[i].Load()); n != 0 {
				f(n, t.runs.at(n), t.state(n))
			}
		}
	}
	h := t.heads.table.Load()
	if all(h.words); h.old != nil {
		all(h.old.words[t.heads.moved:])
	}
}

func (t *tree) check(unique bool) (err error) {
	fail := func(format string, args ...any) {
		if err == nil {
			err = fmt.Errorf(format, args...)
		}
	}
	runs, live := 0, 0
	refs := make(map[uint32]int)
	owned := make(map[uint32]uint32)
	t.each(func(n uint32, r *run, st state) {
		runs++
		refs[st.set()]++
		start := r.start.Load()
		if st.length() == 0 || st.length() > maxRun || st.set() == 0 {
			fail("run %d: length %d, set %d", n, st.length(), st.set())
			return
		}
		if m, _, _ := t.heads.find(&t.runs, r.head.Load()); m != n && (unique || m == 0) {
			fail("run %d is not found by its head: %d", n, m)
		}
		if t.slots.seq.at(start).Load() != r.head.Load() {
			fail("run %d: head", n)
		}
		live += int(st.length())
		for i := start; i < start+st.length(); i++ {
			if !t.slots.isLive(i) || t.slots.run(i) != n || i > start && !t.slots.isNext(i) {
				fail("run %d from slot %d length %d: slot %d has owner %x", n, start, st.length(), i, *t.slots.owner.at(i))
			}
			if owned[i] != 0 {
				fail("slot %d in runs %d and %d", i, n, owned[i])
			}
			owned[i] = n
			if m, _, _ := t.heads.find(&t.runs, t.slots.seq.at(i).Load()); unique && i > start && m != 0 {
				fail("run %d: its slot %d is the head of %d", n, i, m)
			}
		}
	})
	if runs != t.live || runs != t.heads.entries || live != t.slots.live {
		fail("%d runs, counted %d and %d; %d blocks, counted %d", runs, t.live, t.heads.entries, live, t.slots.live)
	}
	for n := t.free; n != 0; n = t.runs.at(n).next.Load() {
		if runs++; t.state(n).length() != 0 {
			fail("free run %d is not", n)
		}
	}
	if runs != int(t.ends)-1 {
		fail("%d runs and free ones of %d", runs, t.ends-1)
	}
	if len(refs) != t.sets.n {
		fail("%d sets in use, counted %d", len(refs), t.sets.n)
	}
	for id, n := range refs {
		if got := t.sets.words.at(id<<2+1).Load() >> 32; int(got) != n {
			fail("set %d: %d references, counted %d", id, n, got)
		}
	}
	if e := t.slots.common.check(t.slots.end, func(i uint32) bool { return owned[i] != 0 }); err == nil {
		err = e
	}
	if e := t.slots.check(func(i uint32) bool { return owned[i] != 0 }); err == nil {
		err = e
	}
	return err
}

// check returns an error if the table has not exactly the common names of the live slots.
func (c *common) check(end uint32, live func(slot uint32) bool) error {
	n, entries, many, deep := 0, 0, 0, 0
	for i := uint32(1); i < uint32(c.of.chunks())<<chunkBits; i++ {
		if h := c.at(i); h != 0 {
			n++
			if i >= end || !live(i) || c.find(h) != i {
				return fmt.Errorf("slot %d has the common name %x", i, h)
			}
		}
	}
	for i := 0; i < len(c.dir); {
		l := c.dir[i]
		span := 1 << (64 - c.shift - l.depth)
		in := 0
		for k, g := range l.body {
			for j, e := range g {
				if e == 0 {
					continue
				}
				in++
				if j > 0 && g[j-1] == 0 {
					return fmt.Errorf("leaf %d: group %d has a hole", i, k)
				}
				if m := c.mix(c.at(uint32(e & maxSlots))); tagOf(m) != e&tagMask || int(m>>1>>(c.shift-1))&^(span-1) != i {
					return fmt.Errorf("leaf %d: entry %x", i, e)
				}
				for at := groupOf(e); at != k; at = (at + 1) % leafGroups {
					if l.body[at][groupWords-1] == 0 {
						return fmt.Errorf("leaf %d: entry %x is not found", i, e)
					}
				}
			}
		}
		for k := range span {
			if c.dir[i+k].body != l.body || c.dir[i+k].depth != l.depth {
				return fmt.Errorf("leaf %d is not in consecutive places", i)
			}
		}
		if span == 1 {
			deep++
		}
		if in != int(l.n) || in > leafFull {
			return fmt.Errorf("leaf %d: %d entries, counted %d", i, in, l.n)
		}
		entries, many, i = entries+in, many+1, i+span
	}
	if n != entries || n != c.n || many != c.many || deep != c.deep {
		return fmt.Errorf("%d common names, %d entries, counted %d; %d leaves, counted %d; %d are in the directory once, counted %d", n, entries, c.n, many, c.many, deep, c.deep)
	}
	return nil
}

func (o *owned) count() (n int) {
	for _, p := range o.pages {
		for _, w := range p {
			n += bits.OnesCount64(w)
		}
	}
	return n
}

// check compares what is free with what is live.
func (s *slots) check(live func(slot uint32) bool) error {
	listed := make(map[uint32]bool)
	for c, at := range s.free {
		for prev := uint32(0); at != 0; {
			o, w := *s.owner.at(at), s.seq.at(at).Load()
			if o&(freeBit|listedBit) != freeBit|listedBit || bits.Len32(o&lowBits)-1 != c || uint32(w) != prev {
				return fmt.Errorf("list %d: slot %d has owner %x", c, at, o)
			}
			listed[at] = true
			prev, at = at, uint32(w>>32)
		}
	}
	for i := uint32(1); i < s.end; {
		o := *s.owner.at(i)
		if o&freeBit == 0 {
			if !live(i) {
				return fmt.Errorf("slot %d is of no run", i)
			}
			i++
			continue
		}
		if listed[i] != (o&listedBit != 0) || *s.owner.at(i + o&lowBits - 1) != o {
			return fmt.Errorf("free slots at %d: %x and %x", i, o, *s.owner.at(i + o&lowBits - 1))
		}
		delete(listed, i)
		i += o & lowBits
	}
	if len(listed) > 0 {
		return fmt.Errorf("lists have ranges that are not there")
	}
	return nil
}

func (o *orphans) check() error {
	blocks, runs := 0, 0
	var last *orphan
	for n := o.oldest; n != nil; n = n.newer {
		if n.older != last {
			return fmt.Errorf("orphan list is broken")
		}
		last = n
		blocks += len(n.hashes)
		runs++
	}
	if last != o.newest || blocks != o.blocks {
		return fmt.Errorf("%d blocks of orphans, counted %d", blocks, o.blocks)
	}
	for _, n := range o.byParent {
		for ; n != nil; n = n.before {
			runs--
		}
	}
	if runs != 0 {
		return fmt.Errorf("%d runs of orphans not found by parent", runs)
	}
	return nil
}

// Pages returns the number of pages that are remembered for a worker.
func (x *Index) Pages(id WorkerID) int {
	if w := x.worker(id); w != nil && w.pages != nil {
		return len(w.pages.byHash)
	}
	return 0
}
