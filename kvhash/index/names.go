// SPDX-License-Identifier: Apache-2.0

package index

import (
	"github.com/weft-go/weft/kvhash/kvevent"
)

// names maps a worker's own names, engine hashes that are not the common names of its blocks, to locations: the slot of a block and, one bit each, the tiers that hold it
// under this hash. Slots do not move, so splitting and merging runs does not change names. Only the writer uses it.
//
// It is a hash table in pages, so that no change takes longer than a page: the first bits of a mixed hash select the page
// in a directory, and the others a group of five entries in it, which fills a cache line. If a hash's group is full, the
// hash is stored in the next group of the page with room, and the groups in between count it. A page grows until it has
// pageLen groups, and is then split by one more bit. The directory has a page several times in a row if fewer
// bits select it. Only the copying of the directory takes longer with more names: 32 bytes for about 200 of them.
type names struct {
	n     int
	spare [][]group // pages of pageLen groups that are not used
	room  int       // groups of all pages
	deep  int       // pages that the directory has once
	mixer
	dir   []page
	shift uint8      // 64 - the binary logarithm of len(dir)
	shot  *namesShot // of a snapshot that does not have all pages yet, or nil
}

type page struct {
	groups []group
	n      uint16 // entries; valid only where the directory has the page first
	depth  uint8  // number of bits that select it
}

type group struct {
	keys  [groupLen]uint64
	slots [groupLen]uint32
	// meta holds the number of entries, their tiers, and the number of entries that belong here or earlier but were moved
	// further.
	meta uint32 // passed:9 tiers:4*5 n:3
}

const (
	groupLen  = 5
	pageLen   = 64  // the most groups of a page
	minShrink = 128 // groups that are kept until the worker is cleared
	nBits     = 3
	nMask     = 1<<nBits - 1
	tiersMask = 1<<kvevent.NumTiers - 1
	passed    = 1 << (nBits + groupLen*kvevent.NumTiers)
)

// All entries of a page may pass a group. This does not compile if they cannot be counted.
const _ = uint(1<<32/passed - groupLen*pageLen)

// isFull reports whether n entries are too many for a number of groups.
func isFull(n, groups int) bool { return 10*n > 7*groupLen*groups }

// pageFor returns the number of groups of a page with room for at least n entries, a power of two.
func pageFor(n int) int {
	size := 2
	for size < pageLen && isFull(n, size) {
		size *= 2
	}
	return size
}

// location is a slot and, in the higher bits, one bit for each tier.
type location uint64

const (
	slotBits = 30
	maxSlots = 1<<slotBits - 1 // slot 0 is not used
	slotMask = 1<<32 - 1
)

func locationAt(slot uint32, tiers uint8) location { return location(tiers)<<32 | location(slot) }

// tierBit returns the bit of a tier in a location.
func tierBit(plane int) location { return 1 << (32 + plane) }

func (p location) slot() uint32 { return uint32(p) }
func (p location) tiers() uint8 { return uint8(p >> 32) }

// spot is the position of an entry, or the zero spot. It is valid until the next add or remove.
type spot struct {
	g *group
	j int
}

func (s spot) location() location {
	return locationAt(s.g.slots[s.j], uint8(s.g.meta>>(nBits+kvevent.NumTiers*s.j))&tiersMask)
}

func (s spot) set(p location) {
	at := nBits + kvevent.NumTiers*s.j
	s.g.slots[s.j] = p.slot()
	s.g.meta = s.g.meta&^(tiersMask<<at) | uint32(p.tiers())<<at
}

// home returns the group where the search for a mixed hash begins, of n.
func home(m uint64, n int) int { return int(m & (1<<32 - 1) * uint64(n) >> 32) }

// find returns the position of h, or the zero spot.
func (t *names) find(h uint64) spot { return t.search(t.mix(h), h) }

// search is find for a hash whose mixed hash is m.
func (t *names) search(m, h uint64) spot {
	if len(t.dir) == 0 {
		return spot{}
	}
	groups := t.dir[m>>t.shift].groups
	for i, rest := home(m, len(groups)), len(groups); rest > 0; rest-- { // in a small page all groups may have been passed
		g := &groups[i]
		n := g.meta & nMask
		for j := range g.keys {
			if g.keys[j] == h && uint32(j) < n {
				return spot{g, j}
			}
		}
		if g.meta < passed {
			return spot{}
		}
		if i++; i == len(groups) {
			i = 0
		}
	}
	return spot{}
}

// touchLen is the number of hashes to touch at a time.
const touchLen = 64

// get returns the location of h, or 0.
func (t *names) get(h uint64) location {
	if s := t.find(h); s.g != nil {
		return s.location()
	}
	return 0
}

// first returns the first index in the directory of the page at index i.
func (t *names) first(i int) int { return i &^ (1<<((64-t.shift-t.dir[i].depth)&63) - 1) }

// add adds h, which is not there. p has at least one tier.
func (t *names) add(h uint64, p location) { t.enter(t.mix(h), h, p) }

// enter is add for a hash whose mixed hash is m.
func (t *names) enter(m, h uint64, p location) {
	if len(t.dir) == 0 {
		t.dir, t.shift = make([]page, 1), 64
		t.set(0, 1, page{groups: make([]group, pageFor(1))})
	}
	t.save(m)
	i := t.first(int(m >> t.shift))
	for isFull(int(t.dir[i].n)+1, len(t.dir[i].groups)) {
		t.grow(i)
		i = t.first(int(m >> t.shift))
	}
	t.dir[i].n++
	t.n++
	insert(t.dir[i].groups, m, h, p)
}

// place adds h with the location p unless it is there. It returns the position that h already has, or the zero spot if h is
// new.
func (t *names) place(h uint64, p location) spot {
	if t.placeNew(h, p) {
		return spot{}
	}
	m := t.mix(h)
	if at := t.search(m, h); at.g != nil {
		return at
	}
	t.enter(m, h, p)
	return spot{}
}

// placeNew adds h with the location p if it is usual: h is new, its group has room and was not passed, and its page need not grow. It
// reports whether it did.
func (t *names) placeNew(h uint64, p location) bool {
	if len(t.dir) == 0 || t.shot != nil {
		return false
	}
	m := t.mix(h)
	page := &t.dir[t.first(int(m>>1>>((t.shift-1)&63)))] // shift may be 64
	g := &page.groups[home(m, len(page.groups))]
	n, k := g.meta&nMask, &g.keys
	if g.meta >= passed || n >= groupLen || isFull(int(page.n)+1, len(page.groups)) || k[0] == h || k[1] == h || k[2] == h || k[3] == h {
		return false // the last key is not compared, because the group has room
	}
	g.put(n, h, p)
	page.n++
	t.n++
	return true
}

// put sets entry n, the first one that is not used.
func (g *group) put(n uint32, h uint64, p location) {
	g.meta = g.meta + 1 | uint32(p.tiers())<<((nBits+kvevent.NumTiers*n)&31) // an entry that is not used has no tiers
	g.keys[n], g.slots[n] = h, p.slot()
}

// insert adds h, with the mixed hash m, to a page with room.
func insert(groups []group, m, h uint64, p location) {
	for i := home(m, len(groups)); ; {
		g := &groups[i]
		if n := g.meta & nMask; n < groupLen {
			g.put(n, h, p)
			return
		}
		g.meta += passed
		if i++; i == len(groups) {
			i = 0
		}
	}
}

// grow makes room in the page with the given first index in the directory, or splits it.
func (t *names) grow(i int) {
	old := t.dir[i]
	if len(old.groups) < pageLen {
		t.resize(i, 2*len(old.groups))
		return
	}
	if 64-t.shift == old.depth { // one more bit for all
		dir := make([]page, 0, 2*len(t.dir))
		for _, p := range t.dir {
			dir = append(dir, p, p)
		}
		t.dir, t.deep = dir, 0
		t.shift--
		i *= 2
	}
	span := 1 << (64 - t.shift - old.depth) >> 1
	t.room -= pageLen
	halves := [2]page{{old.groups, 0, old.depth + 1}, {t.fresh(), 0, old.depth + 1}}
	var copied [pageLen]group
	copy(copied[:], old.groups)
	clear(old.groups)
	for k := range copied {
		g := &copied[k]
		tiers := g.meta >> nBits
		for j := range min(g.meta&nMask, groupLen) {
			h := g.keys[j]
			m := t.mix(h)
			half := &halves[m<<old.depth>>63]
			half.n++
			at := locationAt(g.slots[j], uint8(tiers&tiersMask))
			tiers >>= kvevent.NumTiers
			if to := &half.groups[home(m, pageLen)]; to.meta&nMask < groupLen {
				to.put(to.meta&nMask, h, at)
			} else {
				insert(half.groups, m, h, at)
			}
		}
	}
	for b := range halves {
		t.set(i+b*span, span, halves[b])
	}
}

// keep keeps a page of pageLen groups for later, if the spare pages are not more than a quarter of those in use.
func (t *names) keep(groups []group) {
	t.spare = append(t.spare, groups)
	if most := t.room / pageLen / 4; len(t.spare) > most {
		clear(t.spare[most:])
		t.spare = t.spare[:most]
	}
}

// fresh returns the groups of an empty page of pageLen.
func (t *names) fresh() []group {
	last := len(t.spare) - 1
	if last < 0 {
		groups := make([]group, pageLen)
		groups[0].meta = 0 // a page of memory that is read before it is written costs two page faults
		return groups
	}
	groups := t.spare[last]
	t.spare = t.spare[:last]
	clear(groups)
	return groups
}

// set sets the elements [i,i+span) of the directory, which does not have p.
func (t *names) set(i, span int, p page) {
	for k := range span {
		t.dir[i+k] = p
	}
	t.room += len(p.groups)
	if span == 1 {
		t.deep++
	}
}

// pour inserts the entries of a page that is no longer in the directory.
func (t *names) pour(groups []group) {
	for k := range groups {
		g := &groups[k]
		for j := range min(g.meta&nMask, groupLen) {
			m := t.mix(g.keys[j])
			insert(t.dir[m>>t.shift].groups, m, g.keys[j], spot{g, int(j)}.location())
		}
	}
}

// resize gives the page with the given first index in the directory another number of groups.
func (t *names) resize(i, size int) {
	p := t.dir[i]
	old := p.groups
	p.groups = make([]group, size)
	span := 1 << (64 - t.shift - p.depth)
	t.room -= len(old)
	if span == 1 {
		t.deep--
	}
	t.set(i, span, p)
	t.pour(old)
}

// remove removes the entry at a position. Its mixed hash is m.
func (t *names) remove(s spot, m uint64) {
	t.n--
	t.save(m)
	at := t.first(int(m >> t.shift))
	t.dir[at].n--
	groups := t.dir[at].groups
	i := home(m, len(groups))
	for g := &groups[i]; g != s.g; g = &groups[i] {
		g.meta -= passed
		if i++; i == len(groups) {
			i = 0
		}
	}
	s.g.take(s.j)
	if t.room > minShrink && int(t.dir[at].n)*5 < len(groups)*groupLen {
		t.shrink(at)
	}
}

// take removes entry j, which the last one replaces.
func (g *group) take(j int) {
	last := int(g.meta&nMask) - 1
	if j != last {
		spot{g, j}.set(spot{g, last}.location())
		g.keys[j] = g.keys[last]
	}
	spot{g, last}.set(0)
	g.meta--
}

// shrink merges the page with the given first index in the directory, which has few entries, with the one that differs in
// the last bit, or gives it fewer groups. The larger of two pages takes the entries of the other, if there is room.
func (t *names) shrink(i int) {
	p := t.dir[i]
	span := 1 << (64 - t.shift - p.depth)
	if buddy := i ^ span; p.depth > 0 && t.dir[buddy].depth == p.depth {
		q := t.dir[buddy]
		n := int(p.n + q.n)
		if len(q.groups) > len(p.groups) {
			t.save(uint64(buddy) << t.shift)
			p, q = q, p
		}
		if size := max(pageFor(n), len(p.groups)); !isFull(n+n/4, size) {
			t.room -= len(p.groups) + len(q.groups)
			if span == 1 {
				t.deep -= 2
			}
			to := page{p.groups, uint16(n), p.depth - 1}
			if size > len(p.groups) {
				to.groups = make([]group, size)
			}
			t.set(min(i, buddy), 2*span, to)
			t.pour(q.groups)
			if size > len(p.groups) {
				t.pour(p.groups)
			} else if len(q.groups) == pageLen && t.shot == nil { // a snapshot may refer to it
				t.keep(q.groups)
			}
			for t.deep == 0 && len(t.dir) > 1 {
				t.halve()
			}
			return
		}
	}
	if p = t.dir[i]; pageFor(int(p.n)) < len(p.groups) {
		t.resize(i, pageFor(int(p.n)))
	}
}

// halve makes the directory as small as its pages permit: each is in it at least twice.
func (t *names) halve() {
	dir := make([]page, 0, len(t.dir)/2)
	t.shift++
	for i := 0; i < len(t.dir); i += 2 {
		if dir = append(dir, t.dir[i]); t.dir[i].depth == 64-t.shift {
			t.deep++
		}
	}
	t.dir = dir
}

// all ranges over the hashes and their locations, in no particular order. The table must not change meanwhile.
func (t *names) all(yield func(uint64, location) bool) {
	for i := 0; i < len(t.dir); i += 1 << (64 - t.shift - t.dir[i].depth) {
		if !eachName(t.dir[i].groups, yield) {
			return
		}
	}
}

// eachName ranges over the entries of a page.
func eachName(groups []group, yield func(uint64, location) bool) bool {
	for i := range groups {
		g := &groups[i]
		for j := range min(g.meta&nMask, groupLen) {
			if !yield(g.keys[j], spot{g, int(j)}.location()) {
				return false
			}
		}
	}
	return true
}

// locations holds the locations of an engine hash in addition to the one in names, oldest first. Engines do not reuse
// hashes; a publisher that does may have many locations.
type locations struct {
	list  []location
	at    map[uint32]int // slot to position, once there are many
	tiers location       // the union of the bits of all locations
}

func newLocations(list []location) *locations {
	m := new(locations)
	for _, p := range list {
		m.push(p)
	}
	return m
}

func (m *locations) push(p location) {
	m.list = append(m.list, p)
	m.tiers |= p &^ slotMask
	switch n := len(m.list); {
	case m.at != nil:
		m.at[p.slot()] = n - 1
	case n > 16:
		m.at = make(map[uint32]int, n)
		for i, p := range m.list {
			m.at[p.slot()] = i
		}
	}
}

// add adds the slot in a plane. It reports whether the slot or plane is new.
func (m *locations) add(slot uint32, plane int) bool {
	p := locationAt(slot, 1<<plane)
	i, ok := m.at[slot]
	if m.at == nil {
		for j := range m.list {
			if m.list[j].slot() == slot {
				i, ok = j, true
			}
		}
	}
	if !ok {
		m.push(p)
		return true
	}
	m.tiers |= p &^ slotMask
	return m.list[i].add(p &^ slotMask)
}

// name records that h is the worker's own name of the block in the slot, in the plane. It reports whether this is new.
func (w *worker) name(h uint64, slot uint32, plane int) bool {
	bit := tierBit(plane)
	at := w.names.place(h, bit|location(slot))
	if at.g == nil {
		return true
	}
	if p := at.location(); p.slot() == slot {
		fresh := p.add(bit)
		w.names.save(w.names.mix(h))
		at.set(p)
		return fresh
	}
	more := w.more[h]
	if more == nil {
		if w.more == nil {
			w.more = make(map[uint64]*locations)
		}
		more = new(locations)
		w.more[h] = more
	}
	return more.add(slot, plane)
}

// add adds the bit of a tier. It reports whether the bit is new.
func (p *location) add(bit location) bool {
	if *p&bit != 0 {
		return false
	}
	*p |= bit
	return true
}
