// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// mistral returns the grammar of Mistral models with a tokenizer before v11:
//
//	text[TOOL_CALLS][{"name": "f", "arguments": {"x": 1}}][/TOOL_CALLS]
//
// The closing tag is rare. The forms of mistral_v11 and ministral are read too, including reasoning.
//
// Sources: mistral-common (tokens/tokenizers/instruct.py); the mistral parsers of vLLM and Dynamo.
//
// Replay: none; mistral-common encodes reasoning from tokenizer v13 on, and refuses it before.
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
		Replay:  replay.MustRule("none"),
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
//
// Replay: all of it: mistral-common encodes the think chunks of every message.
func ministral() *grammar.Grammar {
	g := named(mistralV11(), "ministral")
	g.Replay = replay.MustRule("all")
	return g
}
