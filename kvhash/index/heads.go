// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math"
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
// entry never moves within a table.
//
// If a table is full, a new one takes its place at once, and the entries of the old one are copied to it afterwards, some with each
// new entry. Until all are, the new table leads to the old one, in which only removed entries change.
type heads struct {
	mixer
	table atomic.Pointer[headTable]

	_       apart
	used    int // entries and graves
	entries int // in the old table, too
	moved   int // words of the old table that were copied
	step    int // words to copy with each new entry
	_       apart
}

type headTable struct {
	shift uint8 // bucket = mixed hash >> shift
	words []atomic.Uint64
	old   *headTable // with the entries that may not be in this one; nil if none
}

const (
	grave    = 1 << 32 // a removed entry: there is no run 0
	minHeads = 512
	minStep  = 16
)

func newHeadTable(entries int) *headTable {
	n := max(minHeads, 1<<bits.Len(uint(entries*2-1))) // at most half full
	return &headTable{shift: uint8(64 - bits.TrailingZeros(uint(n))), words: make([]atomic.Uint64, n)}
}

func entry(mixed uint64, run uint32) uint64 { return mixed<<32 | uint64(run) }

// find returns the run whose first block has hash seq, or 0; conflict reports a concurrent change by the writer.
// Readers may call it.
func (h *heads) find(runs *slab[run], seq uint64) (n uint32, r *run, conflict bool) {
	mixed := h.mix(seq)
	// An entry that is copied is in both tables, so it is found in one of them.
	for t := h.table.Load(); t != nil; t = t.old {
		mask := uint64(len(t.words) - 1)
		for i := mixed >> t.shift; ; i++ {
			w := t.words[i&mask].Load()
			if w == 0 {
				break
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
	return 0, nil, false
}

// fresh returns the number of leading hashes that no run begins with. It looks at four words for each without a branch, so that the
// cache misses overlap, and searches only if one of them has the tag of the hash, all are taken, or there is an old table. For the writer.
func (h *heads) fresh(runs *slab[run], seqs []uint64) int {
	t := h.table.Load()
	words, mix, shift, old := t.words, h.mixer, t.shift&63, t.old != nil
	mask := uint64(len(words) - 1)
	for n, seq := range seqs {
		mixed := mix.mix(seq)
		i := mixed >> shift
		a, b, c, d := words[i&mask].Load(), words[(i+1)&mask].Load(), words[(i+2)&mask].Load(), words[(i+3)&mask].Load()
		tag := mixed << 32
		near := min(min(a^tag, b^tag), min(c^tag, d^tag)) // below 1<<32 if one of them has this tag
		if near>>32 == 0 || min(min(a, b), min(c, d)) != 0 || old {
			if m, _, _ := h.find(runs, seq); m != 0 {
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
		t = h.renew(runs)
	}
	if t.old != nil {
		t = h.move(runs, h.step)
	}
	h.entries++
	h.insert(t, h.mix(seq), n)
}

// insert adds an entry to a table that does not have it.
func (h *heads) insert(t *headTable, mixed uint64, n uint32) {
	mask := uint64(len(t.words) - 1)
	i := mixed >> t.shift
	for uint32(t.words[i&mask].Load()) != 0 {
		i++
	}
	if t.words[i&mask].Load() == 0 {
		h.used++
	}
	setWord(&t.words[i&mask], entry(mixed, n))
}

// remove removes the run that begins with seq.
func (h *heads) remove(seq uint64, n uint32) {
	t := h.table.Load()
	mixed := h.mix(seq)
	h.entries--
	if t.old != nil {
		if i, ok := t.old.place(mixed, n); ok {
			setWord(&t.old.words[i], grave)
		}
	}
	i, ok := t.place(mixed, n)
	if !ok {
		return // it was not copied
	}
	mask := uint64(len(t.words) - 1)
	if t.words[(i+1)&mask].Load() != 0 {
		setWord(&t.words[i], grave)
		return
	}
	// The next entry is free, so no probe continues past this one or past the tombstones before it.
	for {
		setWord(&t.words[i&mask], 0)
		h.used--
		i--
		if t.words[i&mask].Load() != grave {
			return
		}
	}
}

// place returns the index of an entry, and whether it is there.
func (t *headTable) place(mixed uint64, n uint32) (uint64, bool) {
	mask := uint64(len(t.words) - 1)
	for i := mixed >> t.shift; ; i++ {
		switch t.words[i&mask].Load() {
		case entry(mixed, n):
			return i & mask, true
		case 0:
			return 0, false
		}
	}
}

// renew makes a table without removed entries and with room for twice as many entries.
func (h *heads) renew(runs *slab[run]) *headTable {
	if h.table.Load().old != nil {
		h.move(runs, math.MaxInt)
	}
	t := newHeadTable(h.entries + 1)
	t.old = h.table.Load()
	// It is complete before the new one is full: at least an eighth of its words remain for new entries.
	h.used, h.moved, h.step = 0, 0, max(minStep, 16*len(t.old.words)/len(t.words))
	h.table.Store(t)
	return t
}

// move copies some words of the old table, and returns the table, which has no old one when all are copied.
func (h *heads) move(runs *slab[run], words int) *headTable {
	t := h.table.Load()
	end := min(len(t.old.words), h.moved+min(words, len(t.old.words)))
	for ; h.moved < end; h.moved++ {
		if n := uint32(t.old.words[h.moved].Load()); n != 0 {
			h.insert(t, h.mix(runs.at(n).head.Load()), n)
		}
	}
	if h.moved == len(t.old.words) {
		t = &headTable{shift: t.shift, words: t.words}
		h.table.Store(t)
	}
	return t
}

// reset empties the table.
func (h *heads) reset() {
	h.used, h.entries = 0, 0
	h.table.Store(newHeadTable(1))
}
