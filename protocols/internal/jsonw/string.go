// SPDX-License-Identifier: Apache-2.0

package jsonw

import "unicode/utf8"

// Replacement is U+FFFD in UTF-8.
const Replacement = "\uFFFD"

const hexDigits = "0123456789abcdef"

// plain says which bytes stand for themselves inside a JSON string: ASCII from space on, without the quote and the
// backslash. Bytes of longer sequences are looked at one by one only in text that may be ill-formed.
var plain = func() (t [256]bool) {
	for c := 0x20; c < 256; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// AppendText appends s, which must be valid UTF-8, escaped for the inside of a JSON string, without quotes. Only
// what JSON demands is escaped: the quote, the backslash and the control characters below U+0020. One pass over s.
func AppendText[T ~string | ~[]byte](dst []byte, s T) []byte {
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if plain[c] {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		dst = appendEscape(dst, c)
	}
	return append(dst, s[start:]...)
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// AppendString appends s as a JSON string with its quotes. s need not be UTF-8.
func AppendString[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	dst = AppendLoose(dst, s)
	return append(dst, '"')
}

// AppendLoose is [AppendText] for text that may be ill-formed.
func AppendLoose[T ~string | ~[]byte](dst []byte, s T) []byte {
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if !plain[c] {
				dst = append(dst, s[start:i]...)
				start = i + 1
				dst = appendEscape(dst, c)
			}
			i++
			continue
		}
		n, ok, _ := sequence(s, i)
		if !ok {
			dst = append(dst, s[start:i]...)
			dst = append(dst, Replacement...)
			start = i + n
		}
		i += n
	}
	return append(dst, s[start:]...)
}

// AppendValid appends s as it is, with U+FFFD for what is not UTF-8.
func AppendValid[T ~string | ~[]byte](dst []byte, s T) []byte {
	start := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		n, ok, _ := sequence(s, i)
		if !ok {
			dst = append(dst, s[start:i]...)
			dst = append(dst, Replacement...)
			start = i + n
		}
		i += n
	}
	return append(dst, s[start:]...)
}

// sequence looks at the sequence that starts at s[i], a byte beyond ASCII. If it is well-formed, n is its length and
// ok is set. Otherwise n is the length of its maximal subpart, at least 1, and cut says that s ended inside a sequence
// that more bytes could still complete. Table 3-7 of the Unicode standard.
func sequence[T ~string | ~[]byte](s T, i int) (n int, ok, cut bool) {
	c := s[i]
	lo, hi, want := byte(0x80), byte(0xBF), 0
	switch {
	case c < 0xC2:
		return 1, false, false
	case c < 0xE0:
		want = 2
	case c < 0xF0:
		want = 3
		switch c {
		case 0xE0:
			lo = 0xA0
		case 0xED:
			hi = 0x9F
		}
	case c < 0xF5:
		want = 4
		switch c {
		case 0xF0:
			lo = 0x90
		case 0xF4:
			hi = 0x8F
		}
	default:
		return 1, false, false
	}
	for n = 1; n < want; n++ {
		if i+n >= len(s) {
			return n, false, true
		}
		if b := s[i+n]; b < lo || b > hi {
			return n, false, false
		}
		lo, hi = 0x80, 0xBF
	}
	return want, true, false
}
