// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"strings"
	"unsafe"

	"github.com/weft-go/weft/tokenizers/internal/bpe"
	"github.com/weft-go/weft/tokenizers/internal/normal"
	"github.com/weft-go/weft/tokenizers/internal/pretok"
)

// This file contains the exported functions, the stages in the order in which text passes them (added tokens,
// normalizer, normalized added tokens, pre-tokenizer, model), and their shared state.

// AppendEncode appends the IDs of text to dst. Added tokens in the text become their IDs. It is Hugging Face's encode
// with add_special_tokens=False, including the file's truncation and padding.
//
// Use [Tokenizer.AppendEncodeSegments] for prompts that contain text from users or tools: here their "<|im_end|>"
// becomes a control token.
func (t *Tokenizer) AppendEncode(dst []uint32, text string) []uint32 {
	start := len(dst)
	sc := t.pool.get()
	dst = t.encode(dst, whole(text), sc)
	t.pool.put(sc)
	return t.finish(dst, start, false)
}

// AppendEncodeSpecial is [Tokenizer.AppendEncode] with the model's special tokens added before and after the text, such
// as a beginning of sequence: Hugging Face's encode with add_special_tokens=True.
func (t *Tokenizer) AppendEncodeSpecial(dst []uint32, text string) []uint32 {
	start := len(dst)
	dst = append(dst, t.before...)
	sc := t.pool.get()
	dst = t.encode(dst, whole(text), sc)
	t.pool.put(sc)
	return t.finish(dst, start, true)
}

// AddedSpecial returns the IDs that AppendEncodeSpecial adds before and after a text. The caller must not modify them.
func (t *Tokenizer) AddedSpecial() (before, after []uint32) { return t.before, t.after }

// A Segment is a part of a text that is trusted or not.
type Segment struct {
	Text string
	// Trusted text was written by the program or the model's template. Added tokens are recognized in trusted text
	// only, never across its boundaries.
	Trusted bool
}

// AppendEncodeSegments appends the ids of the concatenation of segs to dst. Untrusted text never yields an added token
// and is never part of one: "<|im_end|>" in it is encoded as ordinary characters. The exception is a token that is not
// special and that the model also makes from plain text, such as a word that the file also declares as added. A special
// token of one ordinary character becomes the unknown token in untrusted text, or U+FFFD if there is none. In all
// other respects the text is one string. The ids equal the result of [Tokenizer.AppendEncode] for the joined text if no
// untrusted text spells an added token. A trusted token that strips white space also strips untrusted white space, and
// a single-word token depends on the characters next to it, trusted or not. What the model makes of trusted bytes alone
// may be a special token, as in AppendEncode.
//
// If the normalizer changes a range with both trusted and untrusted text, normalized added tokens in it (which are
// rare) remain text.
func (t *Tokenizer) AppendEncodeSegments(dst []uint32, segs []Segment) []uint32 {
	start := len(dst)
	sc := t.pool.get()
	dst = t.encode(dst, sc.join(segs), sc)
	t.pool.put(sc)
	return t.finish(dst, start, false)
}

// stretch is a part of the input as it passes the stages.
type stretch struct {
	s     string
	from  []normal.Span // range of the input for each byte; nil if offsets are not needed
	first bool          // it begins at the start of the input
}

// part returns the bytes [i, j) of x.
func (x stretch) part(i, j int) stretch {
	x.first = x.first && (i == 0 || x.from != nil && i < j && x.from[i].Start == 0)
	if x.from != nil {
		x.from = x.from[i:j]
	}
	x.s = x.s[i:j]
	return x
}

// text is a stretch that may contain added tokens.
type text struct {
	stretch
	trust trust
}

// part returns the bytes [i, j) of x.
func (x text) part(i, j int) text { return text{x.stretch.part(i, j), x.trust.at(i)} }

// whole returns an input that is one trusted text.
func whole(s string) text { return text{stretch{s: s, first: true}, trust{all: true}} }

// join concatenates the segments. The result is valid until the next call.
func (sc *scratch) join(segs []Segment) text {
	sc.rope = sc.rope[:0]
	sc.ranges = sc.ranges[:0]
	for _, s := range segs {
		if s.Trusted && s.Text != "" {
			n := len(sc.rope)
			if k := len(sc.ranges) - 1; k >= 0 && sc.ranges[k].end == n {
				sc.ranges[k].end += len(s.Text)
			} else {
				sc.ranges = append(sc.ranges, byteRange{n, n + len(s.Text)})
			}
		}
		sc.rope = append(sc.rope, s.Text...)
	}
	return text{stretch{s: view(sc.rope), first: true}, trust{ranges: sc.ranges}}
}

// encode splits x at the added tokens that are matched before the normalizer.
func (t *Tokenizer) encode(dst []uint32, x text, sc *scratch) []uint32 {
	if t.raw == nil {
		return t.encodeNormal(dst, x, sc)
	}
	c := cuts{m: t.raw, s: x.s, trust: x.trust, plain: sc.special == SpecialText}
	for c.next() {
		if c.token >= 0 {
			dst = append(dst, t.raw.tokens[c.token].ID)
			t.cover(x.stretch, c.start, c.end, x.s[c.start:c.end], sc)
		} else {
			dst = t.encodeNormal(dst, x.part(c.start, c.end), sc)
		}
	}
	return dst
}

// encodeNormal normalizes x and splits it at the normalized added tokens.
func (t *Tokenizer) encodeNormal(dst []uint32, x text, sc *scratch) []uint32 {
	if t.origins && x.first && x.from == nil {
		x = sc.track(x)
	}
	if len(t.norm) > 0 {
		x = t.normalize(x, sc)
	}
	if t.normal == nil || !x.trust.all && len(x.trust.ranges) == 0 {
		return t.encodeText(dst, x, sc)
	}
	c := cuts{m: t.normal, s: x.s, trust: x.trust, plain: sc.special == SpecialText}
	for c.next() {
		if c.token >= 0 {
			dst = append(dst, t.normal.tokens[c.token].ID)
			t.cover(x.stretch, c.start, c.end, x.s[c.start:c.end], sc)
		} else {
			dst = t.encodeText(dst, x.part(c.start, c.end), sc)
		}
	}
	return dst
}

// normalize runs the normalizer. The result is valid until the next call.
func (t *Tokenizer) normalize(x text, sc *scratch) text {
	src := normal.Text{B: bytesOf(x.s), From: x.from}
	if len(x.from) > 0 {
		src.Start = x.from[0].Start
	}
	out := normal.Run(t.norm, src, &sc.normal)
	if unsafe.SliceData(out.B) == unsafe.SliceData(src.B) && len(out.B) == len(src.B) {
		return x
	}
	// The origin of single bytes is lost, so the text is trusted as a whole or not at all.
	x.trust = trust{all: x.trust.whole(len(x.s)), base: x.trust.base}
	x.s = view(out.B)
	if x.from != nil {
		x.from = out.From
		x.first = x.first && len(x.from) > 0 && x.from[0].Start == 0
	}
	return x
}

// encodeText encodes text without added tokens.
func (t *Tokenizer) encodeText(dst []uint32, x text, sc *scratch) []uint32 {
	start := len(dst)
	if t.cuts != nil && x.from == nil && !t.gaps.in(x.s) {
		dst = t.cut(dst, x.s, 0, sc)
	} else {
		dst = t.pieces(dst, x.stretch, 0, sc)
	}
	if t.reachable && (!x.trust.all || sc.special != SpecialParse) {
		dst = t.defuse(dst, start, x, sc)
	}
	return dst
}

// cut is a faster version of pieces for pre-tokenizers that only cut and models of bytes. It applies step k to s and
// later steps to the pieces.
func (t *Tokenizer) cut(dst []uint32, s string, k int, sc *scratch) []uint32 {
	x, last := t.cuts[k], k == len(t.cuts)-1
	for i := 0; i < len(s); {
		if last && len(s) >= pretok.MinScan {
			n := x.Ends(sc.words[:], s, i)
			dst = t.byteBPE.AppendWords(dst, s, i, sc.words[:n], &sc.bpe)
			i = sc.words[n-1]
			continue
		}
		j := x.Next(s, i)
		if last {
			dst = t.byteBPE.Append(dst, s, i, j, &sc.bpe)
		} else {
			dst = t.cut(dst, s[i:j], k+1, sc)
		}
		i = j
	}
	return dst
}

// step is one step of a pre-tokenizer. It rewrites the text, cuts it, or both in this order.
type step struct {
	rewrite normal.Step // nil if absent
	unless  string      // texts that begin with this are not rewritten
	first   bool        // only the beginning of the input is rewritten

	fn   pretok.Func     // at most one of fn and cut is set
	cut  pretok.Splitter //
	expr string          // the expression whose matches are isolated, if any
}

// pieces applies the steps from index k on and encodes the resulting pieces.
func (t *Tokenizer) pieces(dst []uint32, x stretch, k int, sc *scratch) []uint32 {
	if x.s == "" {
		return dst
	}
	if k == len(t.steps) {
		return t.word(dst, x, 0, len(x.s), sc)
	}
	st := &t.steps[k]
	if st.rewrite != nil && (!st.first || x.first) && (st.unless == "" || !strings.HasPrefix(x.s, st.unless)) {
		src := normal.Text{B: bytesOf(x.s), From: x.from}
		l := sc.level(k)
		l.text.B, l.text.From = l.text.B[:0], l.text.From[:0]
		st.rewrite.Append(&l.text, src, &sc.normal)
		x.s = view(l.text.B)
		if x.from != nil {
			x.from = l.text.From
		}
	}
	last := k == len(t.steps)-1
	switch {
	case st.fn != nil:
		for i := 0; i < len(x.s); {
			j := st.fn(x.s, i)
			if last {
				dst = t.word(dst, x, i, j, sc)
			} else {
				dst = t.pieces(dst, x.part(i, j), k+1, sc)
			}
			i = j
		}
		return dst
	case st.cut != nil:
		l := sc.level(k)
		l.pieces = st.cut.AppendPieces(l.pieces[:0], x.s)
		for i := range len(l.pieces) {
			p := sc.level(k).pieces[i] // levels may have been reallocated
			if last {
				dst = t.word(dst, x, p.Start, p.End, sc)
			} else {
				dst = t.pieces(dst, x.part(p.Start, p.End), k+1, sc)
			}
		}
		return dst
	}
	return t.pieces(dst, x, k+1, sc)
}

// word encodes one pre-token, the bytes [i, j) of x.
func (t *Tokenizer) word(dst []uint32, x stretch, i, j int, sc *scratch) []uint32 {
	if x.from == nil {
		return t.model.append(dst, x.s, i, j, sc)
	}
	start, last := i, i
	dst, sc.ends = t.model.appendEnds(dst, sc.ends[:0], x.s, i, j, sc)
	ids := dst[len(dst)-len(sc.ends):]
	for k, end := range sc.ends {
		begin := start
		if k > 0 && i+end == start && t.dec.pieces == nil {
			// Another byte of text unknown to Unigram: each of these ids represents all of it.
			begin = last
		}
		token := ""
		switch {
		case len(t.trims) == 0:
		case t.unkText && int64(ids[k]) == t.unk:
			token = x.s[begin : i+end]
		default:
			token, _ = t.modelToken(ids[k])
		}
		t.cover(x, begin, i+end, token, sc)
		last, start = begin, i+end
	}
	return dst
}

// defuse replaces special ids that the model made from text of x that is not trusted by the ids of their characters,
// encoded one by one. The ids of x begin at dst[start].
func (t *Tokenizer) defuse(dst []uint32, start int, x text, sc *scratch) []uint32 {
	parse := sc.special == SpecialParse
	if !t.anyForged(dst[start:]) || parse && x.trust.whole(len(x.s)) {
		return dst
	}
	track := x.from != nil
	parse = parse && len(x.trust.ranges) > 0 && (track || x.trust.ranges[0].start < x.trust.base+len(x.s) && len(x.s) <= maxTracked)
	if !track && parse {
		// Some of it is trusted. Encode once more, to find out which bytes the ids represent.
		x = sc.track(x)
		dst = t.pieces(dst[:start], x.stretch, 0, sc)
	}
	ids := append([]uint32(nil), dst[start:]...)
	dst = dst[:start]
	var offs []covered
	if x.from != nil {
		n := len(sc.offs) - len(ids)
		offs = append(offs, sc.offs[n:]...)
		sc.offs = sc.offs[:n]
	}
	base := 0
	if !track {
		base = x.trust.base
	}
	for i, id := range ids {
		n := len(dst)
		if t.flag(id)&flagForged == 0 || parse && x.trust.holds(base+offs[i].Start, base+offs[i].End) {
			dst = append(dst, id)
		} else {
			for _, part := range t.model.parts(id) {
				k := len(dst)
				dst = t.model.append(dst, part, 0, len(part), sc)
				for ; k < len(dst); k++ {
					if t.flag(dst[k])&flagForged != 0 {
						dst = append(dst[:k], t.standIn...) // the part is one character
						break
					}
				}
			}
		}
		for ; track && n < len(dst); n++ {
			sc.offs = append(sc.offs, offs[i])
		}
	}
	return dst
}

// anyForged reports whether the model may have made one of ids from ordinary text, although it is special.
func (t *Tokenizer) anyForged(ids []uint32) bool {
	for _, id := range ids {
		if t.flag(id)&flagForged != 0 {
			return true
		}
	}
	return false
}

// scratch is the mutable state of one encoding.
type scratch struct {
	states
	normal  normal.Buffer
	levels  []level // by step of the pre-tokenizer
	rope    []byte
	ranges  []byteRange
	from    []normal.Span
	offs    []covered // of the ids appended so far, if offsets are requested
	ends    []int
	words   [2 * bpe.Batch]int // ends of some
	special SpecialPolicy
	bytes   []byte
	run     []byte // of a Stream
}

// level holds the result of one step of the pre-tokenizer for the current piece.
type level struct {
	text   normal.Text
	pieces []pretok.Piece
}

func (sc *scratch) level(k int) *level {
	for len(sc.levels) <= k {
		sc.levels = append(sc.levels, level{})
	}
	return &sc.levels[k]
}

// covered is the range of the input that an id represents.
type covered struct {
	Offset
	left, right int // number of spaces at the ends of the token; 0 if they are not trimmed
}

// cover records that an id represents the bytes [i, j) of x. token is its spelling in the reference, whose spaces are trimmed.
func (t *Tokenizer) cover(x stretch, i, j int, token string, sc *scratch) {
	if x.from == nil {
		return
	}
	var o covered
	switch {
	case i < j:
		o.Offset = Offset{int(x.from[i].Start), int(x.from[j-1].End)}
	case i < len(x.from):
		o.Offset = Offset{int(x.from[i].Start), int(x.from[i].Start)}
	case i > 0:
		o.Offset = Offset{int(x.from[i-1].End), int(x.from[i-1].End)}
	}
	if len(t.trims) > 0 {
		o.left, o.right = spaces(token)
	}
	sc.offs = append(sc.offs, o)
}

// bytesOf returns the bytes of s without copying. The caller must not modify them.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// view returns b as a string without copying. The caller must not modify b while the string is in use.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
