// SPDX-License-Identifier: Apache-2.0

// Package event defines the events that parsers and decoders of model output produce and encoders of client streams
// consume.
//
// Parsers append events and encoders consume them. A [Collector] builds the complete response from them; a [Dispatcher]
// reports which calls to run while the response is still being generated. Producers and consumers share nothing else,
// so any producer works with any consumer.
//
// # Terminology
//
//   - response: everything one request produces. It has one or more choices.
//   - choice: one of n alternative responses, numbered from 0.
//   - part: one output block of a choice: a run of reasoning, a run of text, or one tool call. Parts are numbered
//     from 0 in the order in which they open. Consecutive events with the same Part belong to the same block.
//   - call: a tool call, numbered from 0 per choice in the order in which calls open.
//   - delta: an event that adds Data to an open part: Reasoning, Text, Refusal, Signature, ToolArgs.
//
// # Order
//
// The order of events is the order of the output. The events of a choice form this sequence:
//
//	stream = [ Start ] { part | side } [ Usage ] ( Finish | Error )
//	part   = Reasoning { Reasoning | Signature }
//	       | Text { Text | Annotation }
//	       | Refusal { Refusal }
//	       | ToolStart { ToolArgs } ( ToolEnd | ToolAbort )
//	       | ToolAbort                                   a call that failed before its name was known
//	       | ToolResult                                  a result of a tool that ran on the server
//	       | Opaque
//	side   = Logprobs | Usage
//
// Reasoning and calls interleave as the model generated them. A ToolAbort ends its call: data that was streamed is not
// withdrawn, but the call must not be executed. Dispatch a call only at its ToolEnd.
//
// # Memory
//
// Data and ID of an event are views of the producer's memory and are valid until the next call on that producer.
// [Event.Clone] returns a copy; a Collector copies what it keeps.
package event
