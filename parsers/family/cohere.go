// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// cohere returns the grammar of Cohere's Command A, Command R7B and North, which frame everything:
//
//	<|START_THINKING|>reasoning<|END_THINKING|><|START_ACTION|>[
//	    {"tool_call_id": "0", "tool_name": "f", "parameters": {"x": 1}}
//	]<|END_ACTION|><|END_OF_TURN_TOKEN|>
//
// or <|START_RESPONSE|>text<|END_RESPONSE|>, in newer templates <|START_TEXT|>text<|END_TEXT|>, instead of the action. The
// frames of text are only dropped: models leave them out. So are the tags of citations, in text and reasoning:
//
//	Oslo is <co>the capital</co: 0:[0]> of Norway.
//
// Templates number the calls of each response again, so the ids that
// the model writes are not unique in a conversation. They open reasoning in the prompt or close it there; the caller specifies which
// (parsers.Options.Prompt).
//
// Sources: Cohere's own parser (cohere-ai/melody); the cohere parsers of Ollama and smg, which also takes the keys name and
// arguments; SGLang's cohere_command4 parser.
//
// Replay: all of it, as Ollama's cohere renderer writes past messages.
func cohere() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "cohere",
		Aliases: []string{"cohere_cmd", "cohere_command3", "cohere_command4"},
		Tagged: &grammar.Tagged{
			Reasoning: &grammar.Reasoning{
				Open: grammar.Tok("<|START_THINKING|>"), Close: grammar.Tok("<|END_THINKING|>"), After: "\n",
			},
			Before: "\n",
			Open:   grammar.Tok("<|START_ACTION|>"),
			Close:  grammar.Tok("<|END_ACTION|>"),
			Body: grammar.Body{Call: &grammar.JSONCall{
				Name: []string{"tool_name", "name"}, Arguments: []string{"parameters", "arguments"},
			}, List: grammar.Array},
			Ends: tokenMarkers("<|END_OF_TURN_TOKEN|>"),
			Skip: tokenMarkers("<|START_TEXT|>", "<|END_TEXT|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"),
			Cite: &grammar.Wrapper{Open: grammar.Lit("<co>"), Close: grammar.Lit("</co: ")},
		},
		Replay:  replay.MustRule("all"),
		MaxHold: maxHold,
	}
}
