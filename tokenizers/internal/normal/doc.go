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
// character of a result carries a change: 0 when it replaced the next character of the source, whose span it
// takes; 1 when it was inserted, with the span of the last character used before it; -n when it replaced one and the
// n after it went away, whose spans are lost. So an accent that was sorted before another takes the position of the
// one it overtook, é made of two characters has the span of the letter alone, and the replacement of a match of
// Replace has the span of the match's last character. Spans of consecutive bytes never go backwards.
//
// # Bytes that are not UTF-8
//
// The reference takes UTF-8 only. Here, a byte that is part of no character is kept as it is with its own span.
// It is treated as a character that never changes, is in no class and joins no other: no accent is moved across it. [Prepend]
// puts its text before one too; [ByteLevel] spells it like any other byte.
//
// # Cost
//
// Linear in the text (marks without a letter between them are sorted, n log n) and without allocation once the
// buffers have grown. Steps hold no state that changes and are safe for concurrent use; a [Buffer] serves one goroutine at a time.
package normal
