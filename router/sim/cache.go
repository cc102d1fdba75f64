// SPDX-License-Identifier: Apache-2.0

package sim

// cache holds the KV blocks of an engine. Blocks in use are never evicted; others are, least recently used first, and of a prompt the
// last ones first. Blocks that are pinned are evicted only if there are no others.
type cache struct {
	size   int
	byHash map[uint64]int32
	blocks []block
	unused []int32 // indexes without data
	free   int     // blocks that are not in use, with data or without
	found  []int32 // by leading
}

// block is a block of the cache. Blocks with data that are not in use are in a list, whose ends are blocks[common], or blocks[pinned].
type block struct {
	hash       uint64
	named      bool   // hash is in byHash
	after      uint64 // hash of the last block that followed it, or 0
	child      int32  // a block that had the hash of one that followed it; others may have taken its place
	users      int32
	prev, next int32
}

const (
	common = int32(iota)
	pinned
	lists
)

func newCache(size int) *cache {
	c := &cache{size: size, byHash: make(map[uint64]int32), blocks: make([]block, lists, 1024), free: size}
	c.blocks[pinned] = block{prev: pinned, next: pinned}
	return c
}

// find returns the index of the block with a hash, and reports whether there is one. before is the block before it in a
// prompt, or common. Most prompts are cached in the order in which they are read, so that this reads neighbors and not the map.
func (c *cache) find(hash uint64, before int32) (int32, bool) {
	b := &c.blocks[before]
	if x := &c.blocks[b.child]; x.named && x.hash == hash {
		return b.child, true
	}
	i, ok := c.byHash[hash]
	if ok {
		b.child = i
	}
	return i, ok
}

// leading returns the indexes of the blocks at the beginning that are cached. They are valid until the next call.
func (c *cache) leading(hashes []uint64) []int32 {
	list, last := c.found[:0], common
	for _, h := range hashes {
		i, ok := c.find(h, last)
		if !ok {
			break
		}
		list, last = append(list, i), i
	}
	c.found = list
	return list
}

// use adds a user to the blocks of list and appends them to dst.
func (c *cache) use(dst, list []int32) []int32 {
	for _, i := range list {
		b := &c.blocks[i]
		if b.users == 0 {
			c.unlink(i)
			c.free--
		}
		b.users++
		dst = append(dst, i)
	}
	return dst
}

// take appends n new blocks with one user to dst, and the hashes of those that were evicted for them to removed.
func (c *cache) take(dst []int32, removed []uint64, n int) ([]int32, []uint64) {
	for range n {
		var i int32
		switch {
		case len(c.unused) > 0:
			i = c.unused[len(c.unused)-1]
			c.unused = c.unused[:len(c.unused)-1]
		case len(c.blocks) < c.size+int(lists):
			c.blocks = append(c.blocks, block{})
			i = int32(len(c.blocks) - 1)
		default:
			if i = c.blocks[common].next; i == common {
				i = c.blocks[pinned].next
			}
			c.unlink(i)
			delete(c.byHash, c.blocks[i].hash)
			removed = append(removed, c.blocks[i].hash)
		}
		c.blocks[i] = block{users: 1}
		c.free--
		dst = append(dst, i)
	}
	return dst, removed
}

// name records that a block has the data of hash, and reports whether no other block has.
func (c *cache) name(i int32, hash uint64) bool {
	if _, ok := c.byHash[hash]; ok {
		return false
	}
	c.blocks[i].hash, c.blocks[i].named = hash, true
	c.byHash[hash] = i
	return true
}

// follow records that a block with the hash next follows one with hash. The blocks at i and k have these hashes, unless others do.
func (c *cache) follow(i int32, hash uint64, k int32, next uint64) {
	if b := &c.blocks[i]; !b.named || b.hash != hash {
		i = c.byHash[hash]
	}
	c.blocks[i].after, c.blocks[i].child = next, k
}

// release removes a user of the blocks.
func (c *cache) release(blocks []int32) {
	for k := len(blocks) - 1; k >= 0; k-- {
		i := blocks[k]
		b := &c.blocks[i]
		if b.users--; b.users > 0 {
			continue
		}
		c.free++
		if !b.named {
			c.unused = append(c.unused, i)
			continue
		}
		c.link(i, common)
	}
}

// move moves the blocks that are not in use to a list.
func (c *cache) move(hashes []uint64, list int32) {
	for k := len(hashes) - 1; k >= 0; k-- {
		if i, ok := c.byHash[hashes[k]]; ok && c.blocks[i].users == 0 {
			c.unlink(i)
			c.link(i, list)
		}
	}
}

// link appends a block to a list.
func (c *cache) link(i, list int32) {
	last := c.blocks[list].prev
	c.blocks[i].prev, c.blocks[i].next = last, list
	c.blocks[last].next, c.blocks[list].prev = i, i
}

// drop removes the data of blocks that are cached and not in use, and of those after the last one, and appends their hashes to removed.
func (c *cache) drop(hashes, removed []uint64) []uint64 {
	for n := 0; n < len(hashes); n++ {
		h := hashes[n]
		i, ok := c.byHash[h]
		if !ok {
			continue
		}
		if next := c.blocks[i].after; n == len(hashes)-1 && next != 0 {
			hashes = append(hashes[:n+1:n+1], next)
		}
		if c.blocks[i].users == 0 {
			c.unlink(i)
			delete(c.byHash, h)
			c.blocks[i].named = false
			c.unused = append(c.unused, i)
			removed = append(removed, h)
		}
	}
	return removed
}

func (c *cache) unlink(i int32) {
	b := &c.blocks[i]
	c.blocks[b.prev].next, c.blocks[b.next].prev = b.next, b.prev
}
