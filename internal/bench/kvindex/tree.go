// SPDX-License-Identifier: Apache-2.0

package kvindex

import (
	"math/bits"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// Tree is a prefix tree with one node per block: a child is found by its local hash, each worker finds its nodes by
// engine hash, each node has the set of its workers. It is the structure of Dynamo's concurrent radix tree (one node
// per block, not the compressed one) without locks. The first 64 workers of a node are one word; nodes without workers
// and children are removed.
//
// There are two. The plain one has a map of children in every node that has any. The lean tree has a map only in nodes
// with several children, and a pointer in the many nodes with one: no tree with a node per block can be much smaller.
type Tree struct {
	root    node
	lean    bool
	workers []map[uint64]*node // by worker: engine hash
	live    []uint64           // of a lookup: workers beyond the first 64 that hold all so far
	hits    []Hit
}

// node is a block after the blocks of its ancestors.
type node struct {
	local    uint64
	parent   *node            // nil for the root
	only     *node            // lean: the child, if children is nil
	children map[uint64]*node // by local hash; lean: from the second child on
	first    uint64           // workers 0 to 63
	more     []uint64         // the others, as long as needed
}

// NewTree returns an empty one, lean or plain.
func NewTree(workers int, lean bool) *Tree {
	t := &Tree{lean: lean, workers: make([]map[uint64]*node, workers), live: make([]uint64, 0, workers/64), hits: make([]Hit, 0, workers)}
	for i := range t.workers {
		t.workers[i] = make(map[uint64]*node)
	}
	return t
}

// child returns the child with the local hash, or nil if absent.
func (n *node) child(local uint64) *node {
	if n.children != nil {
		return n.children[local]
	}
	if c := n.only; c != nil && c.local == local {
		return c
	}
	return nil
}

func (t *Tree) add(n, c *node) {
	c.parent = n
	switch {
	case n.children != nil:
		n.children[c.local] = c
	case !t.lean:
		n.children = map[uint64]*node{c.local: c}
	case n.only == nil:
		n.only = c
	default:
		n.children = map[uint64]*node{n.only.local: n.only, c.local: c}
		n.only = nil
	}
}

func (t *Tree) remove(n, c *node) {
	if n.children == nil {
		n.only = nil
		return
	}
	delete(n.children, c.local)
	switch {
	case len(n.children) == 0:
		n.children = nil
	case len(n.children) == 1 && t.lean:
		for _, last := range n.children {
			n.only = last
		}
		n.children = nil
	}
}

func (n *node) set(worker int) {
	if worker < 64 {
		n.first |= 1 << worker
		return
	}
	i := worker/64 - 1
	for len(n.more) <= i {
		n.more = append(n.more, 0)
	}
	n.more[i] |= 1 << (worker % 64)
}

func (n *node) unset(worker int) {
	if worker < 64 {
		n.first &^= 1 << worker
		return
	}
	n.more[worker/64-1] &^= 1 << (worker % 64)
}

// empty reports whether n holds no worker and no child.
func (n *node) empty() bool {
	if n.first != 0 || n.only != nil || n.children != nil || n.parent == nil {
		return false
	}
	for _, w := range n.more {
		if w != 0 {
			return false
		}
	}
	return true
}

// Apply implements [Peer].
func (t *Tree) Apply(worker int, ev *kvevent.Event) (changed int) {
	held := t.workers[worker]
	before := len(held)
	switch ev.Kind {
	case kvevent.Stored:
		n := &t.root
		if ev.HasParent {
			if n = held[ev.Parent]; n == nil {
				return 0
			}
		}
		for i, h := range ev.BlockHashes {
			local := ev.LocalHashes[i]
			c := n.child(local)
			if c == nil {
				c = &node{local: local}
				t.add(n, c)
			}
			c.set(worker)
			held[h] = c
			n = c
		}
	case kvevent.Removed:
		for _, h := range ev.BlockHashes {
			n := held[h]
			if n == nil {
				continue
			}
			delete(held, h)
			n.unset(worker)
			for n.empty() {
				p := n.parent
				t.remove(p, n)
				n = p
			}
		}
	}
	return max(len(held)-before, before-len(held))
}

// Match implements [Peer].
func (t *Tree) Match(_, local []uint64) (sum int64) {
	t.hits = t.hits[:0]
	if len(local) == 0 {
		return 0
	}
	n := t.root.child(local[0])
	if n == nil {
		return 0
	}
	first := n.first
	live := append(t.live[:0], n.more...)
	depth := int32(1)
	for int(depth) < len(local) {
		if n = n.child(local[depth]); n == nil {
			break
		}
		left := first & n.first
		if left != first {
			t.end(first&^left, 0, depth, &sum)
			first = left
		}
		for i, w := range live {
			has := uint64(0)
			if i < len(n.more) {
				has = n.more[i]
			}
			if w&^has != 0 {
				t.end(w&^has, 64*(i+1), depth, &sum)
				live[i] = w & has
			}
			left |= live[i]
		}
		if left == 0 {
			break
		}
		depth++
	}
	t.end(first, 0, depth, &sum)
	for i, w := range live {
		t.end(w, 64*(i+1), depth, &sum)
	}
	t.live = live[:0]
	return sum
}

// end notes that the workers of a word, the first of which has the number base, hold depth blocks.
func (t *Tree) end(word uint64, base int, depth int32, sum *int64) {
	for ; word != 0; word &= word - 1 {
		t.hits = append(t.hits, Hit{base + bits.TrailingZeros64(word), depth})
		*sum += int64(depth)
	}
}

// AppendHits implements [Peer].
func (t *Tree) AppendHits(dst []Hit) []Hit { return append(dst, t.hits...) }

// Residencies implements [Peer].
func (t *Tree) Residencies() (n int) {
	for _, held := range t.workers {
		n += len(held)
	}
	return n
}
