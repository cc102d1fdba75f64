// SPDX-License-Identifier: Apache-2.0

// Package bpe turns pre-tokens into token ids by byte-pair encoding, over bytes ([Model]) or over characters
// ([Chars]).
//
// # Terms
//
// A word is one pre-token: a byte string inside which merges happen. A [vocab.Table] maps token ids to bytes
// and back: those of the text for a Model, those of the spelling in the file for Chars. A merge joins two
// adjacent tokens into one; its rank is its position in the model's list. The result for a word is defined
// by the reference (Hugging Face tokenizers 0.23, models/bpe): start from single bytes or characters; as long
// as some adjacent pair has a merge, apply the merge of lowest rank, at equal rank the leftmost.
//
// For SentencePiece-style models a word is a whole text. Chars cuts it into parts between which no merge is
// possible, before most words for example; cuts.go has the proof that this changes nothing.
//
// # Layout
//
//	merges  pairs   the merges of each left token, one uint64 b(21) rank(22) to(21) per merge
//	        off     left token -> where its merges begin
//	Model   bytePair[a<<8|b] -> rank, to     merges of two single bytes
//	        shorts  words up to 11 bytes that are one token -> id, 16 bytes an entry
//	Chars   ascii, runes                 character -> id
//	        cuts    which characters a merge can join
//	State   words   two-way cache of words up to 15 bytes -> up to 4 ids, 32 bytes an entry
//	        batch   the words that AppendWords looks up together
//
// No table holds pointers, so the garbage collector does not scan them.
//
// # Guarantees and cost
//
// A Model and a Chars are immutable and safe for concurrent use; a [State] belongs to one goroutine at a time. A cached
// word or part costs one probe. Otherwise, n bytes cost O(n²) steps of a few nanoseconds up to 64 bytes and O(n log n)
// steps beyond, so that a word of a megabyte is harmless. Encoding allocates only to grow dst and the State, which
// keeps about 3 MB at most.
package bpe
