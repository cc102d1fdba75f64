// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// solarOpen2 returns the grammar of Upstage's Solar Open 2:
//
//	<|think:start|>reasoning<|think:end|>text<|tool_call:start|>f
//	<|tool_arg:start|>x<|tool_arg:value|>1<|tool_arg:end|>
//	<|tool_call:end|>
//
// The template writes the opening tag of reasoning into the prompt. A call ends reasoning that was left open.
//
// Source: the solar_open2 parsers of vLLM.
//
// Replay: all of it; the comment of vLLM's reasoning parser on the template.
func solarOpen2() *grammar.Grammar {
	return &grammar.Grammar{
		Name: "solar_open2",
		Tagged: &grammar.Tagged{
			Reasoning: &grammar.Reasoning{
				Open: grammar.Tok("<|think:start|>"), Close: grammar.Tok("<|think:end|>"), Prompted: true, CallEnds: true,
			},
			Open:  grammar.Tok("<|tool_call:start|>"),
			Close: grammar.Tok("<|tool_call:end|>"),
			Name:  &grammar.Name{Ends: []string{"\n"}, Stops: "<"},
			Body: grammar.Body{Params: &grammar.Params{
				Open: "<|tool_arg:start|>", KeyEnd: "<|tool_arg:value|>", Close: "<|tool_arg:end|>",
			}},
		},
		Replay:  replay.MustRule("all"),
		MaxHold: maxHold,
	}
}
