// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// hunyuanA13B returns the grammar of Hunyuan-A13B-Instruct: the calls of jamba, and tags around the response:
//
//	<think>
//	reasoning
//	</think>
//	<answer>
//	text
//	</answer><tool_calls>[{"name": "f", "arguments": {"x": 1}}]</tool_calls>
//
// Sources: the chat template of tencent/Hunyuan-A13B-Instruct; vLLM's hunyuan_a13b parsers.
//
// Replay: none; the template cuts past content after </think>.
func hunyuanA13B() *grammar.Grammar {
	g := named(jamba(), "hunyuan_a13b")
	g.Tagged.Reasoning = &grammar.Reasoning{
		Open: grammar.Lit("<think>"), Close: grammar.Lit("</think>"), Lead: "\n", Tail: "\n", After: "\n",
	}
	g.Tagged.Skip = []grammar.Marker{grammar.Lit("<answer>\n"), grammar.Lit("<answer>"), grammar.Lit("</answer>")}
	g.Replay = replay.MustRule("none")
	return g
}

// hyV3 returns the grammar of Hunyuan 3 (Hy3): the parameters of glm45 in a frame, after a separator:
//
//	<think>reasoning</think>text<tool_calls>
//	<tool_call>f<tool_sep>
//	<arg_key>x</arg_key>
//	<arg_value>1</arg_value>
//	</tool_call>
//	</tool_calls>
//
// Sources: the chat template of tencent/Hy3-preview (models/templates of llama.cpp); vLLM's hy_v3 parsers, SGLang's hunyuan
// parser.
//
// Replay: not known; the template is not at hand.
func hyV3() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "hy_v3",
		Aliases: []string{"hunyuan", "hy3"},
		Tagged: &grammar.Tagged{
			Reasoning: flush(),
			Wrapper: &grammar.Wrapper{
				Open: grammar.Tok("<tool_calls>"), Close: grammar.Tok("</tool_calls>"), Optional: true,
			},
			Open:  grammar.Tok("<tool_call>"),
			Close: grammar.Tok("</tool_call>"),
			Name:  &grammar.Name{Ends: []string{"<tool_sep>"}},
			Body: grammar.Body{Params: &grammar.Params{
				Open: "<arg_key>", KeyEnd: "</arg_key>", Value: "<arg_value>", Close: "</arg_value>",
			}},
		},
		Special: []grammar.Marker{grammar.Tok("<tool_sep>")},
		MaxHold: maxHold,
	}
}
