// SPDX-License-Identifier: Apache-2.0

package jsonw

import "unsafe"

// BlockSize is the number of bytes for which a mask has bits.
const BlockSize = 64

// Masks is the result of [Special]: one bit for each byte.
type Masks [8]uint64

// Special examines the start of b, which must not be empty, in blocks of BlockSize bytes, as many as m has room for. In m it
// sets the bits of the bytes that are a quote, a backslash or a control character. If b is shorter than a block, the
// bits after its end are set. wide reports whether a byte is not ASCII.
func Special(m *Masks, b []byte) (blocks int, wide bool) {
	if len(b) < BlockSize {
		var block [BlockSize]byte // zeros are control characters
		copy(block[:], b)
		return 1, special(&m[0], &block[0], 1) != 0
	}
	blocks = min(len(b)/BlockSize, len(m))
	return blocks, special(&m[0], unsafe.SliceData(b), blocks) != 0
}
