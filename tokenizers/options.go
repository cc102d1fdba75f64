// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"fmt"
	"sync"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/internal/normal"
)

// A SpecialPolicy specifies the treatment of special tokens in trusted text.
type SpecialPolicy uint8

// Values of [EncodeOptions.Special].
const (
	SpecialParse  SpecialPolicy = iota // they become their IDs
	SpecialText                        // they are ordinary characters; other added tokens become their IDs
	SpecialRefuse                      // they are an error
)

// EncodeOptions configures [Tokenizer.Encode].
type EncodeOptions struct {
	// AddSpecial adds the model's special tokens before and after the text, as [Tokenizer.AppendEncodeSpecial] does.
	AddSpecial bool
	Special    SpecialPolicy
	// Offsets fills [Encoding.Offsets], which costs some allocations and several times the time of the IDs.
	Offsets bool
}

// Truncation limits the number of IDs of a text.
type Truncation struct {
	Max  int  // IDs, including added special tokens; 0 means no limit
	Left bool // IDs are dropped from the start, not from the end
}

// Padding adds IDs to a text that has too few.
type Padding struct {
	To         int    // IDs; 0 means no padding, except for MultipleOf
	MultipleOf int    // the number of IDs is rounded up to a multiple of this; 0 means it is not
	Left       bool   // before the text, not after it
	ID         uint32 // to pad with
}

// WithLimits returns a tokenizer that truncates and pads as specified instead of as in the file; the zero values do
// neither. It shares everything else with t. Prompts should be encoded without either.
func (t *Tokenizer) WithLimits(cut Truncation, pad Padding) *Tokenizer {
	c := *t
	c.trunc, c.pad = cut, pad
	c.splitter = sync.OnceValues(c.newSplitter)
	return &c
}

// An Encoding is the result of [Tokenizer.Encode], which reuses its memory. The caller owns it.
type Encoding struct {
	IDs     []uint32
	Offsets []Offset // if requested, one for each ID; empty for added special tokens and padding
	Dropped int      // IDs removed by truncation
}

// Encode encodes the concatenation of the segments into e. With [SpecialRefuse] a special token in trusted text is an
// [*Error] that wraps [ErrSpecial]. If offsets or SpecialRefuse are requested, texts over 2 GiB fail with [ErrLimit].
// After an error, e is unchanged.
func (t *Tokenizer) Encode(e *Encoding, segs []Segment, options *EncodeOptions) error {
	var opt EncodeOptions
	if options != nil {
		opt = *options
	}
	if opt.Offsets || opt.Special == SpecialRefuse {
		if err := trackable(segs, maxTracked); err != nil {
			return err
		}
	}
	sc := t.pool.get()
	defer t.pool.put(sc)
	x := sc.join(segs)
	sc.special = opt.Special
	defer func() { sc.special = SpecialParse }()
	if opt.Special == SpecialRefuse {
		if err := t.refuseSpecial(x, sc); err != nil {
			return err
		}
	}
	e.IDs, e.Offsets = e.IDs[:0], e.Offsets[:0]
	if opt.Offsets {
		x = sc.track(x)
	}
	e.IDs = t.encode(e.IDs, x, sc)
	e.finish(t, x.s, sc.offs, opt)
	return nil
}

func specialError(token string, offset int) error {
	return &Error{Offset: int64(offset), reason: fmt.Sprintf("special token %q in the text", token), err: ErrSpecial}
}

// refuseSpecial returns an error if encode would find a special token.
func (t *Tokenizer) refuseSpecial(x text, sc *scratch) error {
	x = sc.track(x) // to find the position of a match in normalized text
	if t.raw == nil {
		return t.refuseNormal(x, sc)
	}
	c := cuts{m: t.raw, s: x.s, trust: x.trust}
	for c.next() {
		if c.token < 0 {
			if err := t.refuseNormal(x.part(c.start, c.end), sc); err != nil {
				return err
			}
		} else if a := &t.raw.tokens[c.token]; a.Special {
			return specialError(a.Content, int(x.from[c.start].Start))
		}
	}
	return nil
}

// refuseNormal does the same for normalized tokens, which occur between the others.
func (t *Tokenizer) refuseNormal(x text, sc *scratch) error {
	if t.normal == nil {
		return nil
	}
	x = t.normalize(x, sc)
	c := cuts{m: t.normal, s: x.s, trust: x.trust}
	for c.next() {
		if c.token >= 0 && t.normal.tokens[c.token].Special {
			return specialError(t.normal.tokens[c.token].Content, int(x.from[c.start].Start))
		}
	}
	return nil
}

// finish applies the reference's steps after the model: truncation, trimming of offsets, added special tokens, padding.
func (e *Encoding) finish(t *Tokenizer, s string, offs []covered, opt EncodeOptions) {
	cut, pad := t.trunc, t.pad
	frame := 0
	if opt.AddSpecial {
		frame = len(t.before) + len(t.after)
	}
	n := len(e.IDs)
	if cut.Max > 0 {
		keep := min(n, max(0, cut.Max-frame))
		e.IDs = keepSide(e.IDs, keep, cut.Left)
		if opt.Offsets {
			offs = keepSide(offs, keep, cut.Left)
		}
	}
	e.Dropped = n - len(e.IDs)
	if opt.Offsets {
		t.trimOffsets(offs, s, opt.AddSpecial)
		for _, o := range offs {
			e.Offsets = append(e.Offsets, o.Offset)
		}
	}
	if opt.AddSpecial {
		e.IDs = surround(e.IDs, t.before, t.after)
		if opt.Offsets {
			e.Offsets = surround(e.Offsets, make([]Offset, len(t.before)), make([]Offset, len(t.after)))
		}
	}
	padded := pad.missing(len(e.IDs))
	e.IDs = fill(e.IDs, padded, pad.ID, pad.Left)
	if opt.Offsets {
		e.Offsets = fill(e.Offsets, padded, Offset{}, pad.Left)
	}
}

// finish is Encoding.finish for dst[start:]. framed specifies whether special tokens are added.
func (t *Tokenizer) finish(dst []uint32, start int, framed bool) []uint32 {
	head, tail := start, []uint32(nil)
	if framed {
		head, tail = start+len(t.before), t.after
	}
	if t.trunc.Max > 0 {
		keep := min(len(dst)-head, max(0, t.trunc.Max-(head-start)-len(tail)))
		dst = dst[:head+len(keepSide(dst[head:], keep, t.trunc.Left))]
	}
	dst = append(dst, tail...)
	if n := t.pad.missing(len(dst) - start); n > 0 {
		have := len(dst)
		dst = fill(dst, n, t.pad.ID, false)
		if t.pad.Left {
			copy(dst[start+n:], dst[start:have])
			fill(dst[:start], n, t.pad.ID, false)
		}
	}
	return dst
}

// missing returns the number of ids to add to a text of n ids.
func (p Padding) missing(n int) int {
	target := p.To
	if target == 0 {
		target = n
	}
	if m := p.MultipleOf; m > 1 && target%m > 0 {
		target += m - target%m
	}
	return max(0, target-n)
}

// keepSide returns the first n elements of s, or the last ones if end is set, in place.
func keepSide[T any](s []T, n int, end bool) []T {
	if end {
		copy(s, s[len(s)-n:])
	}
	return s[:n]
}

// surround returns s with elements added before and after it, in place if there is room.
func surround[T any](s, before, after []T) []T {
	n := len(s)
	s = append(append(s, before...), after...)
	copy(s[len(before):], s[:n])
	copy(s, before)
	copy(s[len(before)+n:], after)
	return s
}

// fill adds n copies of x before or after s.
func fill[T any](s []T, n int, x T, front bool) []T {
	have := len(s)
	for range n {
		s = append(s, x)
	}
	if front && n > 0 {
		copy(s[n:], s[:have])
		for i := range n {
			s[i] = x
		}
	}
	return s
}

func (t *Tokenizer) readTruncation(s jsonr.Span) error {
	p := part{path: "truncation", span: s}
	if p.null() {
		return nil
	}
	v := struct {
		Direction string
		Max       int `json:"max_length"`
		Strategy  string
		Stride    int // overlap of the pieces cut off, which are not returned
	}{Direction: "Right", Strategy: "LongestFirst"}
	if err := p.fields(&v); err != nil {
		return err
	}
	switch {
	case v.Max < 1:
		return p.refuse("max_length %d", v.Max)
	case v.Stride < 0:
		return p.fail(ErrFormat, "stride %d", v.Stride)
	case v.Direction != "Right" && v.Direction != "Left":
		return p.refuse("direction %q", v.Direction)
	case v.Strategy != "LongestFirst" && v.Strategy != "OnlyFirst":
		return p.refuse("strategy %q", v.Strategy)
	}
	t.trunc, t.stride = Truncation{Max: v.Max, Left: v.Direction == "Left"}, v.Stride
	return nil
}

// checkTruncation refuses a truncation with which the reference panics or, if the special tokens alone are too many, truncates nothing.
func (t *Tokenizer) checkTruncation(s jsonr.Span) error {
	frame := len(t.before) + len(t.after)
	room := t.trunc.Max - frame // for the text
	if t.trunc.Max > 0 && (room < 0 || t.stride >= t.trunc.Max || room > 0 && t.stride >= room) {
		return part{path: "truncation", span: s}.refuse("max_length %d with stride %d and %d added special tokens", t.trunc.Max, t.stride, frame)
	}
	return nil
}

// maxPadding is the maximum length in ids that a file may specify for padding.
const maxPadding = 1 << 20

func (t *Tokenizer) readPadding(s jsonr.Span) error {
	p := part{path: "padding", span: s}
	if p.null() {
		return nil
	}
	v := struct {
		Direction  string
		Strategy   any
		MultipleOf int    `json:"pad_to_multiple_of"`
		ID         uint32 `json:"pad_id"`
		TypeID     uint32 `json:"pad_type_id"`
		Token      string `json:"pad_token"`
	}{Direction: "Right"}
	if err := p.fields(&v); err != nil {
		return err
	}
	t.pad = Padding{MultipleOf: v.MultipleOf, Left: v.Direction == "Left", ID: v.ID}
	switch s := v.Strategy.(type) {
	case string:
		if s != "BatchLongest" {
			return p.refuse("strategy %q", s)
		}
	case map[string]any:
		n, ok := s["Fixed"].(float64)
		if !ok || len(s) != 1 || n < 0 || n > maxPadding || n != float64(int(n)) {
			return p.refuse("strategy %v", s)
		}
		t.pad.To = int(n)
	default:
		return p.fail(ErrFormat, "has no strategy")
	}
	if v.MultipleOf < 0 || v.MultipleOf > maxPadding {
		return p.refuse("pad_to_multiple_of %d", v.MultipleOf)
	}
	if v.Direction != "Right" && v.Direction != "Left" {
		return p.refuse("direction %q", v.Direction)
	}
	return nil
}

// trimming specifies how spaces are removed from offsets.
type trimming struct {
	prefix bool // a space at the start was added
	joined bool // special tokens were joined with the text before
}

// track returns x with the origin of each byte: the range of its character.
func (sc *scratch) track(x text) text {
	sc.offs = sc.offs[:0]
	sc.from = normal.Origins(sc.from[:0], bytesOf(x.s))
	x.from = sc.from
	return x
}
