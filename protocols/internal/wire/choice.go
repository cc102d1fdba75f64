// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/weft-go/weft/protocols/block"

// manyNames is the number of searches for a name among tools from which a set pays: each of many allowed tools searched
// among many declared ones takes quadratic time.
const manyNames = 16

// CustomNames returns a function that reports whether a tool with free text has a name. It is to be asked about n times.
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
