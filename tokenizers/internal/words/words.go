// SPDX-License-Identifier: Apache-2.0

// Package words holds what all models remember of the words they have met: a two-way cache from words of up
// to 15 bytes to up to 4 ids. Its tables hold no pointers, so the garbage collector does not scan them.
//
//	Cache   1 << Log lines of two entries, 64 bytes a line
//	Entry   the word in 15 bytes, its length in the 16th; the ids, their number in the top bits of the first
//
// The byte-level model of package bpe works on Entries itself, since a call for each word is a tenth of its
// time; the others use [Cache.Append] and [Cache.Put].
package words

import "math/bits"

// Log is the base-2 logarithm of the number of lines. A line holds two entries.
const Log = 14

// Size is the number of entries of a cache.
const Size = 2 << Log

// MaxLen is the length in bytes of the longest word that is kept.
const MaxLen = 15

// MaxIDs is the largest number of ids of a cached word.
const MaxIDs = 4

const (
	// CountShift is the bit position of the number of ids, 1 to 4, in the first id of an entry.
	CountShift = 28
	// FirstMask takes the number away.
	FirstMask = 1<<CountShift - 1
)

// Entry is a cached result. Lo and Hi hold up to 15 bytes and, in the top byte of Hi, their number, which is
// never 0 in an entry that is used.
type Entry struct {
	Lo, Hi uint64
	ID     [MaxIDs]uint32
}

// Owner identifies the model whose words a cache holds. Every model has its own; owners are compared by address.
type Owner struct{ _ byte }

// Cache holds the words of one model. The zero value is ready for [Cache.Bind]. It belongs to one goroutine
// at a time.
type Cache struct {
	Entries []Entry // as many as Size, allocated by Bind
	owner   *Owner
}

// Serves reports whether the cache belongs to o.
func (c *Cache) Serves(o *Owner) bool { return c.owner == o }

// Bind makes c the cache of o, which must not be so already, and forgets the words of another model.
func (c *Cache) Bind(o *Owner) {
	if c.Entries == nil {
		c.Entries = make([]Entry, Size)
	} else if c.owner != nil {
		clear(c.Entries)
	}
	c.owner = o
}

// Reset forgets all words.
func (c *Cache) Reset() {
	clear(c.Entries)
	c.owner = nil
}

// Key packs the word s[i:j] of 1 to [MaxLen] bytes. What follows it in s is only read to do so quickly.
func Key(s string, i, j int) (lo, hi uint64) {
	if i+16 > len(s) {
		return packSlow(s[i:j])
	}
	k := s[i : i+16]
	n := uint(j - i)
	lo = load64(k)
	if n <= 8 {
		return lo & (^uint64(0) >> (64 - 8*n)), uint64(n) << 56
	}
	return lo, load64(k[8:])&(^uint64(0)>>(128-8*n)) | uint64(n)<<56
}

func packSlow(w string) (lo, hi uint64) {
	for k := 0; k < len(w); k++ {
		if k < 8 {
			lo |= uint64(w[k]) << (8 * k)
		} else {
			hi |= uint64(w[k]) << (8 * (k - 8))
		}
	}
	return lo, hi | uint64(len(w))<<56
}

// Hash returns a hash of a key. Its top [Log] bits choose the line.
func Hash(lo, hi uint64) uint64 {
	a, b := bits.Mul64(lo^0xA0761D6478BD642F, hi^0xE7037ED1A0B428DB)
	return a ^ b
}

// Line returns the two entries where the word of that key may be.
func (c *Cache) Line(lo, hi uint64) []Entry {
	h := Hash(lo, hi) >> (64 - Log)
	return c.Entries[2*h : 2*h+2 : 2*h+2]
}

// Append appends the ids of the word s[i:j], of 1 to [MaxLen] bytes, if it is there, and returns its key.
func (c *Cache) Append(dst []uint32, s string, i, j int) (_ []uint32, lo, hi uint64, ok bool) {
	if i+16 <= len(s) {
		// Key, written out.
		k := s[i : i+16]
		n := uint(j - i)
		lo = load64(k)
		if n <= 8 {
			lo &= ^uint64(0) >> (64 - 8*n)
			hi = uint64(n) << 56
		} else {
			hi = load64(k[8:])&(^uint64(0)>>(128-8*n)) | uint64(n)<<56
		}
	} else {
		lo, hi = packSlow(s[i:j])
	}
	line := c.Line(lo, hi)
	e := &line[0]
	if e.Lo != lo || e.Hi != hi {
		e = &line[1]
		if e.Lo != lo || e.Hi != hi {
			return dst, lo, hi, false
		}
	}
	n := e.ID[0] >> CountShift
	if n == 1 {
		return append(dst, e.ID[0]&FirstMask), lo, hi, true
	}
	return append(append(dst, e.ID[0]&FirstMask), e.ID[1:n]...), lo, hi, true
}

// Put keeps a word if it has 1 to [MaxIDs] ids. Its line keeps the newer of its two entries.
func (c *Cache) Put(lo, hi uint64, ids []uint32) {
	if len(ids) == 0 || len(ids) > MaxIDs {
		return
	}
	e := Entry{Lo: lo, Hi: hi}
	copy(e.ID[:], ids)
	e.ID[0] |= uint32(len(ids)) << CountShift
	line := c.Line(lo, hi)
	line[1] = line[0]
	line[0] = e
}

func load64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
