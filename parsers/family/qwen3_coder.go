// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// qwen3Coder returns the grammar of Qwen3-Coder:
//
//	<tool_call>
//	<function=f>
//	<parameter=x>
//	1
//	</parameter>
//	</function>
//	</tool_call>
//
// After text the templates of Qwen3.5 and later print a blank line before the first call.
// Values are raw text, entities included; the tool's schema types them. Models leave out the <tool_call> tags at times
// (ollama/ollama#16686, #17353), so the wrapper is optional.
//
// Sources: the chat templates of Qwen/Qwen3-Coder and Qwen/Qwen3.5; vLLM's qwen3_coder parser, which
// SGLang uses for Nanbeige.
//
// Replay: not known. Qwen3-Coder does not think.
func qwen3Coder() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "qwen3_coder",
		Aliases: []string{"granite_thinking_parser", "nanbeige", "qwen3_xml", "qwen_coder", "qwen_xml"},
		Tagged: &grammar.Tagged{
			Reasoning: think(),
			Before:    "\n\n",
			Wrapper: &grammar.Wrapper{
				Open: grammar.Tok("<tool_call>"), Close: grammar.Tok("</tool_call>"), Optional: true,
			},
			Open:  grammar.Lit("<function="),
			Name:  &grammar.Name{Ends: []string{">"}},
			Close: grammar.Lit("</function>"),
			Body: grammar.Body{Params: &grammar.Params{
				Open: "<parameter=", KeyEnd: ">", Close: "</parameter>", Newline: true,
			}},
			Ends: tokenMarkers("<|im_end|>", "<|endoftext|>"),
		},
		MaxHold: maxHold,
	}
}

// qwen35 returns the grammar of Qwen3.5 to 3.8: qwen3_coder, with templates that open the reasoning in the prompt or
// close it there; the caller passes the prompt or the start.
//
// Source: the chat template of Qwen/Qwen3.5.
//
// Replay: since the last user message; Qwen3.6 added preserve_thinking, and Qwen3.8 keeps all unless it is false, which its
// template shows.
func qwen35() *grammar.Grammar {
	g := named(qwen3Coder(), "qwen35", "ornith")
	g.Replay = replay.MustRule("since_user; preserve_thinking=true: all")
	return g
}

// nemotronNano returns the grammar of Nemotron 3 Nano: qwen3_coder, starting inside reasoning.
//
// Sources: the chat template of nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B; Dynamo's nemotron_nano parsers.
//
// Replay: since the last user message, all with truncate_history_thinking=false; the chat template.
func nemotronNano() *grammar.Grammar {
	g := named(qwen3Coder(), "nemotron_nano", "nano_v3", "nemotron", "nemotron3", "nemotron_3_5_nano", "nemotron_3_nano", "nemotron_v3")
	prompted(g.Tagged.Reasoning)
	g.Replay = replay.MustRule("since_user; truncate_history_thinking=false: all; left: empty_tags")
	return g
}

// mimo returns the grammar of Xiaomi's MiMo V2: qwen3_coder without newlines around values.
//
// Sources: the mimo parsers of vLLM and SGLang, which keep them in the value; the structural tag of xgrammar.
//
// Replay: since the last user message; the chat template.
func mimo() *grammar.Grammar {
	g := named(qwen3Coder(), "mimo")
	g.Tagged.Body.Params.Newline = false
	g.Replay = replay.MustRule("since_user")
	return g
}

// step35 returns the grammar of Step 3.5 and Step 5: qwen3_coder, with a template that prints a call right after the text.
//
// Sources: the chat template of stepfun-ai/Step-3.5-Flash; the step3p5 and step5 parsers of vLLM.
//
// Replay: since the last user message; the chat template.
func step35() *grammar.Grammar {
	g := named(qwen3Coder(), "step3p5", "step5")
	g.Tagged.Before = ""
	g.Replay = replay.MustRule("since_user")
	return g
}
