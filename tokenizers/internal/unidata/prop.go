// SPDX-License-Identifier: Apache-2.0

package unidata

import "unicode/utf8"

// The bits of [Props].
const (
	PropDropped   uint8 = 1 << iota // BertNormalizer's clean_text removes it
	PropBlank                       // clean_text makes it a space
	PropNonspace                    // BertNormalizer's strip_accents removes it
	PropAccent                      // StripAccents removes it
	PropCanonical                   // it has a canonical decomposition (Hangul too) or a combining class: NFD may change or move it
	PropCompat                      // it has a compatibility decomposition besides or instead of the canonical one
	PropLower                       // it has a lower case
	PropPunct                       // BertPreTokenizer and Punctuation cut at it
)

// Props returns the property bits of r. Surrogates and out-of-range values have none.
func Props(r rune) uint8 {
	if uint32(r) > utf8.MaxRune {
		return 0
	}
	return propData[int(propPage[uint32(r)>>7])<<7|int(r&127)]
}

// IsPunct reports whether the pre-tokenizers BertPreTokenizer and Punctuation take r for punctuation: in ASCII
// everything printable but letters and digits, beyond the categories P of an old Unicode.
func IsPunct(r rune) bool { return Props(r)&PropPunct != 0 }

// IsNumeric reports whether r is a numeral for the pre-tokenizer Digits: Rust's char::is_numeric, which is N of
// a Unicode newer than that of [Class].
func IsNumeric(r rune) bool {
	if r < utf8.RuneSelf {
		return '0' <= r && r <= '9'
	}
	return Class(r)&Num != 0 || r > 0xFFFF && inRanges(numericRanges[:], r)
}

// IsSpace reports whether r is white space for the pre-tokenizers WhitespaceSplit and BertPreTokenizer and for
// the normalizer Strip: Rust's char::is_whitespace. It is the class [Space].
func IsSpace(r rune) bool { return Class(r)&Space != 0 }

// lowerRun specifies that lo, lo+step, ... hi have their lower case at distance delta.
type lowerRun struct {
	lo, hi rune
	step   uint8
	delta  int32
}

// ToLower returns the lower case of r as the normalizer Lowercase has it: Rust's char::to_lowercase, without
// regard for context. Only the lower case of U+0130 is two characters, i and U+0307: it is given as U+0130.
func ToLower(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	lo, hi := 0, len(lowerRuns)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if lowerRuns[m].hi < r {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == len(lowerRuns) {
		return r
	}
	if x := &lowerRuns[lo]; x.lo <= r && (x.step == 1 || (r-x.lo)&1 == 0) {
		return r + x.delta
	}
	return r
}

// DecomposeCompat returns the full compatibility decomposition of r as UTF-8, or "" when it is the canonical
// one or none.
func DecomposeCompat(r rune) string {
	k := search(compatKeys[:], r)
	if k < 0 {
		return ""
	}
	return compatText[compatOff[k]:compatOff[k+1]]
}

// search returns the index of r in keys, which are sorted, or -1.
func search(keys []rune, r rune) int {
	lo, hi := 0, len(keys)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if keys[m] < r {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == len(keys) || keys[lo] != r {
		return -1
	}
	return lo
}

// The values of [Grapheme]: roles in extended grapheme clusters (Unicode 16, UAX 29) as the normalizer
// Precompiled shows them. Carriage return, newline and regional indicators, which need no class there, are Any.
const (
	GraphemeAny uint8 = iota
	GraphemeControl
	GraphemeExtend
	GraphemeLinker       // extends, and joins consonants
	GraphemeUnlinked     // extends, but not between a consonant and a linker
	GraphemeZWJ          // extends, and joins pictographs
	GraphemeSpacing      // extends
	GraphemePrepend      // joins what follows
	GraphemePictographic // may be joined to another by ZWJ
	GraphemeConsonant    // may be joined to another by a linker
	GraphemeL            // Hangul parts
	GraphemeV
	GraphemeT
	GraphemeLV // Hangul syllables
	GraphemeLVT
)

// Grapheme returns the role of r in grapheme clusters.
func Grapheme(r rune) uint8 {
	switch {
	case uint32(r) > utf8.MaxRune:
		return GraphemeAny
	case 0xAC00 <= r && r < 0xD7A4:
		if (r-0xAC00)%28 == 0 {
			return GraphemeLV
		}
		return GraphemeLVT
	}
	return graphemeData[int(graphemePage[uint32(r)>>7])<<7|int(r&127)]
}
