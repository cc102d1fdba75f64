// SPDX-License-Identifier: Apache-2.0

// Package streamdec holds what the stream decoders share: reading the JSON of one server-sent event after the other in
// the same memory, following arguments that arrive in pieces, token counts, and the errors of servers. [Chunks] is the
// part that the Chat and Completions APIs have in common, [Typed] that of the Messages and Responses APIs.
//
// All of it is warm after a few events: a [Doc] keeps its index and its buffer, an [ArgState] is a flat value.
package streamdec
