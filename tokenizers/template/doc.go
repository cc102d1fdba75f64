// SPDX-License-Identifier: Apache-2.0

// Package template renders conversations into the prompt text that a model expects.
//
// # Terms
//
// A [Request] is a conversation in OpenAI's chat form, as ordered JSON. A [Template] renders it to a [Prompt]: the
// text, its segments and its spans. Segments with text of the template are trusted, and segments with text of the
// request are not. A span maps a part of the text to the part of the request that it prints.
//
//	<|im_start|>user\n   Hi <|im_end|>   <|im_end|>\n
//	└── trusted ──────┘└─ untrusted ──┘└─ trusted ─┘
//	                   └─ span messages[0].content, kind user
//
// If a prompt is encoded by its segments (AppendEncodeSegments of package tokenizers), a user's "<|im_end|>" is ten
// characters, not the end of a turn.
//
// # Templates
//
// [Load] and [Parse] take a model's own Jinja template and render it byte for byte as apply_chat_template of
// Hugging Face transformers does under jinja2 3.1.6. If they cannot, they return an error that names what is missing.
// Text remains untrusted through every filter and method, so segments are exact to the byte. The result of a filter
// that could mix both, or whose layout depends on the request, is untrusted. Only the template's own text, the
// variables of [Options] and the names of common roles are trusted; variables of a request are not.
//
// [Lookup] returns the formats that are written in Go: the formats of models published with a script instead of a
// template, and the most common ones, ChatML and harmony.
//
// Templates differ in what they can print. [Probe] renders small conversations and returns the differences as
// [Capabilities]. By default messages are adapted to them, and only if the template is known to fail on the original
// form or to drop it:
//
//	content: [{"type":"text","text":"a"}, …]   joined by line ends, for a template that expects strings
//	content: null                              absent, as in transformers 5; "" for one that fails on that or on null
//	tool_calls: null, or any other field       absent, for all templates, as in transformers 5
//	arguments: "{\"a\":1}"                     {"a":1}, for one that does not print strings unchanged, or prints objects otherwise
//	reasoning_content: "…"                     reasoning or thinking, for one that reads that key
//	tool_calls: [{"function":{…}}]             [{…}], for one that reads only calls without that level
//	{"type":"image_url", …}                    {"type":"image", …}, for one that expects lists; also video and audio
//
// [Fit] changes a conversation to one that a template with given capabilities can print.
//
// # Cost
//
// Rendering a conversation of a few turns with tools takes some tens of microseconds, a quarter of it to read the
// JSON; the time grows with the text. A rendering is limited to 64 MiB of text,
// eight times that for all intermediate values, twenty million steps and a depth of 200.
package template
