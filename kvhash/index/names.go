// SPDX-License-Identifier: Apache-2.0

package index

import "math/bits"

// names maps one worker's engine hashes to the blocks they stand for: a slot and the tiers, one bit each, that hold it under this
// hash. Twelve bytes an entry, open addressing with linear probing, no pointers; it grows by half and shrinks again. Only the writer
// uses it. It points at slots, and slots do not move, so that runs can be split and merged without touching it.
type names struct {
	mixer
	keys []uint64
	vals []place // 0 where there is none
	n    int
}

// place is a slot and, above it, one bit for each tier.
type place uint32

const (
	slotBits = 28
	maxSlots = 1<<slotBits - 1 // slot 0 is none
)

func placeAt(slot uint32, tiers uint8) place { return place(tiers)<<slotBits | place(slot) }

func (p place) slot() uint32 { return uint32(p) & maxSlots }
func (p place) tiers() uint8 { return uint8(p >> slotBits) }

// bucket returns where the search for h begins.
func (t *names) bucket(h uint64) int {
	hi, _ := bits.Mul64(t.mix(h), uint64(len(t.keys)))
	return int(hi)
}

// find returns the position of h, or where it would go, and whether it is there. The table must not be full; false for an empty one.
func (t *names) find(h uint64) (int, bool) {
	if len(t.keys) == 0 {
		return 0, false
	}
	for i := t.bucket(h); ; {
		if t.vals[i] == 0 {
			return i, false
		}
		if t.keys[i] == h {
			return i, true
		}
		if i++; i == len(t.keys) {
			i = 0
		}
	}
}

// get returns the place of h, or 0.
func (t *names) get(h uint64) place {
	if i, ok := t.find(h); ok {
		return t.vals[i]
	}
	return 0
}

// add adds h, which is not there; find said that it would go to position i. p has at least one tier.
func (t *names) add(i int, h uint64, p place) {
	if t.n+1 > len(t.keys)-len(t.keys)/5 {
		t.resize(max(8, len(t.keys)+len(t.keys)/2))
		i, _ = t.find(h)
	}
	t.n++
	t.keys[i], t.vals[i] = h, p
}

// set changes the place at position i; 0 removes it. Positions are void after that.
func (t *names) set(i int, p place) {
	t.vals[i] = p
	if p != 0 {
		return
	}
	t.n--
	if n := len(t.keys); n > 64 && t.n < n/3 {
		t.resize(n / 2)
		return
	}
	// Close the gap: what follows and may stand further front moves there.
	gap := i
	for {
		if i++; i == len(t.keys) {
			i = 0
		}
		if t.vals[i] == 0 {
			return
		}
		if t.behind(t.bucket(t.keys[i]), i) >= t.behind(gap, i) {
			t.keys[gap], t.vals[gap] = t.keys[i], t.vals[i]
			t.vals[i] = 0
			gap = i
		}
	}
}

// behind returns how far i is behind home, around the end of the table.
func (t *names) behind(home, i int) int {
	if i < home {
		i += len(t.keys)
	}
	return i - home
}

func (t *names) resize(n int) {
	keys, vals := t.keys, t.vals
	t.keys, t.vals = make([]uint64, n), make([]place, n)
	for i, p := range vals {
		if p != 0 {
			j, _ := t.find(keys[i])
			t.keys[j], t.vals[j] = keys[i], p
		}
	}
}
