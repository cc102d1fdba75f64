// SPDX-License-Identifier: Apache-2.0

// Package spm reads SentencePiece models and encodes with them: the file format, the normalizer, and the four model
// types BPE, Unigram, word and char.
//
// # Terms
//
// A piece is an entry of the vocabulary. Its [Type] is Normal, Unknown, Control (never made of text), User (matched in
// any text, and never part of another piece), Unused (split again where a merge has made it) or Byte. An ID is the index
// of a piece. A space is written as U+2581 in pieces and in normalized text.
//
// # Layout of a file
//
// A protocol buffer, sentencepiece_model.proto of SentencePiece 0.2.1:
//
//	1  pieces             1 piece, 2 score (float), 3 type
//	2  trainer_spec       3 model_type, 24 treat_whitespace_as_suffix, 35 byte_fallback, 41 bos_id, 42 eos_id, 43 pad_id,
//	                      44 unk_surface, 46 bos_piece, 47 eos_piece, 48 pad_piece
//	3  normalizer_spec    2 precompiled_charsmap, 3 add_dummy_prefix, 4 remove_extra_whitespaces, 5 escape_whitespaces
//	5  denormalizer_spec  the same
//
// Other fields do not affect encoding and are skipped.
//
// # Guarantees
//
// Normalized text, IDs and offsets equal those of SentencePiece 0.2 for all byte strings. What SentencePiece refuses is
// refused, and so are a text that two pieces have and a normalizer whose rules leave their tables; see [Parse].
//
// # Cost
//
// Time is linear in the text, O(n log n) for BPE inside a part that pieces do not divide. Encoding allocates only to
// grow dst and the [State]. A [Model] is immutable and safe for concurrent use; a State is not.
package spm
