// SPDX-License-Identifier: Apache-2.0

// Package trie finds the tokens of a vocabulary that a text starts with. It is a double array: a step along
// one byte is one load.
//
//	units[n]  base(32) | id+1(22) | used(1) | label(8), of node n
//	child     of node n along byte c is base^c, if that unit is used and has label c
//
// No two nodes have the same base, so that the label alone tells whether a unit is a child. Base 0 is a
// block of 256 units that are never used: nodes without children point there. A base and all that it reaches
// lie in one block of 256 units, so len(units) is a multiple of 256.
package trie

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

// MaxBytes is the largest number of token bytes a trie is made of. It bounds the memory that a hostile file
// can ask for to some 20 times as many.
const MaxBytes = 1 << 28

// Trie is immutable and safe for concurrent use.
type Trie struct {
	units []uint64
	root  Node
}

// Node is a position in the trie.
type Node uint64

const (
	used    = 1 << 8
	idShift = 9
	idMask  = 1<<22 - 1
)

// New returns the trie of all tokens of v that can be looked up and are not empty.
func New(v *vocab.Table) (*Trie, error) {
	var keys []key
	size := 0
	for id := range uint32(v.Len()) {
		tok := string(v.Bytes(id))
		if tok == "" {
			continue
		}
		if got, ok := v.Lookup(tok); !ok || got != id {
			continue
		}
		if size += len(tok); size > MaxBytes {
			return nil, fmt.Errorf("total length of tokens exceeds %d bytes", MaxBytes)
		}
		keys = append(keys, key{tok, id})
	}
	slices.SortFunc(keys, func(a, b key) int { return strings.Compare(a.tok, b.tok) })
	b := builder{units: make([]uint64, 256, 256+2*size+512)}
	b.build(keys)
	return &Trie{units: b.units, root: Node(b.units[b.root])}, nil
}

// Root returns the position before the first byte.
func (t *Trie) Root() Node { return t.root }

// Step goes along byte c. It reports false if no token continues so.
func (t *Trie) Step(n Node, c byte) (Node, bool) {
	u := t.units[uint64(n)>>32^uint64(c)]
	return Node(u), u&(used|0xFF) == used|uint64(c)
}

// ID returns the token that ends here.
func (n Node) ID() (uint32, bool) {
	id := uint32(uint64(n)>>idShift) & idMask
	return id - 1, id != 0
}

// Walk goes along all bytes of s.
func (t *Trie) Walk(n Node, s string) (Node, bool) {
	for i := 0; i < len(s); i++ {
		var ok bool
		if n, ok = t.Step(n, s[i]); !ok {
			return n, false
		}
	}
	return n, true
}

// Longest returns the longest token that s starts with when the search starts at n, and its length in s. The
// length is 0 if none matches.
func (t *Trie) Longest(n Node, s string) (id uint32, size int) {
	units := t.units
	u := uint64(n)
	for i := 0; i < len(s); i++ {
		c := uint64(s[i])
		u = units[u>>32^c]
		if u&(used|0xFF) != used|c {
			break
		}
		if u>>idShift&idMask != 0 {
			id, size = uint32(u>>idShift&idMask)-1, i+1
		}
	}
	return id, size
}

type key struct {
	tok string
	id  uint32
}

// builder fills units block by block. Units of the last few blocks may still be taken; those before are
// closed, so that the search for room is bounded.
type builder struct {
	units []uint64
	root  uint32
	bases []uint64 // bit set of bases in use
	taken []uint64 // bit set of units in use
	open  int      // first block that may be taken from
}

// maxOpen is the number of blocks that are searched for room.
const maxOpen = 16

// span is a node to be given children: keys[lo:hi] go through it and have depth bytes before it.
type span struct {
	unit   uint32
	lo, hi int
	depth  int
}

func (b *builder) build(keys []key) {
	full := ^uint64(0)
	b.bases = []uint64{full, full, full, full} // block 0 is never used
	b.taken = []uint64{full, full, full, full}
	b.open = 1
	b.block()
	b.root = 256
	b.take(b.root, 0)
	b.bases[b.root>>6] |= 1 // else the root would be a child along byte 0 of the node with this base
	todo := []span{{b.root, 0, len(keys), 0}}
	var labels []byte
	var cuts []int
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		lo := s.lo
		if lo < s.hi && len(keys[lo].tok) == s.depth {
			b.units[s.unit] |= uint64(keys[lo].id+1) << idShift
			lo++
		}
		if lo == s.hi {
			continue
		}
		labels, cuts = labels[:0], cuts[:0]
		for k := lo; k < s.hi; k++ {
			if c := keys[k].tok[s.depth]; len(labels) == 0 || c != labels[len(labels)-1] {
				labels = append(labels, c)
				cuts = append(cuts, k)
			}
		}
		cuts = append(cuts, s.hi)
		base := b.findBase(labels)
		b.units[s.unit] |= uint64(base) << 32
		for k := len(labels) - 1; k >= 0; k-- {
			child := base ^ uint32(labels[k])
			b.take(child, labels[k])
			todo = append(todo, span{child, cuts[k], cuts[k+1], s.depth + 1})
		}
	}
}

// block adds a block of free units.
func (b *builder) block() {
	b.units = append(b.units, make([]uint64, 256)...)
	b.bases = append(b.bases, 0, 0, 0, 0)
	b.taken = append(b.taken, 0, 0, 0, 0)
	b.open = max(b.open, len(b.units)/256-maxOpen)
}

func (b *builder) take(unit uint32, label byte) {
	b.units[unit] |= used | uint64(label)
	b.taken[unit>>6] |= 1 << (unit & 63)
}

// findBase returns a base under which all labels are free, and marks it.
func (b *builder) findBase(labels []byte) uint32 {
	for w := 4 * b.open; w < len(b.taken); w++ {
		for left := ^b.taken[w]; left != 0; left &= left - 1 {
			base := uint32(w<<6|bits.TrailingZeros64(left)) ^ uint32(labels[0])
			if b.bases[base>>6]>>(base&63)&1 == 0 && b.fits(base, labels[1:]) {
				b.bases[base>>6] |= 1 << (base & 63)
				return base
			}
		}
	}
	b.block()
	base := uint32(len(b.units) - 256)
	b.bases[base>>6] |= 1 << (base & 63)
	return base
}

func (b *builder) fits(base uint32, labels []byte) bool {
	for _, c := range labels {
		if b.units[base^uint32(c)]&used != 0 {
			return false
		}
	}
	return true
}
