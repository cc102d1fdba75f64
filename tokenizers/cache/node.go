// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/weft-go/weft/tokenizers"
)

// node is a cached cut point. It holds the text and the ids since the previous cut point. The first group of fields is
// immutable, so a reader may use a node that has just been evicted.
type node struct {
	key    uint64 // in the policy
	parent *node  // nil in a root
	base   *node  // the nearest regular node: this one or an ancestor
	text   string
	ids    []uint32
	runs   []run // provenance of text, nil if all of it is trusted
	bytes  int   // of the whole prefix
	tokens int
	root   *string // the namespace of the tree, in its root
	cost   uint32
	kind   tokenizers.Boundary

	used  atomic.Uint32 // Cache.age at its last use
	kids  atomic.Pointer[trie]
	value atomic.Pointer[any]

	mu      sync.Mutex // guards changes of kids, and the following fields
	dead    bool       // evicted: no children are added
	flights *[]*flight // replaced, never changed in place; nil if there are none
}

// policyOverhead is the approximate memory of the eviction policy for an entry, in bytes, on a 64-bit machine.
const policyOverhead = 192

// weigh computes cost. A string or slice takes up to an eighth more than its length.
func (n *node) weigh() {
	data := len(n.text) + 4*len(n.ids) + int(unsafe.Sizeof(run{}))*len(n.runs)
	if n.root != nil {
		data += int(unsafe.Sizeof(*n.root)) + len(*n.root)
	}
	data += data / 8
	data += int(unsafe.Sizeof(node{})) + 2*int(unsafe.Sizeof(trie{})) + 16 + policyOverhead
	n.cost = uint32(min(uint64(data), math.MaxUint32))
}

// find returns the child with the longest text that matches at the cursor, and the cursor after it.
func (n *node) find(c cursor) (*node, cursor) {
	t := n.kids.Load()
	if t == nil {
		return nil, c
	}
	// The leaf the text leads to is the only child that it can hold beyond the texts that end on the way.
	leaf, walk, at := t, c, 0
	for leaf.at >= 0 {
		walk.advance(min(leaf.at-at, walk.left))
		at = leaf.at
		leaf = leaf.side[leaf.pick(walk.symbol())]
	}
	text := leaf.same[0].text
	limit := c.common(text)
	if limit == len(text) {
		if child, next := c.enter(leaf); child != nil {
			return child, next
		}
		limit--
	}
	// A child whose text ends on the path and within the common prefix also matches. The longest first.
	for {
		var best *trie
		walk, at = c, 0
		for v := t; v.at >= 0 && v.at <= limit; v = v.side[v.pick(walk.symbol())] {
			walk.advance(min(v.at-at, walk.left))
			at = v.at
			if v.bit == notEnd {
				best = v.side[0]
			}
		}
		if best == nil {
			return nil, c
		}
		if child, next := c.enter(best); child != nil {
			return child, next
		}
		limit = len(best.same[0].text) - 1
	}
}

// enter returns the child of a leaf, whose text matches at the cursor, that has the same provenance and is also a cut
// point in this text.
func (c cursor) enter(leaf *trie) (*node, cursor) {
	for _, n := range leaf.same {
		if next, ok := c.after(n); ok {
			return n, next
		}
	}
	return nil, c
}

// after returns the cursor after n, whose text is at c, if it has the same provenance and n is also a cut point here.
func (c cursor) after(n *node) (next cursor, ok bool) {
	if next, ok = c.skip(len(n.text), n.runs); !ok {
		return c, false
	}
	follows := -1
	if next.left > 0 {
		follows = int(byte(next.symbol()))
	}
	return next, n.kind.Before(follows)
}

// link makes child a child of n, unless n is dead. It returns child, an existing child with the same text and
// provenance, or nil if n is dead.
func (n *node) link(child *node) *node {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dead {
		return nil
	}
	t := n.kids.Load()
	if t != nil {
		if leaf := t.nearest(child.text); leaf.same[0].text == child.text {
			for _, x := range leaf.same {
				if sameRuns(x.runs, child.runs) {
					return x
				}
			}
		}
	}
	n.kids.Store(t.with(child))
	return child
}

func sameRuns(a, b []run) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func (n *node) unlink(child *node) {
	n.mu.Lock()
	n.kids.Store(n.kids.Load().without(child))
	n.mu.Unlock()
}

// kill marks n as dead and returns its children.
func (n *node) kill() *trie {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead = true
	return n.kids.Swap(nil)
}

func (n *node) isDead() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dead
}
