// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
)

// apertus returns the grammar of Apertus, of the Swiss AI initiative, whose calls are objects with the tool as the key:
//
//	<|inner_prefix|>reasoning<|inner_suffix|>text<|tools_prefix|>[{"f": {"x": 1}}, {"g": {}}]<|tools_suffix|>
//
// Sources: the chat template of swiss-ai/Apertus-8B-Instruct-2509 (models/templates/Apertus-8B-Instruct.jinja of
// llama.cpp); vLLM's apertus parser, SGLang's apertus2509 parsers.
func apertus() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "apertus",
		Aliases: []string{"apertus2509"},
		Tagged: &grammar.Tagged{
			Reasoning: &grammar.Reasoning{Open: grammar.Tok("<|inner_prefix|>"), Close: grammar.Tok("<|inner_suffix|>")},
			Open:      grammar.Tok("<|tools_prefix|>"),
			Close:     grammar.Tok("<|tools_suffix|>"),
			Body:      grammar.Body{Call: &grammar.JSONCall{}, List: grammar.Array},
			Ends:      tokenMarkers("<|assistant_end|>"),
		},
		MaxHold: maxHold,
	}
}
