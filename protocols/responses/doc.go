// SPDX-License-Identifier: Apache-2.0

// Package responses implements the OpenAI Responses API, POST /v1/responses, as of openai-go v3.96 with the additions
// of Codex.
//
// [Decode] decodes requests and [AppendRequest] encodes them. Package wire encodes and decodes responses, as described below.
//
// # Stream
//
// Every event has its type, also in the event field, and a sequence_number from 0.
//
//	Start, or the first event   response.created, response.in_progress
//	Reasoning                   reasoning item: summary part with summary_text, or content part with reasoning_text
//	Signature                   encrypted_content of the reasoning item when it is done
//	Text, Refusal               message item with one part: output_text or refusal
//	Annotation                  output_text.annotation.added in the open text
//	Logprobs                    logprobs of the next text delta
//	ToolStart … ToolEnd         function_call or custom_tool_call item
//	ToolResult, Opaque          an item, if Data is an object with a type; it gets an id if it has none
//	Finish                      ends the open items
//	end                         response.completed or response.incomplete
//	Fail, Error                 response.failed
//
// The events of an item are: added, its part added, its deltas, the done event that repeats the text, its part done,
// and done. A new item opens on every change of kind or part; output_index is dense and in order of opening; several
// calls may be open at once. The output of the last event is exactly the items of the done events. No other event types
// are sent, because the official JavaScript client throws on unknown ones.
//
// # Responses of engines
//
//	response.created, in_progress, queued       Start, once; with usage if there is some
//	reasoning_text, reasoning_summary_text      Reasoning; parts after the first follow a blank line
//	encrypted_content of a reasoning item       Signature, when the item is done
//	output_text, refusal                        Text, Refusal; Logprobs before the text they belong to
//	output_text.annotation                      Annotation
//	function_call, custom_tool_call             ToolStart … ToolEnd or ToolAbort; Custom
//	items named …_output                        ToolResult with the flag Server; Data is the item
//	all other items                             Opaque when they are done; Data is the item
//	response.completed, response.incomplete     Usage, Finish
//	response.failed, cancelled, error           Usage if there is some, Error
//
// All other event types, mainly the progress of server-side tools, are skipped.
//
//   - The events that end a text, a part, an item and the response repeat the contents of the deltas. Repeated content
//     is compared with the deltas. If there is more of it, the Decoder returns the rest; if it contradicts the deltas,
//     the deltas take precedence.
//   - An event belongs to the item with its item_id or call_id, else to the open item with its output_index, else to an
//     open item of its kind. Items that were never added open with their first delta.
//   - Arguments are held until the name of their call arrives, up to 1 MiB in all. A call has a ToolEnd only if its
//     arguments are one JSON object, empty, or free text of a custom tool, and its item is not marked as incomplete.
//   - Every part of a message is a separate part. A reasoning item is one part. If it has both raw reasoning and a
//     summary, the form that arrives first is used, or raw reasoning if both arrive at once.
//   - event.Finish follows from the last event: incomplete is Length, ContentFilter or Paused (max_tool_calls). Completed is
//     ToolCalls if there was a complete call, else Refused if there was a refusal, else Stop.
//   - Parts may overlap: events of one Part need not be consecutive.
//
// # Decisions
//
//   - Aborted calls: the item is done with status incomplete. If its arguments are valid JSON or empty, one more delta
//     with a quote or a brace makes them invalid, because Codex executes the item regardless of its status; it then
//     reports to the model that the arguments could not be parsed. A call that aborts before its name is known is never
//     sent. A response that is not streamed has aborted calls in the same form. wire.Options.WholeCalls avoids partial calls
//     by sending each call only when it is complete.
//   - Calls inside reasoning are left out unless wire.Options.CallsInReasoning is set. Calls of server-side tools are
//     always left out, because the client would execute function calls.
//   - If the request is of this API, every reasoning item has an encrypted_content, as OpenAI's have by default, whether
//     the request includes reasoning.encrypted_content or not. If the producer gave none, it is a token of
//     wire.Options.Signer: a MAC of the text if it is shown, or else the sealed text. Without a Signer it is a checksum.
//   - The item that was open when the response was cut off has status incomplete; those before it have completed.
//   - event.Length and event.ContextFull are incomplete with max_output_tokens, event.ContentFilter with
//     content_filter, event.Paused with max_tool_calls; all others are completed.
//   - A response that was cut off, and any error after the stream has begun, ends with response.failed. The top-level
//     error event is not used.
//   - The API has one choice. Events of other choices are skipped; n > 1 is a loss of conversion.
//   - A call_id is the producer's, unless it is empty or occurred before in the response. It is then "call_", the
//     response id without its prefix, and the ordinal. Item ids are made the same way: msg_ and rs_ with separate
//     counts, fc_ and ctc_ with the ordinal of the call.
//   - Invalid UTF-8 becomes U+FFFD. A character that is split between two deltas is held until it is complete, at most
//     3 bytes.
package responses
