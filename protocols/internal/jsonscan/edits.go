// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"cmp"
	"slices"
)

// Edits is a set of changes to one document. The document does not change. [Edits.Append] writes the edited text and
// copies all bytes that no edit covers.
//
// An edit inside a value that is replaced or deleted has no effect. An Edits is not safe for concurrent use by multiple
// goroutines.
type Edits struct {
	doc     *Doc
	replace map[int32][]byte              // value → its new text
	deleted map[int32]struct{}            // elements and fields
	insert  map[int32]map[int32][]addText // container → the child before which to insert, -1 for the end
	touched map[int32]struct{}            // containers with deletions or insertions
	order   []int32                       // keys of replace and touched, sorted; nil if not computed since the last change
}

// addText is an inserted element, or a field with its name.
type addText []byte

// NewEdits returns an empty set of changes to d.
func NewEdits(d *Doc) *Edits {
	return &Edits{
		doc: d, replace: map[int32][]byte{}, deleted: map[int32]struct{}{},
		insert: map[int32]map[int32][]addText{}, touched: map[int32]struct{}{},
	}
}

// Doc returns the document that is being edited.
func (e *Edits) Doc() *Doc { return e.doc }

// Replaced reports whether v itself is replaced or deleted.
func (e *Edits) Replaced(v Value) bool {
	_, r := e.replace[v.i]
	_, d := e.deleted[v.i]
	return r || d
}

// Lost reports whether v is inside a value that is replaced or deleted.
func (e *Edits) Lost(v Value) bool {
	for v.i != 0 {
		v = v.Parent()
		if e.Replaced(v) {
			return true
		}
	}
	return false
}

// Replace replaces v with raw, which must be a JSON value. A later call for the same value takes precedence.
func (e *Edits) Replace(v Value, raw []byte) {
	e.replace[v.i] = raw
	e.order = nil
}

// Delete removes child, an element or field of parent, with its comma.
func (e *Edits) Delete(parent, child Value) {
	e.deleted[child.i] = struct{}{}
	e.touch(parent)
}

// touch records that the container v has deletions or insertions.
func (e *Edits) touch(v Value) {
	e.touched[v.i] = struct{}{}
	e.order = nil
}

// Insert inserts raw, a JSON value or a whole field, into the container parent, before the child before or, if before
// is absent, at the end. Several insertions at one position are written in the order of the calls.
func (e *Edits) Insert(parent, before Value, raw []byte) {
	at := int32(-1)
	if before.Exists() {
		at = before.i
	}
	m := e.insert[parent.i]
	if m == nil {
		m = map[int32][]addText{}
		e.insert[parent.i] = m
	}
	m[at] = append(m[at], raw)
	e.touch(parent)
}

// SetMember sets the field name of obj to raw: it replaces the value or appends the field.
func (e *Edits) SetMember(obj Value, name string, raw []byte) {
	if v := obj.Get(name); v.Exists() {
		delete(e.deleted, v.i)
		e.Replace(v, raw)
		return
	}
	m := AppendString(nil, name)
	m = append(m, ':')
	m = append(m, raw...)
	// A second call for a name that the document lacks replaces the first.
	for at, list := range e.insert[obj.i] {
		for k, old := range list {
			if n := len(m) - len(raw); len(old) >= n && string(old[:n]) == string(m[:n]) {
				e.insert[obj.i][at][k] = m
				return
			}
		}
	}
	e.Insert(obj, Value{}, m)
}

// DeleteMember removes the field name of obj if present, including one that SetMember added.
func (e *Edits) DeleteMember(obj Value, name string) {
	if v := obj.Get(name); v.Exists() {
		e.Delete(obj, v)
		return
	}
	m := append(AppendString(nil, name), ':')
	for at, list := range e.insert[obj.i] {
		e.insert[obj.i][at] = slices.DeleteFunc(list, func(old addText) bool {
			return len(old) >= len(m) && string(old[:len(m)]) == string(m)
		})
	}
}

// splice replaces the bytes [off, end) with text.
type splice struct {
	off, end int
	text     []byte
}

// Changes reports whether the edited text of v differs from that in the document, unless a value that contains v is
// replaced or deleted.
func (e *Edits) Changes(v Value) bool { return len(e.within(v)) > 0 }

// within returns the values in v, v included, that are replaced or have deletions or insertions, in order.
func (e *Edits) within(v Value) []int32 {
	if e.order == nil {
		e.order = make([]int32, 0, len(e.replace)+len(e.touched))
		for i := range e.replace {
			e.order = append(e.order, i)
		}
		for i := range e.touched {
			e.order = append(e.order, i)
		}
		slices.Sort(e.order)
		e.order = slices.Compact(e.order)
	}
	from, _ := slices.BinarySearch(e.order, v.i)
	n, _ := slices.BinarySearch(e.order[from:], e.doc.node(v.i).next)
	return e.order[from : from+n]
}

// Find returns the value at a path of field names. It does not exist if the edited document lacks it. It reports false
// if an edit concerns the value, so that the document does not contain it as it will be.
func (e *Edits) Find(path ...string) (Value, bool) {
	v := e.doc.Root()
	for _, name := range path {
		m := v.Get(name)
		switch {
		case m.Exists() && e.Replaced(m):
			return Value{}, false
		case !m.Exists():
			return Value{}, e.insert[v.i] == nil
		}
		v = m
	}
	return v, len(e.within(v)) == 0
}

// Append appends the edited document to dst.
func (e *Edits) Append(dst []byte) []byte {
	root := e.doc.Root()
	off, end := root.Span()
	dst = e.AppendValue(e.doc.append(dst, 0, off), root)
	return e.doc.append(dst, end, e.doc.size)
}

// AppendValue appends the edited text of v, as if no value that contains v were replaced or deleted.
func (e *Edits) AppendValue(dst []byte, v Value) []byte {
	own := e.within(v)
	list := make([]splice, 0, 2*len(own))
	for _, i := range own {
		raw, replaced := e.replace[i]
		if _, gone := e.deleted[i]; replaced && !gone {
			n := e.doc.node(i)
			list = append(list, splice{int(n.off), int(n.end), raw})
		}
		if _, touched := e.touched[i]; touched {
			list = e.gaps(list, Value{e.doc, i})
		}
	}
	// Sort by position. At the same position, insertions come first; of two spans, the longer, outer one comes first.
	slices.SortFunc(list, func(a, b splice) int {
		if a.off != b.off {
			return cmp.Compare(a.off, b.off)
		}
		if ai, bi := a.off == a.end, b.off == b.end; ai != bi {
			if ai {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.end, a.end)
	})
	at, end := v.Span()
	for _, s := range list {
		if s.off < at {
			continue // inside a replaced or deleted span
		}
		dst = e.doc.append(dst, at, s.off)
		dst = append(dst, s.text...)
		at = s.end
	}
	return e.doc.append(dst, at, end)
}

// gaps appends one splice for every gap between surviving children of c in which something was deleted or inserted. A
// gap extends from the end of a survivor (or, before the first survivor, the start of the first child) to the start of
// the next survivor (or, after the last survivor, the end of the last child), so that white space next to the brackets
// is preserved.
func (e *Edits) gaps(list []splice, c Value) []splice {
	var (
		ins      = e.insert[c.i]
		left     Value // the survivor before the gap
		prev     Value // the child before the current one
		pending  []addText
		changed  bool
		lo, _    = c.Span()
		first    = c.First()
		gapStart = lo + 1
	)
	if first.Exists() {
		gapStart, _ = first.outer()
	}
	for ch := first; ; ch = c.Next(ch) {
		if ch.Exists() {
			if add := ins[ch.i]; len(add) > 0 {
				pending, changed = append(pending, add...), true
			}
			if _, gone := e.deleted[ch.i]; gone {
				prev, changed = ch, true
				continue
			}
		} else if add := ins[-1]; len(add) > 0 {
			pending, changed = append(pending, add...), true
		}
		if changed {
			var text []byte
			end := gapStart
			for k, p := range pending {
				if k > 0 || left.Exists() {
					text = append(text, ',')
				}
				text = append(text, p...)
			}
			switch {
			case ch.Exists() && left.Exists():
				// The separator before the next survivor, unmodified.
				end, _ = ch.outer()
				_, sep := prev.outer()
				text = e.doc.append(text, sep, end)
			case ch.Exists():
				end, _ = ch.outer()
				if len(pending) > 0 {
					text = append(text, ',')
				}
			case prev.Exists():
				_, end = prev.outer()
			}
			list = append(list, splice{gapStart, end, text})
		}
		if !ch.Exists() {
			return list
		}
		left, prev, pending, changed = ch, ch, nil, false
		_, gapStart = ch.outer()
	}
}
