// SPDX-License-Identifier: Apache-2.0

package pretok

import (
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

const (
	upper  = unidata.Upper
	lower  = unidata.Lower
	other  = unidata.Other
	letter = unidata.Letter
	num    = unidata.Num
	mark   = unidata.Mark
	space  = unidata.Space
	punct  = unidata.Punct
	sym    = unidata.Sym

	ascii = unidata.ASCII
)

// classAt returns the class and length of the character at s[i]. i must be below len(s).
func classAt(s string, i int) (class uint8, size int) {
	b := s[i]
	if b < utf8.RuneSelf {
		return ascii[b], 1
	}
	return classMulti(s[i:])
}

// classMulti is classAt for a character outside ASCII. A bad byte is read as U+FFFD, a symbol.
func classMulti(s string) (class uint8, size int) {
	r, n := utf8.DecodeRuneInString(s)
	return unidata.Class(r), n
}

// run returns the end of the run of characters that have one of the bits in mask.
func run(s string, i int, mask uint8) int {
	for i < len(s) {
		b := s[i]
		if b < utf8.RuneSelf {
			if ascii[b]&mask == 0 {
				return i
			}
			i++
			continue
		}
		c, n := classMulti(s[i:])
		if c&mask == 0 {
			return i
		}
		i += n
	}
	return i
}

// runNot returns the end of the run of characters that have none of the bits in mask.
func runNot(s string, i int, mask uint8) int {
	for i < len(s) {
		b := s[i]
		if b < utf8.RuneSelf {
			if ascii[b]&mask != 0 {
				return i
			}
			i++
			continue
		}
		c, n := classMulti(s[i:])
		if c&mask != 0 {
			return i
		}
		i += n
	}
	return i
}

// runMax is run with at most max characters.
func runMax(s string, i int, mask uint8, max int) int {
	for ; max > 0 && i < len(s); max-- {
		c, n := classAt(s, i)
		if c&mask == 0 {
			break
		}
		i += n
	}
	return i
}
