// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math"
	"slices"
)

// orphans are sequences of blocks whose parent is not known, in a list from the oldest to the newest.
//
// Invariants: blocks == sum of len(hashes) over the list; byParent and byBlock hold exactly those of the list; since ascends.
type orphans struct {
	blocks         int
	oldest, newest *orphan
	byParent       map[uint64][]*orphan
	byBlock        map[parked][]*orphan
}

type orphan struct {
	blocks
	since        int64 // by the clock of Expire, in ns
	parent       uint64
	left         int // blocks not gone
	older, newer *orphan
}

type parked struct {
	hash  uint64
	plane int
}

// park keeps a copy of r until its parent is claimed. It reports whether blocks were dropped to stay within limit.
func (o *orphans) park(parent uint64, r blocks, limit int, now int64) (dropped bool) {
	for _, old := range o.byParent[parent] {
		if old.plane == r.plane && old.chained == r.chained && slices.Equal(old.hashes, r.hashes) && slices.Equal(old.chain, r.chain) {
			old.gone, old.left = nil, len(old.hashes)
			return false
		}
	}
	if len(r.hashes) > limit {
		return true
	}
	for o.blocks+len(r.hashes) > limit {
		o.unlink(o.oldest)
		dropped = true
	}
	if o.byParent == nil {
		o.byParent = make(map[uint64][]*orphan)
		o.byBlock = make(map[parked][]*orphan)
	}
	n := &orphan{blocks: r, since: now, parent: parent, left: len(r.hashes), older: o.newest}
	n.hashes = slices.Clone(r.hashes)
	n.chain = slices.Clone(r.chain)
	if o.newest == nil {
		o.oldest = n
	} else {
		o.newest.newer = n
	}
	o.newest = n
	o.blocks += len(n.hashes)
	o.byParent[parent] = append(o.byParent[parent], n)
	for _, h := range n.hashes {
		k := parked{h, n.plane}
		if l := o.byBlock[k]; len(l) == 0 || l[len(l)-1] != n {
			o.byBlock[k] = append(l, n)
		}
	}
	return dropped
}

// claim takes out the blocks that waited for the block with engine hash parent, oldest first.
func (o *orphans) claim(parent uint64) (list []blocks) {
	waiting := o.byParent[parent]
	delete(o.byParent, parent) // at once: unlink would look for each of them in the list
	for _, n := range waiting {
		o.unlink(n)
		list = append(list, n.blocks)
	}
	return list
}

// remove notes that a parked block was removed from its tier. It reports whether there was one.
func (o *orphans) remove(h uint64, plane int) (found bool) {
	for _, n := range slices.Clone(o.byBlock[parked{h, plane}]) {
		if n.gone == nil {
			n.gone = make([]bool, len(n.hashes))
		}
		for i, g := range n.hashes {
			if g == h && !n.gone[i] {
				found, n.gone[i] = true, true
				n.left--
			}
		}
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

// expire drops the orphans that have waited for ttl and reports whether there were any. Those parked before there was a clock wait from
// now on.
func (o *orphans) expire(now, ttl int64) (dropped bool) {
	for n := o.oldest; n != nil && n.since == math.MinInt64; n = n.newer {
		n.since = now
	}
	for o.oldest != nil && o.oldest.since <= now-ttl {
		o.unlink(o.oldest)
		dropped = true
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
	without(o.byParent, n.parent, n)
	for _, h := range n.hashes {
		without(o.byBlock, parked{h, n.plane}, n)
	}
}

func without[K comparable](m map[K][]*orphan, k K, n *orphan) {
	l := slices.DeleteFunc(m[k], func(q *orphan) bool { return q == n })
	if len(l) == 0 {
		delete(m, k)
	} else {
		m[k] = l
	}
}
