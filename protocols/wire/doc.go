// SPDX-License-Identifier: Apache-2.0

// Package wire decodes and encodes the HTTP bodies of four LLM APIs through one interface.
//
// An [API] decodes requests and creates encoders and decoders of responses:
//
//	client ── body ──▶ API.Decode ──▶ *block.Request
//	client ◀── SSE or JSON ── Encoder ◀── event.Event
//	engine ── SSE or JSON ──▶ Decoder ──▶ event.Event
//
// A server decodes a request, passes the events of the response to an [Encoder], and writes the bytes that the Encoder
// appends: a stream or one JSON document, as requested. To translate an engine's response into another API, decode it
// to events with a [Decoder] and encode those. A harness collects events in an [event.Collector] and appends the
// response to its conversation with [Turn].
//
// Encoders and decoders do no I/O. Their output depends only on their input and on the clock in [Options].
//
// Packages chat, responses, messages and completions document each API and hold its specific functions.
package wire
