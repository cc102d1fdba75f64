// SPDX-License-Identifier: Apache-2.0

package jsonw

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
	"unsafe"
)

// Replacement is U+FFFD in UTF-8.
const Replacement = "\uFFFD"

const hexDigits = "0123456789abcdef"

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// text returns s as a string without a copy.
func text[T ~string | ~[]byte](s T) string { return *(*string)(unsafe.Pointer(&s)) }

// marks sets the highest bit of the bytes of w that are a quote, a backslash or a control character, or, with ascii =
// highs, not ASCII. c^2 is less than 0x21 for the quote and control characters, and for no other c. Borrows can set wrong
// marks, but only in bytes above a true one.
func marks(w, ascii uint64) uint64 {
	return ((((w^ones*2)-ones*0x21)|((w^ones*'\\')-ones))&^w | w&ascii) & highs
}

// skipPlain returns the index, from i on, of the first byte of s that JSON requires to be escaped or, with ascii, is
// not ASCII. It reads eight bytes at a time.
func skipPlain(s string, i int, ascii uint64) int {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	for ; i+8 <= len(b); i += 8 {
		if m := marks(binary.LittleEndian.Uint64(b[i:]), ascii); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	// The last bytes, with some before them a second time. If there is a mark, it may be of a byte before i or wrong.
	switch n := len(b) - i; {
	case n == 0:
		return i
	case len(b) >= 8:
		if marks(binary.LittleEndian.Uint64(b[len(b)-8:]), ascii)>>(64-8*n) == 0 {
			return len(b)
		}
	case n >= 4:
		w := uint64(binary.LittleEndian.Uint32(b[i:])) | uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))<<32
		if marks(w, ascii) == 0 {
			return len(b)
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf && ascii != 0 {
			break
		}
	}
	return i
}

// AppendPlain appends s and returns true if s is plain: not empty, and ASCII without quotes, backslashes and control
// characters. Otherwise, it returns dst and false. It makes one pass over s.
func AppendPlain(dst, s []byte) ([]byte, bool) {
	n := len(s)
	if cap(dst)-len(dst) < n {
		dst = slices.Grow(dst, n)
	}
	to := dst[len(dst) : len(dst)+n]
	m := uint64(highs) // the marks of all words, in the highest bits
	switch {
	case n >= 8:
		w := binary.LittleEndian.Uint64(s[n-8:])
		m = unplain(w)
		binary.LittleEndian.PutUint64(to[n-8:], w)
		for ; len(s) > 8 && len(to) >= 8; s, to = s[8:], to[8:] {
			w := binary.LittleEndian.Uint64(s)
			m |= unplain(w)
			binary.LittleEndian.PutUint64(to, w)
		}
	case n >= 4:
		a, b := binary.LittleEndian.Uint32(s), binary.LittleEndian.Uint32(s[n-4:])
		m = unplain(uint64(a) | uint64(b)<<32)
		binary.LittleEndian.PutUint32(to, a)
		binary.LittleEndian.PutUint32(to[n-4:], b)
	case n > 0:
		a, b, c := s[0], s[n/2], s[n-1]
		m = unplain(uint64(a) | uint64(b)<<8 | uint64(c)<<16 | ones*'a'&^0xffffff)
		to[0], to[n/2], to[n-1] = a, b, c
	}
	if m&highs != 0 {
		return dst, false
	}
	return dst[:len(dst)+n], true
}

// unplain is marks with ascii = highs, but the other bits have no meaning.
func unplain(w uint64) uint64 {
	return ((w ^ ones*2) - ones*0x21) | ((w ^ ones*'\\') - ones) | w
}

// AppendWhole is [AppendText] if s is not empty and consists of complete characters. Otherwise, it returns dst and false.
func AppendWhole(dst, s []byte) ([]byte, bool) {
	if len(s) == 0 || !utf8.Valid(s) {
		return dst, false
	}
	return AppendText(dst, s), true
}

// AppendText appends s, which must be valid UTF-8, escaped for the inside of a JSON string, without quotes. Only what
// JSON requires is escaped: the quote, the backslash and the control characters below U+0020. It makes one pass over s.
func AppendText[T ~string | ~[]byte](dst []byte, s T) []byte { return appendEscaped(dst, text(s), 0) }

// appendEscaped appends s with escapes and, with ascii = highs, with U+FFFD in place of invalid UTF-8. After the first
// byte that skipPlain finds, it leaves long texts to appendLong. In others, it copies eight bytes at a time and overwrites those from the next such byte on. If the rest
// is valid UTF-8 at the first byte that is not ASCII, no other such byte is looked at.
func appendEscaped(dst []byte, s string, ascii uint64) []byte {
	i := skipPlain(s, 0, ascii)
	dst = append(dst, s[:i]...)
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	if HasSpecial && len(b)-i >= BlockSize {
		dst, i = appendLong(dst, b, i, ascii != 0)
	}
	validated := false
	for i < len(b) {
		const step = 8 // most bytes that an iteration below writes
		if cap(dst)-len(dst) < step {
			dst = slices.Grow(dst, len(b)-i+(len(b)-i)/8+step)
		}
		out, o := dst[:cap(dst)], len(dst)
		for i < len(b) && o+step <= len(out) {
			if i+8 <= len(b) {
				w := binary.LittleEndian.Uint64(b[i:])
				binary.LittleEndian.PutUint64(out[o:], w)
				m := marks(w, ascii)
				if m == 0 {
					i, o = i+8, o+8
					continue
				}
				n := bits.TrailingZeros64(m) >> 3
				if i, o = i+n, o+n; o+step > len(out) {
					break
				}
			}
			switch c := b[i]; {
			case shortEscapes[c] != 0:
				binary.LittleEndian.PutUint16(out[o:], shortEscapes[c])
				i, o = i+1, o+2
			case c >= utf8.RuneSelf && ascii != 0:
				if !validated {
					validated = true
					if utf8.ValidString(s[i:]) {
						ascii = 0
						continue
					}
				}
				n, ok, _ := sequence(s, i)
				if ok {
					o += copy(out[o:], b[i:i+n])
				} else {
					o += copy(out[o:], Replacement)
				}
				i += n
			case c >= 0x20: // in the last bytes
				out[o] = c
				i, o = i+1, o+1
			default:
				o += len(append(out[o:o], '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15]))
				i++
			}
		}
		dst = out[:o]
	}
	return dst
}

// appendLong appends b[i:] with escapes, up to the index that it returns. With check, it stops before invalid UTF-8.
func appendLong(dst, b []byte, i int, check bool) ([]byte, int) {
	const (
		most   = BlockSize // bytes that are copied at once; what follows a special one is overwritten later
		escape = 6         // bytes of the longest escape
	)
	var masks Masks
	done := 0 // bytes at base whose text is known to be valid
	for base := i; base < len(b); {
		blocks, _ := Special(&masks, b[base:])
		if room := base - i + blocks*BlockSize*escape + most; cap(dst)-len(dst) < room {
			dst = slices.Grow(dst, max(room, len(b)-i+(len(b)-i)/8))
		}
		out, o := dst[:cap(dst)], len(dst)
		for k, m := range masks.Special[:blocks] {
			if w := masks.Wide[k]; w != 0 && check {
				next, ok := ValidWide(b, base, w, done)
				if !ok {
					return append(out[:o], b[i:base+done]...), base + done
				}
				done = next
			}
			if n := len(b) - base; n < BlockSize {
				m &= 1<<n - 1
			}
			for ; m != 0; m &= m - 1 {
				p := base + bits.TrailingZeros64(m)
				if n := p - i; n <= most && i+most <= len(b) {
					CopyBlock((*[most]byte)(out[o:]), (*[most]byte)(b[i:]))
					o += n
				} else {
					o += copy(out[o:], b[i:p])
				}
				i = p + 1
				if c := b[p]; shortEscapes[c] != 0 {
					binary.LittleEndian.PutUint16(out[o:], shortEscapes[c])
					o += 2
				} else {
					o += len(append(out[o:o], '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15]))
				}
			}
			base += BlockSize
		}
		dst = out[:o]
	}
	return append(dst, b[i:]...), len(b)
}

// shortEscapes contains the escapes of two characters, the backslash in the low byte.
var shortEscapes = [256]uint16{
	'"': '\\' | '"'<<8, '\\': '\\' | '\\'<<8, '\n': '\\' | 'n'<<8, '\r': '\\' | 'r'<<8, '\t': '\\' | 't'<<8, '\b': '\\' | 'b'<<8, '\f': '\\' | 'f'<<8,
}

// AppendString appends s as a JSON string with its quotes. s need not be valid UTF-8.
func AppendString[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	dst = AppendLoose(dst, s)
	return append(dst, '"')
}

// AppendLoose is [AppendText] for text that may be ill-formed.
func AppendLoose[T ~string | ~[]byte](dst []byte, s T) []byte {
	return appendEscaped(dst, text(s), highs)
}

// AppendValid appends s unescaped, with U+FFFD in place of invalid UTF-8.
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

// sequence examines the sequence that starts at s[i], a non-ASCII byte. If it is well-formed, n is its length and ok is
// true. Otherwise n is the length of its maximal subpart, at least 1, and cut reports whether s ends inside a sequence
// that more bytes could complete. The ranges are those of table 3-7 of the Unicode standard.
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
