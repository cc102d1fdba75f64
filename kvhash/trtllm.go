// SPDX-License-Identifier: Apache-2.0

package kvhash

import (
	"crypto/sha256"
	"encoding/binary"
)

// trtllm computes the hash of one block like TensorRT-LLM's v1_block_key: hash_v1_block_key of
// tensorrt_llm/runtime/kv_cache_hash.py (2026), and without a salt BlockKeyHasher of
// cpp/tensorrt_llm/batch_manager/blockKey.cpp. Extra token IDs and multimodal keys are not included.
func (s *Scheme) trtllm(digest *[32]byte, i int, tokens []uint32) {
	var parent uint64
	if i > 0 {
		parent = binary.BigEndian.Uint64(digest[:])
	} else if s.mode.has(after) {
		parent = s.more.Value().parent
	}
	h := uint64(len(tokens)) ^ parent*0xbf58476d1ce4e5b9
	if parent == 0 && s.mode.has(withSalt) {
		h = mix64(s.more.Value().saltID, h)
	}
	for _, t := range tokens {
		t = (t>>16 ^ t) * 0x45d9f3b
		t = (t>>16 ^ t) * 0x45d9f3b
		t = t>>16 ^ t
		h ^= uint64(t+0x9e3779b9) + h<<6 + h>>2
	}
	if s.mode.has(withTask) {
		h = mix64(s.more.Value().task, h)
	}
	binary.BigEndian.PutUint64(digest[:], h)
}

// mix64 combines a hash with an ID.
func mix64(id, h uint64) uint64 {
	id = (id ^ id>>30) * 0xbf58476d1ce4e5b9
	id = (id ^ id>>27) * 0x94d049bb133111eb
	id ^= id >> 31
	return h ^ (id + 0x9e3779b9 + h<<6 + h>>2)
}

// trtllmSalt returns the ID of a salt: 8 bytes of its hash, little-endian. Source: get_cache_salt_id of
// tensorrt_llm/runtime/kv_cache_hash.py, and with BLAKE3 of earlier versions and tensorrt_llm/inputs/utils.py.
func (s *Scheme) trtllmSalt(salt string) uint64 {
	if s.mode.has(blake) {
		return binary.LittleEndian.Uint64(blake3([]byte(salt)))
	}
	h := sha256.Sum256([]byte(salt))
	return binary.LittleEndian.Uint64(h[:])
}

// scope sets the parent of the first block for the v2 schemes: SHA-256 of a byte that has a bit for each of the LoRA
// and the salt ID that are present, and these IDs in 8 bytes each, little-endian. Source: reuse_scope_to_bytes of
// tensorrt_llm/runtime/kv_cache_manager_v2/_block_radix_tree.py (2026).
func (s *Scheme) scope(v settings) settings {
	if s.mode.kind() == trtllm || s.mode.has(after) {
		return v
	}
	buf := make([]byte, 1, 17)
	if s.mode.has(withTask) {
		buf[0] |= 1
		buf = binary.LittleEndian.AppendUint64(buf, v.task)
	}
	if s.mode.has(withSalt) {
		buf[0] |= 2
		buf = binary.LittleEndian.AppendUint64(buf, v.saltID)
	}
	v.root, v.rootLen = sha256.Sum256(buf), sha256.Size
	return v
}

// trtllmV2 computes the digest of one block like TensorRT-LLM's v2_sha256 and v2_sha256_64, which differ only in
// events: SHA-256 of the parent's digest and the tokens as little-endian 32-bit words. Source: Hasher and
// sequence_to_blockchain_keys of _block_radix_tree.py.
func (s *Scheme) trtllmV2(buf []byte, digest *[32]byte, i int, tokens []uint32) []byte {
	if i > 0 {
		buf = append(buf, digest[:]...)
	} else {
		v := s.more.Value()
		buf = append(buf, v.root[:]...)
	}
	buf = appendTokens(buf, tokens)
	*digest = sha256.Sum256(buf)
	return buf
}
