// SPDX-License-Identifier: Apache-2.0

package jsonw

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

// BlockSize is the number of bytes for which a mask has bits.
const BlockSize = 64

// Masks is the result of [Special]: one bit for each byte of up to four blocks.
type Masks struct {
	Special [4]uint64 // the byte is a quote, a backslash or a control character
	Wide    [4]uint64 // the byte is not ASCII
}

// Special examines the start of b, which must not be empty, in blocks of BlockSize bytes, as many as m has room for, and sets
// their masks. If b is shorter than a block, the bytes after its end are special. wide reports whether a byte is not ASCII.
func Special(m *Masks, b []byte) (blocks int, wide bool) {
	if len(b) < BlockSize {
		var block [BlockSize]byte // zeros are control characters
		copy(block[:], b)
		return 1, special(m, &block[0], 1) != 0
	}
	blocks = min(len(b)/BlockSize, len(m.Special))
	return blocks, special(m, unsafe.SliceData(b), blocks) != 0
}

// ValidWide reports whether the text that is not ASCII and begins in the block at b[base] is valid UTF-8, to its end. wide is the
// block's mask, and done the number of bytes from b[base] on that belong to such text of blocks before. It returns that number for
// the next block.
func ValidWide(b []byte, base int, wide uint64, done int) (next int, ok bool) {
	for wide &^= 1<<done - 1; wide != 0; wide &^= 1<<done - 1 {
		i := base + bits.TrailingZeros64(wide)
		for i < len(b) && b[i] >= utf8.RuneSelf {
			n := commonLen(b, i)
			if n == 0 {
				var r rune
				if r, n = utf8.DecodeRune(b[i:]); r == utf8.RuneError && n <= 1 {
					return 0, false
				}
			}
			i += n
		}
		done = i - base
	}
	return max(0, done-BlockSize), true
}

// commonLen returns the number of bytes of the character at b[i], or 0 if that is not one of two or three bytes with at least one byte
// after it.
func commonLen(b []byte, i int) int {
	if i+4 > len(b) {
		return 0
	}
	switch w := binary.LittleEndian.Uint32(b[i:]); {
	case w&0xC0E0 == 0x80C0 && w&0x1E != 0: // 110xxxxx 10xxxxxx, from U+0080 on
		return 2
	case w&0xC0C0F0 == 0x8080E0 && w&0x200F != 0 && w&0x200F != 0x200D: // 1110xxxx and two times 10xxxxxx; from U+0800 on, no surrogate
		return 3
	}
	return 0
}

// CopyBlock copies src to dst, which must not overlap. An assignment of arrays would be a call of a function that allows them to.
func CopyBlock(dst, src *[BlockSize]byte) {
	type block struct{ bytes [BlockSize]byte }
	*(*block)(unsafe.Pointer(dst)) = *(*block)(unsafe.Pointer(src))
}
