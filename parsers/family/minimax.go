// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// miniMaxM2 returns the grammar of MiniMax M2 to M2.7:
//
//	<minimax:tool_call>
//	<invoke name="f">
//	<parameter name="x">1</parameter>
//	</invoke>
//	</minimax:tool_call>
//
// Values are raw text; the tool's schema types them. The guide's own parser needs </invoke>, and reads names in single
// quotes or without any.
//
// Sources: docs/tool_calling_guide.md of MiniMaxAI/MiniMax-M2; the minimax_m2 parsers of vLLM, SGLang and Dynamo.
//
// Replay: since the last user message; models/templates/unsloth-MiniMax-M2.jinja of llama.cpp, which is the model's own
// except for repairs.
func miniMaxM2() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "minimax_m2",
		Aliases: []string{"minimax"},
		Tagged: &grammar.Tagged{
			Reasoning: think(),
			Before:    "\n",
			Wrapper: &grammar.Wrapper{
				Open: grammar.Tok("<minimax:tool_call>"), Close: grammar.Tok("</minimax:tool_call>"), Optional: true,
			},
			Open:  grammar.Lit("<invoke name="),
			Name:  &grammar.Name{Ends: []string{">", "/>"}},
			Close: grammar.Lit("</invoke>"),
			Body: grammar.Body{Params: &grammar.Params{
				Open: "<parameter name=", KeyEnd: ">", Close: "</parameter>",
			}},
			NeedClose: true,
		},
		Replay:  replay.MustRule("since_user"),
		MaxHold: maxHold,
	}
}

// miniMaxAppendThink returns the grammar of minimax_m2 that leaves reasoning in the visible text, tags included. The
// template writes the opening tag into the prompt; the response then begins with it.
//
// Source: the minimax_append_think reasoning parsers of vLLM, SGLang and Dynamo.
func miniMaxAppendThink() *grammar.Grammar {
	g := named(miniMaxM2(), "minimax_append_think", "minimax_m2_append_think")
	g.Tagged.Reasoning = &grammar.Reasoning{
		Open: grammar.Tok("<think>"), Close: grammar.Tok("</think>"), Prompted: true, Inline: true,
	}
	return g
}

// miniMaxM1 returns the grammar of MiniMax M1:
//
//	<think>reasoning</think>text<tool_calls>
//	{"name": "f", "arguments": {"x": 1}}
//	{"name": "g", "arguments": {}}
//	</tool_calls>
//
// Sources: the chat template of MiniMaxAI/MiniMax-M1-40k (models/templates of llama.cpp); vLLM's minimax parser, which was
// removed since. vLLM called this format minimax; other engines mean minimax_m2.
//
// Replay: none; the template prints only text and calls.
func miniMaxM1() *grammar.Grammar {
	return &grammar.Grammar{
		Name: "minimax_m1",
		Tagged: &grammar.Tagged{
			Reasoning: think(),
			Before:    "\n",
			Open:      grammar.Lit("<tool_calls>"),
			Close:     grammar.Lit("</tool_calls>"),
			Body:      grammar.Body{Call: callObject()},
			Quoted:    true,
			Ends:      tokenMarkers("<end_of_sentence>"),
		},
		Replay:  replay.MustRule("none"),
		MaxHold: maxHold,
	}
}
