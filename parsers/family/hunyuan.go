// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// hunyuanA13B returns the grammar of Hunyuan-A13B-Instruct: the calls of jamba, and tags around the response:
//
//	<think>
//	reasoning
//	</think>
//	<answer>
//	text
//	</answer><tool_calls>[{"name": "f", "arguments": {"x": 1}}]</tool_calls>
//
// Sources: the chat template of tencent/Hunyuan-A13B-Instruct; vLLM's hunyuan_a13b parsers.
//
// Replay: none; the template cuts past content after </think>.
func hunyuanA13B() *grammar.Grammar {
	g := named(jamba(), "hunyuan_a13b")
	g.Tagged.Reasoning = &grammar.Reasoning{
		Open: grammar.Lit("<think>"), Close: grammar.Lit("</think>"), Lead: "\n", Tail: "\n", After: "\n",
	}
	g.Tagged.Skip = []grammar.Marker{grammar.Lit("<answer>\n"), grammar.Lit("<answer>"), grammar.Lit("</answer>")}
	g.Replay = replay.MustRule("none")
	return g
}

// hyV3 returns the grammar of Hunyuan 3 (Hy3): the parameters of glm45 in a frame, after a separator:
//
//	<think>reasoning</think>text<tool_calls>
//	<tool_call>f<tool_sep>
//	<arg_key>x</arg_key>
//	<arg_value>1</arg_value>
//	</tool_call>
//	</tool_calls>
//
// Sources: vLLM's hy_v3 parsers, SGLang's hunyuan parser.
//
// Replay: since the last user message, with tools all of it; the chat template of tencent/Hy3 (models/templates of
// llama.cpp), which is also the template of hy3.
func hyV3() *grammar.Grammar {
	g := hyTags("")
	g.Name, g.Aliases = "hy_v3", []string{"hunyuan"}
	return g
}

// hy3 returns the grammar of the published Hunyuan 3, whose vocabulary has another spelling of each tag: hy_v3 with
// <think:opensource>, <tool_calls:opensource> and so on.
//
// Source: the chat template of tencent/Hy3 (models/templates/tencent-Hy3.jinja of llama.cpp). vLLM's hy_v3 parsers take the
// suffix from the tokenizer.
//
// Replay: as in hy_v3.
func hy3() *grammar.Grammar {
	g := hyTags(":opensource")
	g.Name, g.Aliases = "hy3", []string{"hy_v3_opensource"}
	g.Tagged.Ends = tokenMarkers("<｜hy_eos:opensource｜>")
	return g
}

// hyV4 returns the grammar of Hunyuan 4: hy_v3 without the separator after the name.
//
// Source: vLLM's hy_v4 parsers. They take a suffix of the tags from the tokenizer, which depends on the checkpoint; this
// grammar has none.
//
// Replay: not known; the template is not at hand.
func hyV4() *grammar.Grammar {
	g := hyTags("")
	g.Name, g.Special, g.Replay = "hy_v4", nil, replay.Rule{}
	g.Tagged.Name = &grammar.Name{Ends: []string{"\n"}, Stops: "<"}
	return g
}

// hyTags returns hy_v3 with a suffix of the names of tags.
func hyTags(suffix string) *grammar.Grammar {
	open := func(name string) string { return "<" + name + suffix + ">" }
	shut := func(name string) string { return "</" + name + suffix + ">" }
	return &grammar.Grammar{
		Tagged: &grammar.Tagged{
			Reasoning: &grammar.Reasoning{
				Open: grammar.Tok(open("think")), Close: grammar.Tok(shut("think")), Lead: "\n", After: "\n\n",
			},
			Wrapper: &grammar.Wrapper{
				Open: grammar.Tok(open("tool_calls")), Close: grammar.Tok(shut("tool_calls")), Optional: true,
			},
			Open:  grammar.Tok(open("tool_call")),
			Close: grammar.Tok(shut("tool_call")),
			Name:  &grammar.Name{Ends: []string{open("tool_sep")}},
			Body: grammar.Body{Params: &grammar.Params{
				Open: open("arg_key"), KeyEnd: shut("arg_key"), Value: open("arg_value"), Close: shut("arg_value"),
			}},
		},
		Special: []grammar.Marker{grammar.Tok(open("tool_sep"))},
		Replay:  replay.MustRule("since_user; tools: all; preserved_thinking=true: all; left: empty_tags"),
		MaxHold: maxHold,
	}
}
