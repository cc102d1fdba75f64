// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"strings"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/bytelevel"
	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

// This file has the normalizers that examine one character at a time, or only the ends of the text.

// Lowercase returns the normalizer of that name. It has no rule for a final sigma.
func Lowercase() Step { return lowercase{} }

type lowercase struct{}

var lowerASCII = func() (t [256]byte) {
	for c := range t {
		switch {
		case c >= utf8.RuneSelf:
			t[c] = stop
		default:
			t[c] = byte(unidata.ToLower(rune(c)))
		}
	}
	return t
}()

func (lowercase) Prefix(s string) int {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if lowerASCII[c] != c {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if unidata.Props(r)&unidata.PropLower != 0 {
			return i
		}
		i += n
	}
	return len(s)
}

func (lowercase) Append(dst *Text, src Text, _ *Buffer) {
	s := view(src.B)
	for i := 0; i < len(s); {
		n := len(dst.B)
		dst.B = mapASCII(dst.B, s[i:], &lowerASCII)
		if n = len(dst.B) - n; n > 0 {
			if src.From != nil {
				dst.From = append(dst.From, src.From[i:i+n]...)
			}
			if i += n; i == len(s) {
				return
			}
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if unidata.Props(r)&unidata.PropLower == 0 {
			dst.copy(src, i, i+n)
		} else {
			dst.lower(r)
			if src.From != nil {
				dst.fill(src.From[i])
			}
		}
		i += n
	}
}

// lower appends the lower case of r, without origins.
func (t *Text) lower(r rune) {
	if r == 0x130 {
		t.B = append(t.B, "i\u0307"...)
		return
	}
	t.B = utf8.AppendRune(t.B, unidata.ToLower(r))
}

// StripAccents returns the normalizer of that name, which removes all marks, also those that change the letter's meaning.
// It decomposes nothing.
func StripAccents() Step { return stripAccents{} }

type stripAccents struct{}

func (stripAccents) Prefix(s string) int {
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if unidata.Props(r)&unidata.PropAccent != 0 {
			return i
		}
		i += n
	}
	return len(s)
}

func (x stripAccents) Append(dst *Text, src Text, _ *Buffer) {
	s := view(src.B)
	for i := 0; i < len(s); {
		n := x.Prefix(s[i:])
		dst.copy(src, i, i+n)
		if i += n; i < len(s) {
			_, n = utf8.DecodeRuneInString(s[i:])
			i += n
		}
	}
}

// Strip returns the normalizer of that name, which removes white space at the start (left) and the end (right).
func Strip(left, right bool) Step { return strip{left, right} }

type strip struct{ left, right bool }

func (x strip) Prefix(s string) int {
	if i, j := x.cut(s); i == 0 {
		return j
	}
	return 0
}

func (x strip) Append(dst *Text, src Text, _ *Buffer) {
	i, j := x.cut(view(src.B))
	dst.copy(src, i, j)
}

// cut returns the range that remains. A byte that is not UTF-8 decodes as U+FFFD, which is not white space.
func (x strip) cut(s string) (i, j int) {
	j = len(s)
	for x.left && i < j {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !unidata.IsSpace(r) {
			break
		}
		i += n
	}
	for x.right && i < j {
		r, n := utf8.DecodeLastRuneInString(s[:j])
		if !unidata.IsSpace(r) {
			break
		}
		j -= n
	}
	return i, j
}

// Prepend returns the normalizer of that name, which inserts p before every text that is not empty. The inserted text
// has the span of the text's first character. If p is empty, the reference assigns the span [Start, Start) of the source to that
// character.
func Prepend(p string) Step { return prepend(p) }

type prepend string

func (p prepend) Prefix(string) int { return 0 }

func (p prepend) Append(dst *Text, src Text, _ *Buffer) {
	if len(src.B) == 0 {
		return
	}
	dst.B = append(dst.B, p...)
	if src.From != nil {
		dst.fill(src.From[0])
	}
	dst.copy(src, 0, len(src.B))
	if p == "" && src.From != nil {
		// The reference treats the first character as inserted, with nothing before it.
		_, n := utf8.DecodeRune(src.B)
		at := len(dst.From) - len(src.B)
		for i := range n {
			dst.From[at+i] = src.inserted()
		}
	}
}

// Nmt returns the normalizer of that name: it removes some control characters, and converts others, zero-width
// characters, U+2581 and U+FFFD to spaces.
func Nmt() Step { return nmt{} }

type nmt struct{}

// to returns -1 for characters that are removed.
func (nmt) to(r rune) rune {
	switch {
	case 1 <= r && r <= 8, r == 0xB, 0xE <= r && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
		return -1
	case r == 9, r == 0xA, r == 0xC, r == 0xD, r == 0x1680, 0x200B <= r && r <= 0x200F, r == 0x2028, r == 0x2029,
		r == 0x2581, r == 0xFEFF, r == utf8.RuneError:
		return ' '
	}
	return r
}

func (x nmt) Prefix(s string) int {
	for i := 0; i < len(s); {
		if c := s[i]; c >= ' ' && c < 0x7F {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if x.to(r) != r && (r != utf8.RuneError || n > 1) {
			return i
		}
		i += n
	}
	return len(s)
}

func (x nmt) Append(dst *Text, src Text, _ *Buffer) {
	s := view(src.B)
	for i := 0; i < len(s); {
		n := x.Prefix(s[i:])
		dst.copy(src, i, i+n)
		if i += n; i == len(s) {
			return
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r = x.to(r); r >= 0 {
			dst.rune(r, src, i)
		}
		i += n
	}
}

// ByteLevel returns the normalizer of that name, which spells every byte with a printable character.
func ByteLevel() Step { return byteLevel{} }

type byteLevel struct{}

func (byteLevel) Prefix(s string) int {
	n := strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7F })
	if n < 0 {
		return len(s)
	}
	return n
}

func (byteLevel) Append(dst *Text, src Text, _ *Buffer) {
	if src.From == nil {
		dst.B = bytelevel.Encode(dst.B, src.B)
		return
	}
	for i := range src.B {
		dst.B = bytelevel.Encode(dst.B, src.B[i:i+1])
		dst.fill(src.From[i])
	}
}
