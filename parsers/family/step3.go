// SPDX-License-Identifier: Apache-2.0

package family

import "github.com/weft-go/weft/parsers/grammar"

// step3 returns the grammar of Step3:
//
//	<｜tool_calls_begin｜>
//	<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="f">
//	<steptml:parameter name="x">1</steptml:parameter>
//	</steptml:invoke><｜tool_call_end｜>
//	<｜tool_calls_end｜>
//
// The word function and the token after it may be missing. Generation starts inside reasoning. Values are raw text; the tool's schema types them.
//
// Sources: the step3 parsers of SGLang and smg.
func step3() *grammar.Grammar {
	return &grammar.Grammar{
		Name: "step3",
		Tagged: &grammar.Tagged{
			Reasoning: prompted(think()),
			Before:    "\n",
			Wrapper: &grammar.Wrapper{
				Open: grammar.Tok("<｜tool_calls_begin｜>"), Close: grammar.Tok("<｜tool_calls_end｜>"), Optional: true,
			},
			Open:  grammar.Tok("<｜tool_call_begin｜>"),
			Name:  &grammar.Name{Prefix: `function<｜tool_sep｜><steptml:invoke name="`, Ends: []string{`">`}},
			Close: grammar.Lit("</steptml:invoke>", grammar.Tok("<｜tool_call_end｜>")),
			Body: grammar.Body{Params: &grammar.Params{
				Open: `<steptml:parameter name="`, KeyEnd: `">`, Close: "</steptml:parameter>",
			}},
		},
		Special: []grammar.Marker{grammar.Tok("<｜tool_sep｜>")},
		MaxHold: maxHold,
	}
}
