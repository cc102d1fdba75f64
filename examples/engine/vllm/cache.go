// SPDX-License-Identifier: Apache-2.0

package vllm

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// A cache is a prefix cache: a bounded set of full token blocks, keyed by chained hashes, with LRU eviction.
//
// A block is pinned while a lease holds it and is in the free list otherwise. Invariants:
//
//	len(blocks) <= capacity
//	a block is in the free list exactly when refs == 0
//	the parent of a cached block is cached, and comes after it in the free list if both are free
//
// The last one holds because a lease pins a prefix from its first block on and unpins it from its last: every use of a
// block is followed by a use of its ancestors. A cache is not safe for concurrent use.
type cache struct {
	size     int // tokens per block
	capacity int // blocks
	blocks   map[uint64]*node
	free     node // ring of unpinned blocks; free.next is evicted first
	freeLen  int

	changes []change // since the last call of take
}

// A node is one cached block.
type node struct {
	hash, parent uint64
	root         bool  // no parent
	scope        scope // of the sequence; part of the hash
	tokens       []uint32
	refs         int
	prev, next   *node // in the free list, nil outside it
}

// A change is a run of blocks that entered or left the cache.
type change struct {
	removed bool
	hashes  []uint64
	parent  uint64 // of the first stored block
	root    bool   // the first stored block has no parent
	scope   scope
	tokens  []uint32
}

// A scope separates sequences that share no blocks.
type scope struct{ adapter, salt string }

func newCache(size, capacity int) *cache {
	c := &cache{size: size, capacity: capacity, blocks: make(map[uint64]*node)}
	c.free.prev, c.free.next = &c.free, &c.free
	return c
}

// hashBlock returns the hash of a block after parent: the last 8 bytes of SHA-256(parent, tokens), all little-endian.
// For the first block the scope replaces the parent.
func hashBlock(scratch []byte, parent uint64, root bool, in scope, tokens []uint32) (uint64, []byte) {
	scratch = scratch[:0]
	if root {
		scratch = append(scratch, in.salt...)
		scratch = append(scratch, 0)
		scratch = append(scratch, in.adapter...)
	} else {
		scratch = binary.LittleEndian.AppendUint64(scratch, parent)
	}
	for _, t := range tokens {
		scratch = binary.LittleEndian.AppendUint32(scratch, t)
	}
	sum := sha256.Sum256(scratch)
	return binary.BigEndian.Uint64(sum[24:]), scratch
}

// A lease holds the pinned blocks of one sequence.
type lease struct {
	c       *cache
	scope   scope
	nodes   []*node // nodes[i] holds tokens [i*size, (i+1)*size)
	full    bool    // the cache had no room; no further blocks of this sequence are stored
	scratch []byte
}

// acquire pins the longest cached prefix of tokens in a scope, which excludes at least the last token.
func (c *cache) acquire(in scope, tokens []uint32) *lease {
	l := &lease{c: c, scope: in}
	l.extend(tokens[:max(len(tokens)-1, 0)])
	return l
}

// extend pins the cached blocks of tokens after the last block of the lease.
func (l *lease) extend(tokens []uint32) {
	for (len(l.nodes)+1)*l.c.size <= len(tokens) {
		hash, part := l.next(tokens)
		n := l.c.blocks[hash]
		if n == nil || n.scope != l.scope || !slices.Equal(n.tokens, part) {
			return
		}
		l.c.pin(n)
		l.nodes = append(l.nodes, n)
	}
}

// cached returns the number of tokens in the lease.
func (l *lease) cached() int { return len(l.nodes) * l.c.size }

// store adds all full blocks of tokens to the cache and the lease, whose blocks must be a prefix of them.
func (l *lease) store(tokens []uint32) {
	c := l.c
	if l.full {
		return
	}
	l.extend(tokens) // blocks of concurrent requests; all blocks after these are new, because parents outlive children
	first := len(l.nodes)
	count := c.makeRoom(len(tokens)/c.size - first)
	l.full = count < len(tokens)/c.size-first
	if count == 0 {
		return
	}
	run := change{root: first == 0, scope: l.scope, tokens: slices.Clone(tokens[first*c.size : (first+count)*c.size])}
	if first > 0 {
		run.parent = l.nodes[first-1].hash
	}
	for i := range count {
		hash, _ := l.next(tokens)
		if c.blocks[hash] != nil { // hash collision
			l.full = true
			run.tokens = run.tokens[:i*c.size]
			break
		}
		n := &node{hash: hash, root: first+i == 0, scope: l.scope, tokens: run.tokens[i*c.size : (i+1)*c.size], refs: 1}
		if !n.root {
			n.parent = l.nodes[first+i-1].hash
		}
		c.blocks[hash] = n
		run.hashes = append(run.hashes, hash)
		l.nodes = append(l.nodes, n)
	}
	if len(run.hashes) > 0 {
		c.changes = append(c.changes, run)
	}
}

// next returns the hash and the tokens of the block after the lease.
func (l *lease) next(tokens []uint32) (uint64, []uint32) {
	i := len(l.nodes)
	part := tokens[i*l.c.size : (i+1)*l.c.size]
	var parent uint64
	if i > 0 {
		parent = l.nodes[i-1].hash
	}
	var hash uint64
	hash, l.scratch = hashBlock(l.scratch, parent, i == 0, l.scope, part)
	return hash, part
}

// release unpins the blocks in reverse order, so that the last one is evicted first.
func (l *lease) release() {
	for _, n := range slices.Backward(l.nodes) {
		if n.refs--; n.refs == 0 {
			l.c.link(n)
		}
	}
	l.nodes, l.full = nil, true
}

// makeRoom evicts unpinned blocks to make room for n blocks and returns the number of blocks that fit.
func (c *cache) makeRoom(n int) int {
	var removed []uint64
	for c.capacity-len(c.blocks) < n && c.free.next != &c.free {
		old := c.free.next
		c.unlink(old)
		delete(c.blocks, old.hash)
		removed = append(removed, old.hash)
	}
	if removed != nil {
		c.changes = append(c.changes, change{removed: true, hashes: removed})
	}
	return max(0, min(n, c.capacity-len(c.blocks)))
}

func (c *cache) pin(n *node) {
	if n.refs++; n.refs == 1 {
		c.unlink(n)
	}
}

func (c *cache) link(n *node) {
	n.prev, n.next = c.free.prev, &c.free
	n.prev.next, n.next.prev = n, n
	c.freeLen++
}

func (c *cache) unlink(n *node) {
	n.prev.next, n.next.prev = n.next, n.prev
	n.prev, n.next = nil, nil
	c.freeLen--
}

// take returns the changes since the last call.
func (c *cache) take() []change {
	out := c.changes
	c.changes = nil
	return out
}

// snapshot returns all blocks as stored runs of one block each, parents before children.
func (c *cache) snapshot() []change {
	out := make([]change, 0, len(c.blocks))
	seen := make(map[uint64]bool, len(c.blocks))
	var path []*node
	for _, n := range c.blocks {
		for !seen[n.hash] {
			path, seen[n.hash] = append(path, n), true
			if n.root {
				break
			}
			n = c.blocks[n.parent]
		}
		for ; len(path) > 0; path = path[:len(path)-1] {
			p := path[len(path)-1]
			out = append(out, change{hashes: []uint64{p.hash}, parent: p.parent, root: p.root, scope: p.scope, tokens: p.tokens})
		}
	}
	return out
}
