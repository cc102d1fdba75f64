// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
)

// dots returns the grammar of rednote's dots models: the tags of minimax_m2 in a block of their own, or one call object:
//
//	<dots_function_call><invoke name="f"><parameter name="x">1</parameter></invoke></dots_function_call>
//	<dots_function_call>{"name": "f", "arguments": {"x": 1}}</dots_function_call>
//
// Sources: the dots parsers of vLLM and SGLang.
//
// Replay: not known; no template is at hand.
func dots() *grammar.Grammar {
	return &grammar.Grammar{
		Name: "dots",
		Tagged: &grammar.Tagged{
			Reasoning: think(),
			Wrapper: &grammar.Wrapper{
				Open: grammar.Tok("<dots_function_call>"), Close: grammar.Tok("</dots_function_call>"),
			},
			Open:  grammar.Lit("<invoke name="),
			Name:  &grammar.Name{Ends: []string{">", "/>"}},
			Close: grammar.Lit("</invoke>"),
			Body: grammar.Body{
				Params: &grammar.Params{Open: "<parameter name=", KeyEnd: ">", Close: "</parameter>"},
				Call:   callObject(),
			},
		},
		MaxHold: maxHold,
	}
}
