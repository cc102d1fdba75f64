// SPDX-License-Identifier: Apache-2.0

// Package grammar holds the types in which a family of models declares how it writes its output.
//
// A grammar is data, not code: it selects one of three layouts and, inside it, how arguments are written, and fills in
// the markers. The machine in package parsers runs it; package family holds the values for the families weft knows. A
// new family is a new value. An argument syntax that the machine does not have is a [Codec] in [Body]: one of package
// codec, or one's own.
//
// # Terminology
//
//   - marker: a control string of the family, such as <tool_call> or <|channel|>.
//   - layout: where reasoning, text and calls sit: [Tagged], [Channels] or [Elements].
//   - codec: an argument syntax that a grammar brings with it: see [Codec]. Others are fields of [Body].
//   - structural white space: white space that the chat template puts next to a marker. It is part of the markup; all
//     other white space is the model's own and survives.
package grammar
