// SPDX-License-Identifier: Apache-2.0

// Package protocols contains packages that decode, edit, convert and encode requests and responses of LLM APIs, and the
// types that the other modules share. It has no exported names; these are its packages:
//
//	block                       requests: turns of typed blocks over the bytes of the body
//	event                       responses: the events that parsers emit, decoders read and encoders write
//	wire                        one interface for all APIs: requests, responses and errors
//	chat, responses, messages,  the specifics of each API
//	completions
//	embeddings, catalog         embeddings and the list of models
//	intent                      request hints: priority, session, retention and more, read from any dialect, limited and emitted
//	preamble                    keeps the start of a prompt stable across requests and reports why it changed
//	replay                      selects the past reasoning in a prompt and verifies that clients return it unmodified
//	sse                         server-sent events
//	apierr                      errors in the form of each API
//
// Decode parses a request and takes ownership of its body. AppendRequest encodes it: for the same API with all unedited bytes
// preserved, for another API with a list of losses. A response is a sequence of events, from a parser or from the wire.Decoder
// of another API, which a wire.Encoder encodes. The packages do not start goroutines or keep global state, and do I/O only on
// the readers and writers that callers pass.
package protocols
