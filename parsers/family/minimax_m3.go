// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/codec"
	"github.com/weft-go/weft/parsers/grammar"
)

// miniMaxM3 returns the grammar of MiniMax M3, whose tags all begin with a token of their own:
//
//	]<]minimax[>[<tool_call>
//	]<]minimax[>[<invoke name="f">
//	]<]minimax[>[<x>1]<]minimax[>[</x>
//	]<]minimax[>[</invoke>
//	]<]minimax[>[</tool_call>
//
// Parameters are named by their tags, which nest.
//
// Sources: the chat template of MiniMaxAI/MiniMax-M3; the minimax_m3 parsers of vLLM, SGLang and Dynamo.
func miniMaxM3() *grammar.Grammar {
	const ns = "]<]minimax[>["
	return &grammar.Grammar{
		Name:    "minimax_m3",
		Aliases: []string{"minimax_m3_nom"},
		Tagged: &grammar.Tagged{
			Reasoning: &grammar.Reasoning{
				Open: grammar.Tok("<mm:think>"), Close: grammar.Tok("</mm:think>"),
				Lead: "\n", After: "\n\n",
			},
			Wrapper: &grammar.Wrapper{
				Open: grammar.Lit(ns + "<tool_call>"), Close: grammar.Lit(ns + "</tool_call>"), Optional: true,
			},
			Open:      grammar.Lit(ns + `<invoke name="`),
			Name:      &grammar.Name{Ends: []string{`">`}},
			Body:      grammar.Body{Codec: codec.Nested{Prefix: ns, End: "</invoke>"}},
			Close:     grammar.Lit(ns + "</invoke>"),
			NeedClose: true,
		},
		Special: []grammar.Marker{grammar.Tok(ns)},
		MaxHold: maxHold,
	}
}
