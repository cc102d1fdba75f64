// SPDX-License-Identifier: Apache-2.0

package kvhash

import "slices"

// Piece is a run of a chain's blocks, to keep next to the text they were made from, so that the next prompt with the
// same beginning does not hash it again. A cache of tokenized prefixes stores it at its cut points: package
// tokenizers/cache with Cut.Value and Cut.SetValue. A chain gives it by [Chain.Piece] and takes it by [Chain.Join]. It
// does not change and is safe to share; nil is one that no chain takes.
type Piece struct {
	scheme  Scheme
	block   int
	first   int // number of its first block
	seq     []uint64
	digests []byte
}

// Piece returns the blocks that the tokens [from, to) of the prompt complete, without hashing anything. It copies them.
// Pieces of neighbouring ranges make up the chain; a range that completes no block gives a piece of no blocks. It
// panics if the range is not within the chain. It returns nil if an object begins before to, as the text next to it may
// not identify the object.
func (c *Chain) Piece(from, to int) *Piece {
	if from < 0 || to < from || to > c.Len() {
		panic("kvhash: Piece beyond the chain")
	}
	if c.extras.before(to) {
		return nil
	}
	a, b := c.complete(from), c.complete(to)
	p := &Piece{scheme: c.scheme, block: c.block, first: a, seq: slices.Clone(c.seq[a:b])}
	if len(c.digests) > 0 {
		size := c.scheme.DigestLen()
		p.digests = slices.Clone(c.digests[a*size : b*size])
	}
	return p
}

// complete returns how many blocks are complete after n tokens of the chain.
func (c *Chain) complete(n int) int {
	return max(0, n-(c.window-c.block)) / c.block
}

// Join adds the blocks of p after those of the chain and drops the tail: the prompt continues at token [Chain.Len]. It
// reports whether it did; p must have been made with the same scheme and block size and begin where the chain's blocks
// end, and no object of the chain ([Chain.SetExtras]) may begin before its end. Nothing is hashed.
func (c *Chain) Join(p *Piece) bool {
	if p == nil || p.scheme != c.scheme || p.block != c.block || p.first != len(c.seq) || c.extras.before((p.first+len(p.seq))*c.block) {
		return false
	}
	c.seq = append(c.seq, p.seq...)
	c.digests = append(c.digests, p.digests...)
	c.tail = c.tail[:0]
	return true
}
