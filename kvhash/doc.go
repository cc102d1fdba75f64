// SPDX-License-Identifier: Apache-2.0

// Package kvhash computes the hashes by which serving engines and KV-aware routers identify the blocks of a prompt, so that a router can
// determine which worker already holds how much of it.
//
// # Terminology
//
//   - block: N consecutive tokens, N being the block size of the engine's KV cache (16, 64, ...; SGLang calls it a page). Only complete
//     blocks have hashes; the tokens after the last one are the tail.
//   - local hash: identifies the tokens of one block, independent of its position. Only Dynamo has it.
//   - sequence hash: identifies a block together with everything before it. Two prompts that share sequence hash i share blocks 0..i.
//     It is also called the chained hash, and it is the key of package index.
//   - digest: the value that a scheme chains: 32 or 16 bytes for vLLM, 32 for SGLang and TensorRT-LLM v2, the sequence
//     hash itself for the others.
//   - event hash: the 64-bit number of a block in an engine's events. It is the sequence hash, or 8 bytes of the digest.
//   - object: an image or another non-text input that fills some token positions; it has a hash or an identifier of its own.
//   - scheme: a rule to compute hashes from tokens, with its settings (LoRA adapter, cache salt or namespace, seed).
//
// # Schemes
//
// [Lookup] returns a [Scheme] by the names on the left. le and be are little-endian and big-endian, H is the hash in the name, | concatenates bytes.
//
//	dynamo            local[i] = XXH3-64(tokens of block i as le32, S)       seq[0] = local[0]
//	                  seq[i]   = XXH3-64(le64(seq[i-1]) | le64(local[i]), 1337)
//	                  S = 1337 + XXH3-64(LoRA name, 0) + XXH3-64(namespace, 1), each if present, modulo 2^64
//	vllm_sha256_cbor  digest[i] = H(CBOR [digest[i-1], [tokens], [extra keys] or null])       digest[-1] = NONE_HASH = H(CBOR seed)
//	vllm_xxhash_cbor  extra keys: ["lora", name, path], ["mm", identifier, offset in the block] of each object,
//	                  ["cache_salt", salt] (block 0 only), ["prompt_embeds", digest]; H is SHA-256 or XXH3-128;
//	                  event hash = last 8 bytes of the digest, be
//	sglang            digest[i] = SHA-256(digest[i-1] | tokens as le32)
//	                  digest[-1] is empty, or SHA-256("sglang-cache-salt-v1" | 0 | salt)
//	                  event hash = first 8 bytes of the digest, be, printed as a signed number
//	llmd              hash[i] = FNV-1a-64(CBOR [hash[i-1], [tokens], [{"Hash": identifier}, ...] or null])
//	                  hash[-1] = FNV-1a-64(CBOR [FNV-1a-64(seed), null, LoRA name or model])
//	                  in block 0 the salt is an identifier after the others
//	llmd_xxh64        hash[i] = XXH64(le64(hash[i-1]) | tokens as le32 | le64(length) | identifier | ...)
//	                  hash[-1] = XXH64(le64(XXH64(seed)) | le64(length) | LoRA name or model)
//	trtllm            hash[i] = mix(hash[i-1], tokens, LoRA task id; salt id in block 0)
//	trtllm_v2_sha256  digest[i] = SHA-256(digest[i-1] | tokens as le32); event hash = first 8 bytes of the digest, be
//	trtllm_v2_sha256_64  digest[-1] = SHA-256(1 byte with a bit for each id | le64(LoRA task id) | le64(salt id), each if present)
//	                  salt id = first 8 bytes of SHA-256(salt), le
//
// CBOR is canonical (shortest heads). With EAGLE, Dynamo hashes a block with the token after it, and SGLang hashes both
// tokens of each pair of adjacent tokens, so that a block is complete one token later.
//
// Dynamo includes objects ([Extras]) in its hashes in one of two incompatible forms. Its router appends their hashes to
// the tokens of their block as le64, in ascending order. Its block manager (the variant universal) encodes every position of such a block as a frame of 13 bytes. For vLLM, the router replaces each position of an
// image with [ObjectToken] before it hashes the prompt, and then hashes only tokens. [AppendLineage] computes Dynamo's
// 128-bit positional lineage hash. Dynamo's keyed tracking hash (keyed-xxh3-v1) is not implemented; engines do not use
// it.
//
// # Which settings make the hashes match
//
//   - Dynamo: the block size of the model card (kv_cache_block_size), and the request's cache_namespace and adapter name.
//   - vLLM: --prefix-caching-hash-algo sha256_cbor or xxhash_cbor. The default, sha256, and xxhash hash a Python
//     pickle, whose bytes depend on Python's version and on the identity of objects, so Lookup returns an error for
//     them. The seed is the string in PYTHONHASHSEED. Without it, vLLM with pull request 51875 (August 2026) uses
//     "vllm-none-hash" for sha256_cbor, which is the default here, and a random seed for xxhash_cbor; older versions
//     use 32 random bytes ([Options].NoneHash). With VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES=1, the default, events contain
//     the event hash, with 0 the whole digest, from which [Scheme.Event] computes the event hash. Extra keys are as above
//     since 0.32; older versions need the [Options].Variant pairs or bare. The block size is --block-size times the
//     decode context parallel size. A model with several cache groups hashes blocks of --prefix-match-unit tokens, or
//     of the greatest common divisor of the groups' block sizes; for a group whose blocks are k times as large, events
//     contain every k-th of these hashes.
//   - SGLang: --page-size; 1 is common and gives a hash for every token. The hash includes the cache salt, as of 0.5.23.
//     It does not include extra_key, and with an adapter it includes a number that changes when the adapter is loaded:
//     use a separate index for each.
//   - llm-d: the hashSeed and block size of its token processor, and the model's name in requests. Its hashes never
//     equal those of engines, because it hashes the tokens of events itself. Version 0.7.0 encodes objects differently.
//   - TensorRT-LLM: kv_cache_event_hash_algo v1_block_key (trtllm, the default), v2_sha256 or v2_sha256_64. Its engine
//     does not hash the last token of a prompt: leave it out. The first cache manager derives salts with C++'s
//     std::hash, which cannot be reproduced; the second one as above, with BLAKE3 before mid-2026 (the [Options].Variant
//     blake3). Multimodal keys are not implemented.
//
// A router that hashes the tokens in engine events, as package index does with Dynamo's scheme, does not need the
// engine's scheme. With the engine's scheme, it does not need a map from the engine's hashes to its own.
//
// The extra keys of single blocks, as llm-d and events have them, are objects that fill these blocks ([Extras]). Blocks
// that follow a known digest are hashed with [Scheme.After].
//
// # Growing prompts
//
// A [Chain] hashes each token of a conversation once, regardless of the number of turns. It can be extended, forked and
// truncated. A [Piece] is a sequence of blocks that a cache can store with their text. With a tokenizer's prefix cache,
// the second request of a conversation hashes only its new tokens. In this example, AppendEncodePrefixes of
// tokenizers/cache returned ids and prefixes, and c is an empty chain:
//
//	known := 0
//	for ; known < len(prefixes); known++ {
//		piece, _ := prefixes[known].Value().(*kvhash.Piece)
//		if !c.Join(piece) {
//			break
//		}
//	}
//	c.Append(ids[c.Len():]...)
//	for i := known; i < len(prefixes); i++ {
//		from := 0
//		if i > 0 {
//			from = prefixes[i-1].Tokens
//		}
//		prefixes[i].SetValue(c.Piece(from, prefixes[i].Tokens))
//	}
//
// [AppendKinds] returns the part of the prompt (system, tools, history, ...) of each block, for decisions on what to retain.
//
// # Cost
//
// Allocations occur only when a destination grows, for Dynamo's large blocks with objects, and outside of a chain for
// blocks of more than 512 tokens of the other schemes. With its chain a block of 16 tokens costs about 7 ns (dynamo),
// 23 (trtllm), 41 (vllm_xxhash_cbor), 91 (llmd), 116 (sglang) or 132 (vllm_sha256_cbor); one of 64 tokens 25, 76, 101,
// 337, 216 or 286. For Dynamo's blocks of 61 tokens and more, 6 ns of that are spent on a secret that the library
// derives from the seed on each call.
//
// The package starts no goroutines. Dynamo's local hashes do not depend on each other, so a caller may split a long prompt between
// blocks (with EAGLE, each part includes the token after it) and hash the parts concurrently: see the example of
// [Scheme.AppendLocal]. The other schemes are sequential.
package kvhash
