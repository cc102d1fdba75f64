// SPDX-License-Identifier: Apache-2.0

// Command peers serves the tokenizers of other Go libraries to cmd/tokenizers of internal/bench: requests on standard input,
// replies on standard output, as package remote there describes.
//
//	peers sugarme|pkoukk|tiktoken-go|ollama|go-huggingface
//
// It is a module of its own, so that what these libraries require stays out of every other go.mod. A library that cannot
// read tokenizer.json gets vocabulary, merges, added tokens and pattern out of it by hand.
package main
