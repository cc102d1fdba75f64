// SPDX-License-Identifier: Apache-2.0

// Package pretok cuts text into pre-tokens, the pieces inside which byte-pair merges happen.
//
// Every model family publishes a regular expression for this. This package has one hand-written scanner
// per expression, found by its exact text with [Lookup]: an expression that is not known has no scanner,
// because an almost right cut gives wrong token ids.
//
// # Terms
//
// A [Func] is one cutting step. It is given a text and the start of a piece and returns the end of that
// piece. Pieces follow each other without gaps: a stretch the expression does not match is a piece too
// (the behaviour called Isolated). Models that cut in several steps apply each Func inside the pieces
// of the one before it, where the ends of a piece count as the ends of the text.
//
// # Guarantees
//
// For valid UTF-8 the cuts equal those of the Oniguruma expression in Hugging Face's tokenizers 0.23,
// whose classes follow Unicode 16. A byte that is not part of valid UTF-8 counts as the symbol U+FFFD,
// and stays in the text as it is. Functions are pure and safe for concurrent
// use. They allocate nothing and look at each byte a bounded number of times, except that a run of blanks
// may be looked at twice.
package pretok
