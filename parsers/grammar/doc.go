// SPDX-License-Identifier: Apache-2.0

// Package grammar holds the types in which a family of models declares how it writes its output.
//
// A grammar is data, not code: it selects one of three layouts and, inside it, one of the codecs for arguments, and
// fills in the markers. The machine in package parsers runs it; package family holds the values for the families weft
// knows. A new family is a new value. A new argument syntax is a new codec here and in the machine.
//
// # Terminology
//
//   - marker: a control string of the family, such as <tool_call> or <|channel|>.
//   - layout: where reasoning, text and calls sit: [Tagged], [Channels] or [Elements].
//   - codec: how the arguments of a call are written: see [Body].
//   - structural white space: white space that the chat template puts beside a marker. It is part of the markup; all
//     other white space is the model's own and survives.
package grammar
