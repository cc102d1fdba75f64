// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sort"
)

// This file is structured as follows: ScanNext; the guide, which the scanner asks before it reads a value, and its
// comparison of bytes; then the record of what was copied.

// ScanNext is [Scan] for a body that has much in common with an earlier document. The result and errors are the same. A
// value with the same bytes as its counterpart in prev is not scanned: its nodes are copied. The counterpart of a field
// is the field with the same name; the counterpart of an element is the next one in the array, or one near it if
// elements were added or removed. prev, which may be nil, must have been scanned with the same Limits.Opaque; it is only
// read. The document does not retain body. What is equal is in the memory of prev, which may be up to a quarter more than the body
// and 64 KiB. If that is exceeded, or less than half is equal, the document has a copy of the whole body, and there are no Copies.
//
// The cost is a comparison of what is equal, and a scan and a copy of the rest.
func ScanNext(prev *Doc, body []byte, lim Limits) (*Doc, *Copies, error) {
	d, c, err := scanNext(prev, body, lim)
	if err != nil {
		return nil, nil, err
	}
	if c == nil || !d.share(&prev.text, c.runs, body, minPiece) {
		d.is(bytes.Clone(body))
		c = nil
	}
	return d, c, nil
}

// scanNext is ScanNext, but the document retains body.
func scanNext(prev *Doc, body []byte, lim Limits) (*Doc, *Copies, error) {
	if prev == nil || prev.depth > lim.Depth {
		d, err := Scan(body, lim)
		return d, nil, err
	}
	if maxBytes := min(lim.Bytes, math.MaxInt32); len(body) > maxBytes {
		return nil, nil, bodyTooLarge(maxBytes)
	}
	g := &guide{doc: prev, tail: -1, levels: make([]level, 0, 16)}
	s := scanner{body: body, frames: make([]frame, 0, 16), keys: make([]keyRef, 0, 64), guide: g}
	d := &Doc{depth: lim.Depth}
	d.pages = make([][]node, 0, 4+min(len(prev.pages), len(body)/(2*pageSize))) // the shortest element takes two bytes
	d.is(body)
	if err := s.run(d, lim); err != nil {
		return nil, nil, err
	}
	c := &Copies{old: prev, now: d, runs: g.runs, fresh: d.escaped}
	d.escaped = -1
	return d, c, nil
}

// guide finds values of an earlier document that occur again in the body that is scanned.
type guide struct {
	doc    *Doc
	levels []level // one for each frame of the scanner
	hint   int32   // counterpart of the container that copy did not find equal, or -1
	runs   []run
	same   same
	tail   int // number of equal bytes at the end of both bodies; -1 if not yet computed
	copied int // number of bytes that were copied
}

// level is an open array or object with its counterpart.
type level struct {
	was    int32 // the counterpart, or -1
	end    int32 // the first node after it
	next   int32 // its element or field that is expected next; end if there is none
	back   int32 // its first element that was skipped since the last equal one, or -1
	misses int32
}

// same is the last comparison: the bytes [from, to) of doc and [from+shift, to+shift) of the body are equal, and the bytes after them
// are not if differs is set.
type same struct {
	shift, from, to int
	differs         bool
}

// The searches in arrays for an element that is equal to the next one.
const (
	nearElements = 4  // elements after the expected one that are compared
	maxMisses    = 64 // elements without an equal one after which only the expected one is compared
	nearFields   = 32 // fields whose names are compared
)

// run is a range [from, to) of nodes that were copied from those at was, with their bytes [off, end), which were shift bytes
// before.
type run struct {
	from, to, was int32
	off, end      int32
	shift         int32
}

// copy copies the value at i, whose name or index is key, if it equals its counterpart. It returns the end of what
// was copied, which may include elements after the value, or 0.
func (g *guide) copy(s *scanner, d *Doc, i int, key name, lim Limits) int {
	g.hint = -1
	depth := len(s.frames)
	if depth == 0 {
		if g.equal(0, s.body, i) && g.fits(d, 0, 0, lim) {
			g.take(d, 0, 0, int32(i-int(g.doc.node(0).off)), key, 0)
			return int(d.node(0).end)
		}
		g.hint = 0
		return 0
	}
	l, top := &g.levels[depth-1], &s.frames[depth-1]
	if l.was < 0 {
		return 0
	}
	if top.obj {
		m := g.field(l, s.body[key.off:key.end])
		if m < 0 {
			return 0
		}
		if !g.equal(m, s.body, i) || !g.fits(d, m, m, lim) {
			g.hint = m
			return 0
		}
		n := g.doc.node(m)
		g.take(d, m, m, int32(i-int(n.off)), key, top.node)
		return int(n.end) + g.same.shift
	}
	m, ok := g.element(l, s.body, i)
	if !ok || !g.fits(d, m, m, lim) {
		g.hint = m
		return 0
	}
	last, count := m, int32(1)
	for k := g.doc.node(m).next; k < l.end; {
		n := g.doc.node(k)
		if int(n.end) > g.same.to || n.kind == Number && int(n.end) == g.same.to || !g.fits(d, m, k, lim) {
			break
		}
		last, count, k = k, count+1, n.next
	}
	g.take(d, m, last, int32(g.same.shift), key, top.node)
	top.index += count - 1
	n := g.doc.node(last)
	l.next, l.back, l.misses = n.next, -1, 0
	return int(n.end) + g.same.shift
}

// fits reports whether the document may also have the nodes of the siblings from first to last.
func (g *guide) fits(d *Doc, first, last int32, lim Limits) bool {
	return d.count+int(g.doc.node(last).next-first) <= lim.Values
}

// field returns the field of the counterpart with the given name, or -1.
func (g *guide) field(l *level, name []byte) int32 {
	for k := 0; k < nearFields && l.was+1 < l.end; k++ {
		if l.next == l.end {
			l.next = l.was + 1
		}
		m := l.next
		n := g.doc.node(m)
		l.next = n.next
		if string(g.doc.name(n)) == string(name) {
			return m
		}
	}
	return -1
}

// element returns an element that is equal to the value at i. Otherwise it returns the one that was expected, or -1, and
// false.
func (g *guide) element(l *level, b []byte, i int) (int32, bool) {
	if l.next < l.end && g.equal(l.next, b, i) {
		return l.next, true
	}
	known := g.same
	if m, ok := g.atEnd(l, b, i); ok {
		return m, true
	}
	if l.misses < maxMisses {
		for k, m := 0, l.next; k < nearElements && m < l.end; k++ {
			if m = g.doc.node(m).next; m < l.end && g.equal(m, b, i) {
				return m, true
			}
		}
		if l.back >= 0 && g.equal(l.back, b, i) {
			return l.back, true
		}
	}
	g.same = known
	l.misses++
	m := l.next
	if m >= l.end {
		return -1, false
	}
	if l.back < 0 {
		l.back = m
	}
	l.next = g.doc.node(m).next
	return m, false
}

// atEnd returns the element that is equal to the value at i because both are in the common end of the bodies.
func (g *guide) atEnd(l *level, b []byte, i int) (int32, bool) {
	size := g.doc.size
	if g.tail < 0 {
		g.tail = g.doc.commonEnd(b)
	}
	if i < len(b)-g.tail {
		return 0, false
	}
	off := i - (len(b) - size)
	first := l.was + 1
	m := first + int32(sort.Search(int(l.end-first), func(k int) bool { return int(g.doc.node(first+int32(k)).off) >= off }))
	if m == l.end {
		return 0, false
	}
	if n := g.doc.node(m); int(n.off) != off || n.parent != l.was {
		return 0, false
	}
	g.same = same{shift: i - off, from: off, to: size}
	return m, true
}

// equal reports whether node m, which is not a number, has the bytes at i.
func (g *guide) equal(m int32, b []byte, i int) bool {
	n, c := g.doc.node(m), &g.same
	off, end := int(n.off), int(n.end)
	if shift := i - off; shift != c.shift || off < c.from || off > c.to {
		*c = same{shift: shift, from: off, to: off}
	}
	switch {
	case end <= c.to:
		return true
	case c.differs:
		return false
	}
	c.to += g.doc.common(c.to, end, b[c.to+c.shift:])
	c.differs = c.to < end
	return !c.differs
}

// take appends the nodes of the siblings from first to last with all inside, as children of parent. shift is the number of
// bytes by which they moved. key is the name of first, which is then the only one, or its index.
func (g *guide) take(d *Doc, first, last, shift int32, key name, parent int32) {
	const ofName = flagMember | flagKeyEscaped
	at, to := int32(d.count), g.doc.node(last).next
	was := g.doc.node(first)
	// Siblings have consecutive indexes in both arrays, so that all are as before if the first is.
	unchanged := shift == 0 && at == first && was.parent == parent && was.key == key.off && was.keyLen == key.len() && (was.flags^key.flags)&ofName == 0
	d.extend(&g.doc.nodes, first, to, shift, unchanged)
	for k := at; !unchanged && k < int32(d.count); {
		n := d.node(k)
		n.parent, n.key, n.keyLen = parent, key.off, key.len()
		n.flags = n.flags&^ofName | key.flags&ofName
		key.off++
		k = n.next
	}
	g.copied += int(g.doc.node(last).end - was.off)
	r := run{from: at, to: int32(d.count), was: first, off: was.off + shift, end: g.doc.node(last).end + shift, shift: shift}
	if k := len(g.runs) - 1; k >= 0 && g.follows(d, &g.runs[k], &r) {
		g.runs[k].to, g.runs[k].end = r.to, r.end
		return
	}
	g.runs = append(g.runs, r)
}

// follows reports whether r follows last immediately, in both documents and with the same bytes in between.
func (g *guide) follows(d *Doc, last, r *run) bool {
	if last.to != r.from || last.shift != r.shift || r.from-last.from != r.was-last.was {
		return false
	}
	gap := d.slice(last.end, r.off)
	return g.doc.common(int(last.end-last.shift), int(r.off-r.shift), gap) == len(gap)
}

// useless reports whether the documents will have too little in common, whatever follows the first i bytes of b; see [text.share].
func (g *guide) useless(b []byte, i int) bool { return i-g.copied > len(b)/2 }

// open adds a level for a container that was not equal to its counterpart. opaque is set if the scanner adds no nodes
// for its contents.
func (g *guide) open(kind Kind, opaque bool) {
	l := level{was: -1, back: -1}
	if m := g.hint; m >= 0 && !opaque {
		if n := g.doc.node(m); n.kind == kind && n.flags&flagOpaque == 0 {
			l.was, l.next, l.end = m, m+1, n.next
		}
	}
	g.levels = append(g.levels, l)
	g.hint = -1
}

func (g *guide) close() { g.levels = g.levels[:len(g.levels)-1] }

// chunk is the number of bytes that are compared at once.
const chunk = 1 << 10

// common returns the number of equal bytes at the start of a and b.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for i+chunk <= n && string(a[i:i+chunk]) == string(b[i:i+chunk]) {
		i += chunk
	}
	for i+8 <= n {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)>>3
		}
		i += 8
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// commonEnd returns the number of equal bytes at the end of a and b.
func commonEnd(a, b []byte) int {
	n := min(len(a), len(b))
	a, b = a[len(a)-n:], b[len(b)-n:]
	i := n
	for i >= chunk && bytes.Equal(a[i-chunk:i], b[i-chunk:i]) {
		i -= chunk
	}
	for i > 0 && a[i-1] == b[i-1] {
		i--
	}
	return n - i
}

// Copies records which values of a document [ScanNext] copied.
type Copies struct {
	old, now *Doc
	runs     []run
	fresh    int
}

// Fresh returns an upper bound for the length of the unescaped text of all string values with escapes that were not
// copied.
func (c *Copies) Fresh() int { return c.fresh }

// Copy is a value that was copied with all values inside.
type Copy struct {
	Was  Value // the value in the earlier document
	now  *Doc
	move int32 // difference of the indexes
	to   int32 // the first node that may not have been copied
}

// Lookup returns the origin of a value. It reports false if it was not copied.
func (c *Copies) Lookup(v Value) (Copy, bool) {
	k, ok := slices.BinarySearchFunc(c.runs, v.i, func(r run, i int32) int { return int(r.from - i) })
	if !ok {
		k--
	}
	if k < 0 || v.i >= c.runs[k].to || v.d != c.now {
		return Copy{}, false
	}
	r := &c.runs[k]
	was := Value{c.old, v.i - r.from + r.was}
	return Copy{Was: was, now: c.now, move: r.from - r.was, to: r.to}, true
}

// Through extends c to last, a later sibling in the earlier document, and returns its copy. It reports false if last,
// or a value before it, was not copied together with c.
func (c *Copy) Through(last Value) (Value, bool) {
	v := Value{c.now, last.i + c.move}
	if last.i < c.Was.i || c.old().node(last.i).next+c.move > c.to {
		return Value{}, false
	}
	return v, true
}

func (c *Copy) old() *Doc { return c.Was.d }

// Moved reports whether the copy has another index, offset or path than the value in the earlier document.
func (c *Copy) Moved() bool {
	if c.move != 0 || c.old().node(c.Was.i).off != c.now.node(c.Was.i).off {
		return true
	}
	for i := c.Was.i; i != 0; i = c.now.node(i).parent { // the containers are not copies
		was, now := c.old().node(i), c.now.node(i)
		if was.key != now.key || was.parent != now.parent {
			return true
		}
		if now.flags&flagMember != 0 && string(c.old().name(was)) != string(c.now.name(now)) {
			return true
		}
	}
	return false
}

// Index returns the index of the copy of a value inside c, given its index in the earlier document.
func (c *Copy) Index(was int) int { return was + int(c.move) }
