// SPDX-License-Identifier: Apache-2.0

package family

import "github.com/weft-go/weft/parsers/grammar"

// Hermes returns the grammar of Hermes 2 and 3, Qwen2.5, QwQ and Qwen3:
//
//	<think>
//	reasoning
//	</think>
//
//	text<tool_call>
//	{"name": "f", "arguments": {"x": 1}}
//	</tool_call>
//
// Sources: the chat templates of NousResearch/Hermes-3 and Qwen/Qwen3; vLLM's hermes parser for the keys. The spelling
// "parameters" for the arguments appears in guided output and in older fine-tunes.
func Hermes() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "hermes",
		Aliases: []string{"qwen", "qwen25", "qwen2_5", "qwen3"},
		Tagged: &grammar.Tagged{
			Reasoning: think(),
			Before:    "\n",
			Open:      grammar.Tok("<tool_call>"),
			Close:     grammar.Tok("</tool_call>"),
			Body: grammar.Body{Call: &grammar.JSONCall{
				Name:      []string{"name"},
				Arguments: []string{"arguments", "parameters"},
			}},
		},
		MaxHold: 256,
	}
}
