// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
)

// ernie45 returns the grammar of ERNIE 4.5 and its thinking models: the calls of hermes, and tags around the response:
//
//	reasoning
//	</think>
//
//	<response>
//	text
//	</response>
//
//	<tool_call>
//	{"name": "f", "arguments": {"x": 1}}
//	</tool_call>
//
// Generation starts inside reasoning.
//
// Sources: the chat template of baidu/ERNIE-4.5-21B-A3B-Thinking; vLLM's ernie45 parsers.
//
// Replay: not known; the template is not at hand.
func ernie45() *grammar.Grammar {
	g := named(hermes(), "ernie45", "ernie4_5")
	g.Tagged.Reasoning = prompted(think())
	g.Tagged.Ends = tokenMarkers("<|im_end|>", "<|endoftext|>", "</s>")
	g.Tagged.Skip = []grammar.Marker{
		grammar.Lit("<response>\n"), grammar.Lit("<response>"), grammar.Lit("</response>"), grammar.Lit("</response>\n"),
	}
	return g
}
