// SPDX-License-Identifier: Apache-2.0

// Package jsonscan checks a JSON document in one pass, remembers where every value stands, and edits documents by
// splicing.
//
// # Terminology
//
//   - document ([Doc]): the bytes, which never change, and an index of nodes.
//   - node: one value: its span, its member name's span, and the index of the first node behind its subtree.
//   - value ([Value]): a cursor, a document and a node. The zero Value stands for "absent".
//   - opaque value: an object or array that was checked like everything else but has one node only.
//   - edits ([Edits]): replacements, deletions and insertions over a document, kept beside it until written out.
//
// # What a pass checks
//
// [Scan] accepts exactly RFC 8259, with these rules: the whole input is one value; text is valid UTF-8; no object has two
// members of the same name (names compared after unescaping, case matters); nesting, size and number of values stay under
// limits. An escaped lone surrogate (\ud83d without its pair, as JavaScript writes for a cut string) is accepted, keeps
// its bytes, and reads as U+FFFD.
//
// The pass has no recursion: depth costs a frame of a slice. Duplicate names are found by comparison in small objects
// and by a hash set in large ones, so no input makes the pass quadratic.
//
// # Cost
//
// One look at each byte, eight at a time inside strings. Memory is 28 bytes per value outside opaque ones.
package jsonscan
