// SPDX-License-Identifier: Apache-2.0

package kvhash

import (
	"cmp"
	"crypto/sha256"

	"github.com/zeebo/xxh3"
)

// noneSeed is the input of vLLM's NONE_HASH if PYTHONHASHSEED is not set and the hash is SHA-256, since pull request
// 51875 (August 2026). For XXH3 it draws a random seed instead.
const noneSeed = "vllm-none-hash"

// noneHash returns settings with the parent of the first block: the hash of the seed's CBOR, or the given bytes.
// Source: init_none_hash in vllm/v1/core/kv_cache_utils.py.
func (s *Scheme) noneHash(seed string, none []byte) settings {
	if none != nil {
		v := settings{rootLen: uint8(len(none))}
		copy(v.root[:], none)
		return v
	}
	v := settings{rootLen: uint8(s.DigestLen())}
	s.sum(&v.root, appendText(nil, cmp.Or(seed, noneSeed)))
	return v
}

// sum sets digest to the hash of b.
func (s *Scheme) sum(digest *[32]byte, b []byte) {
	if s.mode.kind() == vllmXXHash {
		h := xxh3.Hash128(b).Bytes()
		copy(digest[:], h[:])
		return
	}
	*digest = sha256.Sum256(b)
}

// hashVLLM computes the digest of one block, H(CBOR [parent digest, tokens, extra keys or null]), like
// hash_block_tokens and generate_block_hash_extra_keys in vllm/v1/core/kv_cache_utils.py of 0.33. The order of extra keys
// is: LoRA adapter, objects, cache salt (first block only), digest of prompt embeddings. Since 0.32 each is an array that
// begins with its source, and the adapter's contains its path. With lookahead, window has tokens after the block; the extra keys are then an array
// of those for all of window, or null, and these tokens.
//
// One case differs: if output completes a block that begins in the prompt, vLLM includes only the last object of the
// prompt, but includes all objects when the same tokens are part of a prompt. hashVLLM always includes all.
func (s *Scheme) hashVLLM(buf []byte, digest *[32]byte, i int, window []uint32, block int, objects []Object, embed []byte) []byte {
	v, start := s.more.Value(), i*block
	for n, o := range objects { // the list ends with the first object that extends beyond the tokens
		if o.Len > start+len(window)-o.At {
			objects = objects[:n+1]
			break
		}
	}
	parent := digest[:s.DigestLen()]
	if i == 0 {
		parent = v.root[:v.rootLen]
	} else {
		v.namespace = ""
	}
	buf = v.append(buf, s.mode, parent, window[:block], window[block:], start, objects, embed)
	s.sum(digest, buf)
	return buf
}

// append appends the CBOR of a block that begins at token start; next are tokens after it.
func (v *settings) append(buf []byte, m mode, parent []byte, tokens, next []uint32, start int, objects []Object, embed []byte) []byte {
	buf = appendHead(buf, cborArray, 3)
	buf = appendBytes(buf, parent)
	buf = appendTokenArray(buf, tokens)
	if len(next) > 0 {
		buf = appendHead(buf, cborArray, uint64(1+len(next)))
	}
	buf = v.appendKeys(buf, m, start, objects, embed)
	for _, t := range next {
		buf = appendInt(buf, int(t))
	}
	return buf
}

// appendKeys appends the extra keys, or null.
func (v *settings) appendKeys(buf []byte, m mode, start int, objects []Object, embed []byte) []byte {
	keys := len(objects)
	for _, has := range [...]bool{v.lora != "", v.namespace != "", embed != nil} {
		if has {
			keys++
		}
	}
	if keys == 0 {
		return append(buf, cborNull)
	}
	buf = appendHead(buf, cborArray, uint64(keys))
	tag := func(source string, values uint64) {
		if !m.has(pairs) {
			buf = appendText(appendHead(buf, cborArray, 1+values), source)
		}
	}
	if v.lora != "" {
		tag("lora", 2)
		if buf = appendText(buf, v.lora); !m.has(pairs) {
			buf = appendText(buf, v.path)
		}
	}
	for _, o := range objects {
		if m.has(bare) {
			buf = appendText(buf, o.ID)
			continue
		}
		tag("mm", 2)
		if m.has(pairs) {
			buf = appendHead(buf, cborArray, 2)
		}
		buf = appendText(buf, o.ID)
		buf = appendInt(buf, o.At-start)
	}
	if v.namespace != "" {
		tag("cache_salt", 1)
		buf = appendText(buf, v.namespace)
	}
	if embed != nil {
		tag("prompt_embeds", 1)
		buf = appendBytes(buf, embed)
	}
	return buf
}
