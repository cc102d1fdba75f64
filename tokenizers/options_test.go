// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/normal"
)

func encodeWith(tb testing.TB, tok *Tokenizer, text string, trusted bool, opt EncodeOptions) Encoding {
	tb.Helper()
	return encodeSegments(tb, tok, []Segment{{text, trusted}}, opt)
}

func encodeSegments(tb testing.TB, tok *Tokenizer, segs []Segment, opt EncodeOptions) (e Encoding) {
	tb.Helper()
	if err := tok.Encode(&e, segs, &opt); err != nil {
		tb.Fatal(err)
	}
	return e
}

// Offsets are counted in 32 bits.
func TestTooLongForOffsets(t *testing.T) {
	segs := []Segment{{"four", true}, {"five5", false}}
	if err := trackable(segs, 9); err != nil {
		t.Error(err)
	}
	err := trackable(segs, 8)
	if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "9 bytes") {
		t.Error(err)
	}
	if int64(normal.Span{End: maxTracked}.End) != maxTracked {
		t.Error("the limit does not fit in a span")
	}
}

// Special tokens are ids, text or an error, as the call asks.
func TestSpecialPolicy(t *testing.T) {
	tok := miniTokenizer(t)
	const text = "e\u0301 hi<|im_end|>"
	end, _ := tok.TokenID("<|im_end|>")
	if e := encodeWith(t, tok, text, true, EncodeOptions{}); !slices.Contains(e.IDs, end) {
		t.Errorf("parsed: %v", e.IDs)
	}
	e := encodeWith(t, tok, text, true, EncodeOptions{Special: SpecialText})
	if slices.Contains(e.IDs, end) || string(tok.AppendDecode(nil, e.IDs, true)) != "\u00e9 hi<|im_end|>" {
		t.Errorf("as text: %v", e.IDs)
	}
	err := tok.Encode(&e, []Segment{{"e\u0301 ", false}, {"hi<|im_end|>", true}}, &EncodeOptions{Special: SpecialRefuse})
	if !errors.Is(err, ErrSpecial) || err.Error() != `tokenizers: special token "<|im_end|>" in the text (offset 6)` {
		t.Errorf("refused: %v", err)
	}
	if err := tok.Encode(&e, []Segment{{text, false}}, &EncodeOptions{Special: SpecialRefuse}); err != nil {
		t.Errorf("in untrusted text: %v", err)
	}
	if e := encodeWith(t, tok, text, true, EncodeOptions{}); !slices.Contains(e.IDs, end) {
		t.Error("a policy outlives its call")
	}
}

// The error for a normalized special token has its offset in the text, not in the normalized form.
func TestSpecialRefusedNormalized(t *testing.T) {
	tok := smallTokenizer(t, "spm-prepend")
	var e Encoding
	err := tok.Encode(&e, []Segment{{"do it ▁[INST]", true}}, &EncodeOptions{Special: SpecialRefuse})
	got, ok := errors.AsType[*Error](err)
	if !ok || !strings.Contains(got.reason, `"[INST]"`) || got.Offset != int64(strings.Index("do it ▁[INST]", "▁")) {
		t.Errorf("got %v", err)
	}
}

// Each range between other tokens is normalized independently when special tokens are refused.
func TestSpecialRefusedBetween(t *testing.T) {
	tok := smallTokenizer(t, "spm-prepend")
	const text = "a[TOOL][INST]"
	ids := tok.AppendEncode(nil, text)
	inst, _ := tok.TokenID("[INST]")
	var e Encoding
	err := tok.Encode(&e, []Segment{{text, true}}, &EncodeOptions{Special: SpecialRefuse})
	got, refused := errors.AsType[*Error](err)
	if refused != slices.Contains(ids, inst) || refused && got.Offset != 7 {
		t.Errorf("ids %v, error %v", ids, err)
	}
}

// Truncation counts the frame and padding comes last, for ids and offsets alike.
func TestTruncationPadding(t *testing.T) {
	tok := smallTokenizer(t, "wordpiece")
	const text = "the user and the model"
	plain := encodeWith(t, tok, text, true, EncodeOptions{Offsets: true})
	before, after := tok.AddedSpecial()
	n := len(plain.IDs)
	if n < 6 || len(before) != 1 || len(after) != 1 {
		t.Fatal(plain.IDs, before, after)
	}
	ids := func(parts ...[]uint32) []uint32 { return slices.Concat(parts...) }
	offs := func(parts ...[]Offset) []Offset { return slices.Concat(parts...) }
	none := []Offset{{}}
	for name, c := range map[string]struct {
		cut  Truncation
		pad  Padding
		opt  EncodeOptions
		want Encoding
	}{
		"right": {Truncation{Max: 4}, Padding{}, EncodeOptions{}, Encoding{IDs: plain.IDs[:4], Offsets: plain.Offsets[:4], Dropped: n - 4}},
		"left":  {Truncation{Max: 4, Left: true}, Padding{}, EncodeOptions{}, Encoding{IDs: plain.IDs[n-4:], Offsets: plain.Offsets[n-4:], Dropped: n - 4}},
		"framed": {Truncation{Max: 5}, Padding{}, EncodeOptions{AddSpecial: true},
			Encoding{IDs: ids(before, plain.IDs[:3], after), Offsets: offs(none, plain.Offsets[:3], none), Dropped: n - 3}},
		"less than the frame": {Truncation{Max: 1}, Padding{}, EncodeOptions{AddSpecial: true},
			Encoding{IDs: ids(before, after), Offsets: offs(none, none), Dropped: n}},
		"padded": {Truncation{}, Padding{To: n + 1, MultipleOf: 1, ID: 7}, EncodeOptions{},
			Encoding{IDs: ids(plain.IDs, []uint32{7}), Offsets: offs(plain.Offsets, none)}},
		"padded in front": {Truncation{Max: 3}, Padding{MultipleOf: 4, Left: true, ID: 9}, EncodeOptions{AddSpecial: true},
			Encoding{IDs: ids([]uint32{9}, before, plain.IDs[:1], after), Offsets: offs(none, none, plain.Offsets[:1], none), Dropped: n - 1}},
	} {
		c.opt.Offsets = true
		if got := encodeWith(t, tok.WithLimits(c.cut, c.pad), text, true, c.opt); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got  %+v\nwant %+v", name, got, c.want)
		}
		c.opt.Offsets, c.want.Offsets = false, nil
		if got := encodeWith(t, tok.WithLimits(c.cut, c.pad), text, true, c.opt); !slices.Equal(got.IDs, c.want.IDs) || len(got.Offsets) > 0 {
			t.Errorf("%s: without offsets %v", name, got)
		}
	}
}

// What a file asks for holds for all ways to encode, and a call can ask for something else.
func TestTruncationOfFile(t *testing.T) {
	tok := smallTokenizer(t, "wordpiece-padded")
	text := strings.Repeat("the user and the model ", 9)
	long := encodeWith(t, tok.WithLimits(Truncation{}, Padding{}), text, true, EncodeOptions{})
	if len(long.IDs) < 20 || long.Dropped != 0 {
		t.Fatalf("%+v", long)
	}
	prefix := []uint32{4711}
	for name, got := range map[string][]uint32{
		"AppendEncode":         tok.AppendEncode(prefix, text),
		"AppendEncodeSegments": tok.AppendEncodeSegments(prefix, []Segment{{text, false}}),
		"Encode":               append(slices.Clone(prefix), encodeWith(t, tok, text, true, EncodeOptions{}).IDs...),
	} {
		if want := append(slices.Clone(prefix), long.IDs[len(long.IDs)-12:]...); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if got := tok.WithLimits(Truncation{}, Padding{}).AppendEncode(nil, text); !slices.Equal(got, long.IDs) {
		t.Errorf("without limits: %v", got)
	}
	want := encodeWith(t, tok, "the", true, EncodeOptions{AddSpecial: true})
	bare := encodeWith(t, tok.WithLimits(Truncation{}, Padding{}), "the", true, EncodeOptions{AddSpecial: true})
	if got := tok.AppendEncodeSpecial(prefix, "the"); !slices.Equal(got[1:], want.IDs) || got[0] != 4711 || len(want.IDs) != len(bare.IDs)+5 {
		t.Errorf("framed: %v, %+v", got, want)
	}
}
