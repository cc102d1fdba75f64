// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// hermes returns the grammar of Hermes 2 and 3 and of models tuned on its format:
//
//	<think>
//	reasoning
//	</think>
//
//	text<tool_call>
//	{"name": "f", "arguments": {"x": 1}}
//	</tool_call>
//
// Sources: the chat templates of NousResearch/Hermes-3 and Qwen/Qwen3; vLLM's hermes parser for the keys. The chat templates of
// EXAONE 4, Reka Edge and SmolLM3 (with xml_tools) print the same, and SGLang's trinity parser is its qwen25 parser. The spelling
// "parameters" for the arguments appears in guided output and in older fine-tunes.
//
// Replay: not known. Most models of this format do not reason, and the templates of the others determine what is kept.
func hermes() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "hermes",
		Aliases: []string{"exaone4", "granite4", "qwen3_json", "reka_edge", "smollm3", "trinity"},
		Tagged: &grammar.Tagged{
			Reasoning: think(),
			Before:    "\n",
			Open:      grammar.Tok("<tool_call>"),
			Close:     grammar.Tok("</tool_call>"),
			Body:      grammar.Body{Call: callObject()},
			Ends:      tokenMarkers("<|im_end|>", "<|endoftext|>"),
		},
		MaxHold: maxHold,
	}
}

// qwen25 returns the grammar of Qwen2.5 and QwQ: hermes, but a call needs its closing tag and its arguments.
//
// Sources: the chat template of Qwen/Qwen2.5-7B-Instruct; the qwen25 parsers of SGLang and Dynamo, which drop a call that
// the end of the stream cut before the tag, and leave an object without arguments in the text.
//
// Replay: not known, as in hermes; the template of Qwen2.5 has no reasoning.
func qwen25() *grammar.Grammar {
	g := named(hermes(), "qwen25", "qwen", "qwq")
	g.Tagged.NeedClose = true
	g.Tagged.Body.Call.Strict = true
	g.Tagged.Quoted = true
	return g
}

// qwen3 returns the grammar of Qwen3, instruct and thinking: hermes.
//
// Source: the chat template of Qwen/Qwen3-8B.
//
// Replay: since the last user message (last_query_index in the template).
func qwen3() *grammar.Grammar {
	g := named(hermes(), "qwen3", "base", "basic", "qwen3_vl", "qwen3_vl_instruct")
	g.Replay = replay.MustRule("since_user")
	return g
}

// qwen3Thinking returns the grammar of Qwen3-Thinking: qwen3, starting inside reasoning.
//
// Sources: the chat template of Qwen/Qwen3-30B-A3B-Thinking-2507; vLLM's holo2 reasoning parser, whose models are Qwen3's.
func qwen3Thinking() *grammar.Grammar {
	g := named(qwen3(), "qwen3_thinking", "holo2", "qwen3_vl_thinking")
	prompted(g.Tagged.Reasoning)
	return g
}
