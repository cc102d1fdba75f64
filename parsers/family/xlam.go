// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
)

// xlam returns the grammar of Salesforce's xLAM models, which write a list of call objects, alone or after a tag:
//
//	[{"name": "f", "arguments": {"x": 1}}]
//	text[TOOL_CALLS][{"name": "f", "arguments": {"x": 1}}]
//	text<tool_call>[{"name": "f", "arguments": {"x": 1}}]</tool_call>
//
// Sources: the model card of Salesforce/Llama-xLAM-2-8b-fc-r; vLLM's xlam parser.
func xlam() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "xlam",
		Aliases: []string{"xlam2"},
		Tagged: &grammar.Tagged{
			Reasoning: think(),
			Open:      grammar.Lit("<tool_call>", grammar.Lit("[TOOL_CALLS]")),
			Close:     grammar.Lit("</tool_call>"),
			Body:      grammar.Body{Call: callObject(), List: grammar.Array},
			Quoted:    true,
			Bare:      true,
			Ends:      tokenMarkers("<|eot_id|>", "<|im_end|>"),
		},
		MaxHold: maxHold,
	}
}
