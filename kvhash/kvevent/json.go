// SPDX-License-Identifier: Apache-2.0

package kvevent

import (
	"encoding/binary"
	"io"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON is turned into msgpack, so that there is one reader of each format. What is not JSON in detail (leading zeros, bad UTF-8) may pass:
// the aim is to read what engines send, in bounded memory and without recursion.

// maxDepth limits the nesting of arrays and maps in a JSON payload. No form of events needs more than ten.
const maxDepth = 64

// isJSON reports whether the payload begins like an array or an object. In msgpack these bytes are small numbers, which no payload is.
func isJSON(b []byte) bool {
	i := blanks(b, 0)
	return i < len(b) && (b[i] == '{' || b[i] == '[')
}

func blanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// appendMsgpack appends the payload's values to dst as msgpack, at most 5 bytes for each of its bytes.
func appendMsgpack(dst, src []byte) ([]byte, *DecodeError) {
	type open struct {
		at    int // where the length goes
		n     uint32
		isMap bool
	}
	var stack [maxDepth]open
	depth := 0
	fault := func(i int, reason string) *DecodeError {
		e := &DecodeError{Offset: int64(i), reason: reason}
		if i >= len(src) {
			e.cause = io.ErrUnexpectedEOF
			e.reason = "the payload ends too early"
		}
		return e
	}
	i := 0
	for {
		// A value, or the end of an empty array.
		i = blanks(src, i)
		if i >= len(src) {
			return dst, fault(i, "")
		}
		switch c := src[i]; {
		case c == ']' && depth > 0 && stack[depth-1].n == 0 && !stack[depth-1].isMap:
			// closed below; an empty object is closed where it is opened
		case c == '[' || c == '{':
			if depth == maxDepth {
				return dst, fault(i, "nested too deep")
			}
			lead := byte(0xdd)
			if c == '{' {
				lead = 0xdf
			}
			if depth > 0 {
				stack[depth-1].n++
			}
			dst = append(dst, lead, 0, 0, 0, 0)
			stack[depth] = open{at: len(dst) - 4, isMap: c == '{'}
			depth++
			i++
			if c == '[' {
				continue
			}
			if i = blanks(src, i); i < len(src) && src[i] == '}' {
				break
			}
			n := 0
			if dst, n = appendKey(dst, src[i:]); n <= 0 {
				return dst, fault(i-n, "no key")
			}
			i += n
			continue
		default:
			n := 0
			if dst, n = appendScalar(dst, src[i:]); n <= 0 {
				return dst, fault(i-n, "no value")
			}
			if depth > 0 {
				stack[depth-1].n++
			}
			i += n
		}
		// After a value: the next one, or the end of what it is in.
		for {
			if i = blanks(src, i); depth == 0 {
				if i < len(src) {
					return dst, fault(i, "something after the end")
				}
				return dst, nil
			}
			if i >= len(src) {
				return dst, fault(i, "")
			}
			top := &stack[depth-1]
			end := byte(']')
			if top.isMap {
				end = '}'
			}
			if src[i] == end {
				binary.BigEndian.PutUint32(dst[top.at:], top.n)
				depth--
				i++
				continue
			}
			if src[i] != ',' || top.n == 0 {
				return dst, fault(i, "no comma")
			}
			i++
			if top.isMap {
				i = blanks(src, i)
				n := 0
				if dst, n = appendKey(dst, src[i:]); n <= 0 {
					return dst, fault(i-n, "no key")
				}
				i += n
			}
			break
		}
		// A value must follow now: an empty array was closed above.
		if i = blanks(src, i); i < len(src) && (src[i] == ']' || src[i] == '}') {
			return dst, fault(i, "no value")
		}
	}
}

// appendKey reads a key and its colon. It returns their number of bytes or, if they are invalid, minus the position of
// the fault, which is at most 0.
func appendKey(dst, src []byte) ([]byte, int) {
	if len(src) == 0 || src[0] != '"' {
		return dst, 0
	}
	dst, n := appendScalar(dst, src)
	if n <= 0 {
		return dst, n
	}
	if n = blanks(src, n); n == len(src) || src[n] != ':' {
		return dst, -n
	}
	return dst, n + 1
}

// appendScalar reads a string, a number, true, false or null; the result is like appendKey's.
func appendScalar(dst, src []byte) ([]byte, int) {
	switch c := src[0]; {
	case c == '"':
		return appendString(dst, src)
	case c == '-' || c >= '0' && c <= '9':
		return appendNumber(dst, src)
	}
	for _, w := range [...]struct {
		text string
		code byte
	}{{"null", 0xc0}, {"false", 0xc2}, {"true", 0xc3}} {
		if len(src) >= len(w.text) && string(src[:len(w.text)]) == w.text {
			return append(dst, w.code), len(w.text)
		}
		if len(src) < len(w.text) && string(src) == w.text[:len(src)] {
			return dst, -len(src)
		}
	}
	return dst, 0
}

func appendNumber(dst, src []byte) ([]byte, int) {
	n, whole := 0, true
	for n < len(src) {
		c := src[n]
		if c == '.' || c == 'e' || c == 'E' || c == '+' {
			whole = false
		} else if c != '-' && (c < '0' || c > '9') {
			break
		}
		n++
	}
	text := src[:n]
	if whole {
		neg := text[0] == '-'
		if v, ok := parseDecimal(text[b2i(neg):]); ok && (!neg || v <= 1<<63) {
			switch {
			case neg:
				return binary.BigEndian.AppendUint64(append(dst, 0xd3), -v), n
			case v < 0x80:
				return append(dst, byte(v)), n
			case v <= math.MaxUint32:
				return binary.BigEndian.AppendUint32(append(dst, 0xce), uint32(v)), n
			}
			return binary.BigEndian.AppendUint64(append(dst, 0xcf), v), n
		}
	}
	if n > 32 {
		return dst, 0
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !math.IsInf(f, 0) {
		if n == len(src) {
			return dst, -n
		}
		return dst, 0
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xcb), math.Float64bits(f)), n
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// parseDecimal returns a number of digits only; false if there are no digits or it is too large.
func parseDecimal(b []byte) (v uint64, ok bool) {
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || v > (math.MaxUint64-d)/10 {
			return 0, false
		}
		v = v*10 + d
	}
	return v, len(b) > 0
}

func appendString(dst, src []byte) ([]byte, int) {
	dst = append(dst, 0xdb, 0, 0, 0, 0)
	start := len(dst)
	i := 1
	for i < len(src) {
		c := src[i]
		switch {
		case c == '"':
			binary.BigEndian.PutUint32(dst[start-4:], uint32(len(dst)-start))
			return dst, i + 1
		case c < ' ':
			return dst, -i
		case c != '\\':
			dst = append(dst, c)
			i++
			continue
		}
		if i+1 >= len(src) {
			return dst, -len(src)
		}
		switch e := src[i+1]; e {
		case '"', '\\', '/':
			dst = append(dst, e)
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			u, ok := unicodeEscape(src[i:])
			if !ok && len(src)-i < 6 {
				return dst, -len(src)
			} else if !ok {
				return dst, -i
			}
			i += 6
			if utf16.IsSurrogate(u) {
				low, ok := unicodeEscape(src[i:])
				if u = utf16.DecodeRune(u, low); ok && u != utf8.RuneError {
					i += 6
				} else {
					u = utf8.RuneError
				}
			}
			dst = utf8.AppendRune(dst, u)
			continue
		default:
			return dst, -i
		}
		i += 2
	}
	return dst, -len(src)
}

// unicodeEscape returns the number in \uXXXX.
func unicodeEscape(src []byte) (rune, bool) {
	if len(src) < 6 || src[0] != '\\' || src[1] != 'u' {
		return 0, false
	}
	v, ok := parseHex(src[2:6])
	return rune(v), ok
}
