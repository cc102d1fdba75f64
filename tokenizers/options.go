// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"fmt"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/internal/normal"
)

// SpecialPolicy says what becomes of special tokens that trusted text spells.
type SpecialPolicy uint8

// Policies of [Options.Special].
const (
	SpecialParse  SpecialPolicy = iota // they become their ids
	SpecialText                        // they are ordinary characters; added tokens that are not special still count
	SpecialRefuse                      // they are an error
)

// Options is what a call of [Tokenizer.Encode] may ask. The zero value is that of [Tokenizer.AppendEncodeSegments].
type Options struct {
	Frame   bool // put the file's frame around the ids
	Special SpecialPolicy
	// Offsets fills Encoding.Offsets, which costs some allocations and several times the time of the ids.
	Offsets bool
	// Truncation and Padding take the place of the file's; a zero Truncation or Padding does nothing. nil
	// means the file's.
	Truncation *Truncation
	Padding    *Padding
}

// Truncation limits how many ids a text has.
type Truncation struct {
	Max  int  // ids, with the frame if there is one; 0 is no limit
	Left bool // ids are dropped from the start, not from the end
}

// Padding fills up a text that has too few ids.
type Padding struct {
	To         int    // up to this many ids; 0 is as many as there are
	MultipleOf int    // To is rounded up to a multiple of this; 0 is not
	Left       bool   // before the text, not behind it
	ID         uint32 // the id to fill up with
}

// WithLimits returns a tokenizer that truncates and pads as told, whatever the file says; zero values do neither. It
// shares everything else with t.
func (t *Tokenizer) WithLimits(cut Truncation, pad Padding) *Tokenizer {
	c := *t
	c.trunc, c.pad = cut, pad
	return &c
}

// Encoding is the result of [Tokenizer.Encode], which uses the memory that is there. The caller owns it.
type Encoding struct {
	IDs     []uint32
	Offsets []Offset // if they were asked for: len(Offsets) == len(IDs); empty for frame and padding
	Dropped int      // ids that truncation took away
	Padded  int      // ids that padding added
}

// SpecialError reports a special token in a text that must not hold one.
type SpecialError struct {
	Token  string
	Offset int // in the segments joined, bytes
}

// Error names the token and its place.
func (e *SpecialError) Error() string {
	return fmt.Sprintf("tokenizers: special token %q at offset %d", e.Token, e.Offset)
}

// Encode encodes the segments joined to one text into e. It fails with a [*SpecialError], only with
// [SpecialRefuse], and with [ErrLimit] if the text is over 2 GiB and offsets or SpecialRefuse are asked for; e is then
// not changed.
func (t *Tokenizer) Encode(e *Encoding, segs []Segment, opt Options) error {
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
	if opt.Offsets {
		e.Offsets = append(e.Offsets, sc.offs...)
	}
	e.finish(t, x.s, opt)
	return nil
}

// refuseSpecial looks for special tokens where encode would.
func (t *Tokenizer) refuseSpecial(x text, sc *scratch) error {
	x = sc.track(x) // says where a match in normalized text stands
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
			return &SpecialError{a.Content, int(x.from[c.start].Start)}
		}
	}
	return nil
}

// refuseNormal does the same for normalized tokens, between the others.
func (t *Tokenizer) refuseNormal(x text, sc *scratch) error {
	if t.normal == nil {
		return nil
	}
	x = t.normalize(x, sc)
	c := cuts{m: t.normal, s: x.s, trust: x.trust}
	for c.next() {
		if c.token >= 0 && t.normal.tokens[c.token].Special {
			return &SpecialError{t.normal.tokens[c.token].Content, int(x.from[c.start].Start)}
		}
	}
	return nil
}

// finish does what the reference does after the model: truncation, offsets without spaces, frame, padding.
func (e *Encoding) finish(t *Tokenizer, s string, opt Options) {
	cut, pad := t.trunc, t.pad
	if opt.Truncation != nil {
		cut = *opt.Truncation
	}
	if opt.Padding != nil {
		pad = *opt.Padding
	}
	frame := 0
	if opt.Frame {
		frame = len(t.before) + len(t.after)
	}
	n := len(e.IDs)
	if cut.Max > 0 {
		keep := min(n, max(0, cut.Max-frame))
		e.IDs = keepSide(e.IDs, keep, cut.Left)
		if opt.Offsets {
			e.Offsets = keepSide(e.Offsets, keep, cut.Left)
		}
	}
	e.Dropped = n - len(e.IDs)
	if opt.Offsets {
		t.trimOffsets(e.IDs, e.Offsets, s)
	}
	if opt.Frame {
		e.IDs = surround(e.IDs, t.before, t.after)
		if opt.Offsets {
			e.Offsets = surround(e.Offsets, make([]Offset, len(t.before)), make([]Offset, len(t.after)))
		}
	}
	e.Padded = pad.missing(len(e.IDs))
	e.IDs = fill(e.IDs, e.Padded, pad.ID, pad.Left)
	if opt.Offsets {
		e.Offsets = fill(e.Offsets, e.Padded, Offset{}, pad.Left)
	}
}

// finish is Encoding.finish for the ids from dst[start] on, behind which the frame is missing.
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

// missing returns how many ids a text of n ids lacks.
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

// keepSide keeps n elements at one side of s, in place.
func keepSide[T any](s []T, n int, end bool) []T {
	if end {
		copy(s, s[len(s)-n:])
	}
	return s[:n]
}

// surround puts elements before and behind s, in place if there is room.
func surround[T any](s, before, after []T) []T {
	n := len(s)
	s = append(append(s, before...), after...)
	copy(s[len(before):], s[:n])
	copy(s, before)
	copy(s[len(before)+n:], after)
	return s
}

// fill puts n times x before or behind s.
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
	p := part{"truncation", s}
	if p.null() {
		return nil
	}
	v := struct {
		Direction string
		Max       int `json:"max_length"`
		Strategy  string
		Stride    int // of the pieces that are left over, which are not kept here
	}{Direction: "Right", Strategy: "LongestFirst"}
	if err := p.fields(&v); err != nil {
		return err
	}
	switch {
	case v.Max < 1:
		return p.refuse("max_length %d", v.Max)
	case v.Direction != "Right" && v.Direction != "Left":
		return p.refuse("direction %q", v.Direction)
	case v.Strategy != "LongestFirst" && v.Strategy != "OnlyFirst":
		return p.refuse("strategy %q", v.Strategy)
	}
	t.trunc = Truncation{Max: v.Max, Left: v.Direction == "Left"}
	return nil
}

// maxPadding is the largest number of ids a file may ask to fill up to.
const maxPadding = 1 << 20

func (t *Tokenizer) readPadding(s jsonr.Span) error {
	p := part{"padding", s}
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

// trimming says how offsets lose the spaces of their tokens.
type trimming struct{ prefix bool }

// track makes x remember where its bytes come from: the character they belong to.
func (sc *scratch) track(x text) text {
	sc.offs = sc.offs[:0]
	sc.from = normal.Origins(sc.from[:0], bytesOf(x.s))
	x.from = sc.from
	return x
}
