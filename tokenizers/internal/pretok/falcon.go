// SPDX-License-Identifier: Apache-2.0

package pretok

import (
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

// Falcon cuts at punctuation, then like GPT-2, and then, in the byte-level spelling of the pieces, around digits and
// into groups of three. These Funcs cut the text itself at the same positions.

// FalconWords is [Punctuation] with [Contiguous], and GPT2 inside its pieces. Of GPT2's alternatives a run of
// punctuation is one piece, since a contraction needs a letter; elsewhere a piece ends where punctuation begins,
// and white space before it is its whole run, as at the end of a text.
func FalconWords(s string, i int) int {
	p, n := punctAt(s, i)
	j := i + n
	if p {
		for j < len(s) {
			if p, n = punctAt(s, j); !p {
				break
			}
			j += n
		}
		return j
	}
	c, _ := classAt(s, i)
	if s[i] == ' ' && j < len(s) {
		p2, _ := punctAt(s, j)
		switch c2, n2 := classAt(s, j); {
		case p2:
			return j
		case c2&letter != 0:
			return letters(s, j+n2, letter)
		case c2&num != 0:
			return run(s, j+n2, num)
		case c2&space == 0:
			return signs(s, j+n2)
		}
	}
	switch {
	case c&letter != 0:
		return letters(s, j, letter)
	case c&num != 0:
		return run(s, j, num)
	case c&space == 0:
		return signs(s, j)
	}
	end := run(s, j, space)
	if end < len(s) {
		if p, _ := punctAt(s, end); p {
			return end
		}
	}
	return beforeLast(s, i, end)
}

// signs returns the end of [^\s\p{L}\p{N}]* without punctuation at s[i].
func signs(s string, i int) int {
	for i < len(s) {
		c, n := classAt(s, i)
		if p, _ := punctAt(s, i); p || c&(letter|num|space) != 0 {
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

// SpelledDigits keeps runs of bytes whose byte-level spelling is a number together, and the text between them, and
// isolates [0-9][0-9][0-9] in the former: what [Digits] and that Split do after ByteLevel. In addition to digits, these
// are the bytes spelled ² ³ ¹ ¼ ½ ¾, which may be part of a character.
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
