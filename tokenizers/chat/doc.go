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
// [ChatML] is the format of the Qwen family, written in Go and equal to the templates published with
// Qwen3, byte for byte, for the conversations those accept. [Harmony] is the format of gpt-oss;
// [DeepSeekV32], [DeepSeekV4], [DeepSeekV41] and [KimiK3] are those of models that come with a script in place
// of a template. The Jinja templates of other models will be one more Template.
package chat
