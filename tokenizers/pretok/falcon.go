// SPDX-License-Identifier: Apache-2.0

package pretok

import (
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

// Falcon cuts at punctuation, then as GPT-2, and then, in the byte-level spelling of what is left, around digits
// and into groups of three. These Funcs cut the text itself in the same places.

// PunctuationRuns keeps runs of punctuation and what lies between them together: [Punctuation] with [Contiguous].
func PunctuationRuns(s string, i int) int {
	first, n := punctAt(s, i)
	i += n
	for i < len(s) {
		if b := s[i]; b < utf8.RuneSelf {
			if (ascii[b]&(punct|sym) != 0) != first {
				break
			}
			i++
			continue
		}
		p, n := punctAt(s, i)
		if p != first {
			break
		}
		i += n
	}
	return i
}

func punctAt(s string, i int) (bool, int) {
	if b := s[i]; b < utf8.RuneSelf {
		return ascii[b]&(punct|sym) != 0, 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return unidata.IsPunct(r), n
}

// SpelledDigits keeps runs of bytes whose byte-level spelling is a number together, and what lies between them, and
// isolates [0-9][0-9][0-9] in the former: what [Digits] and that Split do behind ByteLevel. Besides the digits
// these are the bytes spelled ² ³ ¹ ¼ ½ ¾, which may be part of a character.
func SpelledDigits(s string, i int) int {
	if !spelledDigit[s[i]] {
		for i++; i < len(s) && !spelledDigit[s[i]]; i++ {
		}
		return i
	}
	if threeDigits(s, i) {
		return i + 3
	}
	for i++; i < len(s) && spelledDigit[s[i]] && !threeDigits(s, i); i++ {
	}
	return i
}

var spelledDigit = func() (t [256]bool) {
	for _, b := range []byte("0123456789\xb2\xb3\xb9\xbc\xbd\xbe") {
		t[b] = true
	}
	return t
}()

func threeDigits(s string, i int) bool {
	return i+3 <= len(s) && s[i]-'0' <= 9 && s[i+1]-'0' <= 9 && s[i+2]-'0' <= 9
}
