// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"slices"
	"unicode/utf8"
	"unsafe"

	"github.com/weft-go/weft/tokenizers/internal/nfc"
)

// Span is the run [Start, End) of the original, in bytes.
type Span struct{ Start, End int32 }

// Text is a text on its way through the normalizers.
type Text struct {
	B []byte
	// From holds the origin of each byte: len(From) == len(B). It is nil unless requested. All bytes of
	// a character have the same span.
	From []Span
	// Start is the offset in the original at which the text begins: the origin of text that is inserted before all others.
	Start int32
}

// Origins appends the origins of a text before normalization to dst: each byte originates from its character.
func Origins(dst []Span, s []byte) []Span {
	dst = slices.Grow(dst, len(s))
	for i := 0; i < len(s); {
		n := 1
		if s[i] >= utf8.RuneSelf {
			_, n = utf8.DecodeRune(s[i:])
		}
		for range n {
			dst = append(dst, Span{int32(i), int32(i + n)})
		}
		i += n
	}
	return dst
}

// Step is one normalizer. Steps are safe for concurrent use.
type Step interface {
	// Append appends the normalized form of src to dst. It appends to dst.From, which must have as many elements as
	// dst.B, if src.From is not nil. The memory of dst and src must not overlap. The buffer is scratch memory and is
	// not retained.
	Append(dst *Text, src Text, b *Buffer)
	// Prefix returns the length of the longest prefix of s that is known to come out as it is; if it is len(s), the
	// step does not change s. The rest is not a separate text: the step must be applied to all of s.
	Prefix(s string) int
}

// Buffer is scratch memory. The zero value is ready for use. A Buffer is not safe for concurrent use.
type Buffer struct {
	text  [2]Text
	nfc   nfc.Buffer
	marks []mark
	spans []Span
	items []item
}

// Run runs the steps in order and returns the result. It is src itself if no step changes it; otherwise it is in the
// memory of b and valid until the next call with b. src must not be in the memory of b.
func Run(steps []Step, src Text, b *Buffer) Text {
	k := 0
	for _, step := range steps {
		if step.Prefix(view(src.B)) == len(src.B) {
			continue
		}
		dst := &b.text[k]
		dst.B, dst.From = dst.B[:0], dst.From[:0]
		step.Append(dst, src, b)
		from, start := src.From, src.Start
		src = *dst
		src.Start = start
		if from == nil {
			src.From = nil
		} else if src.From == nil {
			src.From = []Span{} // requested, but empty
		}
		k ^= 1
	}
	return src
}

// view returns b as a string, which must not be used after b has changed.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// inserted returns the origin of text inserted before the first character.
func (t *Text) inserted() Span { return Span{t.Start, t.Start} }

// fill sets the origin of the bytes appended since the last call to s.
func (t *Text) fill(s Span) {
	for len(t.From) < len(t.B) {
		t.From = append(t.From, s)
	}
}

// copy appends the bytes [i, j) of src with their origins.
func (t *Text) copy(src Text, i, j int) {
	t.B = append(t.B, src.B[i:j]...)
	if src.From != nil {
		t.From = append(t.From, src.From[i:j]...)
	}
}

// rune appends r in place of the character at i of src.
func (t *Text) rune(r rune, src Text, i int) {
	t.B = utf8.AppendRune(t.B, r)
	if src.From != nil {
		t.fill(src.From[i])
	}
}

// mapASCII appends the values in tab of the bytes of s, up to the first whose value is stop.
func mapASCII(dst []byte, s string, tab *[256]byte) []byte {
	n := len(dst)
	out := slices.Grow(dst, len(s))[:n+len(s)]
	to := out[n:]
	for i := range len(to) {
		c := tab[s[i]]
		if c == stop {
			return out[:n+i]
		}
		to[i] = c
	}
	return out
}

// stop is not an ASCII character.
const stop = 0xFF

// aligner determines the origins of characters by the rule of NormalizedString::transform.
type aligner struct {
	src Text
	at  int // bytes used
}

// next returns the origin of a character with the given change. If the reference would read beyond the end,
// the result is the origin of the last byte.
func (a *aligner) next(change int32) Span {
	switch {
	case change > 0:
		if a.at == 0 {
			return a.src.inserted()
		}
		return a.src.From[a.at-1]
	case a.at >= len(a.src.From):
		if len(a.src.From) == 0 {
			return Span{}
		}
		return a.src.From[len(a.src.From)-1]
	}
	s := a.src.From[a.at]
	for ; change <= 0 && a.at < len(a.src.B); change++ {
		_, n := utf8.DecodeRune(a.src.B[a.at:])
		a.at += n
	}
	return s
}
