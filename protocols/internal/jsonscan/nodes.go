// SPDX-License-Identifier: Apache-2.0

package jsonscan

import "unsafe"

// node is one value of a document. 0 <= off < end <= len(body); in objects, 0 < key <= key+keyLen < off. parent < the
// node's own index < next. A conversation has thousands of nodes, so they are small.
type node struct {
	off, end int32  // the value
	key      int32  // in objects: where the name begins, after its quote; in arrays: the index
	next     int32  // the first node after this one's subtree
	parent   int32  // the array or object that contains it, 0 for the root
	keyLen   uint16 // in objects: length of the name without its quotes; longKey: at least that
	kind     Kind
	flags    uint8
}

// ValueSize is the number of bytes that a document takes for a value, besides the text.
const ValueSize = int(unsafe.Sizeof(node{}))

// nodes is a list of nodes in pages, each in memory of its own: the next document of a conversation has the same values
// at the front, and shares their pages.
type nodes struct {
	pages [][]node // all have pageSize nodes, but a single page may have fewer
	count int
	room  int       // number of nodes for which there are pages
	only  [1][]node // the memory of pages if there is one page
}

// A page of 64 nodes takes 1,536 bytes, which is a size class of the allocator.
const (
	pageBits = 6
	pageSize = 1 << pageBits
	pageMask = pageSize - 1
)

// node returns node i. It is valid until the next node is added.
func (l *nodes) node(i int32) *node { return &l.pages[i>>pageBits][i&pageMask] }

// memory returns how many bytes the list takes, shared pages included.
func (l *nodes) memory() int {
	const header = int(unsafe.Sizeof([]node{}))
	return l.room*ValueSize + cap(l.pages)*header
}

// expect makes place for n nodes in an empty list, if it has no page.
func (l *nodes) expect(n int) {
	if len(l.pages) > 0 {
		return
	}
	l.pages = l.only[:0]
	if n > pageSize {
		l.pages = make([][]node, 0, (n+pageMask)>>pageBits)
	}
	l.room = min(n, pageSize)
	l.pages = append(l.pages, make([]node, l.room))
}

// grow makes place for a node after the last page.
func (l *nodes) grow() {
	if l.room > 0 && l.room < pageSize {
		l.room = min(2*l.room, pageSize)
		l.pages[0] = append(make([]node, 0, l.room), l.pages[0]...)[:l.room]
		return
	}
	l.pages = append(l.pages, make([]node, pageSize))
	l.room += pageSize
}

// extend appends the nodes [from, to) of another list, whose values are shift bytes further on here. If share is set, which requires
// that none of them changes or moves, whole pages are shared; all others are copied.
func (l *nodes) extend(old *nodes, from, to, shift int32, share bool) {
	move := int32(l.count) - from
	for from < to {
		page, at := old.pages[from>>pageBits], int(from&pageMask)
		if share && at == 0 && to-from >= pageSize {
			l.pages = append(l.pages, page)
			l.count, l.room, from = l.count+pageSize, l.room+pageSize, from+pageSize
			continue
		}
		if l.count == l.room {
			l.grow()
		}
		own := l.pages[l.count>>pageBits][l.count&pageMask:]
		own = own[:copy(own, page[at:min(len(page), at+int(to-from))])]
		if shift != 0 || move != 0 {
			moveNodes(own, shift, move)
		}
		l.count, from = l.count+len(own), from+int32(len(own))
	}
}

// moveNodes adapts nodes whose text moved by shift bytes and whose indexes changed by move.
func moveNodes(list []node, shift, move int32) {
	for i := range list {
		n := &list[i]
		n.off += shift
		n.end += shift
		if n.flags&flagMember != 0 {
			n.key += shift
		}
		n.next += move
		n.parent += move
	}
}
