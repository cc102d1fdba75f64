// SPDX-License-Identifier: Apache-2.0

package pretok

import (
	"math/bits"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

// This file holds the expressions that cut words where the case changes. Their two word alternatives are
//
//	[^\r\n\p{L}\p{N}]? U* L+ (contraction)?
//	[^\r\n\p{L}\p{N}]? U+ L* (contraction)?
//
// with U = Lu Lt Lm Lo M and L = Ll Lm Lo M. The classes overlap, so the expression backtracks; cased computes the end
// of the match.

// casing selects a variant of the family.
type casing uint8

const (
	threes casing = 1 << iota // up to three digits are a piece, not each
	contrs                    // a contraction belongs to the word before it
	slash                     // a slash may follow punctuation as a line end does
	noHan                     // words have no Han characters
)

// O200K cuts as gpt-oss, GPT-4o and Llama 4 do.
//
//	…word, \p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
func O200K(s string, i int) int { return gpt4o(s, i, threes|contrs|slash) }

// Tekken cuts as Mistral's tekken and Nemotron 3 do: O200K without contractions, with single digits.
func Tekken(s string, i int) int { return gpt4o(s, i, slash) }

// Kimi cuts as Kimi K2 and Moonlight do: a run of Han characters by itself, then as O200K with U and L
// free of Han characters and without the slash after punctuation.
func Kimi(s string, i int) int {
	if s[i] >= utf8.RuneSelf {
		if end := hanRun(s, i); end > i {
			return end
		}
	}
	return gpt4o(s, i, threes|contrs|noHan)
}

// hanRun returns the end of the run of Han characters at s[i].
func hanRun(s string, i int) int {
	for i < len(s) {
		n := han(s, i)
		if n == 0 {
			break
		}
		i += n
	}
	return i
}

// han returns the length of the Han character at s[i], or 0 if absent.
func han(s string, i int) int {
	if s[i] < 0xE2 {
		return 0
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	if 0x4E00 <= r && r <= 0x9FFF || unidata.IsHan(r) {
		return n
	}
	return 0
}

func gpt4o(s string, i int, how casing) int {
	c, n := uint8(0), 1
	if b := s[i]; b < utf8.RuneSelf {
		c = ascii[b]
	} else {
		c, n = classMulti(s[i:])
	}
	j := i + n
	b := s[i]
	if c&letter != 0 {
		return wordEnd(s, cased(s, i, true, how), how)
	}
	if c&num != 0 {
		if how&threes != 0 {
			return runMax(s, j, num, 2)
		}
		return j
	}
	if j < len(s) && b != '\n' && b != '\r' {
		c2, n2 := uint8(0), 1
		if b := s[j]; b < utf8.RuneSelf {
			c2 = ascii[b]
		} else {
			c2, n2 = classMulti(s[j:])
		}
		if c2&(letter|mark) != 0 && (how&noHan == 0 || n2 == 1 || han(s, j) == 0) {
			if end := cased(s, j, c&mark == 0, how); end > 0 {
				return wordEnd(s, end, how)
			}
		} else if b == ' ' && c2&(letter|num|space) == 0 {
			return signsEnd(s, runNot(s, j+n2, letter|num|space), how)
		}
	}
	if c&mark != 0 { // the first alternative without a leading character
		return wordEnd(s, cased(s, i, true, how), how)
	}
	if c&space == 0 {
		return signsEnd(s, runNot(s, j, letter|num|space), how)
	}
	return blanks(s, i, j)
}

// cased returns the end of U*L+ at s[i] or, failing that and if second is set, of U+L*. It returns 0 if
// nothing matches.
func cased(s string, i int, second bool, how casing) int {
	k, both := i, 0
	for k < len(s) {
		if k+8 <= len(s) { // U* and L+ in ASCII
			x := word64(s, k)
			not := between(x, 'A', 'Z') ^ highs
			if not == 0 {
				k += 8
				continue
			}
			capitals := bits.TrailingZeros64(not) >> 3
			not = (between(x, 'a', 'z') ^ highs) >> (8 * capitals)
			small := bits.TrailingZeros64(not) >> 3 // up to 8: zeros have moved in
			k += capitals
			if small > 0 {
				k = min(k+small, k+8-capitals)
				if k < len(s) && s[k] < utf8.RuneSelf && ascii[s[k]]&lower == 0 {
					return k
				}
				return lowers(s, k, how)
			}
		}
		c, n := uint8(0), 1
		if b := s[k]; b < utf8.RuneSelf {
			c = ascii[b]
		} else if c, n = classMulti(s[k:]); how&noHan != 0 && han(s, k) > 0 {
			break
		}
		if c&lower != 0 {
			return lowers(s, k+n, how)
		}
		if c&(upper|other|mark) == 0 {
			break
		}
		k += n
		if c&(other|mark) != 0 {
			both = k // U* may give this character back to L+, which then ends here
		}
	}
	if both > 0 {
		return both
	}
	if second && k > i {
		return k
	}
	return 0
}

// lowers returns the end of L* at s[i].
func lowers(s string, i int, how casing) int {
	for i < len(s) {
		if i+8 <= len(s) {
			not := between(word64(s, i), 'a', 'z') ^ highs
			if not == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(not) >> 3
		}
		c, n := uint8(0), 1
		if b := s[i]; b < utf8.RuneSelf {
			c = ascii[b]
		} else if c, n = classMulti(s[i:]); how&noHan != 0 && han(s, i) > 0 {
			break
		}
		if c&(lower|other|mark) == 0 {
			break
		}
		i += n
	}
	return i
}

// wordEnd adds the optional contraction.
func wordEnd(s string, i int, how casing) int {
	if how&contrs != 0 && i < len(s) && s[i] == '\'' {
		return contraction(s, i)
	}
	return i
}

// signsEnd returns the end of [\r\n/]* or [\r\n]* at s[i].
func signsEnd(s string, i int, how casing) int {
	for i < len(s) && (s[i] == '\n' || s[i] == '\r' || s[i] == '/' && how&slash != 0) {
		i++
	}
	return i
}
