// SPDX-License-Identifier: Apache-2.0

package spm

import (
	"strings"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/normal"
)

// space is how a space is written in pieces.
const space = "▁"

// Normalizer is the first stage of a model. It is immutable and safe for concurrent use.
type Normalizer struct {
	rules  *charsmap // nil if absent
	user   *prefixes // pieces that are not changed
	prefix bool
	strip  bool
	escape bool
	suffix bool
	plain  [256]bool // ASCII characters other than the space with which no rule and no piece of user begins
}

// setPlain computes plain.
func (x *Normalizer) setPlain() {
	for c := range x.plain {
		x.plain[c] = c < utf8.RuneSelf && c != ' ' && !x.user.begins[c] && (x.rules == nil || !x.rules.begins[c])
	}
}

// Strips reports whether spaces at both ends, and those after a space, are dropped.
func (x *Normalizer) Strips() bool { return x.strip }

// Prefix implements [normal.Step].
func (x *Normalizer) Prefix(string) int { return 0 }

// next returns the normalized form of the start of s and the number of bytes that it is made of. s is not empty.
func (x *Normalizer) next(s string) (string, int) {
	if x.user.begins[s[0]] {
		if n := x.user.longest(s); n > 0 {
			return s[:n], n
		}
	}
	if x.rules != nil && x.rules.begins[s[0]] {
		if to, n, _ := x.rules.find(s); n > 0 {
			return to, n
		}
	}
	if s[0] < utf8.RuneSelf {
		return s[:1], 1
	}
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 {
		return "\uFFFD", 1
	}
	return s[:n], n
}

// Append implements [normal.Step]. The origin of a byte begins where the text that it is made of begins and ends where
// that of the next byte begins, as in SentencePiece.
func (x *Normalizer) Append(dst *normal.Text, src normal.Text, _ *normal.Buffer) {
	s := view(src.B)
	done := 0
	for x.strip && done < len(s) {
		to, n := x.next(s[done:])
		if to != " " {
			break
		}
		done += n
	}
	if done == len(s) {
		return
	}
	sp := " "
	if x.escape {
		sp = space
	}
	first := len(dst.B)
	// origin returns the position in the original text of a position in s.
	origin := func(i int) int32 {
		if i < len(s) {
			return src.From[i].Start
		}
		return src.From[i-1].End
	}
	fill := func(i int) {
		if src.From == nil {
			return
		}
		for len(dst.From) < len(dst.B) {
			dst.From = append(dst.From, normal.Span{Start: origin(i)})
		}
	}
	if x.prefix && !x.suffix {
		dst.B = append(dst.B, sp...)
		fill(done)
	}
	after := x.strip // spaces are dropped
	for done < len(s) {
		if k := done; x.plain[s[k]] {
			for k++; k < len(s) && x.plain[s[k]]; k++ {
			}
			dst.B = append(dst.B, s[done:k]...)
			if src.From != nil {
				dst.From = append(dst.From, src.From[done:k]...)
			}
			done, after = k, false
			continue
		}
		to, n := x.next(s[done:])
		for after && strings.HasPrefix(to, " ") {
			to = to[1:]
		}
		if to != "" {
			if sp == " " {
				dst.B = append(dst.B, to...)
			} else {
				for i := range len(to) {
					if to[i] == ' ' {
						dst.B = append(dst.B, sp...)
					} else {
						dst.B = append(dst.B, to[i])
					}
				}
			}
			fill(done)
			after = x.strip && strings.HasSuffix(to, " ")
		}
		done += n
		after = after && x.strip
	}
	end := int32(0)
	if src.From != nil {
		end = origin(done)
	}
	for x.strip && strings.HasSuffix(view(dst.B[first:]), sp) {
		n := len(dst.B) - len(sp)
		dst.B = dst.B[:n]
		if src.From != nil {
			end = dst.From[n].Start
			dst.From = dst.From[:n]
		}
	}
	if x.prefix && x.suffix {
		dst.B = append(dst.B, sp...)
		for src.From != nil && len(dst.From) < len(dst.B) {
			dst.From = append(dst.From, normal.Span{Start: end})
		}
	}
	for i := len(dst.From) - 1; i >= first; i-- {
		dst.From[i].End = end
		end = dst.From[i].Start
	}
}

// Denormalizer changes decoded text. It is immutable.
type Denormalizer struct{ rules *charsmap }

// Append appends the changed form of s to dst and returns the number of bytes of s that it is made of. If more is set,
// text may follow, and the end of s, on which it depends, is left.
func (d *Denormalizer) Append(dst []byte, s string, more bool) ([]byte, int) {
	i := 0
	for i < len(s) {
		to, n, open := d.rules.find(s[i:])
		if more && (open || !utf8.FullRuneInString(s[i:])) {
			break
		}
		if n == 0 {
			r, size := utf8.DecodeRuneInString(s[i:])
			to, n = s[i:i+size], size
			if r == utf8.RuneError && size == 1 {
				to = "\uFFFD"
			}
		}
		dst = append(dst, to...)
		i += n
	}
	return dst, i
}
