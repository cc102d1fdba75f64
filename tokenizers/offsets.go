// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"sort"

	"github.com/weft-go/weft/tokenizers/internal/nfc"
)

// Offset is the stretch [Start, End) of a text, in bytes.
type Offset struct{ Start, End int }

// AppendEncodeOffsets is [Tokenizer.AppendEncodeSegments] and appends to offs which bytes of the joined text
// each id stands for, so that both grow by the same number.
//
// A token that is part of a character has exactly its bytes. Where the normalizer changed the text, a token
// has all the characters that were normalized together with those it holds, so that neighbours may overlap
// there. An added token has the white space it took along. Offsets cost a few allocations and about as much
// time again as the ids.
func (t *Tokenizer) AppendEncodeOffsets(ids []uint32, offs []Offset, segs []Segment) ([]uint32, []Offset) {
	sc := t.pool.get()
	sc.tracks = &tracks{}
	start := len(ids)
	ids = t.encodeSegments(ids, segs, sc)
	tr := sc.tracks
	sc.tracks = nil
	t.pool.put(sc)
	for k, p := range tr.pieces {
		end := len(ids)
		if k+1 < len(tr.pieces) {
			end = tr.pieces[k+1].at
		}
		src := tr.sources[p.source]
		if p.end >= 0 {
			offs = append(offs, src.offset(p.start, p.end))
			continue
		}
		at := p.start
		for _, id := range ids[max(p.at, start):end] {
			n := len(t.vocab.Bytes(id))
			offs = append(offs, src.offset(at, at+n))
			at += n
		}
	}
	return ids, offs
}

// tracks records where ids come from while a text is encoded: one entry for each stretch between added
// tokens.
type tracks struct {
	sources []source
	pieces  []track
}

// source is a text that was encoded, after normalization.
type source struct {
	base int       // its offset in the joined text
	runs []nfc.Run // what normalization changed
}

// track is a piece of the last source: the ids from index at on stand for its bytes from start on, or, if
// end >= 0, one id for [start, end).
type track struct{ source, at, start, end int }

func (t *tracks) source(base int, runs []nfc.Run) { t.sources = append(t.sources, source{base, runs}) }

func (t *tracks) piece(at, start, end int) {
	t.pieces = append(t.pieces, track{len(t.sources) - 1, at, start, end})
}

// offset maps a stretch of the source back.
func (s source) offset(start, end int) Offset {
	return Offset{s.base + s.back(start, false), s.base + s.back(end, true)}
}

// back maps a position; one inside a run becomes the run's start, or its end if it ends a stretch.
func (s source) back(i int, end bool) int {
	k := sort.Search(len(s.runs), func(k int) bool { return s.runs[k].DstEnd > i || end && s.runs[k].DstEnd == i })
	if k < len(s.runs) {
		r := s.runs[k]
		switch {
		case i > r.Dst && end:
			return r.SrcEnd
		case i >= r.Dst && !end:
			return r.Src
		}
	}
	if k == 0 {
		return i
	}
	r := s.runs[k-1]
	return i - r.DstEnd + r.SrcEnd
}
