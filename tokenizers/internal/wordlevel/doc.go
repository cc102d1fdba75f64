// SPDX-License-Identifier: Apache-2.0

// Package wordlevel turns each word into one token id: its own if it is in the vocabulary, else the id of the
// unknown token. This is models/wordlevel of Hugging Face tokenizers 0.23, where a word is one pre-token.
//
// A word costs one look into the vocabulary and no allocation. Words longer than every token are not looked up,
// so a long one costs nothing.
package wordlevel
