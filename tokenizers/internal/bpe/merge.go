// SPDX-License-Identifier: Apache-2.0

package bpe

import (
	"math"
	"math/bits"
	"slices"
)

// This file has the merge loops. Both give the same result; short words use the simple one.

// maxScan is the length of the longest word, in bytes, for which examining all ranks for each merge is faster than a
// queue.
const maxScan = 64

// merge appends the encoding of w, which is not empty, without using caches.
func (m *Model) merge(dst []uint32, w string, st *State) []uint32 {
	if len(w) <= maxScan {
		return m.mergeScan(dst, w, st)
	}
	return m.mergeLong(dst, w, st)
}

// row is the state of the simple loop: the ids of a word and, for each but the last, its merge with the one after it. An id
// stays where its first byte or character is; the places of ids that were merged into others are empty.
type row struct {
	id [maxScan]uint32
	// next is the merge, and in its low posBits its place, so that the least of them is the merge of the lowest rank and,
	// among these, the leftmost. Empty places and ids that do not merge have noNext.
	next [maxScan + 3]int64
}

const (
	posBits = 6 // maxScan is 1 << posBits
	noNext  = math.MaxInt64
)

// at returns the entry of row.next for the merge j at place i.
func (j joint) at(i int) int64 {
	if j == noMerge {
		return noNext
	}
	return int64(j)<<posBits | int64(i)
}

// least returns the smaller one without a branch, since which one it is can hardly be predicted.
func least(a, b int64) int64 {
	d := b - a
	return a + d&(d>>63)
}

// mergeScan is merge for words of up to maxScan bytes.
func (m *Model) mergeScan(dst []uint32, w string, st *State) []uint32 {
	r := &st.row
	n := len(w)
	r.id[0] = m.byteID[w[0]]
	for i := 1; i < n; i++ {
		r.id[i] = m.byteID[w[i]]
		r.next[i-1] = m.bytePair[int(w[i-1])<<8|int(w[i])].at(i - 1)
	}
	return m.scan(dst, r, n)
}

// scan merges the first n ids of r, of which the last one's entry in r.next is not set, and appends the remaining ids to dst.
func (m *merges) scan(dst []uint32, r *row, n int) []uint32 {
	if n == 0 {
		return dst
	}
	// The last place and those that complete a group of four.
	r.next[n-1], r.next[n], r.next[n+1], r.next[n+2] = noNext, noNext, noNext, noNext
	groups := r.next[:(n+3)&^3]
	used := ^uint64(0) >> (maxScan - n) // a bit per place that is not empty
	for {
		best := int64(noNext)
		for g := groups; len(g) >= 4; g = g[4:] {
			best = least(best, least(least(g[0], g[1]), least(g[2], g[3])))
		}
		if best == noNext {
			break
		}
		at := best & (maxScan - 1)
		id := joint(best >> posBits).to()
		r.id[at] = id
		after := used &^ (2<<at - 1)
		gone := bits.TrailingZeros64(after)
		used &^= 1 << gone
		r.next[gone] = noNext
		r.next[at] = noNext
		if after &= after - 1; after != 0 {
			r.next[at] = m.join(id, r.id[bits.TrailingZeros64(after)]).at(int(at))
		}
		if before := used & (1<<at - 1); before != 0 {
			k := bits.Len64(before) - 1
			r.next[k] = m.join(r.id[k], id).at(k)
		}
	}
	for ; used != 0; used &= used - 1 {
		dst = append(dst, r.id[bits.TrailingZeros64(used)])
	}
	return dst
}

// mergeLong keeps the tokens of a long word in a doubly linked list, and the possible merges in a queue ordered by
// rank, then position.
func (m *Model) mergeLong(dst []uint32, w string, st *State) []uint32 {
	n := len(w)
	nodes, q := st.list(n)
	for i := range nodes {
		nodes[i] = node{id: m.byteID[w[i]], prev: int32(i - 1), next: int32(i + 1)}
		if i > 0 {
			if r := m.bytePair[int(w[i-1])<<8|int(w[i])]; r != noMerge {
				q.add(r.rank(), int32(i-1))
			}
		}
	}
	nodes[n-1].next = -1
	m.run(nodes, q)
	for i := int32(0); i >= 0; i = nodes[i].next {
		dst = append(dst, nodes[i].id)
	}
	st.trim()
	return dst
}

// list returns room for n tokens and an empty queue.
func (st *State) list(n int) ([]node, *queue) {
	if cap(st.nodes) < n {
		st.nodes = make([]node, n)
	}
	st.nodes = st.nodes[:n]
	q := &st.queue
	q.reset()
	q.entries = slices.Grow(q.entries, n)
	return st.nodes, q
}

// run applies the merges of q, and those that become possible, to the list in nodes, which begins with the first node
// and has no gaps yet.
func (m *merges) run(nodes []node, q *queue) {
	for {
		rank, pos, ok := q.next()
		if !ok {
			break
		}
		// An entry is stale if its left token was merged or has another right neighbor. The rank shows this: it belongs
		// to one pair of ids, and the same pair at the same position is the same merge.
		a := &nodes[pos]
		if a.id == noID || a.next < 0 {
			continue
		}
		b := &nodes[a.next]
		r := m.join(a.id, b.id)
		if r.rank() != rank {
			continue
		}
		a.id = r.to()
		b.id = noID
		a.next = b.next
		if a.next >= 0 {
			c := &nodes[a.next]
			c.prev = pos
			if r := m.join(a.id, c.id); r != noMerge {
				q.add(r.rank(), pos)
			}
		}
		if a.prev >= 0 {
			if r := m.join(nodes[a.prev].id, a.id); r != noMerge {
				q.add(r.rank(), a.prev)
			}
		}
	}
}

// node is a token of a word; prev and next are indexes, -1 at the ends.
type node struct {
	id         uint32
	prev, next int32
}
