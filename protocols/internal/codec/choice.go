// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// manyNames is the number of lookups of tool names from which a set is built: searching many allowed tools among many
// declared ones takes quadratic time.
const manyNames = 16

// CustomNames returns a function that reports whether a name belongs to a tool with free-text input. n is the expected
// number of calls.
func CustomNames(tools []block.Tool, n int) func(name string) bool {
	if n <= manyNames {
		return func(name string) bool {
			for i := range tools {
				if tools[i].Name == name && tools[i].Kind == block.CustomTool {
					return true
				}
			}
			return false
		}
	}
	names := map[string]bool{}
	for i := range tools {
		if tools[i].Kind == block.CustomTool {
			names[tools[i].Name] = true
		}
	}
	return func(name string) bool { return names[name] }
}

// Allowed reads the mode and the tools of v, a choice of several tools in the OpenAI APIs. name returns the name of one of
// them. A choice with another mode, or without tools, is not modeled: c stays unspecified.
func (r *Reader) Allowed(c *block.ToolChoice, v jsonscan.Value, name func(jsonscan.Value) jsonscan.Value) {
	list := v.Get("tools")
	if list.Kind() != jsonscan.Array || !list.First().Exists() {
		return
	}
	switch r.Str(v.Get("mode")) {
	case "auto", "":
		c.Mode = block.Auto
	case "required":
		c.Mode = block.Required
	default:
		return
	}
	for e := list.First(); e.Exists(); e = list.Next(e) {
		c.Allow = append(c.Allow, r.Str(name(e)))
	}
}

// OpenAIChoice writes tool_choice and parallel_tool_calls of the OpenAI APIs. named returns the JSON of the choice of a
// tool, and allowed that of a choice of several, whose JSON is tools.
func OpenAIChoice(m *Members, c *block.ToolChoice, named func(name string) []byte, allowed func(mode string, tools []byte) []byte) {
	mode := map[block.ChoiceMode]string{block.Auto: "auto", block.Required: "required", block.NoTools: "none"}[c.Mode]
	switch {
	case mode == "":
	case len(c.Allow) == 0 || c.Mode == block.NoTools:
		m.Str("tool_choice", mode)
	case len(c.Allow) == 1 && c.Mode == block.Required:
		m.Add("tool_choice", "", named(c.Allow[0]))
	default:
		var list [][]byte
		for _, n := range c.Allow {
			list = append(list, named(n))
		}
		m.Add("tool_choice", "", allowed(mode, Array(list)))
	}
	if c.Serial {
		m.Add("parallel_tool_calls", "", []byte("false"))
	}
}
