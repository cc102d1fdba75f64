// SPDX-License-Identifier: Apache-2.0

package kvhash

import (
	"slices"
	"sync/atomic"
)

// Chain hashes a growing prompt: its Append method adds tokens and returns the hashes of the blocks that they complete.
// In a conversation of many turns, each token is hashed once. A Chain supports every scheme.
//
//	c := kvhash.NewChain(4, kvhash.Scheme{})
//	c.Append(0, 1, 2, 3, 4, 5)   // [9143094415614847814], tokens 4 and 5 wait in the tail
//	c.Append(6, 7)               // [9510318385840434533]
//	c.Blocks()                   // both
//
// With [Scheme.After], a chain continues after a block whose digest is known; its blocks and positions are counted from
// there.
//
// A Chain must be made by [NewChain]; Append panics on the zero Chain. Methods that only read may be called
// concurrently; otherwise a Chain is not safe for concurrent use.
type Chain struct {
	scheme  Scheme
	block   int
	window  int      // tokens a block's hash covers; block or block+1
	seq     []uint64 // hash of each complete block
	share   *share   // who may write after seq
	digests []byte   // digest of each complete block, if it differs from the hash: len(digests) is 0 or len(seq)*DigestLen
	tail    []uint32 // tokens from len(seq)*block on; len(tail) < window
	extras  *Extras
	obj     int    // first object that may reach into the next block
	buf     []byte // scratch
}

// share is the memory for hashes that a chain and its forks have in common. Only the first of them that grows beyond a
// length writes after it.
type share struct {
	forked atomic.Bool  // false: only one chain has the memory
	used   atomic.Int64 // hashes
}

// NewChain returns an empty chain of blocks of the given size in tokens. It panics if block is not positive.
func NewChain(block int, s Scheme) *Chain {
	checkBlock(block)
	return &Chain{scheme: s, block: block, window: s.Window(block), share: new(share)}
}

// SetExtras sets the inputs other than tokens, with positions from the start of the prompt; nil means none. The caller
// must not modify x. As the prompt grows, x may be replaced with a longer list that is the same for complete blocks.
// Forks share x.
func (c *Chain) SetExtras(x *Extras) { c.extras, c.obj = x, 0 }

// Append adds tokens to the end of the prompt and returns the hashes of the blocks that they complete, which are those
// of [Scheme.AppendBlocks]. The result is a view of [Chain.Blocks] and is valid until the next call that changes the
// chain. tokens is not retained. O(len(tokens)). Append allocates only when the chain's memory grows, and where
// [Scheme.AppendBlocks] allocates for objects.
func (c *Chain) Append(tokens ...uint32) []uint64 {
	checkBlock(c.block)
	n := len(c.seq)
	c.room(c.complete(len(c.tail) + len(tokens)))
	for len(tokens) > 0 {
		if len(c.tail) == 0 && len(tokens) >= c.window {
			if c.scheme.mode.kind() == dynamo && c.extras == nil { // the common case, faster
				had := len(c.seq)
				parent, follows := c.last()
				c.seq = appendChained(c.seq, tokens, c.block, c.window, c.scheme.seed(), parent, follows)
				tokens = tokens[(len(c.seq)-had)*c.block:]
				continue
			}
			c.push(tokens[:c.window])
			tokens = tokens[c.block:]
			continue
		}
		take := min(c.window-len(c.tail), len(tokens))
		c.tail = append(c.tail, tokens[:take]...)
		tokens = tokens[take:]
		if len(c.tail) == c.window {
			c.push(c.tail)
			c.tail = c.tail[:copy(c.tail, c.tail[c.block:])]
		}
	}
	return c.seq[n:len(c.seq):len(c.seq)]
}

// room makes room for n hashes after seq.
func (c *Chain) room(n int) {
	if !c.share.forked.Load() {
		c.seq = slices.Grow(c.seq, n)
		c.share.used.Store(int64(len(c.seq) + n))
		return
	}
	if had := len(c.seq); cap(c.seq)-had < n || !c.share.used.CompareAndSwap(int64(had), int64(had+n)) {
		c.seq, c.share = append(make([]uint64, 0, had+n+had/8), c.seq...), new(share)
		c.share.used.Store(int64(had + n))
	}
}

// last returns the hash of the block before the next one, for Dynamo's scheme, and whether there is one.
func (c *Chain) last() (uint64, bool) {
	if n := len(c.seq); n > 0 {
		return c.seq[n-1], true
	}
	return c.scheme.parent()
}

// push hashes the next block.
func (c *Chain) push(window []uint32) {
	n := len(c.seq)
	if c.scheme.mode.kind() == dynamo {
		var h uint64
		if c.extras == nil {
			h = hashTokens(window, c.scheme.seed())
		} else {
			h, c.obj = c.scheme.local(window, n*c.block, c.block, c.extras, c.obj)
		}
		if parent, follows := c.last(); follows {
			h = Next(parent, h)
		}
		c.seq = append(c.seq, h)
		return
	}
	var digest [32]byte
	size := c.scheme.DigestLen()
	switch {
	case n == 0:
	case size == 8:
		putHash(&digest, c.seq[n-1])
	default:
		copy(digest[:], c.digests[(n-1)*size:])
	}
	c.buf, c.obj = c.scheme.next(c.buf[:0], &digest, n, window, c.block, c.extras, c.obj)
	c.seq = append(c.seq, c.scheme.Event(digest[:]))
	if size > 8 {
		c.digests = append(c.digests, digest[:size]...)
	}
}

// Blocks returns the hashes of all complete blocks, first block first. The result is a view that is valid until the
// next call that changes the chain. The caller must not modify it.
func (c *Chain) Blocks() []uint64 { return slices.Clip(c.seq) }

// Digests returns the digests of all complete blocks, [Scheme.DigestLen] bytes each, if they have more than 8. For schemes
// whose digest is the hash, it is empty. The result is a view that is valid until the next call that changes the chain.
// The caller must not modify it.
func (c *Chain) Digests() []byte { return slices.Clip(c.digests) }

// Len returns the number of tokens in the chain.
func (c *Chain) Len() int { return len(c.seq)*c.block + len(c.tail) }

// Fork returns an independent copy, for another continuation of the prompt. The copy shares the memory of the hashes until
// both are continued; digests that are not hashes are copied. Fork hashes nothing.
func (c *Chain) Fork() *Chain {
	c.share.forked.Store(true)
	f := *c
	f.digests = roomy(c.digests)
	f.tail = slices.Clone(c.tail)
	f.buf = nil
	return &f
}

// roomy returns a copy of list with room for an eighth more.
func roomy[T any](list []T) []T {
	return append(make([]T, 0, len(list)+len(list)/8), list...)
}

// Truncate keeps the first n blocks and drops the rest and the tail, for a prompt whose end was replaced. It hashes
// nothing and keeps the chain's memory. With the variants eagle and lookahead, the last block's hash also covers tokens after it: append
// them again, or truncate one more block. Truncate panics if n is negative or greater than the number of blocks.
func (c *Chain) Truncate(n int) {
	if n < 0 || n > len(c.seq) {
		panic("kvhash: Truncate beyond the chain")
	}
	c.cut(n)
}

func (c *Chain) cut(n int) {
	c.seq = c.seq[:n]
	if len(c.digests) > 0 {
		c.digests = c.digests[:n*c.scheme.DigestLen()]
	}
	c.tail = c.tail[:0]
	c.obj = 0
}
