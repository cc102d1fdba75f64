// SPDX-License-Identifier: Apache-2.0

package kvhash

import "encoding/binary"

// llmdRoot returns the parent of the first block: the hash of the seed's hash and the model's or adapter's name, encoded
// like an object's identifier. Source: llm-d-kv-cache and llm-d-router, pkg/kvcache/kvblock/token_processor.go
// (2026).
func (s *Scheme) llmdRoot(model string) uint64 {
	var stack [128]byte
	buf := stack[:0]
	if s.mode.kind() == llmdXXH64 {
		buf = binary.LittleEndian.AppendUint64(buf, s.salt)
		return xxh64(appendSized(buf, model))
	}
	buf = appendHead(buf, cborArray, 3)
	buf = appendHead(buf, cborUint, s.salt)
	buf = append(buf, cborNull)
	return fnv1a(appendText(buf, model))
}

// llmdParent returns the parent of block i, and the request's salt if it enters the block: like an object after the
// others, in the first block of a prompt. Source: llm-d-router, foldCacheSalt in preciseprefixcache/blockkeys.go
// (2026-08).
func (s *Scheme) llmdParent(digest *[32]byte, i int) (parent uint64, salt string) {
	if i > 0 {
		return binary.BigEndian.Uint64(digest[:]), ""
	}
	v := s.more.Value()
	return v.parent, v.namespace
}

// llmd computes the hash of one block: FNV-1a of CBOR [parent hash, tokens, objects or null], where an object is
// {"Hash": identifier}, as in llm-d since 0.7.1 (pkg/kvcache/kvblock/extra_keys.go). Version 0.7.0 alone added the
// offset in the block; older ones have no objects. internal/conformance compares the CBOR with the output of the
// library that llm-d uses.
func (s *Scheme) llmd(buf []byte, digest *[32]byte, i int, tokens []uint32, objects []Object) []byte {
	parent, salt := s.llmdParent(digest, i)
	buf = appendHead(buf, cborArray, 3)
	buf = appendHead(buf, cborUint, parent)
	buf = appendTokenArray(buf, tokens)
	n := len(objects)
	if salt != "" {
		n++
	}
	if n == 0 {
		buf = append(buf, cborNull)
	} else {
		buf = appendHead(buf, cborArray, uint64(n))
		for _, o := range objects {
			buf = appendLLMD(buf, o.ID)
		}
		if salt != "" {
			buf = appendLLMD(buf, salt)
		}
	}
	putHash(digest, fnv1a(buf))
	return buf
}

// appendLLMD appends an object.
func appendLLMD(buf []byte, id string) []byte {
	return appendText(appendText(appendHead(buf, cborMap, 1), "Hash"), id)
}

// llmdXXH64 computes the hash of one block with llm-d's hashAlgorithm xxh64: XXH64 of the parent, the tokens, and the
// length and bytes of each object's identifier.
func (s *Scheme) llmdXXH64(buf []byte, digest *[32]byte, i int, tokens []uint32, objects []Object) []byte {
	parent, salt := s.llmdParent(digest, i)
	buf = appendTokens(binary.LittleEndian.AppendUint64(buf, parent), tokens)
	for _, o := range objects {
		buf = appendSized(buf, o.ID)
	}
	if salt != "" {
		buf = appendSized(buf, salt)
	}
	putHash(digest, xxh64(buf))
	return buf
}

// appendSized appends the length of text in 8 bytes, little-endian, and text.
func appendSized(buf []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint64(buf, uint64(len(text))), text...)
}

// fnv1a returns the 64-bit FNV-1a of b. Unlike hash/fnv, it does not allocate.
func fnv1a(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}
