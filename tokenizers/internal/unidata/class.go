// SPDX-License-Identifier: Apache-2.0

package unidata

import "unicode/utf8"

// The bits of a character class. A character has at most one of the letter bits.
const (
	Upper uint8 = 1 << iota // Lu and Lt
	Lower                   // Ll
	Other                   // Lm and Lo
	Num                     // N
	Mark                    // M
	Space                   // \s
	Punct                   // P
	Sym                     // S

	Letter = Upper | Lower | Other // L
)

// Class returns the class bits of r. Surrogates, unassigned and out-of-range values have none.
func Class(r rune) uint8 {
	if uint32(r) > utf8.MaxRune {
		return 0
	}
	return classData[int(classPage[uint32(r)>>7])<<7|int(r&127)]
}

// IsHan reports whether r has the script property Han.
func IsHan(r rune) bool { return inRanges(hanRanges[:], r) }

// IsWord reports whether r matches \w.
func IsWord(r rune) bool {
	if r < 128 {
		return r == '_' || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z'
	}
	return inRanges(wordRanges[:], r)
}

// inRanges does a binary search in sorted, disjoint, inclusive ranges.
func inRanges(t [][2]rune, r rune) bool {
	lo, hi := 0, len(t)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if t[m][1] < r {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo < len(t) && t[lo][0] <= r
}

// NFC returns 0 for a character that no neighbour before it can change and that stays as it is under
// NFC; its canonical combining class if that is not 0; else [NFCMaybe].
func NFC(r rune) uint8 {
	if uint32(r) > utf8.MaxRune {
		return 0
	}
	return nfcData[int(nfcPage[uint32(r)>>7])<<7|int(r&127)]
}

// NFCMaybe is the [NFC] value of a starter that decomposes, or that may join the character before it.
const NFCMaybe = 255

// Decompose returns the full canonical decomposition of r, or "" when r is its own. Hangul syllables
// are not listed. The characters come as UTF-8.
func Decompose(r rune) string {
	k := search(decKeys[:], r)
	if k < 0 {
		return ""
	}
	return decText[decOff[k]:decOff[k+1]]
}

// Compose returns the character that a and b make together under NFC, or -1. Hangul is not listed.
func Compose(a, b rune) rune {
	key := uint64(a)<<21 | uint64(b)
	lo, hi := 0, len(compPairs)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if compPairs[m] < key {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == len(compPairs) || compPairs[lo] != key {
		return -1
	}
	return compTo[lo]
}
