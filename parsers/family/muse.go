// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// museGlimmer returns the grammar of Muse Glimmer, which routes messages by recipient:
//
//	 to=self<|message|>reasoning<|eom|><|start|>assistant to=f<|message|><atem:function_calls>
//	<atem:invoke name="f">
//	<atem:parameter name="x">1</atem:parameter>
//	</atem:invoke>
//	</atem:function_calls><|eom|><|start|>assistant to=user<|message|>text<|eot|>
//
// The prompt ends with <|start|>assistant. Inside a message that is not to a tool the atem tags are text.
//
// Sources: the response template of the Muse Glimmer checkpoints; the muse_glimmer parsers of vLLM, SGLang and Dynamo,
// Ollama's glimmer parser.
//
// Replay: all of it, as Ollama's glimmer renderer writes past messages.
func museGlimmer() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "muse_glimmer",
		Aliases: []string{"glimmer", "muse"},
		Channels: &grammar.Channels{
			Sections:  []grammar.Section{{Marker: grammar.Tok("<|start|>"), Field: grammar.Role}},
			Body:      grammar.Tok("<|message|>"),
			Ends:      []grammar.Marker{grammar.Tok("<|eom|>"), grammar.Tok("<|eot|>")},
			Recipient: "to=",
			Reasoning: []string{"to=self"},
			Text:      []string{"to=user", "to=commentary", "to=assistant", "to=all"},

			Calls: &grammar.Tagged{
				Wrapper: &grammar.Wrapper{
					Open: grammar.Lit("<atem:function_calls>"), Close: grammar.Lit("</atem:function_calls>"), Optional: true,
				},
				Open:  grammar.Lit("<atem:invoke name="),
				Name:  &grammar.Name{Ends: []string{">", "/>"}},
				Close: grammar.Lit("</atem:invoke>"),
				Body: grammar.Body{Params: &grammar.Params{
					Open: "<atem:parameter name=", KeyEnd: ">", Close: "</atem:parameter>",
				}},
			},
		},
		Replay:  replay.MustRule("all"),
		MaxHold: maxHold,
	}
}
