// SPDX-License-Identifier: Apache-2.0

// Package vocab holds the table between token ids and their bytes, which all models of
// package tokenizers share.
//
//	arena   |the| a|ing|...      bytes of all tokens, in id order
//	off     0 3 5 8 ...          len(off) == Len()+1
//	index   open addressing, hash(bytes) -> id
//
// No table holds pointers, so the garbage collector does not scan them. What a token's bytes are depends on
// the model: the bytes of the text for byte-level BPE, the spelling in the file for the others.
package vocab
