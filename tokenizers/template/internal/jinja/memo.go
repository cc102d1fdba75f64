// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"slices"
	"sort"
	"unsafe"

	"github.com/weft-go/weft/tokenizers/template/internal/longtext"
)

// A Memo remembers what the turns of a rendering's loops printed, for a later rendering of a conversation that has
// mostly the same messages. It is immutable once its rendering has ended, so any number of renderings may use it.
//
// A turn of a loop at the top of a template, over an element of a list of the request, is remembered with everything it
// read from outside: variables, attributes of namespaces and of the loop, elements and lengths of lists. A later
// rendering replays it only if the element is the same value and everything read is still the same. Since templates can
// change only namespaces and what a loop knows of its position, that is all an output can depend on. A turn with other
// effects or inputs, such as the clock, is not remembered.
type Memo struct {
	loops []*loopMemo
	text  *longtext.Text // of the output
	segs  []Segment      // of the output
}

// loopMemo is the memo of one loop of a template.
type loopMemo struct {
	node    *forStmt
	root    *Origin  // of the list
	records []placed // by index in the list
	off     int      // number of renderings for which nothing is remembered
	width   int      // what off becomes when turns turn out to be stale again

	series  []placedSeries // in the order of the loop
	last    int            // position in the loop of the last turn in them
	own     bool           // the last series is not in another memo
	repeats bool           // the loop has an element more than once; the series are not used
}

// placed is a record and the position of its text in the output. An element that was not remembered has no record. What each
// rendering needs is here, so that most renderings do not read the records of a long conversation.
type placed struct {
	*record
	at    int
	item  *Dict // the element
	bytes int   // memory of the record
}

// record is one turn of a loop. Its text and the sources of that are in the outputs that have it.
type record struct {
	read []dependency
	sets []dependency // attributes of namespaces at its end
	size int          // of its text
	gens []Range
	end  ctl

	steps, alloc, pos int
}

// dependency is a value that a turn read or set.
type dependency struct {
	what  depKind
	id    int    // the variable
	name  string // of an attribute
	index int64  // of an element
	value Value
}

type depKind uint8

const (
	depVariable  depKind = iota // id
	depAttribute                // id.name, of a namespace
	depElement                  // id[index], of a list; unset if there is none
	depLength                   // id|length, of a list
	depLoop                     // loop.name
)

// Limits of what is remembered.
const (
	maxRead    = 64 // dependencies of a turn
	maxStale   = 8  // stale turns, with none that is valid, after which a rendering stops to look
	maxOff     = 32 // renderings
	recordSize = int(unsafe.Sizeof(record{}))
	depSize    = int(unsafe.Sizeof(dependency{}))
)

// Bytes returns about how much memory the memo takes, without the values of the request.
func (m *Memo) Bytes() int {
	n := m.text.Bytes() + 16*cap(m.segs)
	for _, l := range m.loops {
		n += int(unsafe.Sizeof(placed{})) * cap(l.records)
		for i := range l.records {
			n += l.records[i].bytes
		}
		for _, q := range l.series {
			n += q.bytes()
		}
	}
	return n
}

// tracker observes one turn of a loop.
type tracker struct {
	loop *loop
	read []dependency
	sets []dependency
	bad  bool // the turn cannot be remembered
}

// loopMemos returns the memo of a loop over items before this rendering, and the one to fill; both are nil if the
// loop's turns are not remembered.
func (rt *render) loopMemos(s *forStmt, l *loop) (before, next *loopMemo) {
	if rt.memo == nil || rt.tracker != nil || rt.scope != nil || rt.out != rt.main || !l.sized || len(l.items) == 0 || s.test != nil {
		return nil, nil
	}
	root := listRoot(l.items[0])
	if root == nil {
		return nil, nil
	}
	is := func(m *loopMemo) bool { return m.node == s && m.root == root }
	if slices.ContainsFunc(rt.memo.loops, is) {
		return nil, nil // the template runs the loop again
	}
	next = &loopMemo{node: s, root: root}
	if rt.before != nil {
		if i := slices.IndexFunc(rt.before.loops, is); i >= 0 {
			before = rt.before.loops[i]
			next.off, next.width = max(before.off-1, 0), before.width
		}
	}
	rt.memo.loops = append(rt.memo.loops, next)
	if next.off > 0 {
		return nil, nil
	}
	next.records = make([]placed, 0, len(l.items))
	return before, next
}

// listRoot returns the origin of the list of the request that v is an element of, or nil.
func listRoot(v Value) *Origin {
	if d, ok := v.(*Dict); ok && d.src != nil && d.src.index >= 0 && d.src.parent != nil && d.src.parent.parent == nil {
		return d.src.parent
	}
	return nil
}

func (m *loopMemo) get(i int) placed {
	if m == nil || i >= len(m.records) {
		return placed{}
	}
	return m.records[i]
}

// put adds the current turn of l, over element i of the list. again is set if the turn was run again although its element
// was the same: it is likely to be stale next time too, and a series with it, so it joins none.
func (m *loopMemo) put(i int, r placed, l *loop, again bool) {
	m.room(i + 1)
	m.repeats = m.repeats || m.records[i].record != nil
	m.records[i] = r
	if !again {
		m.extend(i, r, l.index0)
	}
}

// room makes room for n records.
func (m *loopMemo) room(n int) {
	if n > len(m.records) {
		m.records = append(m.records, make([]placed, n-len(m.records))...)
	}
}

// turn runs the body of a loop for v, or replays it, and perhaps the turns after it.
func (rt *render) turn(s *forStmt, l *loop, v Value, before, next *loopMemo, stale *int) ctl {
	if next == nil || listRoot(v) != next.root {
		return run(rt, s.body)
	}
	d := v.(*Dict)
	i := d.src.index
	if q := before.seriesAt(i); q != nil && rt.validSeries(q, l, before) {
		*stale = -1 << 30
		next.width = 0
		return rt.replaySeries(q, l, before, next)
	}
	again := false
	if r := before.get(i); r.record != nil && r.item == d {
		if rt.valid(r.record, l) {
			*stale = -1 << 30
			next.width = 0
			at := rt.out.size()
			rt.printAgain(r.at, r.size)
			rt.replayed(at, r.gens, r.sets, r.steps, r.alloc, r.pos)
			end := r.end
			r.at = at
			next.put(i, r, l, false)
			return end
		}
		again = true
		if *stale++; *stale == maxStale { // as if there were no memo, for a growing number of renderings
			next.width = min(max(1, 2*next.width), maxOff)
			next.off = next.width
		}
	}
	if next.off > 0 {
		return run(rt, s.body)
	}
	t := &rt.track
	*t = tracker{loop: l, read: t.read[:0], sets: t.sets[:0]}
	start, gens := rt.out.size(), len(rt.gens)
	steps, alloc := rt.steps, rt.alloc
	rt.tracker = t
	end := run(rt, s.body)
	rt.tracker = nil
	if t.bad {
		return end
	}
	r := rt.kept.record()
	*r = record{
		read: rt.kept.list.copy(t.read), sets: rt.kept.list.copy(t.sets), size: rt.out.size() - start,
		end: end, steps: rt.steps - steps, alloc: rt.alloc - alloc, pos: rt.pos,
	}
	for _, g := range rt.gens[gens:] {
		r.gens = append(r.gens, Range{g.Start - start, g.End - start})
	}
	next.put(i, placed{r, start, d, recordSize + 16*len(r.gens) + depSize*(len(r.read)+len(r.sets))}, l, again)
	return end
}

// kept has room for the records of a rendering.
type kept struct {
	records slab[record]
	list    slab[dependency]
}

func (k *kept) record() *record { return &k.records.take(1)[0] }

// A slab is memory for many small slices. It is freed when none of them is used, so slabs are small: a record of a long
// conversation must not keep the memory of many others.
type slab[T any] struct{ room []T }

const slabSize = 2 << 10 // bytes

// take returns a slice of n zero elements.
func (s *slab[T]) take(n int) []T {
	if n > len(s.room) {
		var zero T
		s.room = make([]T, max(n, slabSize/int(unsafe.Sizeof(zero))))
	}
	out := s.room[:n:n]
	s.room = s.room[n:]
	return out
}

// copy returns a copy of a slice.
func (s *slab[T]) copy(list []T) []T {
	if len(list) == 0 {
		return nil
	}
	out := s.take(len(list))
	copy(out, list)
	return out
}

// valid reports whether everything that r read is the same now, and the limits allow to replay it.
func (rt *render) valid(r *record, l *loop) bool {
	if rt.out.size()+r.size > rt.maxText || rt.alloc+r.alloc > rt.maxAlloc || rt.steps+r.steps > rt.maxSteps {
		return false
	}
	for i := range r.read {
		if !rt.same(&r.read[i], l) {
			return false
		}
	}
	return rt.namespaces(r.sets)
}

// namespaces reports whether the variables whose attributes were set are namespaces.
func (rt *render) namespaces(sets []dependency) bool {
	for i := range sets {
		if _, ok := rt.root[sets[i].id].(*namespace); !ok {
			return false
		}
	}
	return true
}

// same reports whether a dependency is the same now.
func (rt *render) same(d *dependency, l *loop) bool {
	switch d.what {
	case depVariable:
		return identical(rt.root[d.id], d.value)
	case depAttribute:
		ns, ok := rt.root[d.id].(*namespace)
		if !ok {
			return false
		}
		v, ok := ns.d.Get(d.name)
		if !ok {
			return d.value == unset
		}
		return identical(v, d.value)
	case depElement:
		list, ok := rt.root[d.id].(*List)
		return ok && identical(elementAt(list, d.index), d.value)
	case depLength:
		list, ok := rt.root[d.id].(*List)
		return ok && int64(len(list.Items)) == d.value
	}
	switch d.name { // without boxing
	case "index0":
		return d.value == integer(int64(l.index0))
	case "index":
		return d.value == integer(int64(l.index0+1))
	case "first":
		return d.value == (l.index0 == 0)
	case "last":
		return d.value == (l.peek() == unset)
	}
	v, _ := l.attr(rt, d.name)
	return identical(v, d.value)
}

// elementAt returns an element of a list, counted from its end if i is negative, or unset.
func elementAt(l *List, i int64) Value {
	if i < 0 {
		i += int64(len(l.Items))
	}
	if i < 0 || i >= int64(len(l.Items)) {
		return unset
	}
	return l.Items[i]
}

// identical reports whether templates cannot tell a from b, nor where they come from. It may report false for values
// that are alike.
func identical(a, b Value) bool {
	switch a := a.(type) {
	case nil, bool, int64, float64, *List, *Dict, *Tuple, *num, *callable, *unsetType:
		return a == b
	case *Str:
		b, ok := b.(*Str)
		return ok && (a == b || a.src == b.src && a.html == b.html && slices.Equal(a.segs, b.segs) && a.s == b.s)
	case *undef:
		b, ok := b.(*undef)
		return ok && *a == *b
	case *macro:
		b, ok := b.(*macro)
		return ok && a.def == b.def && a.scope == nil && b.scope == nil
	}
	return false
}

// replayed has the effects of turns that are remembered, besides their text, which is at the given position.
func (rt *render) replayed(at int, gens []Range, sets []dependency, steps, alloc, pos int) {
	for _, g := range gens {
		rt.gens = append(rt.gens, Range{g.Start + at, g.End + at})
	}
	for i := range sets {
		e := &sets[i]
		rt.root[e.id].(*namespace).set(e.name, e.value)
	}
	rt.steps += steps
	rt.alloc += alloc
	rt.pos = pos
}

// printAgain prints the part [at, at+size) of the output before.
func (rt *render) printAgain(at, size int) {
	segs, text, end := rt.before.segs, rt.before.text.String(), at+size
	i := sort.Search(len(segs), func(i int) bool { return segs[i].End > at })
	if at < end && rt.out.base != "" && rt.out.size() == at { // the text is base[at:end]
		rt.out.same = min(segs[i].End, end)
		rt.out.mark(segs[i].Origin)
		if at = rt.out.same; at < end { // later segments differ from the one before in their origin
			i++
			n := sort.Search(len(segs)-i, func(k int) bool { return segs[i+k].End >= end })
			rt.out.same = end
			rt.out.segs = append(append(rt.out.segs, segs[i:i+n]...), Segment{end, segs[i+n].Origin})
		}
		return
	}
	for ; at < end; i++ {
		to := min(segs[i].End, end)
		rt.out.add(text[at:to], segs[i].Origin)
		at = to
	}
}

func (n *namespace) set(name string, v Value) {
	if i := n.d.find(name); i >= 0 {
		n.d.vals[i] = v
		return
	}
	n.d.push(&Str{s: name}, v)
}

// reads notes that the turn read something from outside.
func (t *tracker) reads(d dependency) {
	if t.bad {
		return
	}
	if d.what == depAttribute {
		for i := range t.sets {
			if t.sets[i].id == d.id && t.sets[i].name == d.name {
				return // its own value
			}
		}
	}
	for i := range t.read {
		if d.alike(t.read[i]) {
			return
		}
	}
	if len(t.read) == maxRead || !identical(d.value, d.value) {
		t.bad = true
		return
	}
	t.read = append(t.read, d)
}

// readsAttribute notes that the turn reads an attribute of a namespace outside.
func (t *tracker) readsAttribute(ns *namespace, id int, name string) {
	v, ok := ns.d.Get(name)
	if !ok {
		v = unset
	}
	t.reads(dependency{what: depAttribute, id: id, name: name, value: v})
}

// readsElement notes that the turn reads an element of a list outside.
func (t *tracker) readsElement(l *List, id int, key Value) {
	if i, ok := key.(int64); ok {
		t.reads(dependency{what: depElement, id: id, index: i, value: elementAt(l, i)})
		return
	}
	t.reads(dependency{what: depVariable, id: id, value: l})
}

// writes notes that the turn sets an attribute of a namespace outside.
func (t *tracker) writes(id int, name string, v Value) {
	if !identical(v, v) {
		t.bad = true
	}
	if _, ok := v.(*macro); ok {
		t.bad = true
	}
	for i := range t.sets {
		if t.sets[i].id == id && t.sets[i].name == name {
			t.sets[i].value = v
			return
		}
	}
	t.sets = append(t.sets, dependency{what: depAttribute, id: id, name: name, value: v})
}

// forget makes the turn one that cannot be remembered.
func (rt *render) forget() {
	if rt.tracker != nil {
		rt.tracker.bad = true
	}
}

// outside returns the value of a name that no scope sets, and reports whether it is such a name.
func (e *nameExpr) outside(rt *render) (Value, bool) {
	if e.local {
		for s := rt.scope; s != nil; s = s.parent {
			if slices.Contains(s.ids, e.id) {
				return nil, false
			}
		}
	}
	return rt.root[e.id], true
}

// outerNamespace returns the namespace outside that an expression names, and the name's number.
func (rt *render) outerNamespace(e expr) (ns *namespace, id int) {
	if n, ok := e.(*nameExpr); ok {
		if v, ok := n.outside(rt); ok {
			ns, _ = v.(*namespace)
			return ns, n.id
		}
	}
	return nil, 0
}

// outerList returns the list outside that an expression names, and the name's number.
func (rt *render) outerList(e expr) (l *List, id int) {
	if n, ok := e.(*nameExpr); ok {
		if v, ok := n.outside(rt); ok {
			l, _ = v.(*List)
			return l, n.id
		}
	}
	return nil, 0
}
