// SPDX-License-Identifier: Apache-2.0

// Package family holds the grammar of each family of models, one file per family with its sources.
//
// Every function returns a fresh value that the caller may change before use: that is how a variant is made.
package family

import "github.com/weft-go/weft/parsers/grammar"

// All returns the grammars of all families, in alphabetical order.
func All() []*grammar.Grammar {
	return []*grammar.Grammar{Harmony(), Hermes(), KimiK3(), Qwen3Coder()}
}

// think is the <think> tag pair as the Qwen3 templates print it: a newline inside each tag, a blank line behind.
func think() *grammar.Reasoning {
	return &grammar.Reasoning{
		Open: grammar.Tok("<think>"), Close: grammar.Tok("</think>"),
		Lead: "\n", Tail: "\n", After: "\n\n", Join: "\n",
	}
}
