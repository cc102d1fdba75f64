// SPDX-License-Identifier: Apache-2.0

package kvhash

import (
	"crypto/sha256"
	"encoding/binary"
)

// sglang computes the digest of one page: SHA-256 of the parent's digest (none for the first page) and the tokens as
// little-endian 32-bit words; with bigram keys (EAGLE), both tokens of each pair. Source: get_hash_str in
// sglang/srt/mem_cache.
func (s *Scheme) sglang(buf []byte, digest *[32]byte, i int, window []uint32) []byte {
	if i > 0 {
		buf = append(buf, digest[:]...)
	}
	if s.mode.has(eagle) {
		for j, t := range window[:len(window)-1] {
			buf = binary.LittleEndian.AppendUint32(buf, t)
			buf = binary.LittleEndian.AppendUint32(buf, window[j+1])
		}
	} else {
		buf = appendTokens(buf, window)
	}
	*digest = sha256.Sum256(buf)
	return buf
}
