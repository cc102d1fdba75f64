// SPDX-License-Identifier: Apache-2.0

package kvhash

import "slices"

// Chain hashes a prompt that grows: append tokens as they become known, and the hashes of newly complete blocks come out. Over a
// conversation of many turns each token is hashed once.
//
//	c := kvhash.NewChain(4, kvhash.Scheme{})
//	c.Append(0, 1, 2, 3, 4, 5)   // [9143094415614847814], tokens 4 and 5 wait in the tail
//	c.Append(6, 7)               // [9510318385840434533]
//	c.Blocks()                   // both
//
// A Chain must be made by [NewChain]. One goroutine at a time; readers may run with readers.
type Chain struct {
	scheme Scheme
	block  int
	window int      // tokens a block's hash covers; block or block+1
	seq    []uint64 // sequence hash of each complete block
	tail   []uint32 // tokens from len(seq)*block on; len(tail) < window
}

// NewChain returns an empty chain of blocks of the given size in tokens. It panics if block is not positive.
func NewChain(block int, s Scheme) *Chain {
	checkBlock(block)
	return &Chain{scheme: s, block: block, window: s.Window(block)}
}

// Append adds tokens to the end of the prompt and returns the sequence hashes of the blocks they complete. The result is a view
// of [Chain.Blocks], valid until the next call that changes the chain. tokens are not retained. O(len(tokens)), no allocation
// except when the chain's memory grows.
func (c *Chain) Append(tokens ...uint32) []uint64 {
	n := len(c.seq)
	seed := c.scheme.Seed()
	for len(tokens) > 0 {
		if len(c.tail) == 0 && len(tokens) >= c.window {
			c.push(hashTokens(tokens[:c.window], seed))
			tokens = tokens[c.block:]
			continue
		}
		take := min(c.window-len(c.tail), len(tokens))
		c.tail = append(c.tail, tokens[:take]...)
		tokens = tokens[take:]
		if len(c.tail) == c.window {
			c.push(hashTokens(c.tail, seed))
			c.tail = c.tail[:copy(c.tail, c.tail[c.block:])]
		}
	}
	return c.seq[n:len(c.seq):len(c.seq)]
}

func (c *Chain) push(local uint64) {
	if n := len(c.seq); n > 0 {
		local = Next(c.seq[n-1], local)
	}
	c.seq = append(c.seq, local)
}

// Blocks returns the sequence hashes of all complete blocks, first block first. It is a view, valid until the next call that
// changes the chain, and not to be written to.
func (c *Chain) Blocks() []uint64 { return slices.Clip(c.seq) }

// Tail returns the tokens after the last complete block. It is a view, valid until the next call that changes the chain.
func (c *Chain) Tail() []uint32 { return slices.Clip(c.tail) }

// Len returns the number of tokens in the chain.
func (c *Chain) Len() int { return len(c.seq)*c.block + len(c.tail) }

// BlockSize returns the number of tokens in a block.
func (c *Chain) BlockSize() int { return c.block }

// Scheme returns how the chain names blocks.
func (c *Chain) Scheme() Scheme { return c.scheme }

// Fork returns an independent copy, for a second continuation of one prompt. O(blocks) bytes are copied, nothing is hashed.
func (c *Chain) Fork() *Chain {
	f := *c
	f.seq = slices.Clone(c.seq)
	f.tail = slices.Clone(c.tail)
	return &f
}

// Reset empties the chain and keeps its memory.
func (c *Chain) Reset() {
	c.seq = c.seq[:0]
	c.tail = c.tail[:0]
}

// Truncate keeps the first n blocks and drops the rest with the tail, for a prompt that took back what followed. Nothing is
// hashed. With Eagle, the last block's hash covers the token after it too: append that token again, or truncate one block more. It
// panics if n is negative or more than the chain has.
func (c *Chain) Truncate(n int) {
	if n < 0 || n > len(c.seq) {
		panic("kvhash: Truncate beyond the chain")
	}
	c.seq = c.seq[:n]
	c.tail = c.tail[:0]
}

// Restore sets the chain to a prompt whose blocks have the given sequence hashes and whose last tokens, after those blocks, are
// tail. It is the inverse of [Chain.Blocks] and [Chain.Tail]; both are copied. With a tail of a block or more, the tail's complete
// blocks are hashed too. It cannot know whether the hashes came from the same scheme and block size.
func (c *Chain) Restore(blocks []uint64, tail []uint32) {
	c.seq = append(c.seq[:0], blocks...)
	c.tail = c.tail[:0]
	c.Append(tail...)
}
