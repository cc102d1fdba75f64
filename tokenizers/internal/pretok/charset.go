// SPDX-License-Identifier: Apache-2.0

package pretok

import (
	"slices"

	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

// charset is a set of characters: inclusive ranges, sorted, with gaps between them.
type charset [][2]rune

func single(r rune) charset { return charset{{r, r}} }

// newCharset sorts and joins ranges.
func newCharset(r [][2]rune) charset {
	r = slices.Clone(r)
	slices.SortFunc(r, func(a, b [2]rune) int { return int(a[0] - b[0]) })
	var out charset
	for _, x := range r {
		if n := len(out) - 1; n >= 0 && x[0] <= out[n][1]+1 {
			out[n][1] = max(out[n][1], x[1])
		} else {
			out = append(out, x)
		}
	}
	return out
}

func (c charset) union(d charset) charset { return newCharset(append(slices.Clone(c), d...)) }

func (c charset) negate() charset { return unidata.Complement(c) }

func (c charset) intersect(d charset) charset {
	return c.negate().union(d.negate()).negate()
}

func (c charset) equal(d charset) bool { return slices.Equal(c, d) }

func (c charset) has(r rune) bool {
	i, ok := slices.BinarySearchFunc(c, r, func(x [2]rune, r rune) int { return int(x[0] - r) })
	return ok || i > 0 && r <= c[i-1][1]
}
