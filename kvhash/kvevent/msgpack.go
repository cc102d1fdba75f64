// SPDX-License-Identifier: Apache-2.0

package kvevent

import (
	"encoding/binary"
	"math"
	"slices"
)

// kind is the type of a value on the wire.
type kind uint8

const (
	noKind kind = iota // the reader failed
	nilKind
	boolKind
	intKind
	floatKind
	stringKind
	binKind
	arrayKind
	mapKind
	extKind
)

// value is a value of msgpack, or the header of an array or map.
type value struct {
	kind kind
	neg  bool   // of an int: negative
	n    int    // elements of an array, pairs of a map
	num  uint64 // bits of an int or of a float64
	raw  []byte // of a string or of binary data, in the reader's buffer
}

// token returns the value as a token ID. One of more than 32 bits is folded, its halves combined with xor: SGLang since 0.5.23 writes four
// values of 62 bits, from the hash of an image, in turn at the positions of the image (schedule_batch.py). Folded, they still differ as images do.
func (v value) token() (id uint32, ok bool) {
	return uint32(v.num) ^ uint32(v.num>>32), v.kind == intKind && !v.neg
}

// float returns a number of any kind, or NaN if it is not a number.
func (v value) float() float64 {
	switch {
	case v.kind == floatKind:
		return math.Float64frombits(v.num)
	case v.kind == intKind && v.neg:
		return float64(int64(v.num))
	case v.kind == intKind:
		return float64(v.num)
	}
	return math.NaN()
}

// reader reads msgpack from a buffer. After a fault it is at the end, and every value is of no kind.
//
// A length is believed only as far as the buffer goes: n elements take n bytes at least.
type reader struct {
	buf    []byte
	pos    int
	reason string // of the fault; "" without
	cause  error
	at     int // where the fault is
}

func (r *reader) ok() bool  { return r.reason == "" }
func (r *reader) left() int { return len(r.buf) - r.pos }

// fail records the first fault, at the reader's position.
func (r *reader) fail(reason string, cause error) {
	if r.ok() {
		r.reason, r.cause, r.at = reason, cause, r.pos
	}
	r.pos = len(r.buf)
}

// bytes returns the next n bytes, nil if there are not so many.
func (r *reader) bytes(n uint64) []byte {
	if n > uint64(r.left()) {
		r.fail("the payload ends too early", errEnd)
		return nil
	}
	b := r.buf[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b
}

// uint returns the next n bytes, at most 8, as a big-endian number.
func (r *reader) uint(n int) (v uint64) {
	switch b := r.bytes(uint64(n)); len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	case 8:
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// next reads a value, or the header of an array or map.
func (r *reader) next() value {
	if r.pos >= len(r.buf) {
		r.fail("the payload ends too early", errEnd)
		return value{}
	}
	start := r.pos
	c := r.buf[r.pos]
	r.pos++
	var v value
	switch {
	case c < 0x80:
		return value{kind: intKind, num: uint64(c)}
	case c >= 0xe0:
		return value{kind: intKind, neg: true, num: uint64(int64(int8(c)))}
	case c < 0x90:
		v = r.sized(mapKind, uint64(c&15))
	case c < 0xa0:
		v = r.sized(arrayKind, uint64(c&15))
	case c < 0xc0:
		v = r.sized(stringKind, uint64(c&31))
	case c == 0xc0:
		return value{kind: nilKind}
	case c == 0xc2, c == 0xc3:
		return value{kind: boolKind, num: uint64(c & 1)}
	case c >= 0xc4 && c <= 0xc6:
		v = r.sized(binKind, r.uint(1<<(c-0xc4)))
	case c >= 0xc7 && c <= 0xc9:
		n := r.uint(1 << (c - 0xc7))
		r.bytes(1)
		v = r.sized(extKind, n)
	case c == 0xca:
		v = value{kind: floatKind, num: math.Float64bits(float64(math.Float32frombits(uint32(r.uint(4)))))}
	case c == 0xcb:
		v = value{kind: floatKind, num: r.uint(8)}
	case c >= 0xcc && c <= 0xcf:
		v = value{kind: intKind, num: r.uint(1 << (c - 0xcc))}
	case c >= 0xd0 && c <= 0xd3:
		n := 1 << (c - 0xd0)
		shift := 64 - 8*n
		i := int64(r.uint(n)<<shift) >> shift
		v = value{kind: intKind, neg: i < 0, num: uint64(i)}
	case c >= 0xd4 && c <= 0xd8:
		r.bytes(1)
		v = r.sized(extKind, 1<<(c-0xd4))
	case c >= 0xd9 && c <= 0xdb:
		v = r.sized(stringKind, r.uint(1<<(c-0xd9)))
	case c == 0xdc, c == 0xdd:
		v = r.sized(arrayKind, r.uint(2<<(c-0xdc)))
	case c == 0xde, c == 0xdf:
		v = r.sized(mapKind, r.uint(2<<(c-0xde)))
	default:
		r.pos = start
		r.fail("a byte that begins no value", nil)
	}
	if !r.ok() {
		r.at = start
		return value{}
	}
	return v
}

// sized returns a value of length n.
func (r *reader) sized(k kind, n uint64) value {
	switch k {
	case arrayKind, mapKind:
		least := n
		if k == mapKind {
			least = 2 * n // n < 1<<32
		}
		if least > uint64(r.left()) {
			r.fail("the payload ends too early", errEnd)
			return value{}
		}
		return value{kind: k, n: int(n)}
	}
	return value{kind: k, raw: r.bytes(n)}
}

// peek returns the kind of the next value as far as callers tell them apart: an array, a map, a string, nil, or another.
func (r *reader) peek() kind {
	if r.pos >= len(r.buf) {
		return noKind
	}
	switch c := r.buf[r.pos]; {
	case c>>4 == 9, c == 0xdc, c == 0xdd:
		return arrayKind
	case c>>4 == 8, c == 0xde, c == 0xdf:
		return mapKind
	case c>>5 == 5, c >= 0xd9 && c <= 0xdb:
		return stringKind
	case c == 0xc0:
		return nilKind
	}
	return intKind
}

// skip skips a value with all its elements, at any depth.
func (r *reader) skip() { r.skipN(1) }

// rest skips the elements of v, which was just read.
func (r *reader) rest(v value) {
	switch v.kind {
	case arrayKind:
		r.skipN(v.n)
	case mapKind:
		r.skipN(2 * v.n)
	}
}

func (r *reader) skipN(n int) {
	for ; n > 0 && r.ok(); n-- {
		switch v := r.next(); v.kind {
		case arrayKind:
			n += v.n
		case mapKind:
			n += 2 * v.n
		}
		if r.ok() && n-1 > r.left() { // so that n stays within the buffer's length
			r.fail("the payload ends too early", errEnd)
		}
	}
}

// tokens appends n token ids to dst; false if one is invalid.
func (r *reader) tokens(dst []uint32, n int) ([]uint32, bool) {
	dst = slices.Grow(dst, n) // n <= r.left()
	buf, pos := r.buf, r.pos
	for range n {
		if len(buf)-pos < 5 {
			r.pos = pos
			id, ok := r.next().token()
			if !ok {
				return dst, false
			}
			dst = append(dst, id)
			pos = r.pos
			continue
		}
		switch c := buf[pos]; {
		case c < 0x80:
			dst = append(dst, uint32(c))
			pos++
		case c == 0xcd:
			dst = append(dst, uint32(binary.BigEndian.Uint16(buf[pos+1:])))
			pos += 3
		case c == 0xce:
			dst = append(dst, binary.BigEndian.Uint32(buf[pos+1:]))
			pos += 5
		default:
			r.pos = pos
			id, ok := r.next().token()
			if !ok {
				return dst, false
			}
			dst = append(dst, id)
			pos = r.pos
		}
	}
	r.pos = pos
	return dst, true
}

// maxNames limits the keys that a map is searched for at once.
const maxNames = 10

// places reads a map of n pairs and returns where the values of the given keys begin, or 0 for absent keys; the last
// one wins if a key occurs twice. It also counts the keys that are not among the names.
func (r *reader) places(n int, names ...string) (at [maxNames]int, unknown int) {
	for range n {
		if !r.ok() {
			break
		}
		key := r.next()
		r.rest(key)
		known := false
		for i, name := range names {
			if key.kind == stringKind && string(key.raw) == name {
				at[i], known = r.pos, true
				break
			}
		}
		if !known {
			unknown++
		}
		r.skip()
	}
	return at, unknown
}

// read returns the value at a position returned by places, or nil if it is 0.
func (r *reader) read(at int) value {
	if at == 0 || !r.ok() {
		return value{kind: nilKind}
	}
	r.pos = at
	return r.next()
}
