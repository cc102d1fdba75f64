// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// mistral returns the grammar of Mistral models with a tokenizer before v11:
//
//	[THINK]reasoning[/THINK]text[TOOL_CALLS][{"name": "f", "arguments": {"x": 1}}][/TOOL_CALLS]
//
// The closing tag is rare. The forms of mistral_v11 are read too.
//
// Sources: mistral-common (tokens/tokenizers/instruct.py); the mistral parsers of vLLM and Dynamo.
//
// Replay: all of it: mistral-common encodes the think chunks of every message.
func mistral() *grammar.Grammar {
	return &grammar.Grammar{
		Name: "mistral",
		Tagged: &grammar.Tagged{
			Reasoning: &grammar.Reasoning{
				Open: grammar.Tok("[THINK]"), Close: grammar.Tok("[/THINK]"),
				Lead: "\n", Tail: "\n", After: "\n\n",
			},
			Open:  grammar.Tok("[TOOL_CALLS]"),
			Close: grammar.Tok("[/TOOL_CALLS]"),
			Name:  &grammar.Name{Ends: []string{"[ARGS]"}, Stops: "{", ID: "[CALL_ID]"},
			Body:  grammar.Body{Call: callObject(), List: grammar.Array},
		},
		Replay:  replay.MustRule("all"),
		MaxHold: maxHold,
	}
}

// mistralV11 returns the grammar of Mistral models with tokenizer v11 and later:
//
//	[TOOL_CALLS]f{"x": 1}[TOOL_CALLS]g[CALL_ID]abc123def[ARGS]{}
//
// Source: mistral-common (tokens/tokenizers/instruct.py, from InstructTokenizerV11 on).
func mistralV11() *grammar.Grammar {
	g := named(mistral(), "mistral_v11")
	g.Tagged.Body.List = grammar.Separate
	return g
}

// ministral returns the grammar of Ministral 3 and Magistral: mistral_v11 with [ARGS], reasoning in [THINK].
//
// Source: the chat template of mistralai/Ministral-3-8B-Reasoning-2512; Ollama's ministral parser.
func ministral() *grammar.Grammar { return named(mistralV11(), "ministral") }
