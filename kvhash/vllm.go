// SPDX-License-Identifier: Apache-2.0

package kvhash

import (
	"crypto/sha256"

	"github.com/zeebo/xxh3"
)

// noneSeed is what vLLM makes NONE_HASH from if PYTHONHASHSEED is not set, since pull request 51875 (August 2026).
const noneSeed = "vllm-none-hash"

// setNoneHash sets the parent of the first block: the hash of the seed's CBOR, or the given bytes. As vllm/v1/core/kv_cache_utils.py
// (init_none_hash) does.
func (s *Scheme) setNoneHash(seed string, none []byte) {
	if none != nil {
		copy(s.root[:], none)
		return
	}
	if seed == "" {
		seed = noneSeed
	}
	s.sum(&s.root, appendText(nil, seed))
}

// sum writes the digest of b.
func (s *Scheme) sum(digest *[32]byte, b []byte) {
	if s.kind == vllmXXHash {
		h := xxh3.Hash128(b).Bytes()
		copy(digest[:], h[:])
		return
	}
	*digest = sha256.Sum256(b)
}

// vllm makes the digest of one block, H(CBOR [parent digest, tokens, extra keys or null]), as hash_block_tokens and
// generate_block_hash_extra_keys in vllm/v1/core/kv_cache_utils.py of August 2026 do. The order of extra keys is: LoRA name, objects,
// cache salt (first block only), digest of prompt embeddings.
func (s *Scheme) vllm(buf []byte, digest *[32]byte, i int, tokens []uint32, start int, objects []Object, embed []byte) []byte {
	parent := digest
	if i == 0 {
		parent = &s.root
	}
	salt := ""
	if i == 0 {
		salt = s.namespace
	}
	buf = s.appendVLLM(buf, parent[:s.DigestLen()], tokens, start, salt, objects, embed)
	s.sum(digest, buf)
	return buf
}

func (s *Scheme) appendVLLM(buf, parent []byte, tokens []uint32, start int, salt string, objects []Object, embed []byte) []byte {
	buf = appendHead(buf, cborArray, 3)
	buf = appendBytes(buf, parent)
	buf = appendTokenArray(buf, tokens)
	keys := len(objects)
	for _, has := range [...]bool{s.lora != "", salt != "", embed != nil} {
		if has {
			keys++
		}
	}
	if keys == 0 {
		return append(buf, cborNull)
	}
	buf = appendHead(buf, cborArray, uint64(keys))
	if s.lora != "" {
		buf = appendText(buf, s.lora)
	}
	for _, o := range objects {
		if s.bare {
			buf = appendText(buf, o.ID)
			continue
		}
		buf = appendHead(buf, cborArray, 2)
		buf = appendText(buf, o.ID)
		buf = appendInt(buf, o.At-start)
	}
	if salt != "" {
		buf = appendText(buf, salt)
	}
	if embed != nil {
		buf = appendBytes(buf, embed)
	}
	return buf
}
