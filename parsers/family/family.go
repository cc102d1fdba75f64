// SPDX-License-Identifier: Apache-2.0

// Package family holds the grammar of each family of models, one file per format with its sources.
//
// Every call returns fresh values, which the caller may change before use to make a variant.
package family

import "github.com/weft-go/weft/parsers/grammar"

// New returns the grammar of the family called name, which is a canonical one such as "qwen3_coder", or nil if there is
// none.
func New(name string) *grammar.Grammar {
	for _, g := range All() {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// All returns the grammars of all families, in alphabetical order.
func All() []*grammar.Grammar {
	return []*grammar.Grammar{
		apertus(), apriel(), cohere(), deepSeekR1(), deepSeekV3(), deepSeekV31(), deepSeekV32(), deepSeekV4(), deepSeekV41(), dots(), ernie45(),
		functionGemma(), functionaryV31(), gemma4(), gigaChat3(), gigaChat35(), glm45(), glm47(), granite(), granite20B(), harmony(), hermes(),
		hunyuanA13B(), hy3(), hyV3(), hyV4(), inkling(), iQuestQ1(), internLM(), jsonObject(), jamba(),
		kimi(), kimiK2(), kimiK25(), kimiK3(), lfm2(), laguna(), ling3(), llama3JSON(), longCat(),
		mimo(), miniMaxAppendThink(), miniCPM5(), miniMaxM1(), miniMaxM2(), miniMaxM3(), ministral(), mistral(), mistralV11(), museGlimmer(),
		nemotronDeci(), nemotronNano(), olmo3(), olmo3Think(), passthrough(), phi4(), pythonic(),
		qwen25(), qwen3(), qwen35(), qwen3Coder(), qwen3Thinking(), sarashina(), seedOSS(), solarOpen2(), spark25(), step3(), step35(), teleChat4(), xlam(),
	}
}

// maxHold is the MaxHold of all families: the longest closing tag, the next opening tag and white space fit well.
const maxHold = 256

// think is the <think> tag pair as the Qwen3 templates print it: a newline inside each tag, a blank line after.
func think() *grammar.Reasoning {
	return &grammar.Reasoning{
		Open: grammar.Tok("<think>"), Close: grammar.Tok("</think>"),
		Lead: "\n", Tail: "\n", After: "\n\n",
	}
}

// flush is think for templates that print no newline before the closing tag: one that is there is the model's.
func flush() *grammar.Reasoning {
	r := think()
	r.Tail = ""
	return r
}

// tokenMarkers returns markers that are tokens, such as those at the end of a turn, which engines pass on at times.
func tokenMarkers(texts ...string) []grammar.Marker {
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
