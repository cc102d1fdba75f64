// SPDX-License-Identifier: Apache-2.0

package bpe

import "slices"

// queue orders positions by rank, then position. Positions of one rank share a bucket: a long word has few
// ranks at a time, and its entries come almost in order, so that most operations cost O(1). Only the
// nonempty buckets are in a heap.
//
// A bucket is sorted when it becomes the first. Until it is empty, nothing is added to it, because every merge that
// becomes possible involves a token longer than the two that this rank joins. (If an entry were added, the bucket would
// be sorted again.)
type queue struct {
	entries []entry          // of all buckets, linked
	buckets []bucket         // by index
	index   map[uint32]int32 // rank -> bucket
	heap    []int32          // buckets with entries, the lowest rank first
	last    int32            // the bucket added to last, -1 at first
	sorting []int32
}

type entry struct{ pos, next int32 }

// bucket lists entries from head to tail, -1 if there are none.
type bucket struct {
	rank       uint32
	head, tail int32
	unsorted   bool
}

func (q *queue) reset() {
	q.entries, q.buckets, q.heap, q.last = q.entries[:0], q.buckets[:0], q.heap[:0], -1
	if q.index == nil {
		q.index = make(map[uint32]int32)
	}
	clear(q.index)
}

// add puts pos into the bucket of rank.
func (q *queue) add(rank uint32, pos int32) {
	k := q.last
	if k < 0 || q.buckets[k].rank != rank {
		var ok bool
		if k, ok = q.index[rank]; !ok {
			k = int32(len(q.buckets))
			q.buckets = append(q.buckets, bucket{rank: rank, head: -1, tail: -1})
			q.index[rank] = k
		}
		q.last = k
	}
	e := int32(len(q.entries))
	q.entries = append(q.entries, entry{pos, -1})
	b := &q.buckets[k]
	if b.head < 0 {
		b.head, b.tail, b.unsorted = e, e, false
		q.push(k)
		return
	}
	b.unsorted = b.unsorted || pos < q.entries[b.tail].pos
	q.entries[b.tail].next = e
	b.tail = e
}

// next takes the lowest entry out.
func (q *queue) next() (rank uint32, pos int32, ok bool) {
	if len(q.heap) == 0 {
		return 0, 0, false
	}
	b := &q.buckets[q.heap[0]]
	if b.unsorted {
		q.sort(b)
	}
	e := q.entries[b.head]
	b.head = e.next
	if b.head < 0 {
		q.pop()
	}
	return b.rank, e.pos, true
}

// sort orders the positions of b, leaving its entries linked as they are.
func (q *queue) sort(b *bucket) {
	q.sorting = q.sorting[:0]
	for e := b.head; e >= 0; e = q.entries[e].next {
		q.sorting = append(q.sorting, q.entries[e].pos)
	}
	slices.Sort(q.sorting)
	i := 0
	for e := b.head; e >= 0; e = q.entries[e].next {
		q.entries[e].pos = q.sorting[i]
		i++
	}
	b.unsorted = false
}

func (q *queue) less(a, b int32) bool { return q.buckets[a].rank < q.buckets[b].rank }

// push puts bucket k into the heap.
func (q *queue) push(k int32) {
	q.heap = append(q.heap, k)
	h := q.heap
	i := len(h) - 1
	for i > 0 {
		p := (i - 1) / 2
		if !q.less(k, h[p]) {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = k
}

// pop takes the first bucket out of the heap.
func (q *queue) pop() {
	n := len(q.heap) - 1
	h := q.heap[:n]
	k := q.heap[n]
	q.heap = h
	if n == 0 {
		return
	}
	i := 0
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && q.less(h[c+1], h[c]) {
			c++
		}
		if !q.less(h[c], k) {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = k
}
