// SPDX-License-Identifier: Apache-2.0

package pretok

import "math/bits"

// This file looks at eight bytes at a time. Most words are shorter, so that the length of a word costs no branch that the
// processor has to guess.

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// word64 loads s[i:i+8].
func word64(s string, i int) uint64 {
	k := s[i : i+8]
	return uint64(k[0]) | uint64(k[1])<<8 | uint64(k[2])<<16 | uint64(k[3])<<24 |
		uint64(k[4])<<32 | uint64(k[5])<<40 | uint64(k[6])<<48 | uint64(k[7])<<56
}

// between returns the high bit of every byte of x that is in [lo, hi]; 0 < lo <= hi < 0x80.
func between(x uint64, lo, hi uint8) uint64 {
	low := x &^ highs // sums below do not carry into the next byte
	return (low + uint64(0x80-lo)*ones) &^ (low + uint64(0x7F-hi)*ones) & ^x & highs
}

// letters is run for a mask that holds letter and neither num, space, punct nor sym.
func letters(s string, i int, mask uint8) int {
	for i+8 <= len(s) {
		not := between(word64(s, i)|0x20*ones, 'a', 'z') ^ highs
		if not == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(not) >> 3
		if s[i] < 0x80 {
			return i
		}
		c, n := classMulti(s[i:])
		if c&mask == 0 {
			return i
		}
		i += n
	}
	return run(s, i, mask)
}

// asciiLetters returns the end of [A-Za-z]* at s[i].
func asciiLetters(s string, i int) int {
	for ; i+8 <= len(s); i += 8 {
		if not := between(word64(s, i)|0x20*ones, 'a', 'z') ^ highs; not != 0 {
			return i + bits.TrailingZeros64(not)>>3
		}
	}
	for i < len(s) && (s[i]|0x20)-'a' < 26 {
		i++
	}
	return i
}
