// SPDX-License-Identifier: Apache-2.0

package kvhash

import "cmp"

// Span is a range of tokens of a prompt, [From, To), of one kind. K is the caller's type of kinds, in which a kind whose tokens change sooner
// is greater: a system prompt, which many conversations share, is less than the history of one, and that less than what only this
// request has.
type Span[K cmp.Ordered] struct {
	Kind     K
	From, To int
}

// AppendKinds appends to dst, for each of the first n blocks of a prompt, the greatest kind of the spans that it
// overlaps, or the zero K, and returns the slice. A block can be reused only if every token in it is the same, so it is
// useful no longer than its most volatile part: keeping it because it contains the end of a system prompt, for example,
// would hold memory that no request can hit. The hashes of the blocks after a volatile one cover it too; that is for
// the caller to consider.
//
// Spans may overlap. With Eagle the token after a block is not counted to it, though its hash covers it. O(spans + blocks in spans), no
// allocation if dst has room. It panics if block is not positive.
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
