// SPDX-License-Identifier: Apache-2.0

// Package block is the shared form of a request: a conversation of turns, each an ordered list of typed blocks, read from
// the body of any API and written back to any API.
//
// # Terminology
//
//   - body: the bytes of a request as a client sent them. A decoded [Request] owns its body and never writes to it.
//   - turn: one step of the conversation, with a role. System text is a turn, too.
//   - block: one piece of a turn: text, reasoning, a tool call, a tool result, a picture. A result holds blocks of its own.
//   - view: the turns, tools and parameters that were read from a body. What the view does not model stays in the body.
//   - place ([Ref]): where a block stands in the body. Edits take places.
//   - loss: something a conversion to another API could not carry.
//   - detached: without its body, see [Request.Detach]. What the view does not say is then kept as a residue per turn, block
//     and tool: members that are not modelled, and other spellings.
//
// # Span and splice
//
//	body   {"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{…}}]}],"x":1}
//	                                                                               └──┘
//	edit                                                        SetText(at, "hello"): this span ← "hello"
//	encode {"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hello","cache_control":{…}}]}],"x":1}
//
// Nothing is ever re-encoded that was not edited: spacing, order of members, spelling of numbers, unknown fields and
// unknown blocks come out as they went in. Without edits, encoding is one copy. Set writes only the members that differ,
// Insert and Delete care for the commas, and reading after an edit shows what the edited body says.
//
// # Guarantees
//
//   - Decode then encode to the same API gives the same bytes, for every body that decodes.
//   - Every byte outside the span of an edit is unchanged. Two members that say the same are both its span: the
//     reasoning_details of the Chat API and the reasoning_content beside them.
//   - No input makes a decoder panic, recurse or take more than linear time; limits and their defaults are in [Limits].
//   - Invalid UTF-8, duplicate member names and trailing text are errors, so that no two readers of one body can see
//     different requests.
//   - Arguments of calls are text, byte for byte as they came; they need not be valid.
//   - A detached request encodes to JSON equal to its body; what is not edited keeps its unknown members.
//   - A conversion there and back keeps every block that no loss names. What the other API has no field for (signatures,
//     the place of reasoning, free-text tools, ids and arguments that it forbids) travels in forms that decoding gives back;
//     the packages of the APIs name them.
//
// # Cost
//
// Decoding looks at each byte once and copies only strings with escapes; strings and raw JSON of the view are slices of
// the body. An edit costs a lookup, and the first one behind a read a copy of the list it is in. The first read after an insertion, and after a rewrite of a whole block, reads the
// edited body again.
package block
