// SPDX-License-Identifier: Apache-2.0

package index

import "math/bits"

// names maps one worker's engine hashes to locations: the slot of a block and, one bit each, the tiers that hold it
// under this hash. Slots do not move, so splitting and merging runs does not change names. Only the writer uses it.
//
// It uses open addressing in groups of five entries, each of which fills a cache line. If a hash's group is full, the
// hash is stored in the next group with room, and the groups in between count it. The table grows by three quarters and
// also shrinks. Entries are rehashed in order, so that both tables are accessed sequentially.
type names struct {
	mixer
	groups []group
	n      int
}

type group struct {
	keys [groupLen]uint64
	vals [groupLen]location
	// meta holds the number of entries, and the number of entries that belong here or earlier but were moved further.
	meta uint32 // passed:29 n:3
}

const (
	groupLen  = 5
	minShrink = 128 // groups that are kept until the worker is cleared
	nMask     = 1<<3 - 1
	passed    = 1 << 3
)

// location is a slot and, in the higher bits, one bit for each tier.
type location uint32

const (
	slotBits = 28
	maxSlots = 1<<slotBits - 1 // slot 0 is not used
)

func locationAt(slot uint32, tiers uint8) location { return location(tiers)<<slotBits | location(slot) }

func (p location) slot() uint32 { return uint32(p) & maxSlots }
func (p location) tiers() uint8 { return uint8(p >> slotBits) }

// home returns the group where the search for h begins.
func (t *names) home(h uint64) int {
	hi, _ := bits.Mul64(t.mix(h), uint64(len(t.groups)))
	return int(hi)
}

// find returns the location of h, or nil. It is valid until the next add or remove.
func (t *names) find(h uint64) *location {
	if len(t.groups) == 0 {
		return nil
	}
	for i, rest := t.home(h), len(t.groups); rest > 0; rest-- { // in a small table all groups may have been passed
		g := &t.groups[i]
		for j := range g.keys {
			if g.keys[j] == h && uint32(j) < g.meta&nMask {
				return &g.vals[j]
			}
		}
		if g.meta < passed {
			return nil
		}
		if i++; i == len(t.groups) {
			i = 0
		}
	}
	return nil
}

// touch loads the groups of many hashes, so that the loads overlap. In a loop of find they would not, because each
// decides a branch. The result only prevents the compiler from removing the loads.
func (t *names) touch(hashes []uint64) (sum uint32) {
	if len(t.groups) == 0 {
		return 0
	}
	for _, h := range hashes {
		sum += t.groups[t.home(h)].meta
	}
	return sum
}

// touchLen is the number of hashes to touch at a time.
const touchLen = 16

// get returns the location of h, or 0.
func (t *names) get(h uint64) location {
	if p := t.find(h); p != nil {
		return *p
	}
	return 0
}

// add adds h, which is not there. p has at least one tier.
func (t *names) add(h uint64, p location) {
	if room := len(t.groups) * groupLen; t.n+1 > room-room/5 {
		t.resize(max(2, len(t.groups)+len(t.groups)*3/4))
	}
	t.insert(h, p)
}

func (t *names) insert(h uint64, p location) {
	t.n++
	for i := t.home(h); ; {
		g := &t.groups[i]
		if n := g.meta & nMask; n < groupLen {
			g.keys[n], g.vals[n] = h, p
			g.meta++
			return
		}
		g.meta += passed
		if i++; i == len(t.groups) {
			i = 0
		}
	}
}

// remove removes h, which is there.
func (t *names) remove(h uint64) {
	t.n--
	for i := t.home(h); ; {
		g := &t.groups[i]
		last := g.meta&nMask - 1
		for j := range g.keys {
			if g.keys[j] == h && uint32(j) <= last && last < groupLen {
				g.keys[j], g.vals[j] = g.keys[last], g.vals[last]
				g.meta--
				if n := len(t.groups); n > minShrink && t.n < n*groupLen/8 {
					t.resize(n / 2)
				}
				return
			}
		}
		g.meta -= passed
		if i++; i == len(t.groups) {
			i = 0
		}
	}
}

// reserve makes room for n hashes.
func (t *names) reserve(n int) {
	if groups := n/(groupLen-1) + 1; groups > len(t.groups) {
		t.resize(groups)
	}
}

func (t *names) resize(n int) {
	old := t.groups
	t.groups, t.n = make([]group, n), 0
	for i := range old {
		g := &old[i]
		for j := range min(g.meta&nMask, groupLen) {
			t.insert(g.keys[j], g.vals[j])
		}
	}
}

// all ranges over the hashes and their locations, in no particular order. The table must not change meanwhile.
func (t *names) all(yield func(uint64, location) bool) {
	for i := range t.groups {
		g := &t.groups[i]
		for j := range min(g.meta&nMask, groupLen) {
			if !yield(g.keys[j], g.vals[j]) {
				return
			}
		}
	}
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
	m.tiers |= p &^ maxSlots
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
	m.tiers |= p &^ maxSlots
	return m.list[i].add(p &^ maxSlots)
}

// parent returns the slot of a parent's engine hash, or 0. Usually the parent is the block that was stored last.
func (w *worker) parent(h uint64) uint32 {
	if w.recent == h && w.recentSlot != 0 && len(w.more) == 0 {
		return w.recentSlot
	}
	return w.last(h).slot()
}

// last returns the latest location of an engine hash, or 0.
func (w *worker) last(h uint64) location {
	if len(w.more) > 0 {
		if m := w.more[h]; m != nil {
			return m.list[len(m.list)-1]
		}
	}
	return w.names.get(h)
}

// name records that h is the worker's name of the block in the slot, in the plane. It reports whether this is new.
func (w *worker) name(h uint64, slot uint32, plane int) bool {
	bit := location(1) << (slotBits + plane)
	p := w.names.find(h)
	if p == nil {
		w.names.add(h, locationAt(slot, 1<<plane))
		return true
	}
	if p.slot() == slot {
		return p.add(bit)
	}
	m := w.more[h]
	if m == nil {
		if w.more == nil {
			w.more = make(map[uint64]*locations)
		}
		m = new(locations)
		w.more[h] = m
	}
	return m.add(slot, plane)
}

// add adds the bit of a tier. It reports whether the bit is new.
func (p *location) add(bit location) bool {
	if *p&bit != 0 {
		return false
	}
	*p |= bit
	return true
}
