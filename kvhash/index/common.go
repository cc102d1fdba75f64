// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math/bits"
	"unsafe"
)

// common holds the common name of each block, by slot: the engine hash under which a worker first stored it. Engines that serve one model
// mostly call a block by the same hash, so this is the name that most workers use. A worker that has a block under its common
// name and no other needs no entry in names for it: the sets of the tree have its tiers. See naming.go. Only the writer
// uses it.
//
// Blocks are found by their common names in a hash table of leaves, so that no change takes longer than a leaf: the first bits of a mixed hash
// select the leaf in a directory, which has a leaf several times in a row if fewer bits select it, and the last bits of the tag a group of
// eight entries, which is a cache line. An entry is the tag, the first 34 bits of the mixed hash, and a slot; the name is compared with the
// slot's. If a group is full, the next one of the leaf has the entry, so a search ends at a group that is not full. A leaf that is
// three quarters full is split by one more bit, unless the directory would have far more elements than there are leaves, which names that are
// mixed well do not cause; then the name is not common. Only the copying of the directory takes longer with more names: 16 bytes for
// about 300 of them.
type common struct {
	mixer
	of    slab[uint64] // by slot; 0 if the block has no common name
	dir   []leaf
	shift uint8       // 64 - the binary logarithm of len(dir)
	n     int         // entries of all leaves
	many  int         // leaves
	deep  int         // of them, those that the directory has once
	spare []*leafBody // not used
}

// leaf is a part of the table.
type leaf struct {
	body  *leafBody
	n     uint16 // entries; valid only where the directory has the leaf first
	depth uint8  // number of bits that select it
}

// leafBody holds the entries of a leaf.
type leafBody [leafGroups]bucket

// bucket is a group of entries: those in use, then zeros.
type bucket [groupWords]uint64

const (
	leafGroups = 64
	groupWords = 8
	leafFull   = leafGroups * groupWords * 3 / 4 // the most entries of a leaf
	leafEmpty  = leafGroups * groupWords / 8     // with fewer it is merged with another, if both fit
	leafMerged = leafGroups * groupWords / 2     // the most entries of two leaves that are merged
	tagMask    = 1<<64 - 1<<slotBits
	maxDepth   = 64 - slotBits - 6 // the other bits of a tag select the group
	maxSparse  = 64                // the most elements of the directory for each leaf, when it doubles
)

// tagOf returns the tag of a mixed hash in the place that it has in an entry.
func tagOf(m uint64) uint64 { return m & tagMask }

// groupOf returns the group in which an entry belongs.
func groupOf(e uint64) int { return int(e >> slotBits & (leafGroups - 1)) }

// at returns the common name of the block in a slot, 0 if it has none.
func (c *common) at(slot uint32) uint64 { return *c.of.at(slot) }

// equal returns the number of leading names that are the common names of the blocks from a slot on.
func (c *common) equal(slot uint32, names []uint64) (n int) {
	for n < len(names) {
		part := (*c.of.dir.Load())[slot>>chunkBits][slot&chunkMask:]
		part = part[:min(len(part), len(names)-n)]
		for i, h := range names[n:][:len(part)] {
			if part[i] != h || h == 0 {
				return n + i
			}
		}
		n += len(part)
		slot += uint32(len(part))
	}
	return n
}

// group returns group i, which is below leafGroups. An index expression would load the begin of the leaf, another cache line, to check that it is
// not nil.
func (b *leafBody) group(i int) *bucket {
	return (*bucket)(unsafe.Add(unsafe.Pointer(b), uintptr(i)*unsafe.Sizeof(bucket{})))
}

// match returns which entries of a group have a tag, one bit each; entries that are not used have tag 0. Like count, it has no branches, because
// they would be mispredicted.
func (g *bucket) match(tag uint64) uint64 {
	return isZero((g[0]^tag)>>slotBits) | isZero((g[1]^tag)>>slotBits)<<1 | isZero((g[2]^tag)>>slotBits)<<2 | isZero((g[3]^tag)>>slotBits)<<3 |
		isZero((g[4]^tag)>>slotBits)<<4 | isZero((g[5]^tag)>>slotBits)<<5 | isZero((g[6]^tag)>>slotBits)<<6 | isZero((g[7]^tag)>>slotBits)<<7
}

// count returns the number of entries.
func (g *bucket) count() int {
	return groupWords - int(isZero(g[0]&maxSlots)+isZero(g[1]&maxSlots)+isZero(g[2]&maxSlots)+isZero(g[3]&maxSlots)+
		isZero(g[4]&maxSlots)+isZero(g[5]&maxSlots)+isZero(g[6]&maxSlots)+isZero(g[7]&maxSlots))
}

// isZero returns 1 if x, which is below 1<<63, is 0.
func isZero(x uint64) uint64 { return (x - 1) >> 63 }

// find returns the slot of the block with the common name h, or 0.
func (c *common) find(h uint64) uint32 {
	if len(c.dir) == 0 {
		return 0
	}
	m := c.mix(h)
	body, tag := c.dir[m>>1>>((c.shift-1)&63)].body, tagOf(m) // shift may be 64
	for i := groupOf(tag); ; i = (i + 1) % leafGroups {
		g := body.group(i)
		for same := g.match(tag); same != 0; same &= same - 1 {
			if slot := uint32(g[bits.TrailingZeros64(same)%groupWords] & maxSlots); c.at(slot) == h { // slot 0 has the name 0
				return slot
			}
		}
		if g[groupWords-1] == 0 {
			return 0
		}
	}
}

// call sets the common names of new blocks in slots from the given one on. Those that enter does not accept must be taken back.
func (c *common) call(slot uint32, names []uint64) {
	for len(names) > 0 {
		c.of.save(slot)
		n := copy((*c.of.dir.Load())[slot>>chunkBits][slot&chunkMask:], names)
		names, slot = names[n:], slot+uint32(n)
	}
}

// place makes h the common name of the block in a slot, which has none, and reports whether it did: another block may have the name h. The
// name 0 cannot be common.
func (c *common) place(h uint64, slot uint32) bool {
	if !c.enter(h, slot) {
		return false
	}
	c.of.save(slot)
	*c.of.at(slot) = h
	return true
}

// enter makes the block in a slot, which has no entry, known by the name h, and reports whether it did. The caller sets its name with call.
func (c *common) enter(h uint64, slot uint32) bool {
	if h == 0 {
		return false
	}
	if len(c.dir) == 0 {
		c.dir, c.shift, c.many, c.deep = []leaf{{body: new(leafBody)}}, 64, 1, 1
	}
	m := c.mix(h)
	l := &c.dir[c.first(int(m>>1>>((c.shift-1)&63)))] // shift may be 64
	tag := tagOf(m)
	g := l.body.group(groupOf(tag))
	if g.match(tag) == 0 && g[groupWords-1] == 0 && l.n < leafFull {
		g[g.count()%groupWords] = tag | uint64(slot)
		l.n++
		c.n++
		return true
	}
	if c.find(h) != 0 {
		return false
	}
	for l.n >= leafFull {
		if l.depth == maxDepth || l.depth == 64-c.shift && 2*len(c.dir) > maxSparse*c.many {
			return false // far too many names begin like h; the worker owns it
		}
		c.split(c.first(int(m >> c.shift)))
		l = &c.dir[c.first(int(m>>c.shift))]
	}
	l.body.insert(tag | uint64(slot))
	l.n++
	c.n++
	return true
}

// first returns the first index in the directory of the leaf at index i.
func (c *common) first(i int) int { return i &^ (1<<((64-c.shift-c.dir[i].depth)&63) - 1) }

// insert adds an entry to a leaf with room.
func (b *leafBody) insert(e uint64) {
	for i := groupOf(e); ; i = (i + 1) % leafGroups {
		if g := b.group(i); g[groupWords-1] == 0 {
			g[g.count()%groupWords] = e
			return
		}
	}
}

// split splits the leaf with the given first index in the directory.
func (c *common) split(i int) {
	old := c.dir[i]
	if 64-c.shift == old.depth { // one more bit for all
		dir := make([]leaf, 0, 2*len(c.dir))
		for _, l := range c.dir {
			dir = append(dir, l, l)
		}
		c.dir, c.deep = dir, 0
		c.shift--
		i *= 2
	}
	span := 1 << (64 - c.shift - old.depth) >> 1
	entries := *old.body
	clear(old.body[:])
	halves := [2]leaf{{old.body, 0, old.depth + 1}, {c.fresh(), 0, old.depth + 1}}
	var used [2][leafGroups]uint8
	for k := range entries {
		for _, e := range entries[k] {
			if e == 0 {
				break
			}
			b := e << old.depth >> 63
			i := groupOf(e)
			for used[b][i] == groupWords {
				i = (i + 1) % leafGroups
			}
			halves[b].body.group(i)[used[b][i]%groupWords] = e
			halves[b].n++
			used[b][i]++
		}
	}
	c.many++
	for b := range halves {
		c.set(i+b*span, span, halves[b])
	}
}

// set sets the elements [i,i+span) of the directory, which does not have l.
func (c *common) set(i, span int, l leaf) {
	for k := range span {
		c.dir[i+k] = l
	}
	if span == 1 {
		c.deep++
	}
}

// fresh returns an empty leaf.
func (c *common) fresh() *leafBody {
	last := len(c.spare) - 1
	if last < 0 {
		return new(leafBody)
	}
	body := c.spare[last]
	c.spare = c.spare[:last]
	return body
}

// forget takes the common names from the slots [from,to), whose blocks are about to be freed.
func (c *common) forget(from, to uint32) {
	for from < to {
		part := (*c.of.dir.Load())[from>>chunkBits][from&chunkMask:]
		part = part[:min(len(part), int(to-from))]
		c.of.save(from)
		for i, h := range part {
			if h != 0 {
				c.remove(h, from+uint32(i))
				part[i] = 0
			}
		}
		from += uint32(len(part))
	}
}

// remove removes the entry of a block.
func (c *common) remove(h uint64, slot uint32) {
	m := c.mix(h)
	at := c.first(int(m >> c.shift))
	l := &c.dir[at]
	l.n--
	c.n--
	l.body.remove(tagOf(m) | uint64(slot))
	if l.n < leafEmpty && len(c.dir) > 1 {
		c.merge(at)
	}
}

// remove removes an entry. If its group was full, an entry that was moved past it takes the place, and so on.
func (b *leafBody) remove(e uint64) {
	i := groupOf(e)
	j := b.group(i).index(e)
	for ; j < 0; j = b.group(i).index(e) {
		i = (i + 1) % leafGroups
	}
	for {
		full := b.group(i).take(j)
		if !full {
			return
		}
		hole := i
		for j = -1; j < 0; {
			i = (i + 1) % leafGroups
			if j = b.group(i).passed(i, hole); j < 0 && b.group(i)[groupWords-1] == 0 || i == hole {
				return
			}
		}
		b.group(hole)[groupWords-1] = b.group(i)[j]
	}
}

// index returns the index of an entry in a group, -1 if it is not there. A slot is in one entry.
func (g *bucket) index(e uint64) int {
	same := isZero((g[0]^e)&maxSlots) | isZero((g[1]^e)&maxSlots)<<1 | isZero((g[2]^e)&maxSlots)<<2 | isZero((g[3]^e)&maxSlots)<<3 |
		isZero((g[4]^e)&maxSlots)<<4 | isZero((g[5]^e)&maxSlots)<<5 | isZero((g[6]^e)&maxSlots)<<6 | isZero((g[7]^e)&maxSlots)<<7
	if same == 0 {
		return -1
	}
	return bits.TrailingZeros64(same) % groupWords
}

// take removes entry j, which the last one replaces, and reports whether the group was full.
func (g *bucket) take(j int) bool {
	n := g.count()
	last := (n - 1) % groupWords
	g[j], g[last] = g[last], 0
	return n == groupWords
}

// passed returns the index of an entry in group i that belongs in group hole or one before it, or -1.
func (g *bucket) passed(i, hole int) int {
	for j, e := range g {
		if e != 0 && (i-groupOf(e))&(leafGroups-1) >= (i-hole)&(leafGroups-1) {
			return j
		}
	}
	return -1
}

// merge merges the leaf with the given first index in the directory, which has few entries, with the one that differs in the last
// bit, if both fit into one.
func (c *common) merge(i int) {
	l := c.dir[i]
	span := 1 << (64 - c.shift - l.depth)
	other := i ^ span
	from := c.dir[other]
	if from.depth != l.depth || l.n+from.n > leafMerged {
		return
	}
	if from.n > l.n {
		l.body, from.body = from.body, l.body
	}
	for k := range from.body {
		g := &from.body[k]
		for j := range g {
			if g[j] != 0 {
				l.body.insert(g[j])
				g[j] = 0
			}
		}
	}
	if c.many--; len(c.spare) < c.many/4 {
		c.spare = append(c.spare, from.body)
	} else {
		clear(c.spare[c.many/4:])
		c.spare = c.spare[:c.many/4]
	}
	if span == 1 {
		c.deep -= 2
	}
	c.set(min(i, other), 2*span, leaf{l.body, l.n + from.n, l.depth - 1})
	for c.deep == 0 && len(c.dir) > 1 {
		c.halve()
	}
}

// halve makes the directory as small as its leaves permit: each is in it at least twice.
func (c *common) halve() {
	dir := make([]leaf, 0, len(c.dir)/2)
	c.shift++
	for i := 0; i < len(c.dir); i += 2 {
		if dir = append(dir, c.dir[i]); c.dir[i].depth == 64-c.shift {
			c.deep++
		}
	}
	c.dir = dir
}

// reset releases the memory. There must be no names.
func (c *common) reset() {
	c.dir, c.spare, c.many, c.deep = nil, nil, 0, 0
	c.of.resize(chunkLen)
}
