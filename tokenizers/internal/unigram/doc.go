// SPDX-License-Identifier: Apache-2.0

// Package unigram turns words into token ids by the best path through their tokens, as SentencePiece's
// unigram model does.
//
// # Terms
//
// Every token has a score, the logarithm of its probability. A piece is a token in the text, or one character
// that is not a token and scores 10 less than the worst token. A path cuts a word into pieces; the best has the
// largest sum of scores. The result is defined by the reference (Hugging Face tokenizers 0.23, models/unigram,
// encode_optimized): sums are built from the left in float64, and of two paths to the same position the one found
// first stays unless the other is greater. Adjacent unknown pieces become one; if its text is a token
// after all it is that; else, with [Options.ByteFallback], its bytes; else the unknown token.
//
// # Layout and cost
//
// The tokens are stored in a byte trie with a step of one load. A word of up to 15 bytes and up to 4 ids is found
// in a cache that belongs to the [State], about 1 MB. Another of n bytes costs O(n·t) for tokens of up to t
// bytes and 16 bytes of scratch a byte. Nothing is allocated but room in dst and the State.
package unigram
