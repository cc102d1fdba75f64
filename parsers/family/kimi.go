// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// kimiK2 returns the grammar of Kimi K2 and K2-Thinking:
//
//	<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"x": 1}<|tool_call_end|>
//	<|tool_calls_section_end|>
//
// (one line in reality). The text before the arguments is the call's id, whose number counts the calls of the
// conversation; models leave out "functions." at times. Sections in the singular spelling are seen too.
//
// Sources: docs/tool_call_guidance.md of moonshotai/Kimi-K2-Instruct; the kimi_k2 parsers of vLLM, SGLang and Dynamo.
//
// Replay: not known of the family. The template of Kimi-K2-Thinking keeps reasoning since the last message without
// calls (models/templates/moonshotai-Kimi-K2-Thinking.jinja of llama.cpp); the template of Kimi-K2-Instruct, which does
// not reason, would print it as part of the text.
func kimiK2() *grammar.Grammar {
	return &grammar.Grammar{
		Name: "kimi_k2",
		Tagged: &grammar.Tagged{
			Reasoning: think(),
			Wrapper: &grammar.Wrapper{
				Open:     grammar.Tok("<|tool_calls_section_begin|>", grammar.Tok("<|tool_call_section_begin|>")),
				Close:    grammar.Tok("<|tool_calls_section_end|>", grammar.Tok("<|tool_call_section_end|>")),
				Optional: true,
			},
			Open:      grammar.Tok("<|tool_call_begin|>"),
			Name:      &grammar.Name{Prefix: "functions.", Ends: []string{"<|tool_call_argument_begin|>"}, Number: ":"},
			Close:     grammar.Tok("<|tool_call_end|>"),
			NeedClose: true,
			Ends:      tokenMarkers("<|im_end|>"),
		},
		MaxHold: maxHold,
	}
}

// kimiK25 returns the grammar of Kimi K2.5 to K2.7: the calls of kimi_k2; generation starts inside reasoning, which a
// section of calls ends too.
//
// Sources: the chat template of moonshotai/Kimi-K2.5; the kimi_k25 reasoning parser of Dynamo.
//
// Replay: since the last message without calls; nothing with thinking=false; all with preserve_thinking, which K2.6 added. The template is
// crates/tokenizer/tests/fixtures/kimi_k25/chat_template.jinja of smg.
func kimiK25() *grammar.Grammar {
	g := named(kimiK2(), "kimi_k25", "kimi_thinking")
	g.Tagged.Reasoning = prompted(think())
	g.Tagged.Reasoning.CallEnds = true
	g.Replay = replay.MustRule("since_final; off: none; preserve_thinking=true: all; left: empty_tags")
	return g
}

// kimi returns the grammar of the first thinking Kimi models: reasoning between ◁think▷ and ◁/think▷, the calls of
// kimi_k2. A closing tag alone is text.
//
// Source: the kimi reasoning parsers of SGLang and Dynamo.
//
// Replay: not known; no template is at hand.
func kimi() *grammar.Grammar {
	g := named(kimiK2(), "kimi")
	g.Tagged.Reasoning = &grammar.Reasoning{
		Open: grammar.Lit("◁think▷"), Close: grammar.Lit("◁/think▷"),
	}
	return g
}
