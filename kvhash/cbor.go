// SPDX-License-Identifier: Apache-2.0

package kvhash

// The subset of canonical CBOR (RFC 8949 section 4.2.1: shortest heads) that hashed blocks need. Python's cbor2 with
// canonical=True and fxamacker/cbor produce the same bytes; internal/conformance tests the latter.

// Major types, and null.
const (
	cborUint  = 0 << 5
	cborNeg   = 1 << 5
	cborBytes = 2 << 5
	cborText  = 3 << 5
	cborArray = 4 << 5
	cborMap   = 5 << 5
	cborNull  = 0xf6
)

// appendHead appends the head of an item: its major type and its number, length or count.
func appendHead(dst []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n < 1<<8:
		return append(dst, major|24, byte(n))
	case n < 1<<16:
		return append(dst, major|25, byte(n>>8), byte(n))
	case n < 1<<32:
		return append(dst, major|26, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return append(dst, major|27, byte(n>>56), byte(n>>48), byte(n>>40), byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func appendInt(dst []byte, n int) []byte {
	if n < 0 {
		return appendHead(dst, cborNeg, uint64(-1-n))
	}
	return appendHead(dst, cborUint, uint64(n))
}

func appendText(dst []byte, s string) []byte {
	return append(appendHead(dst, cborText, uint64(len(s))), s...)
}

func appendBytes(dst, b []byte) []byte {
	return append(appendHead(dst, cborBytes, uint64(len(b))), b...)
}

// appendTokenArray appends tokens as an array. It does not call appendHead, because it takes most of the time.
func appendTokenArray(dst []byte, tokens []uint32) []byte {
	dst = appendHead(dst, cborArray, uint64(len(tokens)))
	for _, t := range tokens {
		switch {
		case t < 24:
			dst = append(dst, byte(t))
		case t < 1<<8:
			dst = append(dst, 24, byte(t))
		case t < 1<<16:
			dst = append(dst, 25, byte(t>>8), byte(t))
		default:
			dst = append(dst, 26, byte(t>>24), byte(t>>16), byte(t>>8), byte(t))
		}
	}
	return dst
}
