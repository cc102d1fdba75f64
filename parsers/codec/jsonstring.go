// SPDX-License-Identifier: Apache-2.0

package codec

import "github.com/weft-go/weft/parsers/internal/jsontext"

// jsonString reads a JSON string after its opening quote, in any chunking. A backslash that begins no escape of JSON's
// is data, and so are control characters. The zero value is ready.
type jsonString struct {
	seen uint8 // bytes of an escape
	hex  [4]byte
}

// read appends the string, valid JSON, to dst as far as src holds it. It returns the number of bytes read, and whether
// the closing quote was among them; that one is appended too.
func (s *jsonString) read(dst, src []byte) (out []byte, n int, done bool) {
	i := 0
	for i < len(src) {
		c := src[i]
		switch {
		case s.seen == 0:
			if c == '"' {
				return append(dst, '"'), i + 1, true
			}
			if c == '\\' {
				s.seen = 1
				i++
				break
			}
			from := i
			for i < len(src) && src[i] != '"' && src[i] != '\\' {
				i++
			}
			dst = jsontext.AppendEscaped(dst, src[from:i])
		case s.seen == 1:
			switch c {
			case 'u':
				s.seen = 2
				i++
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				dst = append(dst, '\\', c)
				s.seen = 0
				i++
			default:
				dst = append(dst, `\\`...)
				s.seen = 0
			}
		case hexValue(c) < 0:
			dst = append(dst, `\\u`...)
			dst = append(dst, s.hex[:s.seen-2]...)
			s.seen = 0
		default:
			s.hex[s.seen-2] = c
			i++
			if s.seen++; s.seen == 6 {
				dst = append(dst, `\u`...)
				dst = append(dst, s.hex[:]...)
				s.seen = 0
			}
		}
	}
	return dst, i, false
}
