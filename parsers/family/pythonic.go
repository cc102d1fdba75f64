// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/codec"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// pythonic returns the grammar of Llama 4, Llama 3.2 and ToolACE, which write calls as a Python list:
//
//	[f(x=1, s="a"), g()]
//
// Nothing marks the list, so it is held until it is whole, under Limits.HeldBytes: all of it is calls, or it is text.
// Between <|python_start|> and <|python_end|>, which Llama 4 writes at times, calls stream.
//
// Sources: Meta's prompt format pages for Llama 3.2 and 4; the pythonic parsers of vLLM, SGLang and Dynamo.
func pythonic() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "pythonic",
		Aliases: []string{"llama4", "llama4_pythonic"},
		Tagged: &grammar.Tagged{
			Wrapper: &grammar.Wrapper{
				Open: grammar.Tok("<|python_start|>"), Close: grammar.Tok("<|python_end|>"), Optional: true,
			},
			Name: &grammar.Name{Ends: []string{"("}},
			Body: grammar.Body{Codec: codec.Python{}, List: grammar.Array},
			Bare: true,
			Ends: tokenMarkers("<|eot|>", "<|eom|>"),
		},
		MaxHold: maxHold,
	}
}

// olmo3 returns the grammar of Olmo 3, which writes Python calls line by line:
//
//	<think>reasoning</think>text<function_calls>f(x=1)
//	g(s="a")</function_calls>
//
// Sources: the chat template of allenai/Olmo-3-7B-Instruct; the olmo3 parsers of vLLM and Ollama.
func olmo3() *grammar.Grammar {
	return &grammar.Grammar{
		Name: "olmo3",
		Tagged: &grammar.Tagged{
			Reasoning: think(),
			Before:    "\n",
			Wrapper: &grammar.Wrapper{
				Open: grammar.Lit("<function_calls>"), Close: grammar.Lit("</function_calls>"),
			},
			Name: &grammar.Name{Ends: []string{"("}},
			Body: grammar.Body{Codec: codec.Python{}},
			Ends: tokenMarkers("<|im_end|>", "<|endoftext|>"),
		},
		MaxHold: maxHold,
	}
}

// olmo3Think returns the grammar of Olmo 3 Think: olmo3, starting inside reasoning.
//
// Source: the chat template of allenai/Olmo-3-7B-Think.
//
// Replay: none; Ollama's olmo3_think renderer writes only the text of past messages.
func olmo3Think() *grammar.Grammar {
	g := named(olmo3(), "olmo3_think")
	prompted(g.Tagged.Reasoning)
	g.Replay = replay.MustRule("none")
	return g
}
