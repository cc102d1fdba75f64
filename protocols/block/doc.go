// SPDX-License-Identifier: Apache-2.0

// Package block defines the API-neutral form of a request: a conversation of turns, each an ordered list of typed
// blocks. Requests are decoded from the body of any API and encoded to any API.
//
// # Terminology
//
//   - body: the bytes of a request as received from a client. A decoded [Request] owns its body and never writes to it.
//   - turn: one step of the conversation, with a role. System text is also a turn.
//   - block: one piece of a turn: text, reasoning, a tool call, a tool result, an image. A tool result contains nested
//     blocks.
//   - view: the turns, tools and parameters that were read from a body. Anything that the view does not model stays in
//     the body.
//   - position ([Ref]): a block's location in the body. Edit methods take it.
//   - loss: something that a conversion to another API could not carry over.
//   - detached: without a body, see [Request.Detach]. A residue per turn, block and tool then holds what the view does
//     not model: unknown fields and alternative spellings.
//
// # Span and splice
//
//	body   {"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{…}}]}],"x":1}
//	                                                                               └──┘
//	edit                                                        SetText(at, "hello"): this span ← "hello"
//	encode {"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hello","cache_control":{…}}]}],"x":1}
//
// Only edited values are encoded again: white space, order of fields, spelling of numbers, unknown fields and unknown
// blocks are preserved. Without edits, encoding is one copy. Set writes only the fields that differ. Insert and Delete
// add and remove commas. Reading after an edit returns the contents of the edited body.
//
// # Guarantees
//
//   - Decoding and then encoding to the same API returns the same bytes, for every body that decodes.
//   - Every byte outside the span of an edit is unchanged. If two fields have the same content, as reasoning_details
//     and reasoning_content of the Chat API, the span includes both.
//   - Decoders never panic or recurse, and take linear time, for any input. [Limits] has the limits and their defaults.
//   - Invalid UTF-8, duplicate names and trailing text are errors, so that all parsers of a body read the same request.
//   - Call arguments are text, preserved byte for byte; they need not be valid.
//   - A detached request encodes to JSON equal to its body. Blocks that are not edited keep their unknown fields.
//   - A conversion to another API and back preserves every block that no loss names. What the other API has no field
//     for (signatures, the position of reasoning, free-text tools, IDs and arguments that it forbids) is encoded in
//     forms that decoding restores; the packages of the APIs document them.
//
// # Cost
//
// Decoding reads each byte once and copies only strings with escapes. Strings and raw JSON of the view are slices of
// the body. An edit costs a lookup. The first edit of a list after a read also copies that list. The first read after
// an insertion, or after a whole block was rewritten, parses the edited body again.
package block
