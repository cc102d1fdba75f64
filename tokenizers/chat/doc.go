// SPDX-License-Identifier: Apache-2.0

// Package chat turns a conversation into the prompt text a model expects.
//
// # Terms
//
// A [Request] holds the conversation in OpenAI's chat form, as ordered JSON. A [Template] renders it to a
// [Prompt]: the text, its segments and its spans. A segment says where text comes from: the template
// itself is trusted, everything out of the request is not, whoever wrote it. A span says which part of the
// request a stretch of text prints, by path.
//
//	<|im_start|>user\n   Hi <|im_end|>   <|im_end|>\n
//	└── trusted ──────┘└─ not trusted ─┘└─ trusted ─┘
//	                   └─ span messages[0].content, kind user
//
// Encode a prompt by its segments ([Prompt.AppendSegments] and AppendEncodeSegments of package tokenizers)
// and a user who writes "<|im_end|>" sends ten characters, not the end of a turn.
//
// # Templates
//
// [Load] and [Compile] take a model's own Jinja template and render it byte for byte as apply_chat_template of
// Hugging Face transformers does under jinja2 3.1.6; where they cannot, they return an error that names what is
// missing. Text keeps its provenance through every filter and method, so segments are exact to the byte. A
// filter that could mix both, or a text whose layout the request decides, counts as the request's. Trusted
// are only the template's own text, the special tokens of the model's files, and the names of the usual
// roles. Template variables out of a request (Kwargs) are not.
//
// Templates differ in what they can print. [Probe] renders small conversations and records the differences as
// [Capabilities]; by default messages are adapted to them ([Options.Messages], [Options.Arguments]), and
// only where the template is known to fail or to drop what it is given:
//
//	content: [{"type":"text","text":"a"}, …]   joined by line ends, for a template that wants strings
//	content: null                              "", for one that fails on it or prints None
//	arguments: "{\"a\":1}"                     {"a":1}, for one that does not print strings as they are
//	reasoning_content: "…"                     reasoning or thinking, for one that reads that
//
// [ChatML] is the format of the Qwen family, written in Go and equal to the templates published with
// Qwen3, byte for byte, for the conversations those accept. [Harmony] is the format of gpt-oss;
// [DeepSeekV32], [DeepSeekV4], [DeepSeekV41] and [KimiK3] are those of models that come with a script in place
// of a template. [Fit] makes a conversation of what any of them can print.
//
// # Cost
//
// Rendering a conversation of a few turns with tools takes some tens of microseconds, a quarter of it to read
// the JSON; it grows with the text. A rendering is bounded: 64 MiB of text unless [Options.MaxBytes] says
// otherwise, eight times that for all values on the way, twenty million steps, depth 200.
package chat
