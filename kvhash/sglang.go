// SPDX-License-Identifier: Apache-2.0

package kvhash

import (
	"crypto/sha256"
	"encoding/binary"
)

// sglangSalt is hashed with the cache salt of a request; the digest is the parent of its first page. Source:
// compute_node_event_hash_values in sglang/srt/mem_cache/utils.py of 0.5.23.
const sglangSalt = "sglang-cache-salt-v1\x00"

// sglang computes the digest of one page: SHA-256 of the parent's digest (none for the first page without a salt) and
// the tokens as little-endian 32-bit words; with bigram keys (EAGLE), both tokens of each pair. Source: get_hash_str in
// sglang/srt/mem_cache. Not computed are pages with a token of more than 32 bits (0.5.23, hash_binding.cpp: SHA-256 of the parent's digest, 0xff
// and 64-bit words), whose values derive from the engine's hash of a preprocessed image, and the hashes of
// requests with an adapter or, in the event format dynamo, with a salt or an extra key, which namespaced_block_hash in
// disaggregation/kv_events.py hashes once more.
func (s *Scheme) sglang(buf []byte, digest *[32]byte, i int, window []uint32) []byte {
	if i > 0 {
		buf = append(buf, digest[:]...)
	} else if s.mode&(withSalt|after) != 0 {
		v := s.more.Value()
		buf = append(buf, v.root[:]...)
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
