// SPDX-License-Identifier: Apache-2.0

package bpe

import "math/bits"

// This file has the cache of words that are too long for the entries of State.words.

// longLog is the base-2 logarithm of the number of lines. A line holds two entries, 128 bytes.
const longLog = 10

// maxLong is the length of the longest word that is cached.
const maxLong = 31

// longCache holds the words of one model. The zero value is empty.
type longCache struct {
	model *Model
	words []longWord // 2 << longLog entries, allocated at first use
}

// longWord is a cached result of a word of 16 to 31 bytes. The last byte of key is the number of bytes; the top four bits
// of id[0] are the number of ids, 1 to 8.
type longWord struct {
	key [4]uint64
	id  [8]uint32
}

const (
	longCount = 28 // position of the number of ids
	longFirst = 1<<longCount - 1
)

func (c *longCache) reset() {
	clear(c.words)
	c.model = nil
}

func (c *longCache) bind(m *Model) {
	if c.words == nil {
		c.words = make([]longWord, 2<<longLog)
	} else if c.model != nil {
		clear(c.words)
	}
	c.model = m
}

// appendLong is Append for a word of more than maxCached bytes.
func (m *Model) appendLong(dst []uint32, s string, i, j int, st *State) []uint32 {
	n := j - i
	if n > maxLong {
		return m.long(dst, s[i:j], st)
	}
	c := &st.longs
	if c.model != m {
		c.bind(m)
	}
	var buf [32]byte
	k := s[i:]
	if len(k) < 32 {
		copy(buf[:], k)
		k = view(buf[:])
	}
	k = k[:32]
	key := [4]uint64{load64(k), load64(k[8:]), load64(k[16:]), load64(k[24:])}
	if n < 24 {
		key[2] &= 1<<(8*uint(n-16)) - 1
		key[3] = 0
	} else {
		key[3] &= 1<<(8*uint(n-24)) - 1
	}
	key[3] |= uint64(n) << 56
	a, b := bits.Mul64(key[0]^0xA0761D6478BD642F, key[1]^0xE7037ED1A0B428DB)
	a, b = bits.Mul64(a^b^key[2], key[3]^0x589965CC75374CC3)
	h := (a ^ b) >> (64 - longLog)
	line := c.words[2*h : 2*h+2 : 2*h+2]
	for x := range line {
		if e := &line[x]; e.key == key {
			dst = append(dst, e.id[0]&longFirst)
			return append(dst, e.id[1:e.id[0]>>longCount]...)
		}
	}
	start := len(dst)
	dst = m.long(dst, s[i:j], st)
	if ids := dst[start:]; len(ids) <= 8 {
		e := longWord{key: key}
		copy(e.id[:], ids)
		e.id[0] |= uint32(len(ids)) << longCount
		line[1] = line[0]
		line[0] = e
	}
	return dst
}
