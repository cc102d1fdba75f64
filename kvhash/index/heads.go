// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math/bits"
	"sync/atomic"
)

// mixer spreads keys over buckets. The secret prevents clients that choose tokens from choosing buckets.
type mixer uint64

func (m mixer) mix(h uint64) uint64 {
	hi, lo := bits.Mul64(h^uint64(m), 0x9E3779B97F4A7C15)
	return hi ^ lo
}

// heads finds the run that begins with a block, by the block's sequence hash. Open addressing with linear probing; an
// entry is the low half of the mixed hash and the number of the run. Readers load words; one writer changes them. An
// entry never moves within a table; when the table is rebuilt, the old one stays unchanged for lookups that still read
// it.
type heads struct {
	mixer
	table atomic.Pointer[headTable]

	_       apart
	used    int // entries and graves
	entries int
	_       apart
}

type headTable struct {
	shift uint8 // bucket = mixed hash >> shift
	words []atomic.Uint64
}

const (
	grave    = 1 << 32 // a removed entry: there is no run 0
	minHeads = 512
)

func newHeadTable(entries int) *headTable {
	n := max(minHeads, 1<<bits.Len(uint(entries*2-1))) // at most half full
	return &headTable{shift: uint8(64 - bits.TrailingZeros(uint(n))), words: make([]atomic.Uint64, n)}
}

func entry(mixed uint64, run uint32) uint64 { return mixed<<32 | uint64(run) }

// find returns the run whose first block has hash seq, or 0; conflict reports a concurrent change by the writer.
// Readers may call it.
func (h *heads) find(runs *slab[run], seq uint64) (n uint32, r *run, conflict bool) {
	t := h.table.Load()
	mixed := h.mix(seq)
	mask := uint64(len(t.words) - 1)
	for i := mixed >> t.shift; ; i++ {
		w := t.words[i&mask].Load()
		if w == 0 {
			return 0, nil, false
		}
		if uint32(w>>32) != uint32(mixed) || uint32(w) == 0 {
			continue
		}
		n = uint32(w)
		r = runs.peek(n)
		if r == nil {
			return 0, nil, true
		}
		if r.head.Load() == seq {
			return n, r, false
		}
	}
}

// fresh returns the number of leading hashes that no run begins with. For the writer.
func (h *heads) fresh(runs *slab[run], seqs []uint64) int {
	t := h.table.Load()
	mask := uint64(len(t.words) - 1)
	for n, seq := range seqs {
		mixed := h.mix(seq)
		for i := mixed >> t.shift; ; i++ {
			w := t.words[i&mask].Load()
			if w == 0 {
				break
			}
			if uint32(w>>32) == uint32(mixed) && uint32(w) != 0 && runs.at(uint32(w)).head.Load() == seq {
				return n
			}
		}
	}
	return len(seqs)
}

// add adds a run that begins with seq; there must be none.
func (h *heads) add(runs *slab[run], seq uint64, n uint32) {
	t := h.table.Load()
	if h.used >= len(t.words)*5/8 {
		t = h.rebuild(runs)
	}
	mixed := h.mix(seq)
	mask := uint64(len(t.words) - 1)
	i := mixed >> t.shift
	for uint32(t.words[i&mask].Load()) != 0 {
		i++
	}
	if t.words[i&mask].Load() == 0 {
		h.used++
	}
	h.entries++
	t.words[i&mask].Store(entry(mixed, n))
}

// remove removes the run that begins with seq.
func (h *heads) remove(seq uint64, n uint32) {
	t := h.table.Load()
	mixed := h.mix(seq)
	mask := uint64(len(t.words) - 1)
	i := mixed >> t.shift
	for t.words[i&mask].Load() != entry(mixed, n) {
		i++
	}
	h.entries--
	if t.words[(i+1)&mask].Load() != 0 {
		t.words[i&mask].Store(grave)
		return
	}
	// The next entry is free, so no probe continues past this one or past the tombstones before it.
	for {
		t.words[i&mask].Store(0)
		h.used--
		i--
		if t.words[i&mask].Load() != grave {
			return
		}
	}
}

// rebuild makes a table without removed entries and with room for twice as many entries.
func (h *heads) rebuild(runs *slab[run]) *headTable {
	old, t := h.table.Load(), newHeadTable(h.entries+1)
	mask := uint64(len(t.words) - 1)
	for i := range old.words {
		n := uint32(old.words[i].Load())
		if n == 0 {
			continue
		}
		mixed := h.mix(runs.at(n).head.Load())
		j := mixed >> t.shift
		for t.words[j&mask].Load() != 0 {
			j++
		}
		t.words[j&mask].Store(entry(mixed, n))
	}
	h.used = h.entries
	h.table.Store(t)
	return t
}

// reset empties the table.
func (h *heads) reset() {
	h.used, h.entries = 0, 0
	h.table.Store(newHeadTable(1))
}
