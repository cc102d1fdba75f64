// SPDX-License-Identifier: Apache-2.0

package family

import "github.com/weft-go/weft/parsers/grammar"

// inkling returns the grammar of Thinking Machines' Inkling, which writes messages whose kind is a token:
//
//	<|content_thinking|>reasoning<|end_message|><|message_model|><|content_text|>text<|end_message|>
//	<|message_model|>f<|content_invoke_tool_json|>{"name":"f","args":{"x":1}}<|end_message|><|content_model_end_sampling|>
//
// The prompt ends with <|message_model|>, so the first message arrives without it. The name before the kind of a call is
// dropped, since the object repeats it. Calls written as text, and errors of tools, are text.
//
// Sources: vLLM's inkling parser and its rendering of messages; the inkling parsers of Dynamo and smg.
func inkling() *grammar.Grammar {
	return &grammar.Grammar{
		Name: "inkling",
		Channels: &grammar.Channels{
			Sections: []grammar.Section{
				{Marker: grammar.Tok("<|message_model|>"), Field: grammar.Role},
				{Marker: grammar.Tok("<|content_text|>"), Field: grammar.TextBody},
				{Marker: grammar.Tok("<|content_thinking|>"), Field: grammar.ReasoningBody},
				{Marker: grammar.Tok("<|content_invoke_tool_json|>"), Field: grammar.CallBody},
				{Marker: grammar.Tok("<|content_invoke_tool_text|>"), Field: grammar.TextCallBody},
				{Marker: grammar.Tok("<|content_tool_error|>"), Field: grammar.TextBody},
			},
			Object: &grammar.JSONCall{Name: []string{"name"}, Arguments: []string{"args", "arguments", "parameters"}},
			Ends:   []grammar.Marker{grammar.Tok("<|end_message|>"), grammar.Tok("<|content_model_end_sampling|>")},
		},
		MaxHold: maxHold,
	}
}
