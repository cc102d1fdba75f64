// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math/bits"
	"sync/atomic"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// The bit planes of the workers that hold a block: plane t-1 for tier t of package kvevent, one for predictions, and one for hybrid
// models. A worker is resident in a block if it has a bit in any plane.
const (
	planePredicted = kvevent.NumTiers
	planeWindow    = kvevent.NumTiers + 1 // only of workers that hold the block in a tier: all other cache groups hold it, too
	numPlanes      = kvevent.NumTiers + 2
)

const planeDevice = int(kvevent.Device) - 1

// A worker is a bit in the sets, its lane. If a worker is cleared it gets another lane, so that this is one step; the blocks of the old
// one are removed bit by bit afterwards. Usually the lane has the number of the worker.
type lane uint32

// Limits of workers and their lanes; a set always fits into a chunk of the slab.
const (
	maxWorkers = 16384
	maxLanes   = maxWorkers + 1024
)

// These do not compile if a set, a run or a location does not fit.
const (
	_ = uint(chunkLen - setHeader - (1+numPlanes)*maxLanes/64)
	_ = uint(1<<lengthBits - 1 - maxRun)
	_ = uint(32 - slotBits)
)

// sets holds each distinct set of residents once: the workers that hold a block, by plane. A set never changes. Runs
// refer to it by its number, 0 being the empty set, and references are counted. Most runs share few sets: one for each
// single worker, and one for all workers.
//
// A set is a row of words in a slab, beginning at a multiple of 4:
//
//	lo:16 n:16 planes:8   its words stand for the workers from 64*lo to 64*(lo+n)-1; one bit for each plane that is not empty
//	hash:32 refs:32       only for the writer
//	n words               the union of the planes, if there are several
//	n words               for each plane that is not empty, in order
//
// Readers load the words of a set whose number they read from a run. If the run has changed meanwhile, the words may
// belong to another set or to none, and the lookup is retried.
type sets struct {
	mixer
	words slab[atomic.Uint64]

	_       apart
	end     uint32                 // number of units of four words, free ones included
	free    [chunkLen/4 + 1]uint32 // by size in units of four words: the first free set, whose second word is the number of the next
	buckets []uint32               // open addressing over the numbers; 0 is free
	n       int
	scratch content
	planes  int // planes that a set may have: numPlanes, or planeWindow while there was no hybrid model
	_       apart
}

// content is a set under construction.
type content struct {
	words [numPlanes][]uint64 // all of one length
	lo, n int                 // words outside are zero
}

// view gives readers access to a set.
type view struct {
	lo, n int
	mask  uint8
	words []atomic.Uint64 // the union, then the planes
}

const setHeader = 2

// view returns the set with the given number, which is not 0, or false if there is no such set.
func (s *sets) view(id uint32) (v view, ok bool) {
	at := id << 2
	d := s.words.dir.Load()
	if d == nil || int(at>>chunkBits) >= len(*d) {
		return v, false
	}
	chunk := (*d)[at>>chunkBits][at&chunkMask:]
	h := chunk[0].Load()
	v.lo, v.n, v.mask = int(h&0xffff), int(h>>16&0xffff), uint8(h>>32)
	size := v.n * v.rows()
	if v.n == 0 || setHeader+size > len(chunk) {
		return v, false
	}
	v.words = chunk[setHeader : setHeader+size]
	return v, true
}

// rows returns the number of rows of n words.
func (v *view) rows() int {
	if v.mask&(v.mask-1) == 0 {
		return 1
	}
	return 1 + bits.OnesCount8(v.mask)
}

// plane returns the words of a plane, nil if it is empty.
func (v *view) plane(p int) []atomic.Uint64 {
	if v.mask>>p&1 == 0 {
		return nil
	}
	at := 0
	if v.mask&(v.mask-1) != 0 {
		at = v.n * (1 + bits.OnesCount8(v.mask&(1<<p-1)))
	}
	return v.words[at : at+v.n]
}

// word returns word i of a row for all workers.
func (v *view) word(row []atomic.Uint64, i int) uint64 {
	if i -= v.lo; uint(i) < uint(len(row)) {
		return row[i].Load()
	}
	return 0
}

// has reports whether the worker has a bit in the plane of a set. For the writer.
func (s *sets) has(id uint32, w lane, plane int) bool {
	if id == 0 {
		return false
	}
	v, _ := s.view(id)
	return v.word(v.plane(plane), int(w>>6))>>(w&63)&1 != 0
}

// isAlone reports whether a nonempty set has exactly one worker in one plane. For the writer.
func (s *sets) isAlone(id uint32, w lane, plane int) bool {
	at := id << 2
	words := (*s.words.dir.Load())[at>>chunkBits][at&chunkMask:][:setHeader+1]
	return words[0].Load() == uint64(w>>6)|1<<16|1<<(32+plane) && words[setHeader].Load() == 1<<(w&63)
}

// held reports whether the worker has a bit in any plane of a set. For the writer.
func (s *sets) held(id uint32, w lane) bool {
	if id == 0 {
		return false
	}
	v, _ := s.view(id)
	return v.word(v.words[:v.n], int(w>>6))>>(w&63)&1 != 0
}

// load fills the scratch content from a set, with room for worker w.
func (s *sets) load(id uint32, w lane) *content {
	c := &s.scratch
	var v view
	lo, hi := int(w>>6), int(w>>6)+1
	if id != 0 {
		v, _ = s.view(id)
		lo, hi = min(lo, v.lo), max(hi, v.lo+v.n)
	}
	for p := range c.words[:s.planes] {
		clear(c.words[p][c.lo : c.lo+c.n])
		if more := hi - len(c.words[p]); more > 0 {
			c.words[p] = append(c.words[p], make([]uint64, more)...)
		}
		for i, row := 0, v.plane(p); i < len(row); i++ {
			c.words[p][v.lo+i] = row[i].Load()
		}
	}
	c.lo, c.n = lo, hi-lo
	return c
}

// edit returns the set that equals id except that it has worker w in the planes of on and not in the planes of off, nor in planeWindow
// if it is in no tier. Its
// reference count is unchanged; it is 0 if the set is new, and the caller must add a reference.
func (s *sets) edit(id uint32, w lane, on, off uint8) uint32 {
	c := s.load(id, w)
	word, bit := w>>6, uint64(1)<<(w&63)
	for p := range c.words[:s.planes] {
		if on>>p&1 != 0 {
			c.words[p][word] |= bit
		}
		if off>>p&1 != 0 {
			c.words[p][word] &^= bit
		}
	}
	if s.planes == numPlanes && c.words[planeWindow][word]&bit != 0 {
		tiers := uint64(0)
		for p := range kvevent.NumTiers {
			tiers |= c.words[p][word]
		}
		c.words[planeWindow][word] &^= bit &^ tiers
	}
	return s.intern(c)
}

// widen permits planeWindow.
func (s *sets) widen() {
	if s.planes < numPlanes {
		s.planes = numPlanes
		s.scratch.words[planeWindow] = make([]uint64, len(s.scratch.words[0]))
	}
}

// intern returns the set with the given content. A new one has no references; it must get one, or be dropped.
func (s *sets) intern(c *content) uint32 {
	// Trim to the words in use and determine the nonempty planes.
	var mask uint8
	lo, hi := len(c.words[0]), 0
	for p := range c.words[:s.planes] {
		for i := c.lo; i < c.lo+c.n; i++ {
			if c.words[p][i] != 0 {
				mask |= 1 << p
				lo, hi = min(lo, i), max(hi, i+1)
			}
		}
	}
	if mask == 0 {
		return 0
	}
	n := hi - lo
	h := s.mix(uint64(lo)<<8 | uint64(mask))
	for p := range c.words[:s.planes] {
		if mask>>p&1 != 0 {
			for _, w := range c.words[p][lo:hi] {
				h = s.mix(h ^ w)
			}
		}
	}
	if len(s.buckets) == 0 || s.n*4 >= len(s.buckets)*3 {
		s.rehash(max(16, 2*len(s.buckets)))
	}
	head := uint64(lo) | uint64(n)<<16 | uint64(mask)<<32
	i := uint32(h) & s.mask()
	for ; s.buckets[i] != 0; i = (i + 1) & s.mask() {
		if id := s.buckets[i]; s.hash(id) == uint32(h) && s.words.at(id<<2).Load() == head && s.equal(id, c, lo) {
			return id
		}
	}
	id := s.alloc(setSize(n, mask))
	s.words.save(id << 2)
	s.buckets[i] = id
	s.n++
	setWord(s.words.at(id<<2), head)
	setWord(s.words.at(id<<2+1), uint64(uint32(h)))
	v, _ := s.view(id)
	at := 0
	if v.rows() > 1 {
		for ; at < n; at++ {
			var union uint64
			for p := range c.words[:s.planes] {
				union |= c.words[p][lo+at]
			}
			setWord(&v.words[at], union)
		}
	}
	for p := range c.words[:s.planes] {
		if mask>>p&1 != 0 {
			for _, w := range c.words[p][lo:hi] {
				setWord(&v.words[at], w)
				at++
			}
		}
	}
	return id
}

// equal reports whether a set with the same header has the content.
func (s *sets) equal(id uint32, c *content, lo int) bool {
	v, _ := s.view(id)
	for p := range c.words[:s.planes] {
		for i, row := 0, v.plane(p); i < len(row); i++ {
			if row[i].Load() != c.words[p][lo+i] {
				return false
			}
		}
	}
	return true
}

func (s *sets) mask() uint32 { return uint32(len(s.buckets) - 1) }

func (s *sets) hash(id uint32) uint32 { return uint32(s.words.at(id<<2 + 1).Load()) }

// ref adds n, which may be negative, to the number of references to a set, and frees the set if it becomes 0.
func (s *sets) ref(id uint32, n int) {
	if id == 0 {
		return
	}
	w := s.words.at(id<<2 + 1)
	refs := uint64(int64(w.Load()>>32) + int64(n))
	setWord(w, refs<<32|uint64(uint32(w.Load())))
	if refs == 0 {
		s.drop(id)
	}
}

func (s *sets) drop(id uint32) {
	m := s.mask()
	i := s.hash(id) & m
	for s.buckets[i] != id {
		i = (i + 1) & m
	}
	for gap := i; ; {
		if i = (i + 1) & m; s.buckets[i] == 0 {
			s.buckets[gap] = 0
			break
		}
		if home := s.hash(s.buckets[i]) & m; (i-home)&m >= (i-gap)&m {
			s.buckets[gap] = s.buckets[i]
			gap = i
		}
	}
	s.n--
	v, _ := s.view(id)
	size := setSize(v.n, v.mask)
	s.release(id, size)
}

// setSize returns the size of a set in units of four words.
func setSize(n int, mask uint8) int {
	v := view{n: n, mask: mask}
	return (setHeader + n*v.rows() + 3) / 4
}

// release adds a set to the free list. It then has no words, so that late readers detect it.
func (s *sets) release(id uint32, size int) {
	s.words.save(id << 2)
	setWord(s.words.at(id<<2), 0)
	setWord(s.words.at(id<<2+1), uint64(s.free[size]))
	s.free[size] = id
}

// alloc returns the number of a set of the given size.
func (s *sets) alloc(size int) uint32 {
	if id := s.free[size]; id != 0 {
		s.free[size] = uint32(s.words.at(id<<2 + 1).Load())
		return id
	}
	end := max(s.end, 1) // set 0 is the empty set
	if rest := int(chunkLen/4 - end&(chunkLen/4-1)); rest < size {
		s.release(end, rest) // a set must be within one chunk
		end += uint32(rest)
	}
	if end+uint32(size) > 1<<setBits {
		panic("index: more than 8 GiB of sets")
	}
	s.end = end + uint32(size)
	s.words.resize(s.end << 2)
	return end
}

func (s *sets) rehash(n int) {
	old := s.buckets
	s.buckets = make([]uint32, n)
	for _, id := range old {
		if id != 0 {
			i := s.hash(id) & s.mask()
			for s.buckets[i] != 0 {
				i = (i + 1) & s.mask()
			}
			s.buckets[i] = id
		}
	}
}

// reset releases the memory; no run may refer to any set.
func (s *sets) reset() {
	s.end, s.n, s.buckets = 0, 0, nil
	clear(s.free[:])
	s.words.resize(chunkLen)
}
