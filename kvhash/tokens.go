// SPDX-License-Identifier: Apache-2.0

package kvhash

import (
	"encoding/binary"
	"unsafe"

	"github.com/zeebo/xxh3"
)

// hashTokens hashes tokens as little-endian 32-bit words. On a little-endian machine it hashes their memory directly.
func hashTokens(tokens []uint32, seed uint64) uint64 {
	if len(tokens) > 0 && binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		// Bytes have no alignment, so the view is valid on every machine.
		return xxh3.HashSeed(unsafe.Slice((*byte)(unsafe.Pointer(&tokens[0])), 4*len(tokens)), seed)
	}
	return hashTokensPortable(tokens, seed)
}

func hashTokensPortable(tokens []uint32, seed uint64) uint64 {
	var stack [1024]byte
	return xxh3.HashSeed(appendTokens(stack[:0], tokens), seed)
}

func appendTokens(dst []byte, tokens []uint32) []byte {
	for _, t := range tokens {
		dst = binary.LittleEndian.AppendUint32(dst, t)
	}
	return dst
}
