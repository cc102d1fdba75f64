// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"sort"

	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/text"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// window is the part of the stream that the states see: what was held back before and the new chunk. start only moves
// forward; what is before it is accounted for.
//
// Invariant between calls: 0 ≤ start ≤ anchor, pos ≤ len(win).
type window struct {
	win     []byte
	start   int // first byte that is not accounted for
	pos     int // first byte that was not examined
	anchor  int // where an expected marker or a confirmation began
	mark    int // where the last marker found begins
	from    int // where the current name, tag, header section or blank run begins or was examined to
	openEnd int // where it ends
	openAt  int // where the markup of a tag begins that may still be prose; -1 for none
	// In stConfirm: around what may be the closing marker of a value, and where the markup after it begins.
	closeAt, closeEnd, nextAt int
	padSeen                   int   // if rules.before is beforeDrop: up to where the run was examined
	padEnd                    int   // and the end of its last byte that is not blank
	own                       bool  // win is buf, not the caller's chunk
	final                     bool  // nothing follows the window
	base                      int64 // offset of win[0] in the stream
	buf                       []byte

	// What the current state matched so far.
	node scan.Node
	step uint8 // of a confirmation or a list
	lit  int   // bytes of a literal
}

// tokenQueue holds the tokens that no event has counted yet, and those that are markers.
type tokenQueue struct {
	tokens   bool              // AppendTokens is in use: markers that are tokens count only as such
	ids      map[string]uint32 // of markers that are tokens
	isID     map[uint32]bool   // the same ids
	tokEnds  []int64           // ends of tokens, from tokNext on of those that no event has counted yet
	tokNext  int
	tokDue   int32     // tokens before start that no event has counted yet
	tokMarks []tokMark // tokens that are markers, not yet before start
}

type tokMark struct {
	off, end int64
	id       uint32
}

// Token is one token of model output.
type Token struct {
	ID  uint32
	End int // where its bytes end in the chunk, exclusive; never decreasing
}

// output holds the results of a call to Append.
type output struct {
	evs      []event.Event
	out      []byte // text made up by the parser in this call, such as escaped arguments
	part     int32
	partKind event.Kind
	calls    int32 // ordinals given out
	complete int32 // complete calls outside reasoning
	cutOff   bool  // the end of the stream cut a call, or a list of calls that was held
}

// open makes the window: what was held back, then chunk. Without held bytes the window is the chunk itself.
func (p *machine) open(chunk []byte, tokens []Token) {
	p.out = p.out[:0]
	if p.own && p.start == 0 && len(p.win) > 0 && len(tokens) == 0 { // all of buf is held: it only grows
		p.buf = append(p.buf, chunk...)
		p.win = p.buf
		return
	}
	held, gap := p.win[p.start:], p.start > 0
	p.rebase()
	if len(tokens) > 0 {
		p.note(tokens, p.off(len(held)), len(chunk))
	}
	if len(held) == 0 {
		p.win, p.pos, p.own = chunk, 0, false
		return
	}
	if gap { // keep has put them into buf already
		copy(p.buf, held)
	}
	p.buf = append(p.buf[:len(held)], chunk...)
	p.win, p.own = p.buf, true
}

// keep takes the bytes that are still held out of the caller's chunk. Events of this call may point into buf, so what
// is in buf already stays where it is until the next open.
func (p *machine) keep() {
	if p.start < len(p.win) && p.own {
		return
	}
	held := p.win[p.start:]
	p.rebase()
	p.buf = append(p.buf[:0], held...)
	p.win = p.buf
}

// rebase makes start the first position of the window.
func (p *machine) rebase() {
	if n := p.start; n > 0 {
		p.base += int64(n)
		p.start = 0
		p.pos -= n
		p.anchor, p.mark, p.from, p.openAt = max(p.anchor-n, -1), max(p.mark-n, -1), max(p.from-n, -1), max(p.openAt-n, -1)
		p.openEnd = max(p.openEnd-n, -1)
		if p.padSeen > 0 {
			p.padSeen, p.padEnd = max(p.padSeen-n, 0), max(p.padEnd-n, 0)
		}
		if p.state == stConfirm {
			p.closeAt, p.closeEnd, p.nextAt = max(p.closeAt-n, -1), max(p.closeEnd-n, -1), max(p.nextAt-n, -1)
		}
	}
}

// note queues the tokens of a chunk of size bytes at stream offset at.
func (p *machine) note(tokens []Token, at int64, size int) {
	n := 0
	for n < len(p.tokMarks) && p.tokMarks[n].end <= p.base {
		n++ // after start: nothing looks there again
	}
	p.tokMarks = p.tokMarks[:copy(p.tokMarks, p.tokMarks[n:])]
	p.tokDue = p.countTokens(p.base)
	p.tokEnds = p.tokEnds[:copy(p.tokEnds, p.tokEnds[p.tokNext:])]
	p.tokNext = 0
	off := at
	for _, t := range tokens {
		end := at + int64(min(max(t.End, 0), size))
		if p.isID[t.ID] && end > off {
			p.tokMarks = append(p.tokMarks, tokMark{off, end, t.ID})
		}
		p.tokEnds = append(p.tokEnds, end)
		off = end
	}
}

// off returns the stream offset of window position i.
func (p *machine) off(i int) int64 { return p.base + int64(i) }

// emit appends an event of text or reasoning whose source is win[from:to].
func (p *machine) emit(k event.Kind, data []byte, from, to int) {
	end := p.off(to)
	p.evs = append(p.evs, event.Event{
		Kind: k, Choice: p.opt.Choice, Part: p.part, Call: -1,
		Tokens: p.countTokens(end), Off: p.off(from), End: end, Data: data,
	})
}

// made copies data into memory that is valid as long as the events of this call to Append.
func (p *machine) made(data []byte) []byte {
	n := len(p.out)
	p.out = append(p.out, data...)
	return p.out[n:len(p.out):len(p.out)]
}

// countTokens takes the tokens that end at or before end out of the queue.
func (p *machine) countTokens(end int64) int32 {
	n := p.tokDue
	for p.tokNext < len(p.tokEnds) && p.tokEnds[p.tokNext] <= end {
		p.tokNext++
		n++
	}
	p.tokDue = 0
	return n
}

// endBlock makes the next event open a new block.
func (p *machine) endBlock() { p.partKind = 0 }

// is reports whether the marker text that ends at window position to counts. With token ids, a marker that is a token
// is recognized only as that token.
func (p *machine) is(text string, to int) bool {
	if !p.tokens {
		return true
	}
	id, ok := p.ids[text]
	if !ok {
		return true // the vocabulary spells it with ordinary tokens
	}
	// The token may begin before the marker: a detokenizer flushes with it what it held back.
	b := p.off(to)
	i := sort.Search(len(p.tokMarks), func(i int) bool { return p.tokMarks[i].end >= b })
	for ; i < len(p.tokMarks) && p.tokMarks[i].end == b; i++ {
		if p.tokMarks[i].id == id {
			return true
		}
	}
	return false
}

// find scans from pos for a marker of s. It returns the marker's number with mark and pos around it, or -1 with pos at
// the end of the window.
func (p *machine) find(s *markerSet) int {
	for {
		m, end := s.set.Find(p.win, p.pos, &p.node, p.final)
		p.pos = end
		if m < 0 {
			return -1
		}
		p.mark = end - len(s.markers[m].text)
		if p.is(s.markers[m].text, end) {
			return m
		}
		p.pos = p.mark + 1
	}
}

// free returns the window position up to which nothing can belong to a half-seen marker of s.
func (p *machine) free(s *markerSet) int { return p.pos - s.set.Held(p.node) }

// expect reports whether the window continues, after blanks, with a marker of s. On Yes, mark and pos are around it. On No,
// pos is at the first byte that is not blank.
func (p *machine) expect(s *markerSet) (int, scan.Prefix) {
	if p.node == 0 {
		p.skipBlanks()
		p.anchor = p.pos
		if p.pos == len(p.win) {
			return -1, scan.More
		}
	}
	w := p.win[:min(len(p.win), p.anchor+s.longest)]
	m, end := s.set.Find(w, p.pos, &p.node, p.final || len(w) < len(p.win))
	if m >= 0 {
		if p.mark = end - len(s.markers[m].text); p.mark == p.anchor && p.is(s.markers[m].text, end) {
			p.pos = end
			return m, scan.Yes
		}
	} else if s.set.Held(p.node) == len(w)-p.anchor && len(w) == len(p.win) {
		p.pos = end
		return -1, scan.More
	}
	p.node, p.pos = 0, p.anchor
	return -1, scan.No
}

// whole returns to shortened so that win[:to] does not end inside a UTF-8 sequence; from bounds it below.
func (p *machine) whole(from, to int) int { return from + text.Whole(p.win[from:to]) }

// skipBlanks moves pos after white space.
func (p *machine) skipBlanks() {
	for p.pos < len(p.win) && blank(p.win[p.pos]) {
		p.pos++
		work.Add(1)
	}
}

func blank(c byte) bool { return text.Blank(c) }

// nameStart reports whether c can begin the name of a function.
func nameStart(c byte) bool { return text.NameStart(c) }

// tooLong reports whether more than n bytes are held from window position from on.
func (p *machine) tooLong(from, n int) bool { return len(p.win)-from > n }
