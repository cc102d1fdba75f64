// SPDX-License-Identifier: Apache-2.0

// Package streamdec holds the common parts of the stream decoders. [Doc] decodes the JSON of server-sent events,
// [ArgState] validates arguments that arrive in pieces, and further functions decode token counts and errors of
// servers. [Chunks] is the common part of the Chat and Completions APIs, [Typed] of the Messages and Responses APIs.
//
// After a few events, decoding does not allocate: a [Doc] reuses its index and buffer, and an [ArgState] is a flat
// value.
package streamdec
