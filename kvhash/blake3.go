// SPDX-License-Identifier: Apache-2.0

package kvhash

import (
	"encoding/binary"
	"math/bits"
)

// BLAKE3, as specified in its paper (2020), without keys, for short inputs such as salts: it is not optimized.

var blakeIV = [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}

// Flags of a compression.
const (
	blakeChunkStart = 1 << iota
	blakeChunkEnd
	blakeParent
	blakeRoot
)

const (
	blakeBlock = 64   // bytes in a block
	blakeChunk = 1024 // bytes in a chunk
)

// blake3 returns the first 32 bytes of the BLAKE3 hash of b.
func blake3(b []byte) []byte {
	out := blakeTree(b, 0, blakeRoot)
	sum := make([]byte, 0, 32)
	for _, w := range out {
		sum = binary.LittleEndian.AppendUint32(sum, w)
	}
	return sum
}

// blakeTree returns the chaining value of the tree over b, whose first chunk has the given number. The left side of a
// tree has the largest power of two of chunks that leaves at least a byte for the right side. flag is blakeRoot for the
// root of the tree, otherwise 0.
func blakeTree(b []byte, chunk uint64, flag uint32) [8]uint32 {
	if len(b) <= blakeChunk {
		return blakeLeaf(b, chunk, flag)
	}
	left := 1 << (bits.Len(uint((len(b)-1)/blakeChunk)) - 1) // chunks
	l := blakeTree(b[:left*blakeChunk], chunk, 0)
	r := blakeTree(b[left*blakeChunk:], chunk+uint64(left), 0)
	var words [16]uint32
	copy(words[:8], l[:])
	copy(words[8:], r[:])
	return blakeCompress(&blakeIV, &words, 0, blakeBlock, blakeParent|flag)
}

// blakeLeaf returns the chaining value of one chunk.
func blakeLeaf(b []byte, chunk uint64, flag uint32) [8]uint32 {
	cv, start := blakeIV, uint32(blakeChunkStart)
	for {
		n := min(len(b), blakeBlock)
		var block [blakeBlock]byte
		copy(block[:], b[:n])
		var words [16]uint32
		for i := range words {
			words[i] = binary.LittleEndian.Uint32(block[4*i:])
		}
		if b = b[n:]; len(b) == 0 {
			return blakeCompress(&cv, &words, chunk, uint32(n), start|blakeChunkEnd|flag)
		}
		cv = blakeCompress(&cv, &words, chunk, blakeBlock, start)
		start = 0
	}
}

// blakeCompress is the compression function.
func blakeCompress(cv *[8]uint32, words *[16]uint32, counter uint64, n, flags uint32) (out [8]uint32) {
	m := *words
	s := [16]uint32{cv[0], cv[1], cv[2], cv[3], cv[4], cv[5], cv[6], cv[7],
		blakeIV[0], blakeIV[1], blakeIV[2], blakeIV[3], uint32(counter), uint32(counter >> 32), n, flags}
	mix := func(a, b, c, d int, x, y uint32) {
		s[a] += s[b] + x
		s[d] = bits.RotateLeft32(s[d]^s[a], -16)
		s[c] += s[d]
		s[b] = bits.RotateLeft32(s[b]^s[c], -12)
		s[a] += s[b] + y
		s[d] = bits.RotateLeft32(s[d]^s[a], -8)
		s[c] += s[d]
		s[b] = bits.RotateLeft32(s[b]^s[c], -7)
	}
	for round := range 7 {
		if round > 0 {
			before := m
			for i, from := range [16]int{2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8} {
				m[i] = before[from]
			}
		}
		for i := range 4 { // columns
			mix(i, 4+i, 8+i, 12+i, m[2*i], m[2*i+1])
		}
		for i := range 4 { // diagonals
			mix(i, 4+(i+1)%4, 8+(i+2)%4, 12+(i+3)%4, m[8+2*i], m[9+2*i])
		}
	}
	for i := range out {
		out[i] = s[i] ^ s[i+8]
	}
	return out
}
