// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
)

// miniCPM5 returns the grammar of MiniCPM 5:
//
//	<think>reasoning</think>text<function name="f"><param name="x">1</param><param name="s"><![CDATA[a < b]]></param></function>
//
// The template asks for CDATA sections around strings with <, & or line ends, and prints them.
//
// Sources: the chat template of openbmb/MiniCPM5 (models/templates of llama.cpp); the minicpm5 parsers of vLLM and SGLang.
//
// Replay: not known; the template is not at hand.
func miniCPM5() *grammar.Grammar {
	return &grammar.Grammar{
		Name: "minicpm5",
		Tagged: &grammar.Tagged{
			Reasoning: think(),
			Open:      grammar.Lit("<function name="),
			Close:     grammar.Lit("</function>"),
			Name:      &grammar.Name{Ends: []string{">"}},
			Body:      grammar.Body{Params: &grammar.Params{Open: "<param name=", KeyEnd: ">", Value: "<![CDATA[", Close: "</param>"}},
			NeedClose: true,
			Before:    "\n",
			Ends:      tokenMarkers("<|im_end|>"),
		},
		MaxHold: maxHold,
	}
}
