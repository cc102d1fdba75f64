// SPDX-License-Identifier: Apache-2.0

// Package normal implements the normalizers of Hugging Face tokenizers: the normalized text, and for each of its
// bytes the original bytes that it came from.
//
// A normalizer is a [Step]; a Sequence is a list of them, run by [Run] one after the other:
//
//	steps := []normal.Step{normal.NFD(), normal.Lowercase(), normal.StripAccents()}
//	out := normal.Run(steps, normal.Text{B: text}, &buf)                              // the text alone
//	out = normal.Run(steps, normal.Text{B: text, From: normal.Origins(nil, text)}, &buf) // and where it is from
//
// # Origins
//
// Text, results and origins are those of Hugging Face tokenizers 0.23.2 (tokenizer/normalizer.rs, normalizers/*.rs and
// the crates unicode-normalization-alignments 0.1.12, spm_precompiled 0.1 and unicode-segmentation). There, each
// character of a result has a change: 0 if it replaced the next character of the source, whose span it gets; 1 if it
// was inserted, with the span of the last source character before it; -n if it replaced a character and the n after it
// were removed, whose spans are lost. So an accent that is sorted before another gets the span of the other, é composed
// of two characters has the span of the letter alone, and the replacement of a match of Replace has the span of the
// match's last character. Spans of consecutive bytes never go backwards.
//
// # Bytes that are not UTF-8
//
// The reference accepts only UTF-8. Here, a byte that is not part of a character is kept unchanged with its own span.
// It is treated as a character that never changes, is in no class and joins no other: no accent is moved across it.
// [Prepend] also inserts its text before such a byte; [ByteLevel] spells it like any other byte.
//
// # Cost
//
// Linear in the text (marks without a letter between them are sorted, n log n) and without allocation once the buffers
// have grown. Steps are immutable and safe for concurrent use; a [Buffer] is not.
package normal
