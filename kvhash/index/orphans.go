// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math"
	"slices"
)

// orphans are sequences of blocks whose parent is not known, in a list from the oldest to the newest.
//
// Invariants: blocks is the sum of len(hashes) over the list; byParent holds exactly the orphans of the list, and
// byBlock exactly their blocks that were not removed; since ascends.
type orphans struct {
	blocks         int
	oldest, newest *orphan
	byParent       map[uint64]*orphan // the newest; sibling links to older ones
	byBlock        map[parked]*parking
}

type orphan struct {
	blocks
	since        int64 // last time passed to Expire, in ns
	parent       uint64
	left         int       // blocks not gone
	parking      []parking // for each block
	older, newer *orphan
	before       *orphan // with the same parent
	after        *orphan
}

// parking is a block of an orphan in the list of those with its engine hash.
type parking struct {
	orphan     *orphan
	block      int
	prev, next *parking
}

type parked struct {
	hash  uint64
	plane int
}

// siblings is the number of orphans of one parent that are compared to detect duplicates.
const siblings = 16

// park keeps a copy of r until its parent is claimed. It reports whether r was kept, and whether blocks were dropped
// because of the limit.
func (o *orphans) park(parent uint64, r blocks, limit int, now int64) (ok, dropped bool) {
	for old, n := o.byParent[parent], 0; old != nil && n < siblings; old, n = old.before, n+1 {
		if old.plane == r.plane && old.chained == r.chained && slices.Equal(old.hashes, r.hashes) && slices.Equal(old.chain, r.chain) {
			o.unlink(old) // it is added again as the newest
			break
		}
	}
	if len(r.hashes) > limit {
		return false, true
	}
	for o.blocks+len(r.hashes) > limit {
		o.unlink(o.oldest)
		dropped = true
	}
	if o.byParent == nil {
		o.byParent = make(map[uint64]*orphan)
		o.byBlock = make(map[parked]*parking)
	}
	n := &orphan{blocks: r, since: now, parent: parent, older: o.newest, before: o.byParent[parent]}
	n.hashes = slices.Clone(r.hashes)
	n.chain = slices.Clone(r.chain)
	if o.newest == nil {
		o.oldest = n
	} else {
		o.newest.newer = n
	}
	o.newest = n
	if n.before != nil {
		n.before.after = n
	}
	o.byParent[parent] = n
	o.blocks += len(n.hashes)
	n.parking = make([]parking, len(n.hashes))
	for i := range n.hashes {
		if !n.isRemoved(i) {
			o.link(n, i)
			n.left++
		}
	}
	return true, dropped
}

// link adds block i of n to those with its engine hash.
func (o *orphans) link(n *orphan, i int) {
	k := parked{n.hashes[i], n.plane}
	p := &n.parking[i]
	*p = parking{orphan: n, block: i, next: o.byBlock[k]}
	if p.next != nil {
		p.next.prev = p
	}
	o.byBlock[k] = p
}

// leave reverts link.
func (o *orphans) leave(n *orphan, i int) {
	p := &n.parking[i]
	if p.next != nil {
		p.next.prev = p.prev
	}
	switch k := (parked{n.hashes[i], n.plane}); {
	case p.prev != nil:
		p.prev.next = p.next
	case p.next != nil:
		o.byBlock[k] = p.next
	default:
		delete(o.byBlock, k)
	}
}

// awaits reports whether an orphan waits for one of the blocks with the given engine hashes.
func (o *orphans) awaits(hashes []uint64) bool {
	if o.blocks == 0 {
		return false
	}
	return slices.ContainsFunc(hashes, func(h uint64) bool { return o.byParent[h] != nil })
}

// claim removes and returns the orphans of the block with engine hash parent, oldest first.
func (o *orphans) claim(parent uint64) (list []blocks) {
	for n := o.byParent[parent]; n != nil; n = n.before {
		list = append(list, n.blocks)
	}
	for n := o.byParent[parent]; n != nil; {
		before := n.before
		o.unlink(n)
		n = before
	}
	slices.Reverse(list)
	return list
}

// remove records that a parked block was removed from its tier. It reports whether there is such a block.
func (o *orphans) remove(h uint64, plane int) (found bool) {
	k := parked{h, plane}
	for p := o.byBlock[k]; p != nil; p = o.byBlock[k] {
		n := p.orphan
		if n.gone == nil {
			n.gone = make([]bool, len(n.hashes))
		}
		o.leave(n, p.block)
		found, n.gone[p.block] = true, true
		n.left--
		if n.left == 0 {
			o.unlink(n)
		}
	}
	return found
}

func (o *orphans) clearTier(plane int) {
	for n := o.oldest; n != nil; {
		next := n.newer
		if n.plane == plane {
			o.unlink(n)
		}
		n = next
	}
}

// expire removes the orphans that have waited for ttl, until they had about limit blocks, and returns their number. The wait
// of orphans parked before the first call begins now.
func (o *orphans) expire(now, ttl int64, limit int) (dropped int) {
	for n := o.oldest; n != nil && n.since == math.MinInt64; n = n.newer {
		n.since = now
	}
	// now may be math.MinInt64+1 if the clock is far in the past.
	for o.oldest != nil && limit > 0 && now >= math.MinInt64+ttl && o.oldest.since <= now-ttl {
		limit -= len(o.oldest.hashes)
		o.unlink(o.oldest)
		dropped++
	}
	return dropped
}

func (o *orphans) unlink(n *orphan) {
	o.blocks -= len(n.hashes)
	if n.older == nil {
		o.oldest = n.newer
	} else {
		n.older.newer = n.newer
	}
	if n.newer == nil {
		o.newest = n.older
	} else {
		n.newer.older = n.older
	}
	if n.before != nil {
		n.before.after = n.after
	}
	switch {
	case n.after != nil:
		n.after.before = n.before
	case n.before != nil:
		o.byParent[n.parent] = n.before
	default:
		delete(o.byParent, n.parent)
	}
	for i := range n.hashes {
		if !n.isRemoved(i) {
			o.leave(n, i)
		}
	}
}
