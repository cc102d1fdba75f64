// SPDX-License-Identifier: Apache-2.0

package family

import "github.com/weft-go/weft/parsers/grammar"

// jsonObject returns the grammar of models without a format of their own that are instructed to write calls as JSON:
//
//	{"name": "f", "arguments": {"x": 1}}
//
// A response that begins with such an object, or with a list of them, is calls; all else is text.
//
// Source: the json parser of smg, which looks for objects anywhere in the text.
func jsonObject() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "json",
		Tagged:  &grammar.Tagged{Body: grammar.Body{Call: callObject()}, Bare: true},
		MaxHold: maxHold,
	}
}

// sarashina returns the grammar of SB Intuitions' Sarashina, which writes calls as a Python list of dicts:
//
//	text<|tool_calls|>[{'name': 'f', 'arguments': {'x': 1, 'on': True}}]
//
// The list is held until it is whole. Engines strip the token at times, so a list without it at the beginning of the
// text is read too.
//
// Source: the sarashina parser of smg.
func sarashina() *grammar.Grammar {
	return &grammar.Grammar{
		Name: "sarashina",
		Tagged: &grammar.Tagged{
			Before: "\n",
			Open:   grammar.Tok("<|tool_calls|>"),
			Body:   grammar.Body{Call: callObject(), List: grammar.Dicts},
			Bare:   true,
		},
		MaxHold: maxHold,
	}
}

// passthrough returns the grammar of models that have neither reasoning nor calls: all output is text.
//
// Sources: the passthrough parsers of smg and Ollama, vLLM's identity reasoning parser.
func passthrough() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "passthrough",
		Aliases: []string{"identity"},
		Tagged:  &grammar.Tagged{},
		MaxHold: maxHold,
	}
}
