// SPDX-License-Identifier: Apache-2.0

package codec

import "github.com/weft-go/weft/protocols/block"

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
