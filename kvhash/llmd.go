// SPDX-License-Identifier: Apache-2.0

package kvhash

import "encoding/binary"

// llmdRoot returns the parent of the first block: the hash of CBOR [hash of the seed, null, model or LoRA name].
// Source: llm-d-kv-cache, pkg/kvcache/kvblock/token_processor.go (2026).
func llmdRoot(seed uint64, model string) uint64 {
	var stack [128]byte
	buf := appendHead(stack[:0], cborArray, 3)
	buf = appendHead(buf, cborUint, seed)
	buf = append(buf, cborNull)
	return fnv1a(appendText(buf, model))
}

// llmd computes the hash of one block: FNV-1a of CBOR [parent hash, tokens, objects or null], where an object is
// {"Hash": identifier}, as in llm-d since 0.7.1 (pkg/kvcache/kvblock/extra_keys.go). Version 0.7.0 alone added the
// offset in the block; older ones have no objects. internal/conformance compares the CBOR with the output of the
// library that llm-d uses.
func (s *Scheme) llmd(buf []byte, digest *[32]byte, i int, tokens []uint32, objects []Object) []byte {
	parent := binary.BigEndian.Uint64(digest[:])
	if i == 0 {
		parent = s.more.Value().parent
	}
	buf = appendHead(buf, cborArray, 3)
	buf = appendHead(buf, cborUint, parent)
	buf = appendTokenArray(buf, tokens)
	if len(objects) == 0 {
		buf = append(buf, cborNull)
	} else {
		buf = appendHead(buf, cborArray, uint64(len(objects)))
		for _, o := range objects {
			buf = appendHead(buf, cborMap, 1)
			buf = appendText(buf, "Hash")
			buf = appendText(buf, o.ID)
		}
	}
	binary.BigEndian.PutUint64(digest[:], fnv1a(buf))
	return buf
}

// fnv1a returns the 64-bit FNV-1a of b. Unlike hash/fnv, it does not allocate.
func fnv1a(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}
