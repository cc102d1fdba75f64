// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"slices"
	"unsafe"
)

// A series is a number of turns of a loop, one after the other and over consecutive elements of a list, that can be
// replayed as one. What one turn set and a later one read is not checked again, and what several read is checked once.
// It is immutable once its rendering has ended.
type series struct {
	turns int
	low   int  // the lowest index of an element
	down  bool // the loop goes from the last element to the first
	first int  // position in the loop of the first turn; -1 if no turn read its own
	more  bool // the last turn read that it is not the last one of the loop

	read  []dependency // other than positions in the loop and elements
	elems []elements
	sets  []dependency // attributes of namespaces at its end

	size, steps, alloc, pos int
	gens                    []Range // relative to the beginning of the text
	ended                   bool    // a turn came to its end
}

// elements are consecutive elements of a list that turns read.
type elements struct {
	id    int   // the variable
	from  int64 // index of the first
	items []Value
}

// placedSeries is a series and the position of its text in the output.
type placedSeries struct {
	*series
	at int
}

// maxTurns limits the turns of a series, because one change makes all of them stale.
const maxTurns = 64

// bytes returns about how much memory the series takes.
func (q *series) bytes() int {
	n := int(unsafe.Sizeof(*q)) + depSize*(cap(q.read)+cap(q.sets)) + 16*cap(q.gens)
	for _, e := range q.elems {
		n += int(unsafe.Sizeof(e)) + 16*cap(e.items)
	}
	return n
}

// index returns the index of the element of turn number k.
func (q *series) index(k int) int {
	if q.down {
		return q.low + q.turns - 1 - k
	}
	return q.low + k
}

// seriesAt returns the series whose first turn is over element i, or nil.
func (m *loopMemo) seriesAt(i int) *placedSeries {
	if m == nil || m.repeats {
		return nil
	}
	for k := range m.series {
		if q := &m.series[k]; q.index(0) == i {
			return q
		}
	}
	return nil
}

// extend adds a turn over element i, at a position in the loop, to the series.
func (m *loopMemo) extend(i int, p placed, position int) {
	if n := len(m.series); n > 0 && m.last == position-1 {
		q := &m.series[n-1]
		if q.turns < maxTurns && q.precedes(i) && p.joins() {
			if !m.own {
				q.series, m.own = q.clone(), true
			}
			if q.add(i, p.record, position) {
				m.last = position
				return
			}
		}
	}
	q := &series{low: i, first: -1}
	if p.joins() && q.add(i, p.record, position) {
		m.series = append(m.series, placedSeries{q, p.at})
		m.last, m.own = position, true
	}
}

// joins reports whether a turn may be a part of a series.
func (p *placed) joins() bool {
	if p.end == ctlBreak {
		return false
	}
	for k := range p.read {
		d := &p.read[k]
		if d.what != depLoop {
			continue
		}
		switch d.name {
		case "index", "index0", "first", "length", "depth", "depth0":
		case "last":
			if d.value == true {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// precedes reports whether element i may be the one after the last turn.
func (q *series) precedes(i int) bool {
	switch i {
	case q.low + q.turns:
		return !q.down || q.turns == 1
	case q.low - 1:
		return q.down || q.turns == 1
	}
	return false
}

func (q *series) clone() *series {
	out := *q
	out.read, out.sets, out.gens, out.elems = slices.Clone(q.read), slices.Clone(q.sets), slices.Clone(q.gens), slices.Clone(q.elems)
	for i := range out.elems {
		out.elems[i].items = slices.Clone(out.elems[i].items)
	}
	return &out
}

// add adds a turn over element i at a position in the loop. If it reports false, the turn is not a part of the series,
// which may have become stale for more reasons than before.
func (q *series) add(i int, t *record, position int) bool {
	first, more := q.first, false
	for k := range t.read {
		d := &t.read[k]
		switch {
		case d.what == depLoop && (d.name == "index" || d.name == "index0" || d.name == "first"):
			first = position - q.turns
			continue
		case d.what == depLoop && d.name == "last":
			more = true
			continue
		case d.what == depElement && d.index >= 0:
			if !q.reads(d) {
				return false
			}
			continue
		case d.what == depAttribute && slices.ContainsFunc(q.sets, d.alike):
			continue // the value that an earlier turn set
		}
		if k := slices.IndexFunc(q.read, d.alike); k >= 0 {
			if !identical(q.read[k].value, d.value) {
				return false
			}
			continue
		}
		if len(q.read) == maxRead {
			return false
		}
		q.read = append(q.read, *d)
	}
	for _, d := range t.sets {
		if k := slices.IndexFunc(q.sets, d.alike); k >= 0 {
			q.sets[k].value = d.value
			continue
		}
		q.sets = append(q.sets, d)
	}
	for _, g := range t.gens {
		q.gens = append(q.gens, Range{g.Start + q.size, g.End + q.size})
	}
	q.first, q.more = first, more
	if q.turns > 0 {
		q.steps++ // the loop's own
		if i < q.low {
			q.low, q.down = i, true
		}
	}
	q.turns++
	q.size, q.steps, q.alloc, q.pos = q.size+t.size, q.steps+t.steps, q.alloc+t.alloc, t.pos
	q.ended = q.ended || t.end == ctlNone
	return true
}

// alike reports whether two dependencies are of the same variable, attribute, element or length.
func (d *dependency) alike(o dependency) bool {
	return d.what == o.what && d.id == o.id && d.index == o.index && d.name == o.name
}

// reads adds an element that a turn read. It reports false if an earlier turn read another value there.
func (q *series) reads(d *dependency) bool {
	for k := range q.elems {
		e := &q.elems[k]
		if e.id != d.id {
			continue
		}
		switch n := d.index - e.from; {
		case n >= 0 && n < int64(len(e.items)):
			return identical(e.items[n], d.value)
		case n == int64(len(e.items)):
			e.items = append(e.items, d.value)
			return true
		case n == -1:
			e.from, e.items = d.index, slices.Insert(e.items, 0, d.value)
			return true
		}
	}
	if len(q.elems) == maxRead {
		return false
	}
	q.elems = append(q.elems, elements{d.id, d.index, []Value{d.value}})
	return true
}

// validSeries reports whether q can be replayed from the current turn of l on.
func (rt *render) validSeries(q *placedSeries, l *loop, before *loopMemo) bool {
	rest := len(l.items) - l.index0
	if q.turns > rest || q.more && q.turns == rest || q.first >= 0 && q.first != l.index0 {
		return false
	}
	if rt.out.size()+q.size > rt.maxText || rt.alloc+q.alloc > rt.maxAlloc || rt.steps+q.steps > rt.maxSteps {
		return false
	}
	for k, v := range l.items[l.index0 : l.index0+q.turns] {
		if before.records[q.index(k)].item != v {
			return false
		}
	}
	for i := range q.read {
		if !rt.same(&q.read[i], l) {
			return false
		}
	}
	for i := range q.elems {
		e := &q.elems[i]
		list, ok := rt.root[e.id].(*List)
		if !ok {
			return false
		}
		for k, v := range e.items {
			if w := elementAt(list, e.from+int64(k)); w != v && !identical(w, v) {
				return false
			}
		}
	}
	return rt.namespaces(q.sets)
}

// replaySeries has the effects of a series, which begins with the current turn of l.
func (rt *render) replaySeries(q *placedSeries, l *loop, before, next *loopMemo) ctl {
	at, position := rt.out.size(), l.index0
	rt.printAgain(q.at, q.size)
	rt.replayed(at, q.gens, q.sets, q.steps, q.alloc, q.pos)
	next.room(q.low + q.turns)
	for i := q.low; i < q.low+q.turns; i++ {
		p := before.records[i]
		p.at += at - q.at
		next.repeats = next.repeats || next.records[i].record != nil
		next.records[i] = p
	}
	if next.grows(q, position) {
		for k := range q.turns {
			next.extend(q.index(k), next.records[q.index(k)], position+k)
		}
	} else {
		next.series = append(next.series, placedSeries{q.series, at})
		next.last, next.own = position+q.turns-1, false
	}
	l.skip(q.turns - 1)
	if q.ended {
		return ctlNone
	}
	return ctlContinue
}

// grows reports whether the turns of q, which begins at a position in the loop, are better added to the last series.
// Otherwise a loop that begins with the last element would have a series for each rendering.
func (m *loopMemo) grows(q *placedSeries, position int) bool {
	n := len(m.series)
	if n == 0 || !m.own || m.last != position-1 {
		return false
	}
	last := m.series[n-1].turns
	return q.turns <= 2*last && q.turns+last <= maxTurns
}

// skip advances by n turns, without running them.
func (l *loop) skip(n int) {
	if n == 0 {
		return
	}
	l.index0 += n
	l.at, l.peeked = l.index0+1, false
	l.before, l.current = l.items[l.index0-1], l.items[l.index0]
}
