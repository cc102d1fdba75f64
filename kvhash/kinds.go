// SPDX-License-Identifier: Apache-2.0

package kvhash

import "cmp"

// Span is the range of tokens [From, To) of a prompt, with a kind. K is the caller's type of kinds, ordered so that
// kinds whose tokens change sooner are greater: a system prompt, which many conversations share, is less than the
// history of one conversation, which is less than content of only this request.
type Span[K cmp.Ordered] struct {
	Kind     K
	From, To int
}

// AppendKinds appends to dst, for each of the first n blocks of a prompt, the greatest kind of the spans that it
// overlaps, or the zero K, and returns the slice. A block can be reused only if all its tokens are equal, so its kind
// is that of its most volatile part: a block that contains the end of a system prompt and other text, for example,
// cannot be hit by other conversations. The hashes of later blocks also depend on a volatile block; the caller must
// take that into account.
//
// Spans may overlap. With EAGLE, the token after a block does not affect its kind, although its hash covers the token.
// O(spans + blocks in spans), no allocation if dst has room. It panics if block is not positive.
func AppendKinds[K cmp.Ordered](dst []K, spans []Span[K], block, n int) []K {
	checkBlock(block)
	start := len(dst)
	var zero K
	for range n {
		dst = append(dst, zero)
	}
	out := dst[start:]
	for _, s := range spans {
		if from := max(s.From, 0); s.To > from {
			for i := from / block; i < min((s.To-1)/block+1, n); i++ {
				out[i] = max(out[i], s.Kind)
			}
		}
	}
	return dst
}
