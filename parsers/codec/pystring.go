// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"unicode/utf8"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/jsontext"
)

// pythonText is the state of a string literal.
type pythonText struct {
	quote  byte
	quotes uint8 // in a row, of those that open or end the literal
	triple bool
	raw    bool
	format bool
	brace  byte // of an f-string, of which a second one must follow

	escape byte // x, u, U, or 0 for octal digits
	digits [8]byte
	count  uint8
}

// plainText[c] reports that c is an ordinary character in every string literal.
var plainText = func() (t [256]bool) {
	for c := 0x20; c < 256; c++ {
		t[c] = c != '"' && c != '\'' && c != '\\'
	}
	return
}()

// plainFormat is plainText for f-strings.
var plainFormat = func() (t [256]bool) {
	t = plainText
	t['{'], t['}'] = false, false
	return
}()

// quote begins a string literal with the quote c.
func (d *pythonDecoder) quote(c byte, raw, format bool) {
	d.str = pythonText{quote: c, quotes: 1, raw: raw, format: format}
	d.state = pythonQuote
}

// text reads on in a string literal.
func (d *pythonDecoder) text(src []byte, i int) int {
	plain := &plainText
	if d.str.format {
		plain = &plainFormat
	}
	from := i
	for i < len(src) && plain[src[i]] {
		i++
	}
	if i > from {
		if d.open > 0 {
			i = from + 1 // so that the limit is reached at the same byte always
			d.pend = append(d.pend, src[from])
			return i
		}
		d.out = append(d.out, src[from:i]...)
		if i == len(src) {
			return i
		}
	}
	switch c := src[i]; {
	case c == '\\' && d.str.raw:
		d.data(src[i : i+1])
		d.state = pythonRaw
	case c == '\\':
		d.state = pythonEscape
	case c == d.str.quote && d.str.triple:
		d.state, d.str.quotes = pythonEndQuote, 1
	case c == d.str.quote:
		d.state = pythonJoin
	case d.str.format && (c == '{' || c == '}'):
		d.state, d.str.brace = pythonField, c
	default:
		d.data(src[i : i+1])
	}
	return i + 1
}

// data writes text as a part of a JSON string.
func (d *pythonDecoder) data(text []byte) {
	to := d.to()
	*to = jsontext.AppendEscaped(*to, text)
}

// special reads c at quotes and escapes.
func (d *pythonDecoder) special(c byte, i int) int {
	s := &d.str
	switch d.state {
	case pythonQuote:
		switch {
		case c == s.quote && s.quotes == 1:
			s.quotes = 2
			return i + 1
		case c == s.quote:
			s.triple = true
			d.state = pythonString
			return i + 1
		case s.quotes == 2:
			d.state = pythonJoin // an empty string
			return i
		}
	case pythonEndQuote:
		if c == s.quote {
			if s.quotes++; s.quotes == 3 {
				d.state = pythonJoin
			}
			return i + 1
		}
		d.data([]byte{s.quote, s.quote}[:s.quotes])
	case pythonRaw:
		if c == '\\' || c == s.quote {
			d.data([]byte{c})
			i++
		}
	case pythonReturn:
		if c == '\n' {
			i++
		}
	case pythonField:
		if c != s.brace { // the value of a name, which is not known
			d.end = grammar.Bad
			return i
		}
		d.data([]byte{c})
		i++
	case pythonDigits:
		return d.digit(c, i)
	case pythonEscape:
		s.escape, s.count = c, 0
		switch c {
		case '\r':
			d.state = pythonReturn
			return i + 1
		case 'x', 'u', 'U':
			d.state = pythonDigits
			return i + 1
		case '0', '1', '2', '3', '4', '5', '6', '7':
			s.escape = 0
			d.state = pythonDigits
			return i
		}
		if to, ok := simpleEscape(c); ok {
			if c != '\n' {
				d.data([]byte{to})
			}
			i++
		} else {
			d.put(`\\`)
		}
	}
	d.state = pythonString
	return i
}

// simpleEscape returns the character that a backslash and c represent.
func simpleEscape(c byte) (to byte, ok bool) {
	switch c {
	case '\n', '\\', '\'', '"':
		return c, true
	case 'a':
		return '\a', true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'v':
		return '\v', true
	}
	return 0, false
}

// digit reads c in or after the digits of an escape.
func (d *pythonDecoder) digit(c byte, i int) int {
	s := &d.str
	want := uint8(3)
	switch s.escape {
	case 'x':
		want = 2
	case 'u':
		want = 4
	case 'U':
		want = 8
	}
	if s.escape == 0 && c >= '0' && c <= '7' || s.escape != 0 && hexValue(c) >= 0 {
		s.digits[s.count] = c
		i++
		if s.count++; s.count < want {
			return i
		}
	} else if s.escape != 0 {
		d.put(`\\`)
		d.data([]byte{s.escape})
		d.data(s.digits[:s.count])
		d.state = pythonString
		return i
	}
	d.char()
	d.state = pythonString
	return i
}

// char writes the character that an escape represents.
func (d *pythonDecoder) char() {
	s := &d.str
	base := rune(16)
	if s.escape == 0 {
		base = 8
	}
	var r rune
	for _, c := range s.digits[:s.count] {
		if r <= utf8.MaxRune {
			r = r*base + hexValue(c)
		}
	}
	switch {
	case r > utf8.MaxRune:
		d.put(`\\`)
		d.data([]byte{s.escape})
		d.data(s.digits[:s.count])
	case r >= 0xd800 && r < 0xe000:
		d.put(`\u`)
		d.data(s.digits[s.count-4 : s.count])
	default:
		var b [utf8.UTFMax]byte
		d.data(b[:utf8.EncodeRune(b[:], r)])
	}
}
