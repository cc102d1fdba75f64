// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// nemotronDeci returns the grammar of Llama-Nemotron Super and Ultra:
//
//	<think>reasoning</think>text<TOOLCALL>[{"name": "f", "arguments": {"x": 1}}]</TOOLCALL>
//
// Sources: the chat template of nvidia/Llama-3_3-Nemotron-Super-49B-v1; Dynamo's nemotron_deci parsers.
//
// Replay: none; the template cuts past content after </think>.
func nemotronDeci() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "nemotron_deci",
		Aliases: []string{"llama_nemotron_json", "nemotron_json"},
		Tagged: &grammar.Tagged{
			Reasoning: think(),
			Before:    "\n",
			Open:      grammar.Lit("<TOOLCALL>"),
			Close:     grammar.Lit("</TOOLCALL>"),
			Body:      grammar.Body{Call: callObject(), List: grammar.Array},
		},
		Replay:  replay.MustRule("none"),
		MaxHold: maxHold,
	}
}

// jamba returns the grammar of Jamba 1.5 to 1.7:
//
//	<tool_calls>[{"name": "f", "arguments": {"x": 1}}]</tool_calls>
//
// Sources: the chat template of ai21labs/AI21-Jamba-Mini-1.7; the jamba parsers of vLLM and Dynamo.
func jamba() *grammar.Grammar {
	return &grammar.Grammar{
		Name: "jamba",
		Tagged: &grammar.Tagged{
			Before: "\n",
			Open:   grammar.Tok("<tool_calls>"),
			Close:  grammar.Tok("</tool_calls>"),
			Body:   grammar.Body{Call: callObject(), List: grammar.Array},
			Quoted: true,
		},
		MaxHold: maxHold,
	}
}

// phi4 returns the grammar of Phi-4-mini:
//
//	functools[{"name": "f", "arguments": {"x": 1}}]
//
// Sources: the model card of microsoft/Phi-4-mini-instruct; the phi4 parsers of vLLM and Dynamo. FireFunction v2 writes the same
// (models/templates/fireworks-ai-llama-3-firefunction-v2.jinja of llama.cpp).
func phi4() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "phi4",
		Aliases: []string{"firefunction_v2", "phi4_mini_json"},
		Tagged: &grammar.Tagged{
			Open:   grammar.Lit("functools"),
			Body:   grammar.Body{Call: callObject(), List: grammar.Array},
			Quoted: true,
		},
		MaxHold: maxHold,
	}
}

// granite returns the grammar of Granite 3:
//
//	Here is my thought process: reasoning Here is my response: text<|tool_call|>[{"name": "f", "arguments": {"x": 1}}]
//
// The phrases are ordinary text; "Here's" is written too. Granite 3.3 and later put calls in <tool_call> tags, thoughts in
// <think> and the response in <response>.
//
// Sources: the chat template of ibm-granite/granite-3.2-8b-instruct; the granite parsers of vLLM and Dynamo.
func granite() *grammar.Grammar {
	return &grammar.Grammar{
		Name: "granite",
		Tagged: &grammar.Tagged{
			Reasoning: &grammar.Reasoning{
				Open:  grammar.Lit("Here is my thought process:", grammar.Lit("Here's my thought process:"), grammar.Lit("<think>")),
				Close: grammar.Lit("Here is my response:", grammar.Lit("Here's my response:"), grammar.Lit("</think>")),
				Lead:  " ", After: " ",
			},
			Before: "\n",
			Open:   grammar.Tok("<|tool_call|>", grammar.Tok("<tool_call>")),
			Body:   grammar.Body{Call: callObject(), List: grammar.Array},
			Skip:   []grammar.Marker{grammar.Lit("<response>"), grammar.Lit("</response>"), grammar.Tok("</tool_call>")},
		},
		MaxHold: maxHold,
	}
}

// llama3JSON returns the grammar of Llama 3.1 to 3.3:
//
//	<|python_tag|>{"name": "f", "parameters": {"x": 1}}; {"name": "g", "parameters": {}}<|eom_id|>
//
// The tag is optional: a response that begins with a call object is a call.
//
// Sources: the chat template of meta-llama/Llama-3.1-8B-Instruct and Meta's prompt format page; the llama3_json parsers
// of vLLM, SGLang and Dynamo.
func llama3JSON() *grammar.Grammar {
	call := callObject()
	call.Arguments = []string{"parameters", "arguments"}
	call.Sep = ";"
	return &grammar.Grammar{
		Name:    "llama3_json",
		Aliases: []string{"llama", "llama3", "llama4_json"},
		Tagged: &grammar.Tagged{
			Open: grammar.Tok("<|python_tag|>"),
			Body: grammar.Body{Call: call},
			Bare: true,
			Ends: []grammar.Marker{grammar.Tok("<|eom_id|>"), grammar.Tok("<|eot_id|>")},
		},
		MaxHold: maxHold,
	}
}

// granite20B returns the grammar of Granite 20B Functioncalling:
//
//	<function_call> {"name": "f", "arguments": {"x": 1}}
//	<function_call> {"name": "g", "arguments": {}}
//
// Sources: the model card of ibm-granite/granite-20b-functioncalling; vLLM's granite-20b-fc parser.
func granite20B() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "granite_20b_fc",
		Tagged:  &grammar.Tagged{Open: grammar.Lit("<function_call>"), Body: grammar.Body{Call: callObject()}, Quoted: true},
		MaxHold: maxHold,
	}
}

// apriel returns the grammar of ServiceNow's Apriel 1.5 and 1.6: the calls of jamba, and phrases around reasoning and text:
//
//	Here are my reasoning steps:
//	reasoning
//	[BEGIN FINAL RESPONSE]
//	text
//	[END FINAL RESPONSE]<tool_calls>[{"name": "f", "arguments": {"x": 1}}]</tool_calls><|end|>
//
// The template writes the first phrase into the prompt.
//
// Source: the chat template of ServiceNow-AI/Apriel-1.6-15b-Thinker (models/templates of llama.cpp).
//
// Replay: not known; the template is not at hand.
func apriel() *grammar.Grammar {
	g := named(jamba(), "apriel")
	t := g.Tagged
	t.Reasoning = &grammar.Reasoning{
		Open: grammar.Lit("Here are my reasoning steps:"), Close: grammar.Lit("[BEGIN FINAL RESPONSE]"),
		Lead: "\n", Tail: "\n", After: "\n", Prompted: true,
	}
	t.Ends = append(tokenMarkers("<|end|>"), grammar.Lit("[END FINAL RESPONSE]"))
	return g
}
