// SPDX-License-Identifier: Apache-2.0

// Package tiktoken reads the rank files of tiktoken (*.tiktoken, tiktoken.model) and derives byte-pair merges from
// them.
//
//	IQ== 0            base64 of the token's bytes, a space, its rank
//	Ig== 1
//	IHRoZQ== 279      " the"
//
// # Terms
//
// The rank of a token is its id and its priority at once: of all adjacent pairs in a word whose joined bytes are a
// token, the pair whose joined token has the lowest rank is joined first, at equal rank the leftmost (tiktoken 0.12,
// src/lib.rs, byte_pair_encode). A word that is a token as a whole is that token, regardless of pairs, as with
// bpe.Options.IgnoreMerges.
//
// A model of package bpe has a list of merges of two ids instead. [Merges] lists every way to cut every token
// into two tokens, ordered by the rank of the whole, then of the parts: what Hugging Face's TikTokenConverter
// (transformers, convert_slow_tokenizer.py) writes into tokenizer.json, which is why such files hold 280,147
// merges for 128,000 tokens.
//
// # Cost
//
// Reading 200,000 tokens takes about 30 ms; listing their merges a lookup for each of their bytes, twice.
package tiktoken
