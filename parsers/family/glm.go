// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// glm47 returns the grammar of GLM-4.7 and GLM-5:
//
//	<think>reasoning</think>text<tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value></tool_call>
//
// The block is the call. GLM-4.5 and 4.6 print a newline after the name and between the tags. Values are raw text,
// entities included; the tool's schema types them.
//
// Sources: the chat templates of zai-org/GLM-4.5, GLM-4.7; the glm45 and glm47 parsers of vLLM and SGLang; for GLM-5.3 the
// renderer glm53_chat_template.py of SGLang.
//
// Replay: since the last user message, all with clear_thinking=false; the chat templates of zai-org/GLM-4.7 and GLM-5. A later
// revision keeps all unless clear_thinking is true.
func glm47() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "glm47",
		Aliases: []string{"glm47_moe", "glm53_flash"},
		Tagged: &grammar.Tagged{
			Reasoning: think(),
			Before:    "\n",
			Open:      grammar.Tok("<tool_call>"),
			Close:     grammar.Tok("</tool_call>"),
			Name:      &grammar.Name{Ends: []string{"\n"}, Stops: "<"},
			Body: grammar.Body{Params: &grammar.Params{
				Open: "<arg_key>", KeyEnd: "</arg_key>", Value: "<arg_value>", Close: "</arg_value>",
			}},
			Ends: tokenMarkers("<|observation|>", "<|user|>", "<|endoftext|>"),
		},
		Replay:  replay.MustRule("since_user; clear_thinking=false: all; left: close_tag"),
		MaxHold: maxHold,
	}
}

// glm45 returns the grammar of GLM-4.5 and GLM-4.6: glm47, which reads both layouts.
//
// Replay: since the last user message; the chat template of zai-org/GLM-4.5 has no variable for it.
func glm45() *grammar.Grammar {
	g := named(glm47(), "glm45", "glm", "glm45_moe", "glm_ocr")
	g.Replay = replay.MustRule("since_user; left: empty_tags")
	return g
}

// ling3 returns the grammar of inclusionAI's Ling 3: glm47, whose template leaves the opening tag of reasoning to the model.
//
// Sources: the ling3 parsers of vLLM and SGLang.
//
// Replay: not known; no template is at hand.
func ling3() *grammar.Grammar {
	g := named(glm47(), "ling3")
	g.Tagged.Ends = tokenMarkers("<|role_end|>")
	g.Replay = replay.Rule{}
	return g
}

// spark25 returns the grammar of iFlytek's Spark 2.5: glm47, with nothing between the tags of reasoning and the text.
//
// Sources: the chat template of Spark2.5 (models/templates of llama.cpp); SGLang's spark25 parser, which reads a newline after
// the name.
//
// Replay: all of it; the template.
func spark25() *grammar.Grammar {
	g := named(glm47(), "spark25")
	g.Tagged.Reasoning = flush()
	g.Tagged.Reasoning.Lead, g.Tagged.Reasoning.After = "", ""
	g.Tagged.Before = ""
	g.Tagged.Ends = tokenMarkers("<｜end▁of▁sentence｜>")
	g.Replay = replay.MustRule("all; left: close_tag")
	return g
}

// iQuestQ1 returns the grammar of IQuest Q1: glm47 in another tag.
//
// Source: SGLang's iquest_q1 parsers.
//
// Replay: not known; the template is not at hand.
func iQuestQ1() *grammar.Grammar {
	g := named(glm47(), "iquest_q1")
	g.Tagged.Open, g.Tagged.Close = grammar.Lit("<iquest_tool_call>"), grammar.Lit("</iquest_tool_call>")
	prompted(g.Tagged.Reasoning)
	g.Tagged.Ends, g.Replay = nil, replay.Rule{}
	return g
}

// teleChat4 returns the grammar of TeleChat 4: the layout of glm47 with other tags, or an object:
//
//	<tool_call>f<param_key>x</param_key><param_value>1</param_value></tool_call>
//	<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>
//
// Source: vLLM's telechat4 parser.
//
// Replay: not known; the template is not at hand.
func teleChat4() *grammar.Grammar {
	g := named(glm47(), "telechat4")
	t := g.Tagged
	t.Name.Stops = "<{"
	t.Body.Params = &grammar.Params{Open: "<param_key>", KeyEnd: "</param_key>", Value: "<param_value>", Close: "</param_value>", Object: true}
	t.Body.Call = callObject()
	t.Ends, g.Replay = nil, replay.Rule{}
	return g
}
