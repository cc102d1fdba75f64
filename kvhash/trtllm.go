// SPDX-License-Identifier: Apache-2.0

package kvhash

import "encoding/binary"

// trtllm makes the hash of one block as BlockKeyHasher of TensorRT-LLM does (cpp/tensorrt_llm/batch_manager/blockKey.cpp, 2025).
// UNVERIFIED: no hash from a running TensorRT-LLM was at hand. Token extra ids and multimodal keys are not mixed in.
func (s *Scheme) trtllm(digest *[32]byte, i int, tokens []uint32) {
	var parent uint64
	if i > 0 {
		parent = binary.BigEndian.Uint64(digest[:])
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

// mix64 folds an id into a hash.
func mix64(id, h uint64) uint64 {
	id = (id ^ id>>30) * 0xbf58476d1ce4e5b9
	id = (id ^ id>>27) * 0x94d049bb133111eb
	id ^= id >> 31
	return h ^ (id + 0x9e3779b9 + h<<6 + h>>2)
}
