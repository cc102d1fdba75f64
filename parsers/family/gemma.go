// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/codec"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// gemma4 returns the grammar of Gemma 4:
//
//	<|channel>thought
//	reasoning<channel|>text<|tool_call>call:f{x:<|"|>a<|"|>,n:1}<tool_call|>
//
// The word thought after the opening tag is optional. Under load the opener drifts to <|tool_call|>
// (jundot/omlx#1886), which is accepted.
//
// Sources: the chat template of google/gemma-4; the gemma4 parsers of vLLM, SGLang, Dynamo and Ollama.
//
// Replay: since the last user message; with preserve_thinking also in messages with calls. The chat template.
func gemma4() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "gemma4",
		Aliases: []string{"gemma4_no_thinking"},
		Tagged: &grammar.Tagged{
			Reasoning: &grammar.Reasoning{
				Open: grammar.Tok("<|channel>"), Close: grammar.Tok("<channel|>"), Label: "thought\n",
				Tail: "\n",
			},
			Open:  grammar.Tok("<|tool_call>", grammar.Lit("<|tool_call|>")),
			Close: grammar.Tok("<tool_call|>"),
			Name:  &grammar.Name{Prefix: "call:", Stops: "{"},
			Body:  grammar.Body{Codec: codec.Gemma{Quote: `<|"|>`}},
			Ends:  tokenMarkers("<turn|>", "<|tool_response>", "<tool_response|>"),
		},
		Replay:  replay.MustRule("since_user; preserve_thinking=true: since_user_calls"),
		MaxHold: maxHold,
	}
}

// functionGemma returns the grammar of FunctionGemma:
//
//	<start_function_call>call:f{x:<escape>a<escape>}<end_function_call>
//
// Sources: the model card of google/functiongemma-270m-it; the functiongemma parsers of vLLM and Ollama.
func functionGemma() *grammar.Grammar {
	return &grammar.Grammar{
		Name: "functiongemma",
		Tagged: &grammar.Tagged{
			Open:  grammar.Tok("<start_function_call>"),
			Close: grammar.Tok("<end_function_call>"),
			Name:  &grammar.Name{Prefix: "call:", Stops: "{"},
			Body:  grammar.Body{Codec: codec.Gemma{Quote: "<escape>"}},
		},
		MaxHold: maxHold,
	}
}
