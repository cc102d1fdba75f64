// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
)

// internLM returns the grammar of InternLM 2.5 and 3, and of Intern-S1:
//
//	<think>reasoning</think>text<|action_start|><|plugin|>
//	{"name": "f", "parameters": {"x": 1}}<|action_end|>
//
// Sources: the chat template of internlm/internlm2_5-7b-chat and its format page (chat/chat_format.md); vLLM's internlm parser,
// SGLang's interns1 parsers, which have the reasoning of Intern-S1.
//
// Replay: not known; the template of Intern-S1 is not at hand.
func internLM() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "internlm",
		Aliases: []string{"internlm2", "intern_s1", "interns1"},
		Tagged: &grammar.Tagged{
			Reasoning: think(),
			Open:      grammar.Lit("<|action_start|><|plugin|>", grammar.Lit("<|action_start|> <|plugin|>")),
			Close:     grammar.Tok("<|action_end|>"),
			Body:      grammar.Body{Call: &grammar.JSONCall{Name: []string{"name"}, Arguments: []string{"parameters", "arguments"}}},
			Ends:      tokenMarkers("<|im_end|>"),
		},
		Special: []grammar.Marker{grammar.Tok("<|action_start|>"), grammar.Tok("<|plugin|>")},
		MaxHold: maxHold,
	}
}
