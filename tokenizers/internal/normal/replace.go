// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"strings"
	"unicode/utf8"
)

// Matcher finds the matches of a pattern. It must be safe for concurrent use.
type Matcher interface {
	// Find returns the leftmost match in s that starts at from or later. The text before from is context. The
	// match starts and ends between characters.
	Find(s string, from int) (start, end int, ok bool)
}

// Replace returns the normalizer of that name for a literal pattern: each occurrence of old, from left to right,
// becomes to.
func Replace(old, to string) Step { return &replace{literal(old), to} }

// ReplaceMatches returns the normalizer Replace for a regular expression. to is used literally, without references to
// groups. An empty match is replaced unless it is at the end of the previous match.
//
// Text that an empty match inserts before the first character has the span [Start, Start) of the source. In the reference, the next
// step of a Sequence then panics (index out of bounds in NormalizedString), unless it is Replace or Prepend; here the next step treats it like
// other text.
func ReplaceMatches(m Matcher, to string) Step { return &replace{m, to} }

type literal string

func (l literal) Find(s string, from int) (start, end int, ok bool) {
	i := strings.Index(s[from:], string(l))
	return from + i, from + i + len(l), i >= 0
}

type replace struct {
	m  Matcher
	to string
}

func (x *replace) Prefix(s string) int {
	if len(s) == 0 {
		return 0
	}
	start, _, ok := x.m.Find(s, 0)
	if !ok {
		return len(s)
	}
	if start == len(s) && x.to != "" {
		start = 0 // text is added at the end, so not all of s is unchanged
	}
	return start
}

func (x *replace) Append(dst *Text, src Text, _ *Buffer) {
	s := view(src.B)
	if len(s) == 0 {
		return
	}
	done := 0 // bytes of s processed
	for from, last := 0, -1; from <= len(s); {
		start, end, ok := x.m.Find(s, from)
		if !ok {
			break
		}
		if start == end && end == last {
			n := 1
			if from < len(s) {
				_, n = utf8.DecodeRuneInString(s[from:])
			}
			from += n
			continue
		}
		dst.copy(src, done, start)
		dst.B = append(dst.B, x.to...)
		if src.From != nil {
			origin := src.inserted()
			if end > 0 {
				origin = src.From[end-1]
			}
			dst.fill(origin)
		}
		from, last, done = end, end, end
	}
	dst.copy(src, done, len(s))
}
