// SPDX-License-Identifier: Apache-2.0

package bpe

import "unicode/utf8"

// This file finds positions at which a word can be cut before merging without changing the result, so that a text that
// is one word can be encoded in short parts, which often repeat.
//
// A border between two characters x and y is a cut if no merge joins a token spelled to its end with x and
// one spelled from its beginning with y. Cutting there is exact:
//
//   - Every symbol of a word during merging is spelled like the text it covers: a character is, and
//     a merge joins two spellings, which [NewChars] checks. The exceptions are the unknown token and the
//     tokens for bytes; if a merge names one of them nothing is cut, so that they are never merged.
//   - So a merge across the border would join a token that ends with x and one that begins with y, or one of
//     the exceptions; none does. Every merge stays on one side.
//   - The reference takes the merge of lowest rank, then the leftmost. Which merges are possible on one side
//     depends on that side alone. Among these the order by rank, then position, is the same whether the other
//     side is there or not, so each side takes the same steps as alone.
//   - Ids before merging are made from left to right, with one thing remembered: an unknown token that waits.
//     Where one can wait longer than a character, or characters are dropped so that others meet, only a
//     border between two known characters is a cut: nothing waits there, and nothing goes.
//
// With a prefix or suffix the characters at the ends of a word differ from those inside; such models get
// words of pre-tokenizers, and nothing is cut.

// cuts is the set of borders that are not cuts. It may contain some that are.
type cuts struct {
	// near[x<<8|y] is set if a merge can join x and y, or if one of them is unknown and must be known. Both are ASCII
	// or class space.
	near [(space + 1) << 8]bool
	// pairs has bit pairBit(x, y) for all others. Two pairs of characters may share a bit.
	pairs []uint64
	// known is set if only borders between characters of its vocabulary are cuts.
	known *Chars
}

const (
	// space represents ▁, the space of these vocabularies, among the ASCII characters.
	space = utf8.RuneSelf
	// pairLog is the base-2 logarithm of the number of bits in cuts.pairs.
	pairLog = 18
)

func pairBit(x, y rune) uint32 {
	return (uint32(x)*0x9E3779B1 ^ uint32(y)*0x85EBCA77) * 0xC2B2AE35 >> (32 - pairLog)
}

// class returns the index of c in cuts.near.
func class(c rune) (uint32, bool) {
	if c == '▁' {
		return space, true
	}
	return uint32(c), c < utf8.RuneSelf
}

func (m *Chars) findCuts(merges []Merge) {
	m.whole = true
	if m.prefix != "" || m.suffix != "" {
		return
	}
	c := &m.cuts
	c.pairs = make([]uint64, 1<<pairLog/64)
	for _, g := range merges {
		if m.isOdd(g.A) || m.isOdd(g.B) {
			return
		}
		x, _ := utf8.DecodeLastRune(m.vocab.Bytes(g.A))
		y, _ := utf8.DecodeRune(m.vocab.Bytes(g.B))
		c.join(x, y)
	}
	m.whole = false
	if m.unk == noID || m.fuse || m.fall {
		for _, id := range m.bytes {
			if id == noID {
				c.known = m
			}
		}
	}
	if c.known == nil {
		return
	}
	for k := rune(0); k <= space; k++ {
		if r := unclass(uint32(k)); !m.knows(r) {
			for n := range uint32(space + 1) {
				c.near[uint32(k)<<8|n] = true
				c.near[n<<8|uint32(k)] = true
			}
		}
	}
}

// join records that the border between x and y is not a cut.
func (c *cuts) join(x, y rune) {
	nx, okX := class(x)
	ny, okY := class(y)
	if okX && okY {
		c.near[nx<<8|ny] = true
	} else {
		bit := pairBit(x, y)
		c.pairs[bit>>6] |= 1 << (bit & 63)
	}
}

// Borders is a set of pairs of characters between which a text must not be cut, for models of other packages. It may
// contain more pairs than were added. It is safe for concurrent use after the last Join.
type Borders struct{ cuts cuts }

// NewBorders returns an empty set.
func NewBorders() *Borders { return &Borders{cuts{pairs: make([]uint64, 1<<pairLog/64)}} }

// Join adds a pair.
func (b *Borders) Join(x, y rune) { b.cuts.join(x, y) }

// Next returns the first position after i at which s[i:j] can be cut, or j. s[i:j] is valid UTF-8 and not empty.
func (b *Borders) Next(s string, i, j int) int { return b.cuts.next(s, i, j) }

// unclass is the inverse of class.
func unclass(n uint32) rune {
	if n == space {
		return '▁'
	}
	return rune(n)
}

// next returns the first cut of s[i:j] after i, or j.
func (c *cuts) next(s string, i, j int) int {
	s = s[:j]
	// x and y are the classes of the characters before and at i.
	x := uint32(s[i])
	switch {
	case x < utf8.RuneSelf:
		i++
	case isSpace(s, i):
		x = space
		i += len("▁")
	default:
		r, size := utf8.DecodeRuneInString(s[i:])
		return c.far(s, i+size, r)
	}
	for i < len(s) {
		y, size := uint32(s[i]), 1
		if y >= utf8.RuneSelf {
			if !isSpace(s, i) {
				return c.far(s, i, unclass(x))
			}
			y, size = space, len("▁")
		}
		if !c.near[x<<8|y] {
			return i
		}
		x = y
		i += size
	}
	return i
}

func isSpace(s string, i int) bool {
	return len(s)-i >= 3 && s[i] == "▁"[0] && s[i+1] == "▁"[1] && s[i+2] == "▁"[2]
}

// far is next for any characters; x is the one before i.
func (c *cuts) far(s string, i int, x rune) int {
	for i < len(s) {
		y, size := utf8.DecodeRuneInString(s[i:])
		nx, okX := class(x)
		ny, okY := class(y)
		if okX && okY {
			if !c.near[nx<<8|ny] {
				return i
			}
		} else {
			bit := pairBit(x, y)
			if c.pairs[bit>>6]>>(bit&63)&1 == 0 && (c.known == nil || c.known.knows(x) && c.known.knows(y)) {
				return i
			}
		}
		x = y
		i += size
	}
	return i
}

// knows reports whether the character is in the vocabulary. Callers must not pass U+FFFD for an invalid byte if U+FFFD
// is in the vocabulary, because an invalid byte is unknown.
func (m *Chars) knows(c rune) bool {
	if c < utf8.RuneSelf {
		return m.ascii[c] != noID
	}
	return c != utf8.RuneError && m.runes.get(c, 0) != noID
}
