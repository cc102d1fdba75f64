// SPDX-License-Identifier: Apache-2.0

package family

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/replay"
)

// laguna returns the grammar of Poolside's Laguna: the tags of glm47, whose body may be JSON:
//
//	<think>reasoning</think>text<tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value></tool_call>
//	<tool_call>f
//	{"x": 1}</tool_call>
//	<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>
//
// A response that begins with such a call object is a call too. A call ends reasoning that was left open. The templates
// open reasoning in the prompt or close it there; the caller passes the prompt or the start.
//
// Sources: the poolside_v1 parsers of vLLM and SGLang; Ollama's laguna parser for JSON and for reasoning that a call ends.
//
// Replay: all of it if thinking is on; laguna_v8_chat_template.jinja2 in Ollama's test data.
func laguna() *grammar.Grammar {
	g := named(glm47(), "laguna", "laguna_v8", "poolside_v1")
	t := g.Tagged
	t.Reasoning, t.Before = flush(), ""
	t.Reasoning.CallEnds = true
	t.Name.Stops = "<{"
	t.Body.Params.Object = true
	t.Body.Call = callObject()
	t.Bare = true
	t.Ends = tokenMarkers("</assistant>")
	g.Replay = replay.MustRule("all; off: none; left: close_tag")
	return g
}
