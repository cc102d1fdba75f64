// SPDX-License-Identifier: Apache-2.0

package family

import "github.com/weft-go/weft/parsers/grammar"

// functionaryV31 returns the grammar of Functionary 3.1, and of the custom tools of Llama 3.1, of which it is a fine-tune:
//
//	text<function=f>{"x": 1}</function><|eom_id|>
//
// Code for the tool python comes after <|python_tag|> instead, which is not read as a call.
//
// Source: the chat template of meetkai/functionary-medium-v3.1 (models/templates of llama.cpp).
func functionaryV31() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "functionary_v3_1",
		Aliases: []string{"functionary_v3_llama_3_1"},
		Tagged: &grammar.Tagged{
			Open:   grammar.Lit("<function="),
			Close:  grammar.Lit("</function>"),
			Name:   &grammar.Name{Ends: []string{">"}},
			Quoted: true,
			Ends:   tokenMarkers("<|eom_id|>", "<|eot_id|>"),
		},
		MaxHold: maxHold,
	}
}
