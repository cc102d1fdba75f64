// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"iter"
	"sort"
	"sync"
)

// text is the bytes of a document, in one piece or, after [ScanNext], in pieces that earlier documents have, too. A value
// that is in several pieces is an object or array.
type text struct {
	body   []byte // the whole; nil if there are pieces
	pieces []piece
	size   int     // of the whole
	held   int     // bytes of the memory that the pieces are parts of
	joined *joined // of the pieces
}

// joined is a text in one piece, after the first call of [Doc.Body].
type joined struct {
	once sync.Once
	body []byte
}

// piece is a part of a text.
type piece struct {
	at int // its offset in the text
	b  []byte
}

// is makes t the text body, in one piece.
func (t *text) is(body []byte) {
	t.body, t.pieces, t.size, t.held = body, nil, len(body), len(body)
}

// hold makes t a text of pieces.
func (t *text) hold(pieces []piece) {
	t.pieces, t.joined = pieces, new(joined)
	for _, p := range pieces {
		t.size += len(p.b)
	}
}

// slice returns the bytes [off, end).
func (t *text) slice(off, end int32) []byte {
	if t.pieces == nil {
		return t.body[off:end:end]
	}
	return t.between(int(off), int(end))
}

// between returns the bytes [off, end) of a text with pieces, as a copy if they are in several. The whole would keep more memory.
func (t *text) between(off, end int) []byte {
	if b, ok := t.one(off, end); ok {
		return b
	}
	return t.append(make([]byte, 0, end-off), off, end)
}

// one returns the bytes [off, end) if they are in one piece.
func (t *text) one(off, end int) ([]byte, bool) {
	if t.pieces == nil {
		return t.body[off:end:end], true
	}
	if p := &t.pieces[t.find(off)]; end <= p.at+len(p.b) {
		return p.b[off-p.at : end-p.at : end-p.at], true
	}
	return nil, false
}

// find returns the number of the piece with the byte off.
func (t *text) find(off int) int {
	return sort.Search(len(t.pieces), func(i int) bool { return t.pieces[i].at > off }) - 1
}

// whole returns all bytes.
func (t *text) whole() []byte {
	if t.pieces == nil {
		return t.body
	}
	j := t.joined
	j.once.Do(func() { j.body = t.append(make([]byte, 0, t.size), 0, t.size) })
	return j.body
}

// each yields the bytes [off, end), piece by piece.
func (t *text) each(off, end int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if t.pieces == nil {
			yield(t.body[off:end:end])
			return
		}
		for i := t.find(off); off < end; i++ {
			p := &t.pieces[i]
			to := min(end-p.at, len(p.b))
			if !yield(p.b[off-p.at : to : to]) {
				return
			}
			off = p.at + to
		}
	}
}

// append appends the bytes [off, end).
func (t *text) append(dst []byte, off, end int) []byte {
	for part := range t.each(off, end) {
		dst = append(dst, part...)
	}
	return dst
}

// cut returns pieces with the bytes [off, end) for another text, where they begin at at.
func (t *text) cut(list []piece, off, end, at int) []piece {
	for part := range t.each(off, end) {
		list = append(list, piece{at, part})
		at += len(part)
	}
	return list
}

// common returns the number of bytes [off, end) with which b begins as well.
func (t *text) common(off, end int, b []byte) int {
	n := 0
	for part := range t.each(off, end) {
		k := common(part, b[n:])
		if n += k; k < len(part) {
			break
		}
	}
	return n
}

// commonEnd returns the number of bytes at the end with which b ends as well.
func (t *text) commonEnd(b []byte) int {
	if t.pieces == nil {
		return commonEnd(t.body, b)
	}
	n := 0
	for i := len(t.pieces) - 1; i >= 0; i-- {
		k := commonEnd(t.pieces[i].b, b[:len(b)-n]) // not more than b has left
		n += k
		if k < len(t.pieces[i].b) {
			break
		}
	}
	return n
}

// Common returns the number of bytes at the beginning of body that the document has as well and, of the rest of both, the
// number of bytes at the end.
func (d *Doc) Common(body []byte) (front, end int) {
	n := min(d.size, len(body))
	front = d.common(0, n, body)
	return front, d.commonEnd(body[len(body)-(n-front):])
}

// minPiece is the least length of a piece of an earlier text: a copy of fewer bytes takes less memory than the piece.
const minPiece = 256

// share makes t the text body, with the memory of the earlier text for what runs of the document's nodes have in common with
// it, in pieces of at least the given length. It reports false and does nothing if too little is in common, or if the earlier text
// refers to too much memory.
func (t *text) share(earlier *text, runs []run, body []byte, least int) bool {
	kept := 0
	for i := range runs {
		if n := int(runs[i].end - runs[i].off); n >= least {
			kept += n
		}
	}
	fresh := len(body) - kept
	if fresh > kept || earlier.held+fresh > len(body)+len(body)/4+64<<10 {
		return false
	}
	t.body, t.size, t.held = nil, len(body), earlier.held+fresh
	t.pieces, t.joined = make([]piece, 0, len(earlier.pieces)+2*len(runs)+1), new(joined)
	mem := make([]byte, 0, fresh)
	at := 0
	add := func(end int) {
		if end > at {
			from := len(mem)
			mem = append(mem, body[at:end]...)
			t.pieces = append(t.pieces, piece{at, mem[from:len(mem):len(mem)]})
			at = end
		}
	}
	for i := range runs {
		r := &runs[i]
		if off, end := int(r.off), int(r.end); end-off >= least {
			add(off)
			t.pieces = earlier.cut(t.pieces, off-int(r.shift), end-int(r.shift), off)
			at = end
		}
	}
	add(len(body))
	return true
}
