// SPDX-License-Identifier: Apache-2.0

// Package wordpiece turns words into token ids by greedy longest match, as BERT does.
//
// A word is one pre-token. The longest token that it starts with is its first id; the rest of the word is
// matched in the same way against the tokens that begin with a prefix ("##"). If some rest starts with no
// token, or the word has more characters than a limit, the whole word is the unknown token. This is models/wordpiece of
// Hugging Face tokenizers 0.23.
//
// # Layout and cost
//
// The tokens are stored in one byte trie, spelled as in the file; the search for the rest of a word starts at the
// node of the prefix. A word of up to 15 bytes and up to 4 ids is found in a cache that belongs to the
// [State], about 1 MB. Another of n bytes costs O(n·t) at most for tokens of up to t bytes, in practice one
// step a byte. Nothing is allocated but room in dst.
package wordpiece
