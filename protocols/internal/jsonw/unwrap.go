// SPDX-License-Identifier: Apache-2.0

package jsonw

import "unicode/utf16"

// Unwrap decodes the arguments of a function, {"input":"…"}, to the input text of the custom tool that the function
// represents, as the arguments are received. The zero value is ready to use.
//
//	u.Next(dst, `{"input":"a\`)    a
//	u.Next(dst, `nb`)              LF b
//	u.Next(dst, `"}`)              nothing
//	u.Close(dst)                   nothing
//
// The text is the first field named input whose value is a string. If no such field exists, the model did not follow
// the schema, and Close appends everything that was read.
type Unwrap struct {
	state unwrapState
	raw   []byte // all input until the field is found
	key   []byte
	skip  Balance
	hex   rune // of a \u escape
	n     int  // its digits so far
	high  rune // a high surrogate that precedes its low one; 0 if none
}

type unwrapState uint8

const (
	unwrapStart  unwrapState = iota
	unwrapMember             // before a key
	unwrapKey                // inside a key
	unwrapKeyEsc             // after a backslash in a key
	unwrapColon              // before a colon
	unwrapValue              // before a value
	unwrapSkip               // inside another field's value
	unwrapText               // inside the text
	unwrapEscape             // after a backslash in the text
	unwrapHex                // inside a \u escape
	unwrapDone               // after the text
	unwrapLost               // not an object
)

// Next appends the text that p, valid UTF-8, adds.
func (u *Unwrap) Next(dst, p []byte) []byte {
	if u.state < unwrapText || u.state == unwrapLost {
		u.raw = append(u.raw, p...)
	}
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch u.state {
		case unwrapStart:
			switch {
			case c == '{':
				u.state = unwrapMember
			case !isBlank(c):
				u.state = unwrapLost
			}
		case unwrapMember:
			switch {
			case c == '"':
				u.state, u.key = unwrapKey, u.key[:0]
			case c != ',' && !isBlank(c):
				u.state = unwrapLost // the end of the object, too
			}
		case unwrapKey:
			switch c {
			case '"':
				u.state = unwrapColon
			case '\\':
				u.state = unwrapKeyEsc
			default:
				u.key = append(u.key, c)
			}
		case unwrapKeyEsc:
			u.key, u.state = append(u.key, '\\', c), unwrapKey
		case unwrapColon:
			switch {
			case c == ':':
				u.state = unwrapValue
			case !isBlank(c):
				u.state = unwrapLost
			}
		case unwrapValue:
			if isBlank(c) {
				break
			}
			if c == '"' && string(u.key) == "input" {
				u.state, u.raw = unwrapText, nil
				break
			}
			u.state, u.skip = unwrapSkip, Balance{}
			u.skip.Feed(p[i : i+1])
		case unwrapSkip:
			if !u.skip.Open() && c == ',' {
				u.state = unwrapMember
				break
			}
			if u.skip.Feed(p[i : i+1]); u.skip.depth < 0 {
				u.state = unwrapLost // the end of the object
			}
		case unwrapText:
			k := i
			for k < len(p) && p[k] != '"' && p[k] != '\\' {
				k++
			}
			if k > i {
				dst = append(u.lone(dst), p[i:k]...)
			}
			if i = k; k == len(p) {
				break
			}
			if p[k] == '\\' {
				u.state = unwrapEscape
			} else {
				dst, u.state = u.lone(dst), unwrapDone
			}
		case unwrapEscape:
			if c == 'u' {
				u.state, u.hex, u.n = unwrapHex, 0, 0
				break
			}
			dst, u.state = append(u.lone(dst), unescape(c)), unwrapText
		case unwrapHex:
			u.hex = u.hex<<4 | rune(max(0, Hex(c))) // a non-digit has the value 0
			if u.n++; u.n == 4 {
				dst, u.state = u.unit(dst, u.hex), unwrapText
			}
		}
	}
	return dst
}

// Close ends the arguments.
func (u *Unwrap) Close(dst []byte) []byte {
	dst = u.lone(dst)
	dst = append(dst, u.raw...)
	u.raw = nil
	return dst
}

// unit appends a UTF-16 code unit.
func (u *Unwrap) unit(dst []byte, r rune) []byte {
	if u.high != 0 && r >= 0xDC00 && r < 0xE000 {
		r = utf16.DecodeRune(u.high, r)
		u.high = 0
		return append(dst, string(r)...)
	}
	dst = u.lone(dst)
	if r >= 0xD800 && r < 0xDC00 {
		u.high = r
		return dst
	}
	return append(dst, string(r)...) // a lone low surrogate becomes U+FFFD
}

// lone writes U+FFFD for a high surrogate without a low one.
func (u *Unwrap) lone(dst []byte) []byte {
	if u.high != 0 {
		u.high = 0
		dst = append(dst, Replacement...)
	}
	return dst
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return c
}

// Hex returns the value of a hexadecimal digit, or -1 for any other byte.
func Hex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
