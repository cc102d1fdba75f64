// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// This file follows hybrid models, which have a cache for each group of layers. The group with full attention holds all blocks
// of a prompt, and its events are those of the tree. A group with a sliding window only holds the last blocks: of a prefix, the
// engine needs as many as the window covers.
//
// The hash of a block is the same in all groups. So the blocks of the other groups are known by hash only, and need no place of
// their own: a block that the worker holds in some tier, and that all other groups hold, has the worker in planeWindow.
// The lookup counts those before each depth, see search.hybrid.

// groups are the cache groups of a worker besides the one that counts.
//
// Invariants: held has the names in any group; the slot of a name is not 0 exactly while all groups hold its block and the worker has the
// block under this name, which names no other; the worker is in planeWindow of exactly those slots, and more counts the further names of each.
type groups struct {
	ids   []int32
	need  int32 // blocks before the end of a prefix that each group must hold
	ratio int32 // number of index blocks in a block of the groups
	held  map[uint64]grouped
	more  map[uint32]int
	stale []uint32 // scratch: slots of names that were just removed
}

// grouped is a block of groups.
type grouped struct {
	slot uint32
	in   uint8 // the groups that hold it, one bit each
}

const (
	maxGroups  = 8
	maxGrouped = 1 << 24 // names in groups.held
)

// all returns the bits of all groups.
func (g *groups) all() uint8 { return uint8(1<<len(g.ids) - 1) }

// window returns the number of blocks that a group with a sliding window must hold before the end of a prefix, and the ratio of its
// blocks. ok is false if it is not known what the engine serves: the kind of the cache or its window is another, or the blocks are of
// another size than those with full attention, or in a slower tier.
func (x *Index) window(w *worker, ev *kvevent.Event) (need, ratio int32, ok bool) {
	if ev.Attention != kvevent.SlidingWindow || ev.Window <= 1 || ev.Tier > kvevent.Device || ev.Owner != "" || w.store != 0 {
		return 0, 0, false
	}
	if ratio, ok = x.fits(w, ev); !ok {
		return 0, 0, false
	}
	size := int64(ratio) * int64(x.block)
	return int32((int64(ev.Window)-1+size-1)/size) * ratio, ratio, true
}

// storeGroup stores blocks of a group with another kind of attention.
func (x *Index) storeGroup(w *worker, ev *kvevent.Event) (res Result) {
	need, ratio, ok := x.window(w, ev)
	g := w.groups
	if g == nil {
		g = &groups{need: need, ratio: ratio, held: make(map[uint64]grouped)}
	}
	k := slices.Index(g.ids, ev.Group)
	if len(ev.BlockHashes) == 0 {
		return res
	}
	if !ok || k < 0 && len(g.ids) == maxGroups || ratio != g.ratio || w.grouped && w.group == ev.Group {
		w.strange = true
		return Result{Ignored: len(ev.BlockHashes)}
	}
	if need != g.need {
		w.strange = true // what the engine serves may be less
		g.need = max(need, g.need)
	}
	if k < 0 {
		k = len(g.ids)
		g.ids = append(g.ids, ev.Group)
		w.groups = g
		x.tree.sets.widen()
		x.markAll(w) // no block is in the new group
	}
	x.showNeed(w)
	names := x.expand(ev.BlockHashes, ratio)
	for _, h := range names {
		switch b := g.held[h]; {
		case b.in>>k&1 != 0:
			res.Known++
		case b.in == 0 && len(g.held) == maxGrouped:
			w.strange = true
			res.Ignored++
		default:
			b.in |= 1 << k
			g.held[h] = b
			res.Stored++
		}
	}
	x.mark(w, names)
	return res
}

// removeGroup removes blocks of group number k.
func (x *Index) removeGroup(w *worker, k int, ev *kvevent.Event) (res Result) {
	if ev.Tier > kvevent.Device {
		return Result{Ignored: len(ev.BlockHashes)}
	}
	g := w.groups
	names := x.expand(ev.BlockHashes, g.ratio)
	for _, h := range names {
		b := g.held[h]
		if b.in>>k&1 == 0 {
			res.Ignored++
			continue
		}
		b.in &^= 1 << k
		g.held[h] = b
		res.Removed++
	}
	x.mark(w, names)
	return res
}

// number returns the number of a group, -1 if it is not one of those besides the one that counts.
func (g *groups) number(id int32) int {
	if g == nil {
		return -1
	}
	return slices.Index(g.ids, id)
}

// ungroup forgets the groups of a worker, whose events the index does not understand.
func (x *Index) ungroup(w *worker) {
	w.strange = true
	x.clearGroups(w)
	w.groups = nil
	x.showNeed(w)
}

// clearGroups removes all blocks from the groups.
func (x *Index) clearGroups(w *worker) {
	if g := w.groups; g != nil {
		for h, b := range g.held {
			b.in = 0
			g.held[h] = b
		}
		x.markAll(w)
	}
}

// showNeed makes the need of a worker's groups visible to lookups.
func (x *Index) showNeed(w *worker) {
	need := int32(0)
	if w.groups != nil {
		need = w.groups.need
	}
	if w.need.Load() == need {
		return
	}
	w.need.Store(need)
	x.enroll(func(r *roster) {
		r.hybrid = slices.ContainsFunc(x.workers, func(w *worker) bool { return w != nil && w.need.Load() > 0 })
	})
}

// mark notes in the tree which of the blocks with the given names the worker's groups hold.
func (x *Index) mark(w *worker, names []uint64) {
	g := w.groups
	if g == nil {
		return
	}
	var from, to uint32 // slots to paint
	on := false
	paint := func(slot uint32, as bool) {
		if slot != to || on != as {
			x.paint(w, from, to, on)
			from, on = slot, as
		}
		to = slot + 1
	}
	for _, h := range names {
		b, ok := g.held[h]
		if !ok {
			continue
		}
		slot := uint32(0)
		if b.in == g.all() && (len(w.more) == 0 || w.more[h] == nil) {
			slot = x.get(w, h).slot()
		}
		if b.slot != slot {
			if b.slot != 0 && g.release(b.slot) {
				paint(b.slot, false)
			}
			if slot != 0 {
				if slot < to || !on { // what is painted may be this one
					x.paint(w, from, to, on)
					from, to = 0, 0
				}
				if t := &x.tree; t.sets.has(t.state(t.slots.run(slot)).set(), w.lane, planeWindow) {
					g.share(slot)
				} else {
					paint(slot, true)
				}
			}
			b.slot = slot
			g.held[h] = b
		}
		if b.in == 0 {
			delete(g.held, h)
		}
	}
	x.paint(w, from, to, on)
}

// share counts one more name of a slot than the first.
func (g *groups) share(slot uint32) {
	if g.more == nil {
		g.more = make(map[uint32]int)
	}
	g.more[slot]++
}

// release counts one name of a slot less, and reports whether it was the last one.
func (g *groups) release(slot uint32) bool {
	switch g.more[slot] {
	case 0:
		return true
	case 1:
		delete(g.more, slot)
	default:
		g.more[slot]--
	}
	return false
}

// markAll is mark for all names in groups.
func (x *Index) markAll(w *worker) {
	g := w.groups
	if g == nil || len(g.held) == 0 {
		return
	}
	names := slices.Collect(maps.Keys(g.held))
	slices.SortFunc(names, func(a, b uint64) int { return cmp.Compare(x.get(w, a).slot(), x.get(w, b).slot()) })
	x.mark(w, names)
}

// forgetName notes that the worker has no block under a name, until it is marked again.
func (g *groups) forgetName(h uint64) {
	if b := g.held[h]; b.slot != 0 {
		if g.release(b.slot) {
			g.stale = append(g.stale, b.slot)
		}
		b.slot = 0
		g.held[h] = b
	}
}

// wash takes the worker out of planeWindow in the slots whose names were removed, if it still has their blocks under others.
func (x *Index) wash(w *worker) {
	g, t := w.groups, &x.tree
	if g == nil {
		return
	}
	for _, slot := range g.stale {
		if t.end(slot) != 0 {
			x.paint(w, slot, slot+1, false)
		}
	}
	g.stale = g.stale[:0]
}

// paint sets whether the worker's groups hold the blocks in slots [from,to), which the worker has.
func (x *Index) paint(w *worker, from, to uint32, on bool) {
	t := &x.tree
	for from < to {
		n := t.slots.run(from)
		end := min(to, t.runs.at(n).start.Load()+t.state(n).length())
		if set := t.state(n).set(); t.sets.has(set, w.lane, planeWindow) != on {
			var in, out uint8 = 0, 1 << planeWindow
			if on {
				in, out = out, in
			}
			t.repaint(n, from, end, t.sets.edit(set, w.lane, in, out))
		}
		from = end
	}
}

// append appends the groups to a snapshot; g may be nil.
func (g *groups) append(dst []byte) []byte {
	if g == nil {
		return append(dst, 0)
	}
	dst = appendUint(appendUint(appendUint(dst, uint64(len(g.ids))), uint64(g.need)), uint64(g.ratio))
	for _, id := range g.ids {
		dst = binary.AppendVarint(dst, int64(id))
	}
	dst = appendUint(dst, uint64(len(g.held)))
	for _, h := range slices.Sorted(maps.Keys(g.held)) {
		dst = append(appendHash(dst, h), g.held[h].in)
	}
	return dst
}

// loadGroups reads what append wrote.
func (x *Index) loadGroups(c *cursor, w *worker) {
	n := c.uint(maxGroups)
	if n == 0 || c.err != nil {
		return
	}
	g := &groups{need: int32(c.uint(math.MaxInt32)), ratio: int32(c.uint(maxRatio)), held: make(map[uint64]grouped)}
	for range n {
		id := c.int()
		c.check(id == int64(int32(id)) && !slices.Contains(g.ids, int32(id)) && (!w.grouped || int32(id) != w.group))
		g.ids = append(g.ids, int32(id))
	}
	c.check(g.need > 0 && g.ratio > 0 && w.store == 0)
	last := uint64(0)
	for i := range c.count(9) {
		h, in := c.hash(), c.byte()
		if !c.check((i == 0 || h > last) && in != 0 && in <= g.all()) {
			return
		}
		g.held[h], last = grouped{in: in}, h
	}
	x.tree.sets.widen()
	w.groups = g
}

// hybrid reduces the depths of workers with further cache groups to what the engine serves, and removes those that serve nothing: the
// greatest depth before which all groups hold the last blocks. Predicted blocks are expected in all groups.
func (s *search) hybrid(x *Index, found []Match) (rest []Match, ok bool) {
	rest = found[:0]
	for _, m := range found {
		need := s.roster.workers[m.Worker].need.Load()
		if need > 0 {
			if m, ok = s.served(x, m, need); !ok {
				return found, false
			}
		}
		if m.Depth > 0 {
			rest = append(rest, m)
		}
	}
	return rest, true
}

// served returns what remains of a match for a worker whose groups must hold that many blocks.
func (s *search) served(x *Index, m Match, need int32) (served Match, ok bool) {
	at := Match{Worker: m.Worker, State: m.State}
	l := s.roster.lanes[m.Worker]
	i, bit := int(l>>6), int(l&63)
	depth, row := int32(0), int32(0) // row: blocks that all groups hold, up to depth
	for _, step := range s.steps[:s.n] {
		if depth >= m.Depth {
			break
		}
		n := min(int32(step.n), m.Depth-depth)
		v, ok := x.tree.sets.view(step.state.set())
		if !ok {
			return m, false
		}
		if (v.word(v.plane(planeWindow), i)|v.word(v.plane(planePredicted), i))>>bit&1 != 0 {
			row += n
		} else {
			row = 0
		}
		depth += n
		if s.device(&v, i)>>bit&1 == 0 {
			s.below(&at, &v, i, bit, n)
		}
		if row >= min(need, depth) {
			served = at
			served.end(depth)
		}
	}
	return served, true
}
