// SPDX-License-Identifier: Apache-2.0

// Package messages implements the Anthropic Messages API, POST /v1/messages, versions 2023-06-01 and 2026-10-21, as of
// anthropic-sdk-go v2.13.
//
// [Decode] decodes requests and [AppendRequest] encodes them. Package wire encodes and decodes responses, as described below.
//
// # Stream
//
//	Start, or the first event   message_start with the usage known so far
//	Reasoning                   thinking block: thinking_delta…, signature_delta once, just before its stop
//	Text, Refusal               text block: text_delta…
//	Annotation                  citations_delta in the open text block
//	ToolStart … ToolEnd         tool_use block: input_json_delta…; server_tool_use with the flag event.Server
//	ToolResult, Opaque          a new block, if Data is an object with a type, which becomes the content_block
//	Finish                      ends the open block
//	end                         message_delta with stop_reason and usage, then message_stop
//	Fail, Error                 error, and no message_stop
//
// A new block opens on every change of kind or part. Indexes are dense, and at most one block is open at a time,
// because some clients otherwise lose text. Events for other blocks are copied and buffered until the open call ends.
//
// # Responses of engines
//
//	message_start                     Start with the usage
//	text                              Text; citations are Annotation
//	thinking                          Reasoning, Signature
//	tool_use                          ToolStart … ToolEnd or ToolAbort
//	server_tool_use                   the same with the flag Server
//	blocks named …tool_result         ToolResult with the flag Server; Data is the block
//	redacted_thinking, other blocks   Opaque; Data is the block
//	message_delta                     Usage
//	message_stop                      Finish
//	error                             Error
//
// Events of type ping, and events and deltas of unknown types, are skipped.
//
//   - A call has a ToolEnd if its input is one JSON object or empty, which means {}. Any other input aborts it; the
//     Encoder makes the input of an aborted call invalid on purpose. If the response ends with a call without input
//     because of the token limit, the call was cut off; its ToolEnd is therefore held until the next event.
//   - The input or signature in content_block_start is used if no delta follows, as in the official clients.
//   - ToolStart has the id in the form of Decode, so that encoding it for this API gives the original id.
//   - Withheld thinking is an event.Opaque with its redacted_thinking block, which the Encoder sends unmodified. Blocks
//     of other types (mcp_tool_use, compaction, …) are returned when they stop, with the input or content of their
//     deltas. A block whose input was cut off is left out.
//   - Signatures are passed on, including tokens of this module: see replay.Signer.Open.
//   - A delta belongs to the open block with its index if the kinds match, else to the last opened block of its kind,
//     else to a new block. Several blocks may be open. They stop at the latest when their index starts again or at the
//     stop_reason.
//   - All text is Text, even if the response ends as a refusal, because the API does not distinguish them. The caller
//     of a tool and the details of a refusal are not kept.
//   - event.Finish depends on stop_reason. tool_use, end_turn and a missing reason are ToolCalls if there was a
//     complete call for the client, else Stop; compaction is Paused.
//
// # Decisions
//
//   - Aborted calls: the block is closed with content_block_stop and does not affect stop_reason. If its input is valid
//     JSON, or empty, which means {}, one more delta with a quote or a brace makes it invalid, because clients execute
//     complete tool_use blocks regardless of the stop_reason. Claude Code reports to the model that the call could not
//     be parsed. The Go SDK (v1.84) accumulates invalid input as {}; its users must check the stop_reason. A call that
//     aborts before its name is known is never sent. A response that is not streamed has aborted calls, too, as
//     Anthropic's has one that the token limit cut off: the last block is a tool_use and the stop_reason is max_tokens. Its
//     input must be an object and is {"input":"…"} with the arguments so far, which no schema of another tool accepts.
//     wire.Options.WholeCalls avoids partial calls by sending each call only when it is complete.
//   - Calls inside reasoning are left out unless wire.Options.CallsInReasoning is set. The reasoning before and after a
//     call becomes two thinking blocks.
//   - Every thinking block has a signature, because clients drop blocks without one. If the producer gave none, it is a
//     token of wire.Options.Signer: a MAC of the text if it is shown, or else the sealed text. Without a Signer it is a
//     checksum.
//   - Free text of a custom call becomes the input {"input":"…"}.
//   - Parts of a converted request for which this API has no field are encoded in other fields, and Decode restores
//     them: the schema of a free-text tool has an x-custom-format, arguments that are not a JSON object are the input
//     {"x-raw-arguments":"…"}, and the signature of reasoning contains its encrypted form and whether it is a summary,
//     after the prefix "weft1c.".
//   - stop_reason is tool_use if and only if a complete call was sent and the model stopped by itself; max_tokens,
//     model_context_window_exceeded, refusal and pause_turn take precedence.
//   - wire.Encoder.Finish ends a response that lacks an event.Finish as if the model had stopped. If a call is open or
//     there was only an event.Start, the response was cut off and ends with an error event.
//   - The API has one choice. Events of other choices are skipped; n > 1 is a loss of conversion.
//   - The id of a call is the producer's, with bytes that the API forbids escaped, which Decode reverses. If it is
//     empty or occurred before in the response, it is "toolu_", the message id without its prefix, and the ordinal.
//   - Invalid UTF-8 becomes U+FFFD. A character that is split between two deltas is held until it is complete, at most
//     3 bytes. In arguments, the escape of a lone surrogate becomes \ufffd: Anthropic's SDK for Python fails on it. Escapes
//     at the end of a delta are held while they may belong to a pair.
package messages
