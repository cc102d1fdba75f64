// SPDX-License-Identifier: Apache-2.0

// Package jsontext checks JSON text as it streams in: one byte at a time or a megabyte at once, never looking back.
package jsontext

import "github.com/weft-go/weft/parsers/internal/work"

// State of a [Lexer] after Scan.
type State uint8

const (
	// Open means the value continues.
	Open State = iota
	// Done means the value is complete; it ends where Scan stopped.
	Done
	// Bad means the text is not JSON; Scan stopped at the first wrong byte.
	Bad
	// Deep means that the nesting limit was reached.
	Deep
)

// MaxDepth is the deepest nesting of arrays and objects that is accepted.
const MaxDepth = 512

type mode uint8

const (
	valueStart  mode = iota // a value must follow
	arrayStart              // after '[': a value or ']'
	objectStart             // after '{': a key or '}'
	keyStart                // after ',' in an object: a key
	colon                   // after a key
	afterValue              // after a value inside a container: ',' or the closer
	inString
	inEscape
	inHex
	inNumber
	inLiteral
	done
)

// number modes, in the order of RFC 8259's grammar
const (
	numMinus uint8 = iota
	numZero
	numInt
	numDot
	numFrac
	numE
	numESign
	numExp
)

// Lexer validates one JSON value per RFC 8259. The zero value is ready. It allocates nothing and keeps 1 bit a level.
//
// Bytes ≥ 0x80 inside strings pass unchecked.
type Lexer struct {
	mode  mode
	num   uint8
	hex   uint8
	key   bool   // the string is a key
	depth int32  // open containers
	rest  string // of a literal
	stack [MaxDepth / 64]uint64
}

// Reset makes l ready for the next value.
func (l *Lexer) Reset() { *l = Lexer{} }

// Started reports whether any byte of the value was seen.
func (l *Lexer) Started() bool { return l.mode != valueStart || l.depth > 0 }

// AtNumberEnd reports whether the value is a bare number that would be complete if nothing followed.
func (l *Lexer) AtNumberEnd() bool {
	return l.mode == inNumber && l.depth == 0 && (l.num == numZero || l.num == numInt || l.num == numFrac || l.num == numExp)
}

// Closable reports whether nothing but closing brackets is missing for the value to be complete.
func (l *Lexer) Closable() bool {
	switch l.mode {
	case afterValue, objectStart, arrayStart:
		return l.depth > 0
	}
	return false
}

// AppendClosers appends the closing brackets that are missing.
func (l *Lexer) AppendClosers(dst []byte) []byte {
	for l.depth > 0 {
		c := byte(']')
		if l.inObject() {
			c = '}'
		}
		dst = append(dst, c)
		l.depth--
	}
	return dst
}

func (l *Lexer) push(object bool) bool {
	if l.depth == MaxDepth {
		return false
	}
	w, b := l.depth/64, uint(l.depth%64)
	l.stack[w] &^= 1 << b
	if object {
		l.stack[w] |= 1 << b
	}
	l.depth++
	return true
}

func (l *Lexer) inObject() bool {
	d := l.depth - 1
	return d >= 0 && l.stack[d/64]>>(uint(d%64))&1 == 1
}

// plain[c] specifies that c inside a string needs no attention.
var plain = func() (t [256]bool) {
	for c := 0x20; c < 256; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return
}()

// Escape reports whether c after a backslash makes an escape of two bytes.
func Escape(c byte) bool {
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	}
	return false
}

// Plain reports whether c inside a string needs no attention.
func Plain(c byte) bool { return plain[c] }

// InString reports whether the value is open inside a string, after a whole character.
func (l *Lexer) InString() bool { return l.mode == inString }

// InEscape reports whether the value is open inside a string, after a backslash.
func (l *Lexer) InEscape() bool { return l.mode == inEscape }

// SetEscape reports whether the string that l is in continues after a backslash. Only a caller that has read on in the string by
// itself may do so.
func (l *Lexer) SetEscape(open bool) {
	if l.mode = inString; open {
		l.mode = inEscape
	}
}

// Scan reads b and returns the number of bytes that belong to the value, and the state of the value. White space before
// the value is treated as part of it; nothing after it is read. A bare number ends at the first byte that cannot belong
// to it.
func (l *Lexer) Scan(b []byte) (n int, st State) {
	n, st = l.scan(b)
	work.Add(n)
	return n, st
}

func (l *Lexer) scan(b []byte) (n int, st State) {
	i := 0
	for i < len(b) {
		c := b[i]
		switch l.mode {
		case inString:
			for plain[c] {
				i++
				if i == len(b) {
					return i, Open
				}
				c = b[i]
			}
			switch {
			case c == '"':
				if l.key {
					l.mode, l.key = colon, false
				} else if l.endValue() {
					return i + 1, Done
				}
			case c == '\\':
				l.mode = inEscape
			default:
				return i, Bad
			}
		case inEscape:
			switch {
			case Escape(c):
				l.mode = inString
			case c == 'u':
				l.mode, l.hex = inHex, 4
			default:
				return i, Bad
			}
		case inHex:
			if !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f') {
				return i, Bad
			}
			if l.hex--; l.hex == 0 {
				l.mode = inString
			}
		case inNumber:
			ok, more := l.number(c)
			if !ok {
				return i, Bad
			}
			if !more {
				if l.endValue() {
					return i, Done
				}
				continue // c belongs to the container
			}
		case inLiteral:
			if c != l.rest[0] {
				return i, Bad
			}
			if l.rest = l.rest[1:]; l.rest == "" && l.endValue() {
				return i + 1, Done
			}
		case done:
			return i, Done
		default:
			if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
				break
			}
			if st := l.structure(c); st != Open {
				if st == Done {
					i++
				}
				return i, st
			}
		}
		i++
	}
	if l.mode == done {
		return i, Done
	}
	return i, Open
}

// structure handles a byte outside strings, numbers and literals.
func (l *Lexer) structure(c byte) State {
	switch l.mode {
	case colon:
		if c != ':' {
			return Bad
		}
		l.mode = valueStart
		return Open
	case objectStart, keyStart:
		if c == '"' {
			l.mode, l.key = inString, true
			return Open
		}
		if c == '}' && l.mode == objectStart {
			return l.pop()
		}
		return Bad
	case afterValue:
		obj := l.inObject()
		switch {
		case c == ',' && obj:
			l.mode = keyStart
		case c == ',':
			l.mode = valueStart
		case c == '}' && obj, c == ']' && !obj:
			return l.pop()
		default:
			return Bad
		}
		return Open
	case arrayStart:
		if c == ']' {
			return l.pop()
		}
	}
	switch {
	case c == '"':
		l.mode = inString
	case c == '{' || c == '[':
		if !l.push(c == '{') {
			return Deep
		}
		if l.mode = arrayStart; c == '{' {
			l.mode = objectStart
		}
	case c == '-':
		l.mode, l.num = inNumber, numMinus
	case c == '0':
		l.mode, l.num = inNumber, numZero
	case c >= '1' && c <= '9':
		l.mode, l.num = inNumber, numInt
	case c == 't':
		l.mode, l.rest = inLiteral, "rue"
	case c == 'f':
		l.mode, l.rest = inLiteral, "alse"
	case c == 'n':
		l.mode, l.rest = inLiteral, "ull"
	default:
		return Bad
	}
	return Open
}

func (l *Lexer) pop() State {
	l.depth--
	if l.endValue() {
		return Done
	}
	return Open
}

// endValue notes the end of a value and reports whether it was the outermost one.
func (l *Lexer) endValue() bool {
	if l.depth == 0 {
		l.mode = done
		return true
	}
	l.mode = afterValue
	return false
}

// number takes one byte in or after a number.
func (l *Lexer) number(c byte) (ok, more bool) {
	digit := c >= '0' && c <= '9'
	switch l.num {
	case numMinus:
		if !digit {
			return false, false
		}
		if l.num = numInt; c == '0' {
			l.num = numZero
		}
		return true, true
	case numDot, numESign:
		if !digit {
			return false, false
		}
		l.num++
		return true, true
	case numE:
		if c == '+' || c == '-' {
			l.num = numESign
			return true, true
		}
		if !digit {
			return false, false
		}
		l.num = numExp
		return true, true
	}
	// The number could end here.
	if digit {
		return l.num != numZero, true
	}
	if c == '.' && l.num <= numInt {
		l.num = numDot
		return true, true
	}
	if c|0x20 == 'e' && l.num != numExp {
		l.num = numE
		return true, true
	}
	return true, false
}

// Valid reports whether b is exactly one JSON value, white space around it allowed.
func Valid(b []byte) bool {
	var l Lexer
	n, st := l.Scan(b)
	if st == Open {
		return l.AtNumberEnd()
	}
	for ; n < len(b); n++ {
		if c := b[n]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return st == Done
}
