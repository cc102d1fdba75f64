// SPDX-License-Identifier: Apache-2.0

package pretok

import (
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

// This file holds the expressions that cut words where the case changes. Their two word alternatives are
//
//	[^\r\n\p{L}\p{N}]? U* L+ (contraction)?
//	[^\r\n\p{L}\p{N}]? U+ L* (contraction)?
//
// with U = Lu Lt Lm Lo M and L = Ll Lm Lo M. The classes overlap, so the expression backtracks; cased
// computes where that ends.

// O200K cuts as gpt-oss, GPT-4o and Llama 4 do.
//
//	…word, \p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
func O200K(s string, i int) int { return gpt4o(s, i, 3, true) }

// Tekken cuts as Mistral's tekken and Nemotron 3 do: O200K without contractions, with single digits.
func Tekken(s string, i int) int { return gpt4o(s, i, 1, false) }

func gpt4o(s string, i, digits int, contr bool) int {
	c, n := uint8(0), 1
	if b := s[i]; b < utf8.RuneSelf {
		c = ascii[b]
	} else {
		c, n = classMulti(s[i:])
	}
	j := i + n
	if c&num != 0 {
		return runMax(s, j, num, digits-1)
	}
	b := s[i]
	if c&letter != 0 {
		return wordEnd(s, cased(s, i, true), contr)
	}
	if j < len(s) && b != '\n' && b != '\r' {
		c2, n2 := uint8(0), 1
		if b := s[j]; b < utf8.RuneSelf {
			c2 = ascii[b]
		} else {
			c2, n2 = classMulti(s[j:])
		}
		if c2&(letter|mark) != 0 {
			if end := cased(s, j, c&mark == 0); end > 0 {
				return wordEnd(s, end, contr)
			}
		} else if b == ' ' && c2&(num|space) == 0 {
			return slashes(s, runNot(s, j+n2, letter|num|space))
		}
	}
	if c&mark != 0 { // the first alternative without a leading character
		return wordEnd(s, cased(s, i, true), contr)
	}
	if c&space == 0 {
		return slashes(s, runNot(s, j, letter|num|space))
	}
	return blanks(s, i, j)
}

// cased returns the end of U*L+ at s[i] or, failing that and if second is set, of U+L*. It returns 0 when
// there is no match.
func cased(s string, i int, second bool) int {
	k, both := i, 0
	for k < len(s) {
		c, n := uint8(0), 1
		if b := s[k]; b < utf8.RuneSelf {
			c = ascii[b]
		} else {
			c, n = classMulti(s[k:])
		}
		if c&lower != 0 {
			return lowers(s, k+n, lower|other|mark)
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

// wordEnd adds the optional contraction.
func wordEnd(s string, i int, contr bool) int {
	if contr && i < len(s) && s[i] == '\'' {
		return contractionOr(s, i)
	}
	return i
}

func contractionOr(s string, i int) int {
	if end := contraction(s, i); end > i {
		return end
	}
	return i
}

// slashes returns the end of [\r\n/]* at s[i].
func slashes(s string, i int) int {
	for i < len(s) && (s[i] == '\n' || s[i] == '\r' || s[i] == '/') {
		i++
	}
	return i
}

// Kimi cuts as Kimi K2 and Moonlight do: a run of Han characters by itself, then as O200K with U and L
// free of Han characters and without the slash after punctuation.
func Kimi(s string, i int) int {
	c, n, han := kimiClass(s, i)
	j := i + n
	if han {
		for j < len(s) {
			_, n, han := kimiClass(s, j)
			if !han {
				break
			}
			j += n
		}
		return j
	}
	if c&num != 0 {
		return runMax(s, j, num, 2)
	}
	if c&letter != 0 {
		return wordEnd(s, kimiCased(s, i, true), true)
	}
	b := s[i]
	if j < len(s) && b != '\n' && b != '\r' {
		c2, n2, han2 := kimiClass(s, j)
		if c2&(letter|mark) != 0 && !han2 {
			if end := kimiCased(s, j, c&mark == 0); end > 0 {
				return wordEnd(s, end, true)
			}
		} else if b == ' ' && c2&(letter|num|space) == 0 {
			return newlines(s, runNot(s, j+n2, letter|num|space))
		}
	}
	if c&mark != 0 {
		return wordEnd(s, kimiCased(s, i, true), true)
	}
	if c&space == 0 {
		return newlines(s, runNot(s, j, letter|num|space))
	}
	return blanks(s, i, j)
}

func kimiClass(s string, i int) (class uint8, size int, han bool) {
	if s[i] < utf8.RuneSelf {
		return ascii[s[i]], 1, false
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return unidata.Class(r), n, r >= 0x2E80 && unidata.IsHan(r)
}

// kimiCased is cased without Han characters.
func kimiCased(s string, i int, second bool) int {
	k, both := i, 0
	for k < len(s) {
		c, n, han := kimiClass(s, k)
		if han {
			break
		}
		if c&lower != 0 {
			for k += n; k < len(s); k += n {
				if c, n, han = kimiClass(s, k); han || c&(lower|other|mark) == 0 {
					break
				}
			}
			return k
		}
		if c&(upper|other|mark) == 0 {
			break
		}
		k += n
		if c&(other|mark) != 0 {
			both = k
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
