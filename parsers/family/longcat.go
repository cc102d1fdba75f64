// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
)

// longCat returns the grammar of Meituan's LongCat-Flash: hermes in tags of its own:
//
//	<longcat_think>reasoning</longcat_think>text<longcat_tool_call>{"name": "f", "arguments": {"x": 1}}</longcat_tool_call>
//
// Sources: the chat template of meituan-longcat/LongCat-Flash-Chat; vLLM's longcat parser, which is its hermes parser.
//
// Replay: not known; the template is not at hand.
func longCat() *grammar.Grammar {
	g := named(hermes(), "longcat", "longcat_flash")
	t := g.Tagged
	t.Reasoning.Open = grammar.Tok("<longcat_think>", grammar.Tok("<think>"))
	t.Reasoning.Close = grammar.Tok("</longcat_think>", grammar.Tok("</think>"))
	t.Open, t.Close = grammar.Tok("<longcat_tool_call>"), grammar.Tok("</longcat_tool_call>")
	t.Before, t.Ends = "", tokenMarkers("</longcat_s>")
	return g
}
