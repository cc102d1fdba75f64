// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// strFault is the reason why a string is invalid.
type strFault uint8

const (
	strOK strFault = iota
	strCut
	strControl
	strEscape
	strUTF8
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// scanString validates the string whose first byte after the quote is b[i]. It returns the index of the closing quote
// and whether a backslash occurs, or a fault and its index.
func scanString(b []byte, i int) (end int, escaped bool, fault strFault) {
	for from := i; i+8 <= len(b) && i <= from+shortString; i += 8 { // most strings are short and plain
		if m := stops(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			if i += bits.TrailingZeros64(m) >> 3; b[i] == '"' {
				return i, false, strOK
			}
			break
		}
	}
	if jsonw.HasSpecial && len(b)-i >= jsonw.BlockSize {
		if end, escaped, ok := scanLong(b, i); ok {
			return end, escaped, strOK
		}
	}
	return scanText(b, i)
}

// stops marks the bytes at which w contains a quote, a backslash, a control character or a byte above 0x7f. c^2 is less
// than 0x21 for the quote and control characters, and for no other c. Borrows can set wrong marks, but only after a true
// one.
func stops(w uint64) uint64 {
	return (((w ^ ones*2) - ones*0x21) | ((w ^ ones*'\\') - ones) | w) & highs
}

// scanText is scanString for all strings.
func scanText(b []byte, i int) (end int, escaped bool, fault strFault) {
	for {
		for i+8 <= len(b) { // plain ASCII
			if m := stops(binary.LittleEndian.Uint64(b[i:])); m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		if i >= len(b) {
			return i, escaped, strCut
		}
		switch c := b[i]; {
		case c == '"':
			return i, escaped, strOK
		case c == '\\':
			escaped = true
			if i+1 >= len(b) {
				return len(b), escaped, strCut
			}
			switch c := b[i+1]; {
			case escapes[c] != 0:
				i += 2
			case c == 'u':
				for k := i + 2; k < i+6; k++ {
					if k >= len(b) {
						return len(b), escaped, strCut
					}
					if jsonw.Hex(b[k]) < 0 {
						return k, escaped, strEscape
					}
				}
				i += 6
			default:
				return i + 1, escaped, strEscape
			}
		case c < 0x20:
			return i, escaped, strControl
		case c < utf8.RuneSelf:
			i++
		default:
			// A run of non-ASCII text, rune by rune. The common sequences of two and three bytes are those whose second
			// byte may have any value from 0x80 to 0xBF.
			for i < len(b) && b[i] >= utf8.RuneSelf {
				if i+2 < len(b) && b[i+1]&0xC0 == 0x80 {
					if c := b[i]; c-0xC2 <= 0xDF-0xC2 {
						i += 2
						continue
					} else if (c-0xE1 <= 0xEC-0xE1 || c|1 == 0xEF) && b[i+2]&0xC0 == 0x80 {
						i += 3
						continue
					}
				}
				r, n := utf8.DecodeRune(b[i:])
				if r == utf8.RuneError && n <= 1 {
					return i, escaped, strUTF8
				}
				i += n
			}
		}
	}
}

// The choice between the ways to read a string, in bytes.
const (
	shortString = 32 // the start that is read in words
	denseText   = 64 // if most of these are not ASCII, the text is read character by character
)

// scanLong is scanText for the rest of long and valid strings, with [jsonw.Special] and [jsonw.ValidWide].
// If ok is false, scanText is faster or finds an error.
func scanLong(b []byte, i int) (end int, escaped, ok bool) {
	var masks jsonw.Masks
	done := 0            // bytes at base whose text is known to be valid
	skipped := uint64(0) // 1 if the byte at base is the second of an escape sequence
	for base, from := i, i; base < len(b); {
		blocks, wide := jsonw.Special(&masks, b[base:])
		if wide && base == from && dense(b[base:]) {
			return 0, false, false
		}
		for k, m := range masks.Special[:blocks] {
			if w := masks.Wide[k]; w != 0 {
				if done, ok = jsonw.ValidWide(b, base, w, done); !ok { // perhaps after the end of the string
					return 0, false, false
				}
			}
			m &^= skipped
			skipped = 0
			for m != 0 {
				p := base + bits.TrailingZeros64(m)
				if p >= len(b) {
					return 0, false, false
				}
				if b[p] != '\\' {
					return p, escaped, b[p] == '"'
				}
				if p+1 >= len(b) || escapes[b[p+1]] == 0 && (p+5 >= len(b) || b[p+1] != 'u' || hex4(b[p+2:]) < 0) {
					return 0, false, false
				}
				escaped = true
				first := m & -m
				m &^= first | first<<1 // of an escape sequence, only the first two bytes can be special
				skipped = first >> (jsonw.BlockSize - 1)
			}
			base += jsonw.BlockSize
		}
	}
	return 0, false, false
}

// dense reports whether much of the start of b is not ASCII.
func dense(b []byte) bool {
	n := 0
	for k := 0; k < denseText && k+8 <= len(b); k += 8 {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(b[k:]) & highs)
	}
	return n > denseText/2
}

func hex4(b []byte) rune {
	return rune(jsonw.Hex(b[0])<<12 | jsonw.Hex(b[1])<<8 | jsonw.Hex(b[2])<<4 | jsonw.Hex(b[3]))
}

// escapes contains the characters that escape sequences of two characters represent, by their second character.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// AppendUnescaped appends the text represented by raw, the validated inside of a JSON string. A lone surrogate becomes
// U+FFFD. dst never grows by more than len(raw). dst and raw must not overlap.
func AppendUnescaped(dst, raw []byte) []byte {
	dst = slices.Grow(dst, len(raw))
	out := dst[len(dst) : len(dst)+len(raw)]
	i, o := 0, 0 // o <= i, as an escape sequence is longer than what it represents
	if jsonw.HasSpecial && len(raw) >= jsonw.BlockSize {
		return dst[:len(dst)+unescapeLong(out, raw)]
	}
	for i < len(raw) {
		// Copy eight bytes at a time. What follows a backslash among them is overwritten later. m marks the backslashes
		// in w; borrows can set wrong marks only after a true one, and only the first mark is used.
		for i+8 <= len(raw) {
			w := binary.LittleEndian.Uint64(raw[i:])
			binary.LittleEndian.PutUint64(out[o:], w)
			x := w ^ ones*'\\'
			if m := (x - ones) &^ x & highs; m != 0 {
				n := bits.TrailingZeros64(m) >> 3
				i, o = i+n, o+n
				break
			}
			i, o = i+8, o+8
		}
		if i == len(raw) {
			break
		}
		c := raw[i]
		if c != '\\' { // in the last eight bytes
			out[o] = c
			i, o = i+1, o+1
			continue
		}
		if c = escapes[raw[i+1]]; c != 0 {
			out[o] = c
			i, o = i+2, o+1
			continue
		}
		i, o = unescapeRune(out, o, raw, i)
	}
	return dst[:len(dst)+o]
}

// unescapeLong writes the text represented by raw to out, which has the same length, and returns its length. It copies
// the text between escape sequences, which [jsonw.Special] finds.
func unescapeLong(out, raw []byte) int {
	const most = jsonw.BlockSize // bytes that are copied at once; what follows a backslash is overwritten later
	var masks jsonw.Masks
	i, o := 0, 0
	skipped := uint64(0) // 1 if the byte at base is the second of an escape sequence
	for base := 0; base < len(raw); {
		blocks, _ := jsonw.Special(&masks, raw[base:])
		for _, m := range masks.Special[:blocks] {
			m &^= skipped
			skipped = 0
			for m != 0 {
				p, first := base+bits.TrailingZeros64(m), m&-m
				m &^= first | first<<1 // of an escape sequence, only the first two bytes can be special
				skipped = first >> (jsonw.BlockSize - 1)
				if p < i {
					continue // the second of a pair of surrogates
				}
				if p >= len(raw) {
					break
				}
				if n := p - i; n <= most && i+most <= len(raw) {
					jsonw.CopyBlock((*[most]byte)(out[o:]), (*[most]byte)(raw[i:]))
				} else {
					copy(out[o:], raw[i:p])
				}
				o += p - i
				if c := escapes[raw[p+1]]; c != 0 {
					out[o] = c
					i, o = p+2, o+1
					continue
				}
				i, o = unescapeRune(out, o, raw, p)
			}
			base += jsonw.BlockSize
		}
	}
	return o + copy(out[o:], raw[i:])
}

// unescapeRune writes the character that the escape sequence \uXXXX at raw[i] represents, with the next one if they are a
// pair of surrogates, to out[o]. It returns the indexes after them.
func unescapeRune(out []byte, o int, raw []byte, i int) (int, int) {
	r := hex4(raw[i+2:])
	i += 6
	if r >= 0xd800 && r < 0xe000 {
		lone := true
		if r < 0xdc00 && len(raw)-i >= 6 && raw[i] == '\\' && raw[i+1] == 'u' {
			if lo := hex4(raw[i+2:]); lo >= 0xdc00 && lo < 0xe000 {
				r = (r-0xd800)<<10 | (lo - 0xdc00) + 0x10000
				i += 6
				lone = false
			}
		}
		if lone {
			r = utf8.RuneError
		}
	}
	return i, o + utf8.EncodeRune(out[o:], r)
}

// The sizes of an arena's pieces of memory, apart from the expected length and for longer strings.
const (
	minArena = 512
	maxArena = 32 << 10
)

// Arena is memory for unescaped strings. Strings from it are ordinary Go strings and remain valid. The zero Arena is
// ready to use. An Arena is not safe for concurrent use by multiple goroutines.
type Arena struct {
	buf  []byte
	ask  int
	size int
}

// Reserve sets the expected total length of the following strings, in bytes.
func (a *Arena) Reserve(n int) { a.ask = n }

// Size returns the number of bytes that were allocated.
func (a *Arena) Size() int { return a.size }

func (a *Arena) unescape(raw []byte) string {
	if cap(a.buf)-len(a.buf) < len(raw) {
		a.buf = unclearedBytes(max(len(raw), a.ask, min(2*cap(a.buf), maxArena), minArena))
		a.size += cap(a.buf)
		a.ask = 0
	}
	from := len(a.buf)
	a.buf = AppendUnescaped(a.buf, raw)
	return view(a.buf[from:])
}

// view returns b as a string without a copy. Callers never write b again: it is a document's body or the used part of
// an arena.
func view(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return unsafe.String(&b[0], len(b))
}

// unclearedBytes returns an empty slice with room for at least n bytes, where n is positive, in memory that is not cleared.
func unclearedBytes(n int) []byte {
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), b.Cap())[:0]
}
