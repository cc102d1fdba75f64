// SPDX-License-Identifier: Apache-2.0

// Package jsonscan validates and indexes a JSON document in one pass, and edits documents by splicing.
//
// # Terminology
//
//   - document ([Doc]): the bytes, which never change, and an index of nodes.
//   - node: one value: its span, the span of its name in an object, and the index of the first node after its subtree.
//   - value ([Value]): a cursor, a document and a node. The zero Value represents an absent value.
//   - opaque value: an object or array that is validated but has a single node.
//   - edits ([Edits]): replacements, deletions and insertions, recorded separately until the edited document is
//     written.
//
// # What a pass checks
//
// [Scan] accepts exactly RFC 8259, with these restrictions: the input is one value; text is valid UTF-8; no object has
// the same name twice (names are compared after unescaping, case-sensitively); nesting, size and number of values are
// limited. An escaped lone surrogate (\ud83d without its pair, as JavaScript writes for a truncated string) is
// accepted. Its bytes are preserved, and it is decoded as U+FFFD.
//
// Scan does not recurse: each level of nesting costs one element of a slice. Duplicate names are found by comparison in
// small objects and with a hash set in large ones, so no input takes quadratic time.
//
// # Cost
//
// Scan reads strings eight bytes at a time and, on amd64, long ones 16 bytes at a time; text in them that is not ASCII is
// then read by character. The index takes 24 bytes per value outside opaque values.
package jsonscan
