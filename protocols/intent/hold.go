// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"cmp"
	"slices"
)

// Holds returns what a cache with blocks of size tokens should keep, as breakpoints at the ends of whole blocks. Only
// whole blocks before a breakpoint can be reused, so breakpoints before the end of the first block, or without Tokens,
// are left out. The result is sorted by Tokens. A breakpoint is also left out if one with the same scope keeps at least
// as many blocks for at least as long.
func Holds(list []Breakpoint, size int) []Breakpoint {
	var out []Breakpoint
	for _, b := range list {
		if size > 0 && b.Tokens >= size {
			b.Tokens -= b.Tokens % size
			out = append(out, b)
		}
	}
	slices.SortStableFunc(out, func(a, b Breakpoint) int {
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(b.TTL, a.TTL), cmp.Compare(a.Scope, b.Scope))
	})
	kept := out[:0]
	for _, b := range out {
		// The last one kept of a scope is the one with the longest TTL. There are few scopes.
		last := len(kept) - 1
		for last >= 0 && kept[last].Scope != b.Scope {
			last--
		}
		if last < 0 || b.TTL > kept[last].TTL {
			kept = append(kept, b)
		}
	}
	slices.Reverse(kept)
	return kept
}
