// SPDX-License-Identifier: Apache-2.0

// Package packed writes msgpack, for tests of decoders.
package packed

import (
	"encoding/binary"
	"fmt"
	"math"
)

// An Array is a list of values.
type Array []any

// A Map is a list of keys and values in turn.
type Map []any

// Append appends a value as msgpack, in the shortest form. It panics if a type is not supported.
func Append(b []byte, v any) []byte {
	length := func(n int, fix, fixMax, code byte, width ...int) {
		if fixMax > 0 && n <= int(fixMax) {
			b = append(b, fix|byte(n))
			return
		}
		for i, w := range width {
			if w == 4 || n < 1<<(8*w) {
				b = append(b, code+byte(i))
				b = append(b, binary.BigEndian.AppendUint64(nil, uint64(n))[8-w:]...)
				return
			}
		}
	}
	switch v := v.(type) {
	case nil:
		b = append(b, 0xc0)
	case bool:
		b = append(b, 0xc2)
		if v {
			b[len(b)-1] = 0xc3
		}
	case int:
		return Append(b, int64(v))
	case int64:
		switch {
		case v >= 0:
			return Append(b, uint64(v))
		case v >= -32:
			b = append(b, byte(v))
		case v >= math.MinInt8:
			b = append(b, 0xd0, byte(v))
		case v >= math.MinInt16:
			b = binary.BigEndian.AppendUint16(append(b, 0xd1), uint16(v))
		case v >= math.MinInt32:
			b = binary.BigEndian.AppendUint32(append(b, 0xd2), uint32(v))
		default:
			b = binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(v))
		}
	case uint64:
		switch {
		case v < 0x80:
			b = append(b, byte(v))
		case v <= math.MaxUint8:
			b = append(b, 0xcc, byte(v))
		case v <= math.MaxUint16:
			b = binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(v))
		case v <= math.MaxUint32:
			b = binary.BigEndian.AppendUint32(append(b, 0xce), uint32(v))
		default:
			b = binary.BigEndian.AppendUint64(append(b, 0xcf), v)
		}
	case float32:
		b = binary.BigEndian.AppendUint32(append(b, 0xca), math.Float32bits(v))
	case float64:
		b = binary.BigEndian.AppendUint64(append(b, 0xcb), math.Float64bits(v))
	case string:
		length(len(v), 0xa0, 31, 0xd9, 1, 2, 4)
		b = append(b, v...)
	case []byte:
		length(len(v), 0, 0, 0xc4, 1, 2, 4)
		b = append(b, v...)
	case Array:
		length(len(v), 0x90, 15, 0xdc, 2, 4)
		for _, e := range v {
			b = Append(b, e)
		}
	case Map:
		length(len(v)/2, 0x80, 15, 0xde, 2, 4)
		for _, e := range v {
			b = Append(b, e)
		}
	default:
		panic(fmt.Sprintf("packed: type %T", v))
	}
	return b
}
