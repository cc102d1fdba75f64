// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
)

// seedOSS returns the grammar of ByteDance's Seed-OSS: qwen3_coder in tags of its own:
//
//	<seed:think>reasoning</seed:think>text<seed:tool_call>
//	<function=f>
//	<parameter=x>1</parameter>
//	</function>
//	</seed:tool_call><seed:eos>
//
// Values have no newlines around them. The model writes the opening tag of reasoning itself; with a budget of 0 the
// template writes both.
//
// Sources: the chat template of ByteDance-Seed/Seed-OSS-36B-Instruct (models/templates/ByteDance-Seed-OSS.jinja of llama.cpp);
// vLLM's seed_oss parsers.
func seedOSS() *grammar.Grammar {
	g := named(qwen3Coder(), "seed_oss", "seed", "seedoss")
	t := g.Tagged
	t.Reasoning = flush()
	t.Reasoning.Open, t.Reasoning.Close = grammar.Tok("<seed:think>"), grammar.Tok("</seed:think>")
	t.Before = ""
	t.Wrapper = &grammar.Wrapper{
		Open: grammar.Tok("<seed:tool_call>"), Close: grammar.Tok("</seed:tool_call>"), Optional: true,
	}
	t.Body.Params.Newline = false
	t.Ends = tokenMarkers("<seed:eos>")
	return g
}
