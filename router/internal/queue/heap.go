// SPDX-License-Identifier: Apache-2.0

package queue

// element is what a heap holds. It knows its own position, so that it can be moved and removed in O(log n).
type element[E any] interface {
	before(E) bool
	place() *int
}

// heap is a binary heap, the first element first.
type heap[E element[E]] []E

func (h *heap[E]) push(e E) {
	*e.place() = len(*h)
	*h = append(*h, e)
	h.up(len(*h) - 1)
}

// remove removes e, which must be in the heap.
func (h *heap[E]) remove(e E) {
	i, last := *e.place(), len(*h)-1
	h.swap(i, last)
	var none E
	(*h)[last] = none
	*h = (*h)[:last]
	*e.place() = -1
	if i < last {
		h.fix((*h)[i])
	}
}

// fix moves e after its key has changed.
func (h *heap[E]) fix(e E) {
	h.up(*e.place())
	h.down(*e.place())
}

func (h *heap[E]) up(i int) {
	for i > 0 && (*h)[i].before((*h)[(i-1)/2]) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (h *heap[E]) down(i int) {
	for {
		k := 2*i + 1
		if k >= len(*h) {
			return
		}
		if k+1 < len(*h) && (*h)[k+1].before((*h)[k]) {
			k++
		}
		if !(*h)[k].before((*h)[i]) {
			return
		}
		h.swap(i, k)
		i = k
	}
}

func (h *heap[E]) swap(i, k int) {
	(*h)[i], (*h)[k] = (*h)[k], (*h)[i]
	*(*h)[i].place(), *(*h)[k].place() = i, k
}
