// SPDX-License-Identifier: Apache-2.0

package family

import "github.com/weft-go/weft/parsers/grammar"

// JSON returns the grammar of models without a format of their own that are told to write calls as JSON:
//
//	{"name": "f", "arguments": {"x": 1}}
//
// An answer that begins with such an object, or with a list of them, is calls; all else is text.
//
// Source: the json parser of smg, which looks for objects anywhere in the text.
func JSON() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "json",
		Tagged:  &grammar.Tagged{Body: grammar.Body{Call: callObject()}, Bare: true},
		MaxHold: maxHold,
	}
}

// Sarashina returns the grammar of SB Intuitions' Sarashina, which writes calls as a Python list of dicts:
//
//	text<|tool_calls|>[{'name': 'f', 'arguments': {'x': 1, 'on': True}}]
//
// The list is held until it is whole. Engines strip the token at times, so a list without it at the beginning of the
// text is read too.
//
// Source: the sarashina parser of smg.
func Sarashina() *grammar.Grammar {
	call := callObject()
	call.Python = true
	return &grammar.Grammar{
		Name: "sarashina",
		Tagged: &grammar.Tagged{
			Before: "\n",
			Open:   grammar.Tok("<|tool_calls|>"),
			Body:   grammar.Body{Call: call},
			Bare:   true,
		},
		MaxHold: maxHold,
	}
}

// Passthrough returns the grammar of models that have neither reasoning nor calls: all output is text.
//
// Sources: the passthrough parsers of smg and Ollama, vLLM's identity reasoning parser.
func Passthrough() *grammar.Grammar {
	return &grammar.Grammar{
		Name:    "passthrough",
		Aliases: []string{"identity"},
		Tagged:  &grammar.Tagged{},
		MaxHold: maxHold,
	}
}
