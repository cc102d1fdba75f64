// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/codec"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// lfm2 returns the grammar of Liquid's LFM2 and LFM2.5, which write calls as a Python list between two tokens:
//
//	<think>reasoning</think>text<|tool_call_start|>[f(x=1, s="a"), g()]<|tool_call_end|>
//
// The brackets may be missing. A model that is instructed to does write JSON instead: [{"name": "f", "arguments": {"x":
// 1}}]. Small models leave out the tokens, so a bare list of Python calls is read as in pythonic. After a block it is no
// call, since models repeat the list of the block: with the closing token after it, it is dropped. The templates open no
// reasoning; thinking models write the tag themselves.
//
// Sources: Ollama's lfm2 renderer, which is the chat template, and parser, whose fallback for a bare list this is; SGLang's
// lfm2 parser for JSON; vLLM's for repeated lists.
//
// Replay: of the last message of the assistant, all with keep_past_thinking; Ollama's lfm2 renderer. The template of LFM2.5-8B-A1B
// keeps what is since the last user message, all with preserve_thinking (models/templates/LFM2.5-8B-A1B.jinja of llama.cpp).
func lfm2() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "lfm2",
		Aliases: []string{"lfm2_thinking"},
		Tagged: &grammar.Tagged{
			Reasoning: flush(),
			Wrapper: &grammar.Wrapper{
				Open: grammar.Tok("<|tool_call_start|>"), Close: grammar.Tok("<|tool_call_end|>"),
			},
			Name: &grammar.Name{Ends: []string{"("}},
			Body: grammar.Body{Codec: codec.Python{}, Call: callObject(), List: grammar.Array},
			Bare: true,
		},
		Replay:  replay.MustRule("last_turn; keep_past_thinking=true: all"),
		MaxHold: maxHold,
	}
}
