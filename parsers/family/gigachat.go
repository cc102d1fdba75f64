// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// gigaChat3 returns the grammar of GigaChat 3 and 3.1, which write one call object after a marker or in a message:
//
//	text<|function_call|>{"name": "f", "arguments": {"x": 1}}
//	text<|message_sep|>
//
//	function call<|role_sep|>
//	{"name": "f", "arguments": {"x": 1}}</s>
//
// Sources: the chat templates of ai-sage/GigaChat3-10B-A1.8B and GigaChat3.1 (models/templates of llama.cpp); the gigachat3
// parsers of vLLM and SGLang.
func gigaChat3() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "gigachat3",
		Aliases: []string{"gigachat"},
		Tagged: &grammar.Tagged{
			Open: grammar.Tok("<|function_call|>", grammar.Lit("<|message_sep|>\n\nfunction call<|role_sep|>")),
			Body: grammar.Body{Call: callObject()},
			Ends: tokenMarkers("</s>"),
		},
		Special: []grammar.Marker{grammar.Tok("<|message_sep|>"), grammar.Tok("<|role_sep|>")},
		MaxHold: maxHold,
	}
}

// gigaChat35 returns the grammar of GigaChat 3.5: the layout of deepseek_v4 with the word ｜GCML｜ in its tags.
//
// Sources: the chat template GigaChat3.5.jinja of llama.cpp; SGLang's gigachat35 parser.
//
// Replay: all of it, since the last user message with drop_history_thinking; the template.
func gigaChat35() *grammar.Grammar {
	g := markup("gigachat35", "｜GCML｜", "", "tool_calls")
	g.Tagged.Ends = tokenMarkers("<|message_sep|>", "</s>")
	g.Replay = replay.MustRule("all; drop_history_thinking=true: since_user")
	return g
}
