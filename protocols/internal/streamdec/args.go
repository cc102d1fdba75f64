// SPDX-License-Identifier: Apache-2.0

package streamdec

import "github.com/weft-go/weft/protocols/internal/jsonw"

// MaxDepth is the maximum nesting of arguments that an [ArgState] accepts. Deeper ones are treated as broken.
const MaxDepth = 512

// ArgState validates JSON text that arrives in pieces and reports whether the text so far is one complete value
// according to RFC 8259. White space around the value is allowed. It examines each byte once and retains none. The zero
// value is ready for use.
//
//	a.Feed(`{"x":`)  Complete false, Broken false
//	a.Feed(`1}`)     Complete true
//	a.Feed(`}`)      Complete false, Broken true
type ArgState struct {
	state argState
	num   numState
	n     uint8 // bytes read of a literal or an escape
	first byte  // first byte of the value
	depth uint16
	word  string // the literal being read
	stack [MaxDepth / 64]uint64
}

type argState uint8

const (
	argValue      argState = iota // before a value
	argFirst                      // after [: a value or ]
	argName                       // after {: a name or }
	argNext                       // after a comma in an object: a name
	argColon                      // after a name
	argAfterValue                 // after a value inside an object or array
	argEnd                        // after the whole value
	argString                     // inside a string
	argEscape                     // after a backslash
	argHex                        // inside a \u escape
	argKey                        // inside a name
	argKeyEsc                     // after a backslash in a name
	argKeyHex                     // inside a \u escape in a name
	argWord                       // inside true, false, null
	argNumber                     // inside a number
	argBroken                     // not JSON, regardless of the rest
)

type numState uint8

const (
	numMinus numState = iota // after a minus
	numZero                  // after a leading zero
	numInt                   // inside the integer part
	numPoint                 // after the point
	numFrac                  // inside the fraction
	numE                     // after the e
	numSign                  // after its sign
	numExp                   // inside the exponent
)

// whole reports whether a number may end in state n.
func (n numState) whole() bool { return n == numZero || n == numInt || n == numFrac || n == numExp }

// Complete reports whether the text so far is one complete value.
func (a *ArgState) Complete() bool {
	return a.state == argEnd || a.state == argNumber && a.depth == 0 && a.num.whole()
}

// Broken reports whether the text is no prefix of a JSON value, or is nested deeper than [MaxDepth].
func (a *ArgState) Broken() bool { return a.state == argBroken }

// Object reports whether the value begins as an object, as arguments of a function must.
func (a *ArgState) Object() bool { return a.first == '{' }

// Empty reports whether the text so far is empty or white space.
func (a *ArgState) Empty() bool { return a.state == argValue && a.depth == 0 }

// Feed adds the next piece of text.
func (a *ArgState) Feed(p []byte) {
	for i := 0; i < len(p); i++ {
		c := p[i]
	again:
		switch a.state {
		case argString, argKey:
			// Skip to the next quote, backslash or control character.
			for c >= 0x20 && c != '"' && c != '\\' {
				if i++; i == len(p) {
					return
				}
				c = p[i]
			}
			switch {
			case c == '\\':
				a.state++
			case c != '"':
				a.state = argBroken
			case a.state == argKey:
				a.state = argColon
			default:
				a.endValue()
			}
		case argEscape, argKeyEsc:
			switch c {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				a.state--
			case 'u':
				a.state++
				a.n = 0
			default:
				a.state = argBroken
			}
		case argHex, argKeyHex:
			if jsonw.Hex(c) < 0 {
				a.state = argBroken
			} else if a.n++; a.n == 4 {
				a.state -= 2
			}
		case argWord:
			switch {
			case c != a.word[a.n]:
				a.state = argBroken
			case int(a.n)+1 == len(a.word):
				a.endValue()
			default:
				a.n++
			}
		case argNumber:
			if a.number(c) {
				continue
			}
			if !a.num.whole() {
				a.state = argBroken
				return
			}
			a.endValue()
			goto again
		case argBroken:
			return
		default:
			if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
				continue
			}
			a.token(c)
		}
	}
}

// token reads a byte outside strings, numbers and literals.
func (a *ArgState) token(c byte) {
	if a.depth == 0 && a.state == argValue {
		a.first = c
	}
	switch a.state {
	case argValue, argFirst:
		switch {
		case c == ']' && a.state == argFirst:
			a.pop()
		case c == '{' || c == '[':
			a.push(c == '{')
		case c == '"':
			a.state = argString
		case c == '-':
			a.state, a.num = argNumber, numMinus
		case c == '0':
			a.state, a.num = argNumber, numZero
		case c >= '1' && c <= '9':
			a.state, a.num = argNumber, numInt
		case c == 't':
			a.state, a.word, a.n = argWord, "true", 1
		case c == 'f':
			a.state, a.word, a.n = argWord, "false", 1
		case c == 'n':
			a.state, a.word, a.n = argWord, "null", 1
		default:
			a.state = argBroken
		}
	case argName, argNext:
		switch {
		case c == '"':
			a.state = argKey
		case c == '}' && a.state == argName:
			a.pop()
		default:
			a.state = argBroken
		}
	case argColon:
		a.state = argBroken
		if c == ':' {
			a.state = argValue
		}
	case argAfterValue:
		switch obj := a.object(); {
		case c == ',' && obj:
			a.state = argNext
		case c == ',':
			a.state = argValue
		case c == '}' && obj, c == ']' && !obj:
			a.pop()
		default:
			a.state = argBroken
		}
	default: // after the whole value
		a.state = argBroken
	}
}

// number reads a byte of a number. It returns false if c is not part of the number.
func (a *ArgState) number(c byte) bool {
	digit := c >= '0' && c <= '9'
	switch a.num {
	case numMinus:
		switch {
		case c == '0':
			a.num = numZero
		case digit:
			a.num = numInt
		default:
			return false
		}
		return true
	case numZero, numInt:
		switch {
		case digit && a.num == numInt:
		case c == '.':
			a.num = numPoint
		case c|0x20 == 'e':
			a.num = numE
		default:
			return false
		}
		return true
	case numPoint, numFrac:
		switch {
		case digit:
			a.num = numFrac
		case c|0x20 == 'e' && a.num == numFrac:
			a.num = numE
		default:
			return false
		}
		return true
	case numE:
		if c == '+' || c == '-' {
			a.num = numSign
			return true
		}
	}
	if digit {
		a.num = numExp
	}
	return digit
}

// endValue sets the state after the end of a value.
func (a *ArgState) endValue() {
	a.state = argAfterValue
	if a.depth == 0 {
		a.state = argEnd
	}
}

func (a *ArgState) push(obj bool) {
	if a.depth == MaxDepth {
		a.state = argBroken
		return
	}
	word, bit := a.depth/64, uint64(1)<<(a.depth%64)
	if obj {
		a.stack[word] |= bit
		a.state = argName
	} else {
		a.stack[word] &^= bit
		a.state = argFirst
	}
	a.depth++
}

func (a *ArgState) pop() {
	a.depth--
	a.endValue()
}

// object reports whether the innermost open value is an object.
func (a *ArgState) object() bool {
	top := a.depth - 1
	return a.stack[top/64]>>(top%64)&1 != 0
}
