// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// harmony returns the grammar of gpt-oss:
//
//	<|channel|>analysis<|message|>reasoning<|end|>
//	<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"x":1}<|call|>
//	<|start|>assistant<|channel|>final<|message|>text<|return|>
//
// The prompt ends with <|start|>assistant, so the first header arrives without it. The recipient may follow the role as
// well as the channel, and it alone decides that a message is a call, also on the analysis channel; the content type
// may be a bare word. A commentary message without recipient is a preamble for the user.
//
// Sources: openai/harmony (src/encoding.rs and its test data), vLLM's openai parser.
//
// Replay: once the last message of the assistant is final, what comes before the first final goes; src/encoding.rs. The chat
// template of openai/gpt-oss-20b drops more: all before the last final message.
func harmony() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "harmony",
		Aliases: []string{"gpt_oss", "harmony_text", "openai", "openai_gptoss"},
		Channels: &grammar.Channels{
			Sections: []grammar.Section{
				{Marker: grammar.Tok("<|start|>"), Field: grammar.Role},
				{Marker: grammar.Tok("<|channel|>"), Field: grammar.Channel},
				{Marker: grammar.Tok("<|constrain|>"), Field: grammar.Type},
			},
			Body:       grammar.Tok("<|message|>"),
			Ends:       []grammar.Marker{grammar.Tok("<|end|>"), grammar.Tok("<|call|>"), grammar.Tok("<|return|>")},
			Recipient:  "to=",
			ToolPrefix: "functions.",
			Reasoning:  []string{"analysis"},
			Text:       []string{"final", "to=user", "to=assistant", "to=all"},
		},
		Replay:  replay.MustRule("first_final; auto_drop_analysis=false: all"),
		MaxHold: maxHold,
	}
}
