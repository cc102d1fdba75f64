// SPDX-License-Identifier: Apache-2.0

package codec

import "github.com/weft-go/weft/parsers/internal/jsontext"

// jsonString reads a JSON string after its opening quote, in any chunking. Control characters are data. So is a backslash
// that begins no escape of JSON's; from then on the string is one without escapes, such as a Windows path, and only \", \\
// and \/ are. If another escape came before, it is not known which of the two it is: that is bad. The zero value is ready.
type jsonString struct {
	seen uint8 // bytes of an escape
	rule escapeRule
	hex  [4]byte
}

// escapeRule specifies how the escapes of a string are read, once it contains one that shows it.
type escapeRule uint8

const (
	escapesUnknown escapeRule = iota
	escapesRead               // one was read as in JSON
	escapesData               // a backslash is data
	escapesBad                // both
)

// read appends the string, valid JSON, to dst as far as src holds it. It returns the number of bytes read, and whether
// the closing quote was among them; that one is appended too. If the rule is escapesBad, it has stopped.
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
			switch {
			case c == 'u' && s.rule != escapesData:
				s.seen = 2
				i++
			case c == '"' || c == '\\' || c == '/':
				dst = append(dst, '\\', c)
				s.seen = 0
				i++
			case jsontext.Escape(c) && s.rule != escapesData:
				dst = append(dst, '\\', c)
				s.seen, s.rule = 0, escapesRead
				i++
			default:
				if s.data(); s.rule == escapesBad {
					return dst, i, false
				}
				dst = append(dst, `\\`...)
			}
		case hexValue(c) < 0:
			seen := s.seen
			if s.data(); s.rule == escapesBad {
				return dst, i, false
			}
			s.seen = seen
			dst = append(dst, `\\u`...)
			dst = append(dst, s.hex[:s.seen-2]...)
			s.seen = 0
		default:
			s.hex[s.seen-2] = c
			i++
			if s.seen++; s.seen == 6 {
				dst = append(dst, `\u`...)
				dst = append(dst, s.hex[:]...)
				s.seen, s.rule = 0, escapesRead
			}
		}
	}
	return dst, i, false
}

// data notes that a backslash is data.
func (s *jsonString) data() {
	s.seen = 0
	if s.rule == escapesRead {
		s.rule = escapesBad
	} else {
		s.rule = escapesData
	}
}
