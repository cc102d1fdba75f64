// SPDX-License-Identifier: Apache-2.0

package kvhash

import "slices"

// Piece is a range of a chain's blocks. A cache of tokenized prefixes can store it with the text, so that the next
// prompt with the same prefix does not hash it again; package tokenizers/cache has Prefix.Value and Prefix.SetValue for
// this. [Chain.Piece] makes a Piece and [Chain.Join] adds it to a chain. A Piece is immutable and safe for concurrent
// use. Join rejects a nil Piece.
type Piece struct {
	scheme  Scheme
	block   int
	first   int // number of its first block
	seq     []uint64
	digests []byte
}

// Piece returns a copy of the blocks that the tokens [from, to) of the prompt complete. It hashes nothing. Pieces of
// adjacent ranges make up the chain; a range that completes no block has an empty piece. Piece panics if the range is
// not within the chain. It returns nil if an object begins before to, because the text may not identify the object.
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

// complete returns the number of complete blocks in the first n tokens of the chain.
func (c *Chain) complete(n int) int { return complete(n, c.block, c.window) }

// Join appends the blocks of p to those of the chain, drops the tail and returns true: the prompt continues at token
// [Chain.Len]. It does nothing and returns false unless p has the same scheme and block size and begins where the
// chain's blocks end, and no object of the chain ([Chain.SetExtras]) begins before the end of p. Join hashes nothing.
func (c *Chain) Join(p *Piece) bool {
	if p == nil || p.scheme != c.scheme || p.block != c.block || p.first != len(c.seq) || c.extras.before((p.first+len(p.seq))*c.block) {
		return false
	}
	c.room(len(p.seq))
	c.seq = append(c.seq, p.seq...)
	c.digests = append(c.digests, p.digests...)
	c.tail = c.tail[:0]
	return true
}
