// SPDX-License-Identifier: Apache-2.0

// Package parsers turns the raw output of a language model into events: reasoning, text and tool calls, in the order
// in which the model wrote them, while it still writes.
//
// One machine runs every family. What differs between families is data: a [grammar.Grammar] from package family, or
// your own.
//
//	p, err := parsers.New("qwen3_coder", &parsers.Options{Tools: tools})
//	events, err = p.Append(events[:0], chunk)      // as chunks arrive, cut anywhere
//	events, err = p.Finish(events[:0], event.Stop) // at the end of the stream, with the engine's finish reason
//
// For the output
//
//	<think>Look it up.</think><tool_call>\n<function=get>\n<parameter=q>\nx\n</parameter>\n</function>\n</tool_call>
//
// the events are, whatever the chunks,
//
//	Reasoning "Look it up."   ToolStart "get"   ToolArgs `{"q":"x"}`   ToolEnd   Finish tool_calls
//
// with Reasoning and ToolArgs in as many pieces as the chunks make of them.
//
// # Guarantees
//
//  1. Any split of the same bytes gives the same assembled events. Invalid UTF-8 passes through; at most 3 bytes of an
//     incomplete sequence are held back.
//  2. Every input byte belongs to exactly one of reasoning, text, call structure and marker; the spans of the events
//     show which. Markup does not reach the text.
//  3. Emitted bytes are never taken back: streamed arguments are a prefix of the final ones.
//  4. Argument bytes are the model's own, number spelling and key order included. Raw values of XML-style families are
//     typed by the tool's schema.
//  5. ToolEnd comes as soon as a call is complete, and only then may it be dispatched.
//  6. Malformed or cut output is never an error and never a panic. A value is complete only if a delimiter follows it;
//     otherwise its call aborts with a reason, and what came before stands.
//  7. Each byte is examined at most twice on average, what is held back is bounded, and plain text allocates nothing.
//  8. With token ids, a marker that is one token of the vocabulary counts only as that token.
package parsers
