// SPDX-License-Identifier: Apache-2.0

// Package protocols holds the shared vocabulary of weft and the wire formats of three APIs. It has no code of its own: see
// the packages below it.
//
//	block                       requests: turns of typed blocks over the bytes they were read from
//	event                       answers: what parsers emit, decoders read and encoders write
//	intent                      what a harness knows about a request besides its words
//	chat, responses, messages,  one package per API, with the same names in each: Decode, Encode, Stream, AppendResponse,
//	completions                 StreamDecoder, Events, DecodeResponse
//	embeddings, models          the APIs without a conversation
//	preamble                    removes what changes in front of the system text and says nothing
//	sse                         the framing of streams
//	apierr                      errors in the form of each API, and read from them
//
// A request goes in through Decode, which owns the body from then on, and out through Encode: to the same API byte for byte
// as it came, edits aside, to another with a list of what is lost. An answer comes as events, from a parser or from the
// StreamDecoder of another API, and goes out through a Stream or AppendResponse. Nothing here does I/O, starts a goroutine, reads a clock or keeps state outside the values you hold.
package protocols
