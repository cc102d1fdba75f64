// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// deepSeekV3 returns the grammar of DeepSeek V3:
//
//	<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f
//	```json
//	{"x": 1}
//	```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
//
// Sources: the chat template of deepseek-ai/DeepSeek-V3-0324; the deepseek_v3 parsers of vLLM, SGLang and Dynamo. All
// three need the closing tag of a call.
//
// Replay: the template prints only what the content holds.
func deepSeekV3() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "deepseek_v3",
		Aliases: []string{"cogito", "deepseek"},
		Tagged: &grammar.Tagged{
			Reasoning: think(),
			Before:    "\n",
			Wrapper: &grammar.Wrapper{
				Open: grammar.Tok("<｜tool▁calls▁begin｜>"), Close: grammar.Tok("<｜tool▁calls▁end｜>"), Optional: true,
			},
			Open:      grammar.Tok("<｜tool▁call▁begin｜>"),
			Name:      &grammar.Name{Prefix: "function<｜tool▁sep｜>", Ends: []string{"\n"}},
			Body:      grammar.Body{Fence: "```"},
			Close:     grammar.Tok("<｜tool▁call▁end｜>"),
			NeedClose: true,
			Ends: tokenMarkers("<｜end▁of▁sentence｜>", "<｜tool▁outputs▁begin｜>", "<｜tool▁output▁begin｜>",
				"<｜tool▁output▁end｜>", "<｜tool▁outputs▁end｜>"),
		},
		Special: []grammar.Marker{grammar.Tok("<｜tool▁sep｜>")},
		Replay:  replay.MustRule("none"),
		MaxHold: maxHold,
	}
}

// deepSeekR1 returns the grammar of DeepSeek R1: deepseek_v3, starting inside reasoning.
//
// Source: the chat template of deepseek-ai/DeepSeek-R1-0528.
//
// Replay: none; the template cuts past content after </think>.
func deepSeekR1() *grammar.Grammar {
	g := named(deepSeekV3(), "deepseek_r1")
	prompted(g.Tagged.Reasoning)
	g.Replay = replay.MustRule("none")
	return g
}

// deepSeekV31 returns the grammar of DeepSeek V3.1 and V3.2-Exp: deepseek_v3 with a shorter call:
//
//	<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"x": 1}<｜tool▁call▁end｜>
//
// Source: the chat template of deepseek-ai/DeepSeek-V3.1.
//
// Replay: none, only </think> stays, in the template. Ollama's deepseek3 renderer prints that since the last user message.
func deepSeekV31() *grammar.Grammar {
	g := named(deepSeekV3(), "deepseek_v3_1", "deepseek3", "deepseek31")
	g.Tagged.Name = &grammar.Name{Ends: []string{"<｜tool▁sep｜>"}}
	g.Tagged.Body.Fence, g.Tagged.Before = "", ""
	g.Replay = replay.MustRule("none; left: close_tag")
	return g
}

// dsml returns a grammar whose tags bear the word ｜DSML｜.
func dsml(name, space, calls string, also ...string) *grammar.Grammar {
	return markup(name, "｜DSML｜", space, calls, also...)
}

// markup returns a grammar whose tags bear a word, which is one token, followed by space. also are other names of the
// block.
func markup(name, word, space, calls string, also ...string) *grammar.Grammar {
	open, shut := "<"+word+space, "</"+word+space
	var opens, shuts []grammar.Marker
	for _, name := range also {
		opens, shuts = append(opens, grammar.Lit(open+name+">")), append(shuts, grammar.Lit(shut+name+">"))
	}
	return &grammar.Grammar{
		Name: name,
		Tagged: &grammar.Tagged{
			Reasoning: flush(),
			Before:    "\n\n",
			Wrapper: &grammar.Wrapper{
				Open: grammar.Lit(open+calls+">", opens...), Close: grammar.Lit(shut+calls+">", shuts...), Optional: true,
			},
			Open:  grammar.Lit(open + `invoke name="`),
			Name:  &grammar.Name{Ends: []string{`">`, `"/>`, `" >`, `" />`}},
			Close: grammar.Lit(shut + "invoke>"),
			Body: grammar.Body{Params: &grammar.Params{
				Open: open + `parameter name="`, KeyEnd: `"`, Attr: "string", Value: ">", Close: shut + "parameter>",
				Object: true,
			}},
			Ends: tokenMarkers("<｜end▁of▁sentence｜>"),
		},
		Special: []grammar.Marker{grammar.Tok(word)},
		MaxHold: maxHold,
	}
}

// dsmlReplay is the rule of V4 and V4.1.
func dsmlReplay() replay.Rule {
	return replay.MustRule("since_user; tools: all; off: none; drop_thinking=false: all; left: close_tag")
}

// deepSeekV32 returns the grammar of DeepSeek V3.2:
//
//	<｜DSML｜function_calls>
//	<｜DSML｜invoke name="f">
//	<｜DSML｜parameter name="x" string="false">1</｜DSML｜parameter>
//	</｜DSML｜invoke>
//	</｜DSML｜function_calls>
//
// A value with string="true" is raw text, any other is JSON. Without the attribute the tool's schema decides. Models also
// write the block of V4, one JSON object instead of the parameters, and <｜DSML｜invoke name="f"/>.
//
// Sources: encoding/encoding_dsv32.py of deepseek-ai/DeepSeek-V3.2; the deepseek_v3_2 parsers of vLLM and Dynamo.
//
// Replay: since the last user or developer message, in thinking mode, unless drop_thinking is false: encoders/deepseek_v32.rs
// of smg. The script itself has no such variable.
func deepSeekV32() *grammar.Grammar {
	g := dsml("deepseek_v3_2", "", "function_calls", "tool_calls")
	g.Aliases = []string{"deepseek32", "deepseek_dsml32"}
	g.Replay = replay.MustRule("since_user; off: none; drop_thinking=false: all; left: close_tag")
	return g
}

// deepSeekV4 returns the grammar of DeepSeek V4: deepseek_v3_2, in a block called tool_calls. V3.2's is read too, and toolcalls and tool, which
// the model also writes.
//
// Sources: the encoding of deepseek-ai/DeepSeek-V4; the deepseek_v4 parsers of vLLM and Dynamo.
//
// Replay: as in V3.2, but everything where tools are declared: encoding/encoding_dsv4.py of deepseek-ai/DeepSeek-V4-Flash.
func deepSeekV4() *grammar.Grammar {
	g := dsml("deepseek_v4", "", "tool_calls", "function_calls", "toolcalls", "tool")
	g.Aliases = []string{"deepseek_dsml"}
	g.Replay = dsmlReplay()
	return g
}

// deepSeekV41 returns the grammar of DeepSeek V4.1: deepseek_v3_2 with a space after ｜DSML｜, in a block called calls.
//
// Source: the deepseek_v41 parsers of vLLM and Dynamo.
//
// Replay: as in deepseek_v4; encoding_dsv41.py of SGLang.
func deepSeekV41() *grammar.Grammar {
	g := dsml("deepseek_v41", " ", "calls")
	g.Replay = dsmlReplay()
	return g
}
