// SPDX-License-Identifier: Apache-2.0

// Package family holds the grammar of each family of models, one file per format with its sources.
//
// Every function returns a fresh value that the caller may change before use: that is how a variant is made.
package family

import "github.com/weft-go/weft/parsers/grammar"

// All returns the grammars of all families, in alphabetical order.
func All() []*grammar.Grammar {
	return []*grammar.Grammar{
		Cohere(), DeepSeekR1(), DeepSeekV3(), DeepSeekV31(), DeepSeekV32(), DeepSeekV4(), DeepSeekV41(),
		FunctionGemma(), Gemma4(), GLM45(), GLM47(), Granite(), Harmony(), Hermes(), Inkling(), JSON(), Jamba(),
		Kimi(), KimiK2(), KimiK25(), KimiK3(), LFM2(), Laguna(), Llama3JSON(),
		MiniMaxAppendThink(), MiniMaxM2(), MiniMaxM3(), Ministral(), Mistral(), MistralV11(), MuseGlimmer(),
		NemotronDeci(), NemotronNano(), Olmo3(), Olmo3Think(), Passthrough(), Phi4(), Pythonic(),
		Qwen25(), Qwen3(), Qwen35(), Qwen3Coder(), Qwen3Thinking(), Sarashina(), Step3(),
	}
}

// maxHold is the MaxHold of all families: the longest closing tag, the next opening tag and white space fit well.
const maxHold = 256

// think is the <think> tag pair as the Qwen3 templates print it: a newline inside each tag, a blank line behind.
func think() *grammar.Reasoning {
	return &grammar.Reasoning{
		Open: grammar.Tok("<think>"), Close: grammar.Tok("</think>"),
		Lead: "\n", Tail: "\n", After: "\n\n", Join: "\n",
	}
}

// turnEnds are tokens that end a turn, which engines pass on at times.
func turnEnds(texts ...string) []grammar.Marker {
	var out []grammar.Marker
	for _, t := range texts {
		out = append(out, grammar.Tok(t))
	}
	return out
}

// prompted is r for models whose chat template writes the opening tag.
func prompted(r *grammar.Reasoning) *grammar.Reasoning {
	r.Prompted = true
	return r
}

// named returns g under another name, for families that share a grammar but not all of their habits.
func named(g *grammar.Grammar, name string, aliases ...string) *grammar.Grammar {
	g.Name, g.Aliases = name, aliases
	return g
}

// callObject is the JSON object of a call with the keys that most families use.
func callObject() *grammar.JSONCall {
	return &grammar.JSONCall{Name: []string{"name"}, Arguments: []string{"arguments", "parameters"}}
}
