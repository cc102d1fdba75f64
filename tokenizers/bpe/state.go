// SPDX-License-Identifier: Apache-2.0

package bpe

import "math/bits"

// cacheLog is the base-2 logarithm of the number of cache lines. A line holds two entries, 64 bytes.
const cacheLog = 14

// State is the scratch space and word cache of one goroutine. The zero value is ready to use. It holds
// about 1 MB once used, and may serve any number of models one after the other: it forgets the words of
// one when it meets another.
type State struct {
	model *Model
	words []word // 2 << cacheLog entries, allocated at first use
	nodes []node
	queue queue
}

// word is a cached result. lo and hi hold up to 15 bytes and, in the top byte of hi, their number, which
// is never 0 in an entry that is used. The top four bits of id[0] hold the number of ids, 1 to 4.
type word struct {
	lo, hi uint64
	id     [4]uint32
}

const (
	maxCached  = 15
	countShift = 28
	firstMask  = 1<<countShift - 1
)

// maxKept is how many bytes of scratch a State keeps for the next long word.
const maxKept = 1 << 20

func (st *State) trim() {
	if cap(st.nodes)*12+cap(st.queue.entries)*8 > maxKept {
		st.nodes, st.queue = nil, queue{}
	}
}

// Reset forgets the cached words.
func (st *State) Reset() {
	clear(st.words)
	st.model = nil
}

func (st *State) bind(m *Model) {
	if st.words == nil {
		st.words = make([]word, 2<<cacheLog)
	} else if st.model != nil {
		clear(st.words)
	}
	st.model = m
}

// Append appends the ids of the word s[i:j], i < j, to dst. The text around the word is only read to load
// keys quickly and has no influence.
func (m *Model) Append(dst []uint32, s string, i, j int, st *State) []uint32 {
	n := j - i
	if n == 1 {
		return append(dst, m.byteID[s[i]])
	}
	if n > maxCached {
		return m.long(dst, s[i:j], st)
	}
	if st.model != m {
		st.bind(m)
	}
	var lo, hi uint64
	if i+16 <= len(s) {
		k := s[i : i+16]
		lo = load64(k)
		if n <= 8 {
			lo &= ^uint64(0) >> (64 - 8*uint(n))
			hi = uint64(n) << 56
		} else {
			hi = load64(k[8:])&(^uint64(0)>>(128-8*uint(n))) | uint64(n)<<56
		}
	} else {
		lo, hi = packSlow(s[i:j])
	}
	h := mix(lo^0xA0761D6478BD642F, hi^0xE7037ED1A0B428DB) >> (64 - cacheLog)
	line := st.words[2*h : 2*h+2 : 2*h+2]
	e := &line[0]
	if e.lo != lo || e.hi != hi {
		e = &line[1]
		if e.lo != lo || e.hi != hi {
			return m.miss(dst, s[i:j], lo, hi, line, st)
		}
	}
	c := e.id[0] >> countShift
	if c == 1 {
		return append(dst, e.id[0]&firstMask)
	}
	return append(append(dst, e.id[0]&firstMask), e.id[1:c]...)
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

// miss encodes a word and puts it into its cache line, which keeps the newer of its two entries.
func (m *Model) miss(dst []uint32, w string, lo, hi uint64, line []word, st *State) []uint32 {
	start := len(dst)
	dst = m.long(dst, w, st)
	ids := dst[start:]
	if len(ids) <= 4 {
		e := word{lo: lo, hi: hi}
		copy(e.id[:], ids)
		e.id[0] |= uint32(len(ids)) << countShift
		line[1] = line[0]
		line[0] = e
	}
	return dst
}

// long encodes a word without the cache.
func (m *Model) long(dst []uint32, w string, st *State) []uint32 {
	if id, ok := m.vocab.Lookup(w); ok && m.self[id>>6]>>(id&63)&1 != 0 {
		return append(dst, id)
	}
	return m.merge(dst, w, st)
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func load64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
