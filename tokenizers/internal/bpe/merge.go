// SPDX-License-Identifier: Apache-2.0

package bpe

import "slices"

// This file has the merge loops. Both give the same result; short words use the simple one.

// maxScan is the length of the longest word, in bytes, for which examining all ranks for each merge is faster than a
// queue.
const maxScan = 64

// merge appends the encoding of w, which is not empty, without using caches.
func (m *Model) merge(dst []uint32, w string, st *State) []uint32 {
	if len(w) <= maxScan {
		return m.mergeScan(dst, w)
	}
	return m.mergeLong(dst, w, st)
}

// mergeScan keeps ids and the merges of adjacent ids in two arrays and closes the gap after each merge.
func (m *Model) mergeScan(dst []uint32, w string) []uint32 {
	var id [maxScan]uint32
	var next [maxScan]joint
	n := len(w)
	id[0] = m.byteID[w[0]]
	best, at := noMerge, 0
	for i := 1; i < n; i++ {
		id[i] = m.byteID[w[i]]
		r := m.bytePair[int(w[i-1])<<8|int(w[i])]
		next[i-1] = r
		if r < best {
			best, at = r, i-1
		}
	}
	n = m.scan(&id, &next, n, best, at)
	return append(dst, id[:n]...)
}

// scan merges the first n ids in place, beginning with the merge best at index at, and returns the number of remaining
// ids. next[i] is the merge of id[i] and id[i+1].
func (m *merges) scan(id *[maxScan]uint32, next *[maxScan]joint, n int, best joint, at int) int {
	for best != noMerge {
		// at and at+1 become one.
		id[at] = best.to()
		n--
		copy(id[at+1:n], id[at+2:n+1])
		copy(next[at:n-1], next[at+1:n])
		if at > 0 {
			next[at-1] = m.join(id[at-1], id[at])
		}
		if at < n-1 {
			next[at] = m.join(id[at], id[at+1])
		}
		best = noMerge
		for i, r := range next[:n-1] {
			if r < best {
				best, at = r, i
			}
		}
	}
	return n
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
