// SPDX-License-Identifier: Apache-2.0

package pretok

import (
	"math/bits"
	"unicode/utf8"
)

// This file runs a program over a text: a backtracking matcher that goes through the alternatives in the
// order of the expression, so that the first match found is the one Oniguruma finds.
//
// It stays linear in two ways. Every loop over one set records the last run of characters that it examined, and the
// positions in it from which no match can follow. This suffices for the expressions in use. In case it does not, a
// counter detects when the number of steps exceeds a multiple of the examined text; the matcher then records the result
// of every choice at every position, and never computes one twice. Notes take at most 2 bits a choice and byte of text,
// and 64 for choices in atomic groups and for loops that give nothing back.

// loopNote holds the records of a loop. All characters in [runLo, runHi) are in its set and the run ends at runHi; no
// match follows from any position in [failLo, failHi].
type loopNote struct{ runLo, runHi, failLo, failHi int }

// choicePoint is a position to backtrack to.
type choicePoint struct {
	pc   int32
	pos  int    // of the choice; for a loop, the end that was tried last
	lo   int    // loop: the smallest end
	hi   int    // loop: the first end that was tried; bounded loop: its start
	mask uint64 // opAlt: alternatives still to try
}

// matcher is one pass over a text.
type matcher struct {
	p        *Pattern
	s        string
	at       int // where the next search starts
	from, to int // the last match

	stack []choicePoint
	loops []loopNote
	steps int
	far   int // the end of the text examined so far
	memo  *memo
}

const (
	noMatch = -1
	tooLong = -2 // more steps than the text allows without notes

	stepsPerByte = 24
	freeSteps    = 4096
	keepStack    = 1 << 14 // choice points for which a matcher keeps memory for the next text
)

func (p *Pattern) start(s string) *matcher {
	m, _ := p.pool.Get().(*matcher)
	if m == nil {
		m = &matcher{p: p, loops: make([]loopNote, p.loops)}
	}
	m.s, m.at, m.from, m.to, m.steps, m.far = s, 0, 0, noMatch, 0, 0
	for i := range m.loops {
		m.loops[i] = loopNote{0, -1, 0, -1}
	}
	return m
}

func (m *matcher) release() {
	m.s, m.memo = "", nil
	if cap(m.stack) > keepStack {
		m.stack = nil
	}
	m.p.pool.Put(m)
}

// next finds the next match.
func (m *matcher) next() bool {
	last := m.to
	for m.at <= len(m.s) {
		start, end := m.find(m.at)
		if start < 0 {
			m.at = len(m.s) + 1
			return false
		}
		if start == end && end == last {
			n := 1
			if m.at < len(m.s) {
				_, n = runeAt(m.s, m.at)
			}
			m.at += n
			continue
		}
		m.at, m.from, m.to = end, start, end
		return true
	}
	return false
}

// find returns the first match that starts at or after from, or -1.
func (m *matcher) find(from int) (start, end int) {
	p, s := m.p, m.s
	for i := from; ; {
		if !p.emptyOK {
			for i < len(s) && !p.startBytes[s[i]] {
				if s[i] < utf8.RuneSelf {
					i++
				} else {
					_, n := utf8.DecodeRuneInString(s[i:])
					i += n
				}
			}
			if i >= len(s) {
				return noMatch, 0
			}
		}
		m.far = max(m.far, i)
		end := m.run(p.entry, i)
		if end == tooLong {
			m.memo = newMemo(p)
			continue
		}
		if end >= 0 {
			return i, end
		}
		if i >= len(s) {
			return noMatch, 0
		}
		_, n := runeAt(s, i)
		i += n
	}
}

// in reports whether the character at pos, which is not the end of the text, is in the set, and its length.
func (m *matcher) in(set *compiledSet, pos int) (bool, int) {
	b := m.s[pos]
	if b < utf8.RuneSelf {
		return set.ascii[b>>6]>>(b&63)&1 != 0, 1
	}
	r, n := utf8.DecodeRuneInString(m.s[pos:])
	return set.bits.has(m.p.class(r)), n
}

// before is in for the character that ends at pos, which is not 0.
func (m *matcher) before(set *compiledSet, pos int) (bool, int) {
	r, n := utf8.DecodeLastRuneInString(m.s[:pos])
	return set.bits.has(m.p.class(r)), n
}

// back returns the start of the character that ends at pos.
func (m *matcher) back(pos int) int {
	if m.s[pos-1] < utf8.RuneSelf {
		return pos - 1
	}
	_, n := utf8.DecodeLastRuneInString(m.s[:pos])
	return pos - n
}

// run runs the sub-program at pc from pos and returns the end of its match, noMatch or tooLong. For a
// look-around any nonnegative result is a match.
func (m *matcher) run(pc int32, pos int) int {
	p, s := m.p, m.s
	base := len(m.stack)
	for {
		i := &p.prog[pc]
		ok := false
		switch i.op {
		case opMatch:
			return m.succeed(base, i.role, pos)
		case opSet:
			if pos < len(s) {
				var n int
				if ok, n = m.in(&p.sets[i.set], pos); ok {
					pos += n
					pc = i.next
				}
			}
		case opLoop:
			var end int
			if end, ok = m.loop(pc, i, pos); ok {
				pos, pc = end, i.next
			} else if end >= 0 { // known from notes
				return m.succeed(base, i.role, end)
			}
		case opAlt:
			if m.memo != nil {
				if known := m.memo.get(pc, pos, i.role); known >= 0 {
					return m.succeed(base, i.role, known)
				} else if known == noMatch {
					break
				}
			}
			mask := ^uint64(0) >> (64 - len(i.alts))
			if i.dispatch != nil {
				if pos < len(s) {
					mask = i.dispatch[s[pos]]
				} else {
					mask = i.dispatch[256]
				}
			}
			if pos > m.far {
				m.far = pos
			}
			m.steps++
			if m.memo == nil && m.steps > freeSteps+stepsPerByte*m.far {
				m.stack = m.stack[:base]
				return tooLong
			}
			if mask == 0 {
				break
			}
			k := bits.TrailingZeros64(mask)
			mask &= mask - 1
			if mask != 0 || m.memo != nil {
				m.stack = append(m.stack, choicePoint{pc: pc, pos: pos, mask: mask})
			}
			pc, ok = i.alts[k], true
		case opPeek:
			if pos < len(s) {
				ok, _ = m.in(&p.sets[i.set], pos)
			}
			ok = ok != i.neg
			pc = i.next
		case opLook:
			end := m.run(i.sub, pos)
			if end == tooLong {
				m.stack = m.stack[:base]
				return tooLong
			}
			ok = end >= 0 != i.neg
			pc = i.next
		case opLookbehind:
			for _, seq := range i.lookbehind {
				if ok = m.lookbehind(seq, pos); ok {
					break
				}
			}
			ok = ok != i.neg
			pc = i.next
		case opAtomic:
			end := m.run(i.sub, pos)
			if end == tooLong {
				m.stack = m.stack[:base]
				return tooLong
			}
			ok = end >= 0
			pc = i.next
			if end == pos {
				pc = i.alts[0]
			}
			pos = end
		case opAssert:
			ok = m.assert(i.position, pos)
			pc = i.next
		}
		if ok {
			continue
		}

		// Back to the last choice.
		m.steps++
		if m.memo == nil && m.steps > freeSteps+stepsPerByte*m.far {
			m.stack = m.stack[:base]
			return tooLong
		}
		for {
			if len(m.stack) == base {
				return noMatch
			}
			e := &m.stack[len(m.stack)-1]
			i = &p.prog[e.pc]
			if i.op == opAlt {
				if e.mask != 0 {
					k := bits.TrailingZeros64(e.mask)
					e.mask &= e.mask - 1
					pos, pc = e.pos, i.alts[k]
					if e.mask == 0 && m.memo == nil {
						m.stack = m.stack[:len(m.stack)-1]
					}
					break
				}
				m.memo.fail(e.pc, e.pos)
			} else if m.retreat(i, e) {
				pos, pc = e.pos, i.next
				break
			}
			m.stack = m.stack[:len(m.stack)-1]
		}
	}
}

// loop runs opLoop. It returns the end of the loop and true; or, when the rest of the sub-program is known to
// match, its end and false; or noMatch and false.
func (m *matcher) loop(pc int32, i *inst, pos int) (int, bool) {
	s, set := m.s, &m.p.sets[i.set]
	if i.max >= 0 {
		if m.memo != nil && !i.possessive {
			if known := m.memo.get(pc, pos, i.role); known != unknown {
				return known, false
			}
		}
		lo, end, n := pos, pos, int32(0)
		for ; n < i.max && end < len(s); n++ {
			if n == i.min {
				lo = end
			}
			ok, size := m.in(set, end)
			if !ok {
				break
			}
			end += size
		}
		m.steps += int(n)
		m.far = max(m.far, end)
		if n < i.min {
			return noMatch, false
		}
		if n == i.min {
			lo = end
		}
		if !i.possessive && (lo < end || m.memo != nil) {
			m.stack = append(m.stack, choicePoint{pc: pc, pos: end, lo: lo, hi: pos})
		}
		return end, true
	}

	lo := pos
	if i.min > 0 {
		if pos >= len(s) {
			return noMatch, false
		}
		ok, n := m.in(set, pos)
		if !ok {
			return noMatch, false
		}
		lo += n
	}
	note := &m.loops[i.loop]
	if !i.possessive {
		if note.failLo <= lo && lo <= note.failHi {
			return noMatch, false
		}
		if m.memo != nil {
			if known := m.memo.get(pc, lo, i.role); known != unknown {
				return known, false
			}
		}
	}
	end := lo
	switch {
	case note.runLo <= lo && lo <= note.runHi && (m.memo == nil || i.possessive):
		end = note.runHi
	case m.memo != nil && i.possessive:
		end = m.memo.runEnd(m, pc, set, lo)
	default:
		for end < len(s) {
			b := s[end]
			if b < utf8.RuneSelf && m.memo == nil {
				if set.ascii[b>>6]>>(b&63)&1 == 0 {
					break
				}
				end++
				continue
			}
			ok, n := m.in(set, end)
			if !ok {
				break
			}
			end += n
			if m.memo != nil {
				known := m.memo.get(pc, end, i.role)
				if known >= 0 { // the loop extends to that position, at which the rest matches
					m.memo.span(m, pc, lo, m.back(end), known, i.role)
					return known, false
				}
				if known == noMatch {
					break
				}
			}
		}
		m.steps += end - lo
		if m.memo == nil || i.possessive {
			note.runLo, note.runHi = lo, end
		}
	}
	m.far = max(m.far, end)
	if !i.possessive && (lo < end || m.memo != nil) {
		m.stack = append(m.stack, choicePoint{pc: pc, pos: end, lo: lo, hi: end})
	}
	return end, true
}

// retreat makes a loop release characters until the rest may match. It returns false if none are left.
func (m *matcher) retreat(i *inst, e *choicePoint) bool {
	pos := e.pos
	for pos > e.lo {
		if m.memo != nil && i.max < 0 {
			m.memo.fail(e.pc, pos)
		}
		var n int
		r := rune(m.s[pos-1])
		if n = 1; r >= utf8.RuneSelf {
			r, n = utf8.DecodeLastRuneInString(m.s[:pos])
		}
		pos -= n
		m.steps++
		if i.firstAny || i.first.has(m.p.class(r)) {
			e.pos = pos
			return true
		}
	}
	if i.max < 0 {
		note := &m.loops[i.loop]
		note.failLo, note.failHi = e.lo, e.hi
		if m.memo != nil {
			m.memo.fail(e.pc, e.lo)
		}
	} else if m.memo != nil {
		m.memo.fail(e.pc, e.hi)
	}
	return false
}

// succeed ends a run that matched up to end: all choices on the way have that result.
func (m *matcher) succeed(base int, r role, end int) int {
	if m.memo != nil && r != roleMain {
		for k := base; k < len(m.stack); k++ {
			e := &m.stack[k]
			switch i := &m.p.prog[e.pc]; {
			case i.op == opAlt:
				m.memo.set(e.pc, e.pos, end, r)
			case i.max >= 0:
				m.memo.set(e.pc, e.hi, end, r)
			default:
				m.memo.span(m, e.pc, e.lo, e.pos, end, r)
			}
		}
	}
	m.stack = m.stack[:base]
	return end
}

func (m *matcher) lookbehind(seq []int32, pos int) bool {
	for k := len(seq) - 1; k >= 0; k-- {
		if seq[k] < 0 {
			if !m.assert(position(^seq[k]), pos) {
				return false
			}
			continue
		}
		if pos == 0 {
			return false
		}
		ok, n := m.before(&m.p.sets[seq[k]], pos)
		if !ok {
			return false
		}
		pos -= n
	}
	return true
}

func (m *matcher) assert(w position, pos int) bool {
	s := m.s
	switch w {
	case textStart:
		return pos == 0
	case textEnd:
		return pos == len(s)
	case lineStart: // not after a newline that ends the text
		return pos == 0 || s[pos-1] == '\n' && pos < len(s)
	case lineEnd:
		return pos == len(s) || s[pos] == '\n'
	case lastLine:
		return pos == len(s) || pos == len(s)-1 && s[pos] == '\n'
	}
	set := &m.p.sets[m.p.word]
	var a, b bool
	if pos > 0 {
		a, _ = m.before(set, pos)
	}
	if pos < len(s) {
		b, _ = m.in(set, pos)
	}
	return (a != b) == (w == wordEdge)
}

// memo holds the result of each choice at instruction pc and a text position: no match, or a match and its end.
type memo struct {
	pages map[memoKey]*memoPage
	last  []memoSlot // by instruction: the page used last
}

type memoKey struct {
	pc    int32
	block int
}

type memoSlot struct {
	block int
	page  *memoPage
}

type memoPage struct {
	fail, ok [memoBlock / 64]uint64
	ends     *[memoBlock]int
}

const (
	memoBlock = 1 << 10
	unknown   = -3
)

func newMemo(p *Pattern) *memo {
	return &memo{pages: map[memoKey]*memoPage{}, last: make([]memoSlot, len(p.prog))}
}

// page returns the page of pos. If it is absent, page creates it if make is set, and otherwise returns nil.
func (t *memo) page(pc int32, pos int, make bool) *memoPage {
	block := pos / memoBlock
	slot := &t.last[pc]
	if slot.page != nil && slot.block == block {
		return slot.page
	}
	key := memoKey{pc, block}
	g := t.pages[key]
	if g == nil {
		if !make {
			return nil
		}
		g = new(memoPage)
		t.pages[key] = g
	}
	*slot = memoSlot{block, g}
	return g
}

// get returns the end of the match, 0 for a match whose end is irrelevant, noMatch or unknown.
func (t *memo) get(pc int32, pos int, r role) int {
	g := t.page(pc, pos, false)
	if g == nil {
		return unknown
	}
	k := pos % memoBlock
	switch {
	case g.fail[k>>6]>>(k&63)&1 != 0:
		return noMatch
	case g.ok[k>>6]>>(k&63)&1 == 0:
		return unknown
	case r == roleAtomic:
		return g.ends[k]
	}
	return 0
}

func (t *memo) fail(pc int32, pos int) {
	k := pos % memoBlock
	t.page(pc, pos, true).fail[k>>6] |= 1 << (k & 63)
}

func (t *memo) set(pc int32, pos, end int, r role) {
	if r == roleMain {
		return
	}
	g := t.page(pc, pos, true)
	k := pos % memoBlock
	g.ok[k>>6] |= 1 << (k & 63)
	if r == roleAtomic {
		if g.ends == nil {
			g.ends = new([memoBlock]int)
		}
		g.ends[k] = end
	}
}

// span is set for the start of every character from lo to hi.
func (t *memo) span(m *matcher, pc int32, lo, hi, end int, r role) {
	for pos := lo; pos <= hi; {
		t.set(pc, pos, end, r)
		if pos == len(m.s) {
			break
		}
		_, n := runeAt(m.s, pos)
		pos += n
	}
}

// runEnd returns the end of the run of characters in set.
func (t *memo) runEnd(m *matcher, pc int32, set *compiledSet, lo int) int {
	end := lo
	for end < len(m.s) {
		if known := t.get(pc, end, roleAtomic); known >= 0 {
			end = known
			break
		}
		ok, n := m.in(set, end)
		if !ok {
			break
		}
		end += n
	}
	for pos := lo; pos < end; {
		if t.get(pc, pos, roleAtomic) >= 0 {
			break
		}
		t.set(pc, pos, end, roleAtomic)
		_, n := runeAt(m.s, pos)
		pos += n
	}
	return end
}
