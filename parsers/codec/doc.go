// SPDX-License-Identifier: Apache-2.0

// Package codec implements the argument syntaxes of the known families other than JSON. Each is a value that implements
// [grammar.Codec]; its decoders convert arguments to one JSON object while the model is still generating them.
//
// # What all of them promise
//
//   - The output does not depend on how the input is cut, and neither does the position at which a call turns out to be
//     wrong. What was appended is right for good: the sum of all output is the object, byte for byte.
//   - Strings leave as they come. A decoder keeps only what may be the string's end, or half a character. Numbers,
//     names and unquoted text are kept until they end, at most 4096 bytes; [Nested], whose values are typed by the
//     schema, keeps those that are not strings.
//   - Complete output is valid JSON. Strings may hold bytes that are not UTF-8, if the input does.
//   - Nesting is limited to 128 objects and arrays, the arguments object included (64 tags in [Nested]), and one object of arguments to 1024
//     keys. An argument that is given twice is Bad: what was streamed cannot be taken back.
//   - Each byte is examined once, or a bounded number of times. Nothing is allocated when dst has room and the decoder
//     is warm.
//
// A decoder belongs to one goroutine at a time. After Done, Bad or Limit it takes nothing until Begin.
package codec
