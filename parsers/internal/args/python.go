// SPDX-License-Identifier: Apache-2.0

package args

import (
	"unicode/utf8"

	"github.com/weft-go/weft/parsers/internal/jsontext"
)

// maxPython is the deepest nesting of a Python literal.
const maxPython = 64

// appendPython appends text, which is a Python literal such as repr writes it, as JSON of one of the types t, Object or
// Array. It reads dicts, lists, tuples and sets; strings in one pair of quotes; JSON's numbers; True, False and None,
// or true, false and null. Keys that are not strings become strings as json.dumps makes them. A trailing comma is
// allowed. If text is anything else, dst is returned as it was.
func appendPython(dst, text []byte, t Types) (out []byte, ok bool) {
	p := python{out: dst, src: text}
	at := len(dst)
	if !p.value(0) || len(trim(p.src[p.i:])) > 0 {
		return dst[:at], false
	}
	if c := p.out[at]; c == '{' && t&Object != 0 || c == '[' && t&Array != 0 {
		return p.out, true
	}
	return p.out[:at], false
}

type python struct {
	out, src []byte
	i        int
}

// next skips white space and returns the byte after it, or 0.
func (p *python) next() byte {
	for p.i < len(p.src) && blank(p.src[p.i]) {
		p.i++
	}
	if p.i == len(p.src) {
		return 0
	}
	return p.src[p.i]
}

func (p *python) value(depth int) bool {
	if depth > maxPython {
		return false
	}
	switch c := p.next(); c {
	case 0:
		return false
	case '{':
		return p.braces(depth)
	case '[':
		return p.list(depth, ']')
	case '(':
		return p.list(depth, ')')
	case '"', '\'':
		return p.str(c)
	}
	return p.word()
}

// list reads a list or tuple. A parenthesis around one value without a comma is that value, as in Python.
func (p *python) list(depth int, end byte) bool {
	p.i++
	at := len(p.out)
	p.out = append(p.out, '[')
	for n, comma := 0, true; ; n++ {
		if p.next() == end {
			p.i++
			if end == ')' && n == 1 && !comma {
				p.out = append(p.out[:at], p.out[at+1:]...)
				return true
			}
			p.out = append(p.out, ']')
			return true
		}
		if !comma {
			return false
		}
		if n > 0 {
			p.out = append(p.out, ',')
		}
		if !p.value(depth + 1) {
			return false
		}
		comma = p.comma()
	}
}

// comma reads a comma, if there is one.
func (p *python) comma() bool {
	if p.next() != ',' {
		return false
	}
	p.i++
	return true
}

// braces reads a dict or a set, which show after the first element.
func (p *python) braces(depth int) bool {
	p.i++
	at := len(p.out)
	p.out = append(p.out, '{')
	set := false
	for n, comma := 0, true; ; n++ {
		if p.next() == '}' {
			p.i++
			if set {
				p.out[at] = '['
				p.out = append(p.out, ']')
				return true
			}
			p.out = append(p.out, '}')
			return true
		}
		if !comma {
			return false
		}
		if n > 0 {
			p.out = append(p.out, ',')
		}
		key := len(p.out)
		if !p.value(depth + 1) {
			return false
		}
		isDict := p.next() == ':'
		if n > 0 && isDict == set {
			return false
		}
		if set = !isDict; isDict {
			p.i++
			if !p.key(key) {
				return false
			}
			p.out = append(p.out, ':')
			if !p.value(depth + 1) {
				return false
			}
		}
		comma = p.comma()
	}
}

// key makes the value at out[at:] a string.
func (p *python) key(at int) bool {
	switch p.out[at] {
	case '"':
		return true
	case '{', '[':
		return false
	}
	p.out = append(p.out, `""`...)
	copy(p.out[at+1:], p.out[at:len(p.out)-2])
	p.out[at] = '"'
	return true
}

// word reads a number or a name.
func (p *python) word() bool {
	from := p.i
	for p.i < len(p.src) {
		if c := p.src[p.i]; c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '+' {
			p.i++
			continue
		}
		break
	}
	w := p.src[from:p.i]
	switch string(w) {
	case "":
		return false
	case "None", "null":
		w = []byte("null")
	case "True", "true":
		w = []byte("true")
	case "False", "false":
		w = []byte("false")
	default:
		if c := w[0]; c != '-' && !(c >= '0' && c <= '9') || !jsontext.Valid(w) {
			return false
		}
	}
	p.out = append(p.out, w...)
	return true
}

// str reads a string between quotes.
func (p *python) str(quote byte) bool {
	p.i++
	p.out = append(p.out, '"')
	for from := p.i; p.i < len(p.src); {
		switch c := p.src[p.i]; c {
		case quote:
			p.out = append(jsontext.AppendEscaped(p.out, p.src[from:p.i]), '"')
			p.i++
			return true
		case '\n', '\r':
			return false
		case '\\':
			p.out = jsontext.AppendEscaped(p.out, p.src[from:p.i])
			if p.i++; !p.escape() {
				return false
			}
			from = p.i
		default:
			p.i++
		}
	}
	return false
}

// escape reads the characters after a backslash. An escape that Python does not know keeps its backslash.
func (p *python) escape() bool {
	if p.i == len(p.src) {
		return false
	}
	c := p.src[p.i]
	p.i++
	switch c {
	case '\n':
	case '\\', '"':
		p.out = append(p.out, '\\', c)
	case '\'':
		p.out = append(p.out, c)
	case 'n':
		p.out = append(p.out, `\n`...)
	case 't':
		p.out = append(p.out, `\t`...)
	case 'r':
		p.out = append(p.out, `\r`...)
	case 'b':
		p.out = append(p.out, `\b`...)
	case 'f':
		p.out = append(p.out, `\f`...)
	case 'a':
		p.out = append(p.out, `\u0007`...)
	case 'v':
		p.out = append(p.out, `\u000b`...)
	case 'x':
		return p.code(2)
	case 'u':
		return p.code(4)
	case 'U':
		return p.code(8)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		r := rune(c - '0')
		for n := 1; n < 3 && p.i < len(p.src) && p.src[p.i] >= '0' && p.src[p.i] <= '7'; n++ {
			r = r<<3 | rune(p.src[p.i]-'0')
			p.i++
		}
		p.char(r)
	default:
		p.out = append(p.out, `\\`...)
		p.i--
	}
	return true
}

// code reads n hexadecimal digits.
func (p *python) code(n int) bool {
	if len(p.src)-p.i < n {
		return false
	}
	var r uint32
	for _, c := range p.src[p.i : p.i+n] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | uint32(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | uint32(c|0x20-'a'+10)
		default:
			return false
		}
	}
	if r > utf8.MaxRune {
		return false
	}
	p.i += n
	p.char(rune(r))
	return true
}

// char appends r. Surrogates stay escapes, so that a pair of them is one character to a JSON reader.
func (p *python) char(r rune) {
	if r >= 0xd800 && r < 0xe000 {
		const hex = "0123456789abcdef"
		p.out = append(p.out, '\\', 'u', hex[r>>12], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		return
	}
	var b [utf8.UTFMax]byte
	p.out = jsontext.AppendEscaped(p.out, b[:utf8.EncodeRune(b[:], r)])
}
