// SPDX-License-Identifier: Apache-2.0

package preamble

import (
	"cmp"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/seam"
)

// Bounds of a history: 2,048 marks of 24 bytes are 48 KiB, the names of 2,048 tools 16 KiB, and 512 cuts 8 KiB.
const (
	maxMarks = 2048
	maxTools = 2048
	maxCuts  = 512
)

// The pieces into which a segment is split. Tools and system text are split at newlines, and a line that may be a
// fragment is a separate piece, so that a divergence is located at its line.
const (
	headPiece = 256  // bytes of tools and system text after which a newline ends a piece
	maxPiece  = 4096 // bytes of other text, or of text without newlines
	lookAhead = 64   // bytes of a line that determine whether it is a piece
)

var (
	historySeed  = maphash.MakeSeed()
	seedA, seedB = rand.Uint64(), rand.Uint64()
)

// mix returns a hash of two numbers. It is faster than maphash.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^seedA, b^seedB)
	return hi ^ lo
}

// History records the prompt of the last request of a session in at most 72 KiB, so that a server can report where the
// next prompt diverges without keeping the body. The zero History is empty and ready to use. It is not safe for
// concurrent use.
//
// It keeps hashes of prefixes of the prompt: one for about every 256 bytes of tools and system text, one for each line
// that a rule may match, and one per segment or 4 KiB of other text. If there are more than 2,048, it drops every
// second one. The hashes are seeded, so a History cannot be used in another process.
type History struct {
	marks []mark
	total int64
	tools []uint64 // hashes of the names of tools, sorted
	cuts  []cut
}

// cut is a piece of a tool or of system text, which the next request mostly has too. Before the pieces of each is a cut that
// identifies it.
type cut struct {
	sum uint64 // of the piece, or of what the pieces after it were cut from
	n   int32  // length of the piece in bytes, or number of those pieces
}

// mark is the end of a piece of the prompt.
type mark struct {
	prefix uint64 // hash of everything up to here
	end    int64  // bytes up to here
	piece  uint32 // ordinal of the piece
	kind   kind
}

// Next returns where the prompt of r diverges from the previous request's prompt, and records r as the previous
// request. For the first request, Relation is Extends and A.Bytes is 0. Side A has no path and no excerpt, because only
// hashes of the earlier request are kept. Offset is a lower bound. The cause is determined from the later
// request.
//
// Cost: linear in the request. The text of turns that wire.API.DecodeNext took over from an earlier request is not read
// again, and tools and system text that the previous request had as well are only hashed.
func (t *History) Next(r *block.Request, o *CompareOptions) Divergence {
	c := newComparer(o)
	m, _ := scratches.Get().(*scratch)
	if m == nil {
		m = new(scratch)
	}
	defer m.giveBack()
	w := walk{old: t.marks, oldCuts: t.cuts, cuts: m.cuts[:0], was: -1, part: -1}
	if n := min(len(t.marks)+16, maxMarks); cap(m.marks) < n || cap(m.marks) > 2*n {
		m.marks = make([]mark, 0, min(n+n/4, maxMarks)) // later requests have more
	}
	w.marks = m.marks[:0]
	names := make([]uint64, 0, min(len(r.Tools()), maxTools))
	turns, origins := r.Turns(), codec.OriginsOf(r)
	if codec.HasInstruction(turns) {
		turns, origins = codec.SplitInstructions(turns), nil
	}
	s := reader{r: r, p: c.prompt, raw: true, out: m.list[:0], joined: m.joined[:0]}
	turn := func(i int) {
		var o *seam.Origin
		if origins != nil {
			o = origins[i]
		}
		w.turn(&s, &turns[i], o)
	}
	front := 0
	if c.prompt.SystemFirst {
		front = leading(turns)
	}
	for i := range front {
		turn(i)
	}
	tools := r.Tools()
	for i := range tools {
		if t := &tools[i]; !t.Deferred {
			w.tool(&s, t)
			if len(names) < cap(names) {
				names = append(names, maphash.String(historySeed, cmp.Or(t.ModelName, t.Type)))
			}
		}
	}
	for i := front; i < len(turns); i++ {
		turn(i)
	}
	m.list, m.joined = s.out, s.joined
	slices.Sort(names)
	w.close()
	if w.part >= 0 { // for the cause
		c.b = segments(r, c.prompt, true)
	}
	br := w.result(t, &c, names)
	m.marks, m.cuts = t.marks, t.cuts
	t.marks, t.total, t.tools, t.cuts = w.marks, w.end, names, w.cuts
	return br
}

// scratch is memory for the segments of one turn and the marks of a prompt.
type scratch struct {
	marks  []mark
	cuts   []cut
	list   []segment
	joined []byte
}

// scratches has the memory of earlier calls of History.Next.
var scratches sync.Pool

// maxScratch limits the memory that is kept, in segments and in bytes.
const maxScratch = 1 << 14

// giveBack returns m to scratches.
func (m *scratch) giveBack() {
	if cap(m.list) <= maxScratch && cap(m.joined) <= 64*maxScratch {
		clear(m.list) // of texts of the request
		scratches.Put(m)
	}
}

// walk marks a prompt and compares it with old marks.
type walk struct {
	old   []mark
	next  int // in old
	marks []mark
	skip  uint32 // pieces between two marks, minus one
	piece uint32
	sum   uint64
	end   int64
	kind  kind
	index int     // of the segment
	note  *pieces // notes the pieces of a turn, if not nil

	oldCuts []cut // of the next segment with cuts, and so on
	cuts    []cut

	was     int // the last old mark that matched, or -1
	part    int // the first old mark that did not match, or -1
	segIdx  int // the segment and offset of the piece that did not match
	segOff  int
	partEnd int64
}

// pieces has the pieces of a turn, which a later request may have too.
type pieces struct {
	callIDs  bool // as in Prompt
	segments int
	list     []piece
}

// piece is a piece of a segment's text.
type piece struct {
	segment, off, n int32
	kind            kind
	sum             uint64 // hash of the text, the kind and the role, and of whether it begins a turn or ends a segment
}

// turn walks over the segments of a turn.
func (w *walk) turn(s *reader, t *block.Turn, o *seam.Origin) {
	if o != nil {
		if p, _ := o.Pieces.Load().(*pieces); p != nil && p.callIDs == s.p.CallIDs {
			for i := range p.list {
				w.step(&p.list[i], w.index+int(p.list[i].segment))
			}
			w.index += p.segments
			return
		}
	}
	s.out, s.joined = s.out[:0], s.joined[:0]
	s.turn(t)
	if o != nil && lasting(t.Blocks) {
		w.note = &pieces{callIDs: s.p.CallIDs, segments: len(s.out), list: make([]piece, 0, len(s.out))}
	}
	from := w.index
	for i := range s.out {
		g, key := &s.out[i], uint64(0)
		if o == nil && g.kind == systemSegment {
			if key = g.sum(g.text, true); w.again(key, g.kind) {
				continue
			}
		}
		w.segment(g, key)
	}
	if w.note != nil {
		for i := range w.note.list {
			w.note.list[i].segment -= int32(from)
		}
		o.Pieces.Store(w.note)
		w.note = nil
	}
}

// lasting reports whether the segments of blocks do not depend on the rest of the request.
func lasting(list []block.Block) bool {
	for i := range list {
		if b := &list[i]; b.Kind == block.ToolReference || b.Namespace != "" || !lasting(b.Content) {
			return false
		}
	}
	return true
}

// tool walks over the pieces of a tool.
func (w *walk) tool(s *reader, t *block.Tool) {
	key := uint64(0)
	if v := codec.ValueOf(t.At); v.Exists() {
		if key = mix(maphash.Bytes(historySeed, v.Raw()), 0); w.again(key, toolSegment) {
			return
		}
	}
	g := s.toolSegment(t)
	w.segment(&g, key)
}

// again walks over the pieces of a segment if the previous request had one at this position that was cut from the same, which
// key identifies.
func (w *walk) again(key uint64, k kind) bool {
	if len(w.oldCuts) == 0 {
		return false
	}
	end := 1 + int(w.oldCuts[0].n)
	list := w.oldCuts[:end]
	if w.oldCuts = w.oldCuts[end:]; list[0].sum != key {
		return false
	}
	p := piece{kind: k}
	for _, c := range list[1:] {
		p.n, p.sum = c.n, c.sum
		w.step(&p, w.index)
		p.off += p.n
	}
	w.record(list...)
	w.index++
	return true
}

// segment walks over the pieces of a segment. It records them for the next request if key is not 0.
func (w *walk) segment(g *segment, key uint64) {
	head := len(w.cuts)
	recorded := key != 0 && w.record(cut{sum: key})
	text, off := g.text, 0
	for first := true; first || len(text) > 0; first = false {
		n := pieceLen(g, off)
		p := piece{segment: int32(w.index), off: int32(off), n: int32(n), kind: g.kind, sum: g.sum(text[:n], n == len(text))}
		if w.note != nil {
			w.note.list = append(w.note.list, p)
		}
		if recorded {
			if recorded = w.record(cut{p.sum, p.n}); recorded {
				w.cuts[head].n++
			} else {
				w.cuts = w.cuts[:head]
			}
		}
		w.step(&p, w.index)
		text, off = text[n:], off+n
	}
	w.index++
}

// record adds cuts, unless there are too many.
func (w *walk) record(list ...cut) bool {
	n := len(w.cuts) + len(list)
	if n > maxCuts {
		return false
	}
	if n > cap(w.cuts) {
		w.cuts = append(make([]cut, 0, min(max(2*n, 64), maxCuts)), w.cuts...)
	}
	w.cuts = append(w.cuts, list...)
	return true
}

// sum returns the hash of a piece of the segment with the given text. last reports whether it is the last one.
func (s *segment) sum(text string, last bool) uint64 {
	rest := uint64(s.kind) | uint64(s.role)<<8
	if s.opens {
		rest |= 1 << 16
	}
	if last {
		rest |= 1 << 17
	}
	return mix(maphash.String(historySeed, text), rest) // faster than a maphash.Hash
}

// step walks over one piece of the segment with the given index.
func (w *walk) step(p *piece, index int) {
	w.sum = mix(w.sum, p.sum)
	w.end += int64(p.n)
	w.kind = p.kind
	w.mark(index, int(p.off))
}

// pieceLen returns the length of the piece of a segment's text at off. The result depends on at most lookAhead bytes
// after the piece.
func pieceLen(g *segment, off int) int {
	text := g.text[off:]
	n := min(len(text), maxPiece)
	if n > headPiece && (g.kind == toolSegment || g.kind == systemSegment) {
		if i := strings.IndexByte(text[headPiece:n], '\n'); i >= 0 {
			n = headPiece + i + 1
		}
	}
	where := g.where()
	if where&(inSystem|inUser) == 0 {
		return n
	}
	start := 0 // of a line
	if off > 0 && g.text[off-1] != '\n' {
		start = lineEnd(text[:n], 0)
	}
	for ; start < n; start = lineEnd(text[:n], start) {
		if !labelled(text[start:min(len(text), start+lookAhead)], where) {
			continue
		}
		if start == 0 {
			return lineEnd(text[:n], 0)
		}
		return start
	}
	return n
}

// lineStart is the start of lines that may be fragments.
type lineStart struct {
	text  string
	where where
}

// lineStarts has the starts of lines that the default rules match or that Relocate writes, by their first byte.
var lineStarts = sync.OnceValue(func() *[256][]lineStart {
	var list [256][]lineStart
	add := func(text string, where where) {
		if text != "" {
			list[text[0]] = append(list[text[0]], lineStart{text, where})
		}
	}
	for _, r := range DefaultRules() {
		if r.End == "" {
			add(r.Line, r.Where)
		}
		add(r.Label, inSystem)
	}
	return &list
})

// labelled reports whether a line that starts with head may be a fragment.
func labelled(head string, where where) bool {
	head = strings.TrimPrefix(strings.TrimLeft(head, " \t"), "- ")
	return head != "" && slices.ContainsFunc(lineStarts()[head[0]], func(l lineStart) bool {
		return l.where&where != 0 && strings.HasPrefix(head, l.text)
	})
}

// mark ends a piece: it compares it with the old marks and may add a mark.
func (w *walk) mark(index, off int) {
	if w.part < 0 && w.next < len(w.old) && w.old[w.next].piece == w.piece {
		if m := &w.old[w.next]; m.prefix == w.sum && m.end == w.end {
			w.was = w.next
			w.next++
		} else {
			w.part, w.segIdx, w.segOff, w.partEnd = w.next, index, off, w.end
		}
	}
	if w.piece&w.skip == w.skip {
		if len(w.marks) == maxMarks-1 { // one is reserved for the end
			kept := w.marks[:0]
			for i := 1; i < len(w.marks); i += 2 {
				kept = append(kept, w.marks[i])
			}
			w.marks, w.skip = kept, w.skip<<1|1
		}
		if w.piece&w.skip == w.skip {
			w.add()
		}
	}
	w.piece++
}

// add appends a mark for the piece that ends here. The capacity does not exceed maxMarks.
func (w *walk) add() {
	if n := len(w.marks); n == cap(w.marks) {
		w.marks = append(make([]mark, 0, min(max(2*n, 64), maxMarks)), w.marks...)
	}
	w.marks = append(w.marks, mark{prefix: w.sum, end: w.end, piece: w.piece, kind: w.kind})
}

// close marks the end of the prompt.
func (w *walk) close() {
	if w.piece == 0 {
		return
	}
	w.piece--
	if n := len(w.marks); n == 0 || w.marks[n-1].piece != w.piece {
		w.add()
	}
	w.piece++
}

// result returns the divergence that was found.
func (w *walk) result(t *History, c *comparer, names []uint64) Divergence {
	br := Divergence{A: Side{Bytes: t.total}, B: Side{Bytes: w.end}}
	if w.was >= 0 {
		br.Offset = w.old[w.was].end
	}
	switch {
	case w.part >= 0:
		br.Relation = Diverges
		br.within = max(min(w.partEnd+lookAhead, max(w.end, t.total))-br.Offset, 1)
		c.later(&br, w, t, names)
	case w.was == len(w.old)-1 && w.end == br.Offset && (len(w.old) == 0 && w.piece == 0 || len(w.old) > 0 && w.old[w.was].piece == w.piece-1):
		br.Relation = Same
	case w.was == len(w.old)-1:
		br.Relation = Extends
	default:
		br.Relation, br.Cause, br.Class = Shorter, causeHistoryRewritten, classTurn
		br.within = w.end - br.Offset
	}
	return br
}

// later determines the cause of a divergence from the later request.
func (c *comparer) later(br *Divergence, w *walk, t *History, names []uint64) {
	g := &c.b[w.segIdx]
	br.B = Side{Bytes: br.B.Bytes, Path: g.at.Path(), At: w.segOff, Excerpt: excerpt(g.text, w.segOff, c.excerpt)}
	was := w.old[w.part].kind
	br.Class = classTurn
	switch {
	case g.kind == systemSegment && c.firstSystem(w.segIdx) && w.segOff < billingLen(g.text):
		br.Cause, br.Class, br.Rule = causeBillingHeader, classVolatile, billingRule
	case g.kind == toolSegment || was == toolSegment:
		br.Class = classSession
		gone, added := false, false
		for _, n := range t.tools {
			if _, ok := slices.BinarySearch(names, n); !ok {
				gone = true
			}
		}
		if g.kind == toolSegment {
			_, ok := slices.BinarySearch(t.tools, maphash.String(historySeed, g.name))
			added = !ok
		}
		switch {
		case added:
			br.Cause = causeToolAdded
		case gone:
			br.Cause = causeToolRemoved
		case c.fragment(br, w, g):
		case g.kind == toolSegment && was == toolSegment:
			br.Cause, br.Class = causeToolChanged, classStatic
		default:
			br.Cause = causeToolReordered
		}
	case c.fragment(br, w, g):
	case g.kind == systemSegment && was == systemSegment:
		br.Cause, br.Class = causeSystemEdited, classStatic
		if tailed(g.text, w.segOff) {
			br.Cause, br.Class = causeRelocatedText, classSession
		}
	case g.kind == systemSegment || was == systemSegment:
		br.Cause = causeSystemMoved
	case g.kind == compactionSegment || compacts(g.text):
		br.Cause = causeCompacted
	case was == reasoningSegment && g.kind != was && g.role == block.RoleAssistant:
		br.Cause = causeReasoningDropped
	case g.kind == reasoningSegment && (was == assistantSegment || was == callSegment):
		br.Cause = causeReasoningAdded
	case was == reminderSegment || g.kind == reminderSegment:
		br.Cause = causeReminder
	case was != g.kind:
		br.Cause = causeHistoryRewritten
	default:
		br.Cause = causeOf(g.kind)
	}
}

func (c *comparer) firstSystem(i int) bool {
	for k := range i {
		if c.b[k].kind == systemSegment {
			return false
		}
	}
	return true
}

// fragment looks for a fragment in the piece where the prompts diverge. It reports whether it found one.
func (c *comparer) fragment(br *Divergence, w *walk, g *segment) bool {
	off := w.segOff
	if g.where() == 0 {
		return false
	}
	s := scanner{rules: DefaultRules(), where: g.where()}
	end := off + pieceLen(g, off)
	var r *rule
	if f, ok := s.at(g.text, off, lineEnd(g.text, off)); ok && f.rule.End == "" {
		r = f.rule
	}
	list, mark := s.all(g.text)
	for i := range list {
		if f := &list[i]; r == nil && f.off < end && off < f.end {
			r = f.rule
		}
	}
	for at := max(off, mark); r == nil && mark >= 0 && at < end; at = lineEnd(g.text, at) {
		r = s.label(g.text[at:])
	}
	if r != nil {
		br.Cause, br.Class, br.Rule = r.Cause, r.Class, r.ID
	}
	return r != nil
}
