// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math/bits"
	"slices"
	"sync/atomic"
)

// slots holds the blocks, 20 bytes each: the sequence hash for readers, the owner and the common name for the writer. Consecutive blocks
// of a prompt are in consecutive slots if possible, so that a run is a range of slots. A block never moves to another
// slot.
//
// The owner of a slot determines its use:
//
//	0 cont:1 run:30      a block of the run; cont: it follows the block in the slot before
//	1 listed:1 length:30 the first or last slot of a free range of that length; others inside a free range are stale
//
// A free range is listed, or it is room reserved for the growth of a run. The hash of the first slot of a listed range
// is next:32 prev:32 of its list. Free ranges are never adjacent, except that room stays separate until the run before
// it ends. Slots from end on were never used, or are free again.
type slots struct {
	seq slab[atomic.Uint64]

	_      apart
	owner  slab[uint32]
	common common
	end    uint32     // slots in use, free ranges included; at least 1, because slot 0 is not used
	free   [32]uint32 // by the binary logarithm of the length: the first listed range
	live   int        // blocks
	_      apart
}

const (
	freeBit   = 1 << 31
	listedBit = 1 << 30
	contBit   = 1 << 30
	lowBits   = 1<<30 - 1
)

// isLive reports whether slot i holds a block.
func (s *slots) isLive(i uint32) bool { return i < s.end && *s.owner.at(i)&freeBit == 0 }

// isNext reports whether slot i holds the block that follows the one in slot i-1.
func (s *slots) isNext(i uint32) bool {
	return i < s.end && *s.owner.at(i)&(freeBit|contBit) == contBit
}

// tie records that the block in slot i follows the one in slot i-1.
func (s *slots) tie(i uint32) {
	s.owner.save(i)
	*s.owner.at(i) |= contBit
}

// firstLive returns the first slot from i on that has a block, or end. The slot before i must have a block, unless i is 1, because a
// free range is only known from its first slot.
func (s *slots) firstLive(i uint32) uint32 {
	for i < s.end && *s.owner.at(i)&freeBit != 0 {
		i += *s.owner.at(i) & lowBits
	}
	return i
}

// run returns the run of a live slot.
func (s *slots) run(i uint32) uint32 { return *s.owner.at(i) & lowBits }

// own makes the slots [from,to) blocks of a run and keeps whether they follow each other.
func (s *slots) own(from, to, run uint32) {
	for from < to {
		s.owner.save(from)
		chunk := (*s.owner.dir.Load())[from>>chunkBits]
		part := chunk[from&chunkMask:]
		if n := int(to - from); n < len(part) {
			part = part[:n]
		}
		for i := range part {
			part[i] = part[i]&contBit | run
		}
		from += uint32(len(part))
	}
}

// canGrow reports whether slot at, which is not 0, is free: grow can allocate it.
func (s *slots) canGrow(at uint32) bool {
	if at == s.end {
		return at < maxSlots
	}
	return *s.owner.at(at)&freeBit != 0
}

// grow allocates up to n slots directly after slot last, if they are reserved for its run or free, and reserves room
// after them. It returns the number of slots.
func (s *slots) grow(last, n, room uint32) uint32 {
	at := last + 1
	if at == s.end {
		n = min(n, maxSlots-s.end)
		s.extend(s.end + n)
		return n
	}
	if *s.owner.at(at)&freeBit == 0 {
		return 0
	}
	have := s.absorb(at)
	n = min(n, have)
	if s.tight() {
		room = 0
	}
	s.keep(at, n, have, room)
	return n
}

// tight reports whether more than about half of the slots have no block, or no more can be allocated. If so, no room is
// reserved for growth.
func (s *slots) tight() bool {
	return int(s.end)-s.live > s.live+4*chunkLen || s.end > maxSlots-chunkLen
}

// alloc allocates up to n consecutive slots, and reserves room after them if available. It returns the first slot and
// the number of slots, or 0, 0 if the index is full.
func (s *slots) alloc(n, room uint32) (at, got uint32) {
	tight := s.tight()
	if tight {
		room = 0
	}
	if at := s.take(n + room); at != 0 {
		s.keep(at, n, *s.owner.at(at)&lowBits, room)
		return at, n
	}
	// Prefer a fragmented run to more than twice the memory of the blocks.
	if tight || n > maxSlots-s.end {
		at := s.largest()
		if at == 0 {
			s.sweep()
			at = s.largest()
		}
		if at != 0 {
			have := s.absorb(at)
			got = min(n, have)
			s.keep(at, got, have, 0)
			return at, got
		}
	}
	n = min(n, maxSlots-s.end)
	if n == 0 {
		return 0, 0
	}
	room = min(room, maxSlots-s.end-n)
	at = s.end
	s.extend(s.end + n + room)
	if room > 0 {
		s.mark(at+n, room, false)
	}
	return at, n
}

// take unlists and returns a free range of at least n slots, or returns 0.
func (s *slots) take(n uint32) uint32 {
	for c := bits.Len32(n - 1); c < len(s.free); c++ {
		if at := s.free[c]; at != 0 {
			s.unlist(at)
			return at
		}
	}
	return 0
}

// largest returns a listed range that is at least half as long as the longest, or 0.
func (s *slots) largest() uint32 {
	for _, at := range slices.Backward(s.free[:]) {
		if at != 0 {
			return at
		}
	}
	return 0
}

// sweep lists the reserved room of all runs. It visits every slot, so the slots found must be used up before it is
// called again.
func (s *slots) sweep() {
	for i := uint32(1); i < s.end; i++ {
		if *s.owner.at(i)&freeBit != 0 {
			from := i
			for i < s.end && *s.owner.at(i)&freeBit != 0 {
				i += s.absorb(i)
			}
			s.list(from, i-from)
		}
	}
}

// keep frees the slots after the first n+room of an unlisted free range, and marks the room.
func (s *slots) keep(at, n, have, room uint32) {
	room = min(room, have-n)
	if room > 0 {
		s.mark(at+n, room, false)
	}
	if rest := have - n - room; rest > 0 {
		s.list(at+n+room, rest)
	}
}

// extend adds slots to the end.
func (s *slots) extend(end uint32) {
	if end > uint32(s.seq.chunks())<<chunkBits { // chunks in reserve stay
		s.seq.resize(end)
		s.owner.resize(end)
		s.common.of.resize(end)
	}
	s.end = end
}

// equal returns the number of leading hashes that equal those of the blocks from slot i on, as long as each block follows the one in the slot
// before.
func (s *slots) equal(i uint32, seqs []uint64) (n int) {
	for n < len(seqs) && i < s.end {
		at := i & chunkMask
		words := (*s.seq.dir.Load())[i>>chunkBits][at:]
		owners := (*s.owner.dir.Load())[i>>chunkBits][at:]
		most := min(len(words), len(seqs)-n, int(s.end-i))
		words, owners, want := words[:most], owners[:most], seqs[n:][:most]
		for j := range want {
			if o := owners[j]; o&(freeBit|contBit) != contBit || o&lowBits == 0 || words[j].Load() != want[j] {
				return n + j
			}
		}
		n += most
		i += uint32(most)
	}
	return n
}

// put fills the slots from i on, which were taken, with blocks that follow each other. cont reports whether the first one
// follows the block in the previous slot.
func (s *slots) put(i uint32, seqs []uint64, cont bool) {
	s.live += len(seqs)
	first := i
	for len(seqs) > 0 {
		s.seq.save(i)
		s.owner.save(i)
		at := i & chunkMask
		n := min(len(seqs), chunkLen-int(at))
		words := (*s.seq.dir.Load())[i>>chunkBits][at:][:n]
		owners := (*s.owner.dir.Load())[i>>chunkBits][at:][:n]
		setWords(words, seqs[:n])
		for j := range owners {
			owners[j] = contBit
		}
		seqs, i = seqs[n:], i+uint32(n)
	}
	if !cont {
		*s.owner.at(first) = 0
	}
}

// add makes slot i, which was taken, a block of a run that follows the block in the slot before.
func (s *slots) add(i uint32, seq uint64, run uint32) {
	s.live++
	s.seq.save(i)
	s.owner.save(i)
	setWord(s.seq.at(i), seq)
	*s.owner.at(i) = contBit | run
}

// release frees the slots [from,to), which hold blocks that are no longer part of a run or were allocated but not used,
// together with the room around them.
func (s *slots) release(from, to uint32) {
	s.common.forget(from, to)
	for to < s.end && *s.owner.at(to)&freeBit != 0 {
		to += s.absorb(to)
	}
	if to < s.end {
		s.owner.save(to)
		*s.owner.at(to) &^= contBit
	}
	for *s.owner.at(from - 1)&freeBit != 0 {
		from -= *s.owner.at(from - 1) & lowBits
		s.absorb(from)
	}
	if to == s.end {
		s.end = from
		// Chunks are released only if there are twice as many as needed, because the index may grow again.
		if used := int(from>>chunkBits) + 1; s.seq.chunks() > 2*used+2 {
			s.seq.resize(from + chunkLen)
			s.owner.resize(from + chunkLen)
			s.common.of.resize(from + chunkLen)
		}
		return
	}
	s.list(from, to-from)
}

// absorb removes a free range from its list, if it is listed, and returns its length.
func (s *slots) absorb(at uint32) uint32 {
	o := *s.owner.at(at)
	if o&listedBit != 0 {
		s.unlist(at)
	}
	return o & lowBits
}

// mark writes the tags of a free range.
func (s *slots) mark(at, n uint32, listed bool) {
	o := freeBit | n
	if listed {
		o |= listedBit
	}
	s.owner.save(at)
	s.owner.save(at + n - 1)
	*s.owner.at(at) = o
	*s.owner.at(at + n - 1) = o
}

func (s *slots) list(at, n uint32) {
	s.mark(at, n, true)
	first := &s.free[bits.Len32(n)-1]
	if *first != 0 {
		s.seq.save(*first)
		w := s.seq.at(*first)
		setWord(w, w.Load()&^lowWord|uint64(at))
	}
	s.seq.save(at)
	setWord(s.seq.at(at), uint64(*first)<<32)
	*first = at
}

const lowWord = 1<<32 - 1

func (s *slots) unlist(at uint32) {
	w := s.seq.at(at).Load()
	next, prev := uint32(w>>32), uint32(w)
	if next != 0 {
		s.seq.save(next)
		w := s.seq.at(next)
		setWord(w, w.Load()&^lowWord|uint64(prev))
	}
	if prev != 0 {
		s.seq.save(prev)
		w := s.seq.at(prev)
		setWord(w, w.Load()&lowWord|uint64(next)<<32)
	} else {
		s.free[bits.Len32(*s.owner.at(at)&lowBits)-1] = next
	}
}

// reset releases the memory.
func (s *slots) reset() {
	s.end, s.live = 1, 0
	clear(s.free[:])
	s.seq.resize(chunkLen)
	s.owner.resize(chunkLen)
	s.common.reset()
}
