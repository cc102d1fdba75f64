// SPDX-License-Identifier: Apache-2.0

package bpe

import "github.com/weft-go/weft/tokenizers/internal/words"

// State is the scratch space and word cache of one goroutine. The zero value is ready to use. It takes about 1.2 MB
// once used. It may be used with several models in turn, but each change of the model clears the cached words.
type State struct {
	words words.Cache
	longs longCache
	row   row
	batch batch
	nodes []node
	queue queue
	leaf  []uint32 // ids of the characters of a long word
	size  []uint32 // bytes of each, if ends are requested
}

// maxKept is the number of scratch bytes that a State keeps for the next long word.
const maxKept = 1 << 20

func (st *State) trim() {
	if cap(st.nodes)*12+cap(st.queue.entries)*8 > maxKept {
		st.nodes, st.queue = nil, queue{}
	}
	if (cap(st.leaf)+cap(st.size))*4 > maxKept {
		st.leaf, st.size = nil, nil
	}
}

// Reset removes the cached words.
func (st *State) Reset() {
	st.words.Reset()
	st.longs.reset()
}

// Append appends the ids of the word s[i:j], i < j, to dst. The text around the word is read only to load keys quickly
// and does not affect the result.
func (m *Model) Append(dst []uint32, s string, i, j int, st *State) []uint32 {
	n := j - i
	if n == 1 {
		return append(dst, m.byteID[s[i]])
	}
	if n > words.MaxLen {
		return m.appendLong(dst, s, i, j, st)
	}
	if !st.words.Serves(&m.own) {
		st.words.Bind(&m.own)
	}
	var lo, hi uint64
	// words.Key and words.Cache.Append, inlined: the two calls take a tenth of the time.
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
		lo, hi = words.Key(s, i, j)
	}
	line := st.words.Line(lo, hi)
	e := &line[0]
	if e.Lo != lo || e.Hi != hi {
		e = &line[1]
		if e.Lo != lo || e.Hi != hi {
			return m.miss(dst, s[i:j], lo, hi, st)
		}
	}
	c := e.ID[0] >> words.CountShift
	if c == 1 {
		return append(dst, e.ID[0]&words.FirstMask)
	}
	return append(append(dst, e.ID[0]&words.FirstMask), e.ID[1:c]...)
}

// miss encodes a word and puts it into the cache.
func (m *Model) miss(dst []uint32, w string, lo, hi uint64, st *State) []uint32 {
	start := len(dst)
	if len(w) > maxShort {
		dst = m.long(dst, w, st)
	} else if id := m.shorts.get(lo, hi); id != noID {
		dst = append(dst, id)
	} else {
		dst = m.merge(dst, w, st)
	}
	st.words.Put(lo, hi, dst[start:])
	return dst
}

// AppendEnds is [Model.Append] that also appends, for each id, where its part of the word ends: bytes from i.
// It begins where the one before ends.
func (m *Model) AppendEnds(dst []uint32, ends []int, s string, i, j int, st *State) ([]uint32, []int) {
	start := len(dst)
	dst = m.Append(dst, s, i, j, st)
	end := 0
	for _, id := range dst[start:] {
		end += len(m.vocab.Bytes(id))
		ends = append(ends, end)
	}
	return dst, ends
}

// long encodes a word without the cache.
func (m *Model) long(dst []uint32, w string, st *State) []uint32 {
	if id, ok := m.vocab.Lookup(w); ok && m.self[id>>6]>>(id&63)&1 != 0 {
		return append(dst, id)
	}
	return m.merge(dst, w, st)
}

func load64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
