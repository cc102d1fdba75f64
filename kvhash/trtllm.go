// SPDX-License-Identifier: Apache-2.0

package kvhash

import "encoding/binary"

// trtllm computes the hash of one block like BlockKeyHasher of TensorRT-LLM
// (cpp/tensorrt_llm/batch_manager/blockKey.cpp, 2025). It is unverified: it was never compared with a running
// TensorRT-LLM. Extra token IDs and multimodal keys are not included.
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

// mix64 combines a hash with an ID.
func mix64(id, h uint64) uint64 {
	id = (id ^ id>>30) * 0xbf58476d1ce4e5b9
	id = (id ^ id>>27) * 0x94d049bb133111eb
	id ^= id >> 31
	return h ^ (id + 0x9e3779b9 + h<<6 + h>>2)
}
