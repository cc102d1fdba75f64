// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"strconv"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/text"
)

func nameStart(c byte) bool { return text.NameStart(c) }

func nameByte(c byte) bool { return nameStart(c) || isDigit(c) }

// word reads c in or after a keyword, a literal, the prefix of a string, or a number.
func (d *pythonDecoder) word(c byte, i int) int {
	switch d.state {
	case pythonInName:
		if nameByte(c) || c == '.' || c == '-' || c == '$' {
			d.held = append(d.held, c)
			return i + 1
		}
		d.state = pythonEquals
		return i
	case pythonNumber:
		if d.inNumber(c) {
			d.held = append(d.held, c)
			return i + 1
		}
		if len(d.held) == 1 && (d.held[0] == '-' || d.held[0] == '+') {
			switch {
			case c == '-': // two signs are one
				d.held[0] = '+' + '-' - d.held[0]
				return i + 1
			case c == '+', blank(c):
				return i + 1
			}
		}
		d.number()
		return i
	}
	if nameByte(c) {
		if d.held = append(d.held, c); len(d.held) > len("False") {
			d.end = grammar.Bad
			return i
		}
		return i + 1
	}
	if c == '"' || c == '\'' {
		if raw, format, ok := stringPrefix(d.held); ok {
			if d.state == pythonWord {
				d.before()
				d.put(`"`)
			}
			d.quote(c, raw, format)
			return i + 1
		}
	}
	if json := literal(d.held); json != "" && d.state == pythonWord {
		d.held = append(d.held[:0], json...)
		d.atom(d.held)
		return i
	}
	d.end = grammar.Bad
	return i
}

// literal returns the JSON literal for word, or "".
func literal(word []byte) string {
	switch string(word) {
	case "True", "true":
		return "true"
	case "False", "false":
		return "false"
	case "None", "null":
		return "null"
	}
	return ""
}

// stringPrefix reports whether word may be the prefix of a string, and whether it makes it raw or an f-string.
func stringPrefix(word []byte) (raw, format, ok bool) {
	if len(word) > 2 {
		return false, false, false
	}
	for _, c := range word {
		switch c | 0x20 {
		case 'r':
			raw = true
		case 'f':
			format = true
		case 'u':
		default:
			return false, false, false
		}
	}
	return raw, format, true
}

// inNumber reports whether c continues the number in held.
func (d *pythonDecoder) inNumber(c byte) bool {
	h := d.held
	if c == '+' || c == '-' {
		hex := len(h) > 1 && h[1]|0x20 == 'x' || len(h) > 2 && h[2]|0x20 == 'x'
		return len(h) == 0 || h[len(h)-1]|0x20 == 'e' && !hex
	}
	return isDigit(c) || c == '.' || c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// number writes the number in held.
func (d *pythonDecoder) number() {
	n := len(d.held)
	out, ok := appendNumber(d.held, d.held)
	d.held = out[:0]
	switch text := out[n:]; {
	case !ok:
		d.end = grammar.Bad
	case len(text) > 0:
		d.atom(text)
	default: // too big: a string keeps it
		d.before()
		d.put(`"`)
		d.data(out[:n])
		d.put(`"`)
		d.state, d.last = pythonAfter, pythonWasString
	}
}

// appendNumber appends the Python number text to dst as a JSON number. It appends nothing if the number is not decimal
// and does not fit 64 bits, and reports false if it is not a number.
func appendNumber(dst, text []byte) (out []byte, ok bool) {
	minus := false
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		minus = text[0] == '-'
		text = text[1:]
	}
	if len(text) > 2 && text[0] == '0' {
		base := uint64(0)
		switch text[1] | 0x20 {
		case 'x':
			base = 16
		case 'o':
			base = 8
		case 'b':
			base = 2
		}
		if base != 0 {
			return appendDecimal(dst, text[2:], base, minus)
		}
	}
	if minus {
		dst = append(dst, '-')
	}
	start := len(dst)
	dst, rest := appendDigits(dst, text)
	switch {
	case len(rest) == 0:
		dst = trimZeros(dst, start)
		return dst, len(dst) > start
	case len(dst) > start:
		dst = trimZeros(dst, start)
	case rest[0] != '.':
		return dst, false
	default:
		dst = append(dst, '0')
	}
	whole := len(rest) < len(text) // there are digits before the point
	if rest[0] == '.' {
		dst = append(dst, '.')
		from := len(dst)
		if dst, rest = appendDigits(dst, rest[1:]); len(dst) == from {
			if !whole {
				return dst, false
			}
			dst = append(dst, '0')
		}
	}
	if len(rest) > 0 && rest[0]|0x20 == 'e' {
		dst = append(dst, rest[0])
		if rest = rest[1:]; len(rest) > 0 && (rest[0] == '-' || rest[0] == '+') {
			dst = append(dst, rest[0])
			rest = rest[1:]
		}
		from := len(dst)
		if dst, rest = appendDigits(dst, rest); len(dst) == from {
			return dst, false
		}
	}
	return dst, len(rest) == 0
}

// appendDigits appends the decimal digits that text begins with, without the single underscores between them.
func appendDigits(dst, text []byte) (out, rest []byte) {
	for i, c := range text {
		switch {
		case isDigit(c):
			dst = append(dst, c)
		case c != '_' || i == 0 || i+1 == len(text) || !isDigit(text[i-1]) || !isDigit(text[i+1]):
			return dst, text[i:]
		}
	}
	return dst, nil
}

// trimZeros removes the leading zeros of the digits dst[start:], except for the last digit.
func trimZeros(dst []byte, start int) []byte {
	n := start
	for n < len(dst)-1 && dst[n] == '0' {
		n++
	}
	return append(dst[:start], dst[n:]...)
}

// appendDecimal appends digits of another base as a decimal number.
func appendDecimal(dst, digits []byte, base uint64, minus bool) (out []byte, ok bool) {
	v, big := uint64(0), false
	for i, c := range digits {
		if c == '_' {
			if i+1 == len(digits) || digits[i+1] == '_' {
				return dst, false
			}
			continue
		}
		h := hexValue(c)
		if h < 0 || uint64(h) >= base {
			return dst, false
		}
		big = big || v > (1<<64-1)/base
		v = v*base + uint64(h)
	}
	if big {
		return dst, true
	}
	if minus && v > 0 {
		dst = append(dst, '-')
	}
	return strconv.AppendUint(dst, v, 10), true
}
