// SPDX-License-Identifier: Apache-2.0

// Package kvhash names the blocks of a prompt as serving engines and KV-aware routers do, so that a router can tell which worker
// already holds how much of a prompt.
//
// # Terminology
//
//   - block: N consecutive tokens, N being the block size of the engine's KV cache (16, 64, ...). Only complete blocks have
//     hashes; what follows the last one is the tail.
//   - local hash: names the tokens of one block, wherever it stands.
//   - sequence hash: names a block together with everything before it. Two prompts that share sequence hash i share blocks 0..i.
//     It is also called the chained hash, and it is what package index takes.
//   - object: an image or another non-text input that fills some token positions; it has a 64-bit hash of its own.
//   - scheme: the rule that makes hashes from tokens, with its settings (LoRA adapter, namespace).
//
// # Dynamo's two hashes
//
//	local[i] = XXH3-64(tokens of block i as little-endian uint32, S)
//	seq[0]   = local[0]
//	seq[i]   = XXH3-64(le64(seq[i-1]) || le64(local[i]), 1337)
//
// S is 1337, plus XXH3-64(LoRA name, 0) if there is one, plus XXH3-64(namespace, 1) if there is one, modulo 2^64. Salt enters
// only the local hash and reaches the chain through seq[0]. With objects, their hashes follow the tokens of their block as
// little-endian uint64 in ascending order (the router form of Dynamo). With EAGLE speculative decoding, a block is hashed with the
// one token that follows it.
//
// This follows Dynamo as of August 2026. Not here: Dynamo's "universal" form of object blocks (13-byte frames), the 128-bit
// positional lineage hash, and the hashes of vLLM, SGLang, llm-d and TensorRT-LLM. A router that re-hashes the tokens in engine
// events, as package index does, needs none of them.
//
// # Cost
//
// Nothing here allocates except a growing destination and blocks with objects. A block of 16 tokens costs about 12 ns with its chain,
// one of 64 tokens about 30 ns (of which the library spends 12 ns deriving a secret from the seed; it does so for blocks of 61 tokens and more).
// A [Chain] hashes each token of a conversation once, however many turns it has.
package kvhash
