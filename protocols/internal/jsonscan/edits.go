// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"cmp"
	"slices"
)

// Edits is a set of changes to one document. Nothing is changed until [Edits.Append] writes the edited text; bytes
// that no edit covers come out as they are.
//
// An edit of a value inside one that is replaced or deleted has no effect. One goroutine at a time.
type Edits struct {
	doc     *Doc
	replace map[int32][]byte              // value → its new text
	deleted map[int32]struct{}            // elements and members
	insert  map[int32]map[int32][]addText // container → the child before which to insert, -1 for the end
	touched map[int32]struct{}            // containers with deletions or insertions
}

// addText is an inserted element, or member with its name.
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

// Lost reports whether v lies inside a value that is replaced or deleted.
func (e *Edits) Lost(v Value) bool {
	for v.i != 0 {
		v = v.Parent()
		if e.Replaced(v) {
			return true
		}
	}
	return false
}

// Replace gives v the text raw, which must be a JSON value. A later call for the same value wins.
func (e *Edits) Replace(v Value, raw []byte) { e.replace[v.i] = raw }

// Delete removes child, an element or member of parent, with its comma.
func (e *Edits) Delete(parent, child Value) {
	e.deleted[child.i] = struct{}{}
	e.touched[parent.i] = struct{}{}
}

// Insert adds raw, a JSON value or a whole member, to the container parent: before its child before, or at the end if
// before is absent. Several insertions at one place come out in the order of the calls.
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
	e.touched[parent.i] = struct{}{}
}

// SetMember gives the member name of obj the value raw: it replaces the value or adds the member at the end.
func (e *Edits) SetMember(obj Value, name string, raw []byte) {
	if v := obj.Get(name); v.Exists() {
		delete(e.deleted, v.i)
		e.Replace(v, raw)
		return
	}
	m := AppendString(nil, name)
	m = append(m, ':')
	m = append(m, raw...)
	// A second call for a name that is not in the document replaces the first.
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

// DeleteMember removes the member name of obj if it is there, also one that SetMember added.
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

// splice replaces the bytes [off, end) by text.
type splice struct {
	off, end int
	text     []byte
}

// Append appends the edited document to dst.
func (e *Edits) Append(dst []byte) []byte {
	list := make([]splice, 0, len(e.replace)+len(e.touched))
	for i, raw := range e.replace {
		if _, gone := e.deleted[i]; !gone {
			n := &e.doc.nodes[i]
			list = append(list, splice{int(n.off), int(n.end), raw})
		}
	}
	for i := range e.touched {
		list = e.gaps(list, Value{e.doc, i})
	}
	// In order of place. At one place an insertion comes first; of two spans the longer, outer one wins.
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
	body, at := e.doc.body, 0
	for _, s := range list {
		if s.off < at {
			continue // inside a span that is gone
		}
		dst = append(dst, body[at:s.off]...)
		dst = append(dst, s.text...)
		at = s.end
	}
	return append(dst, body[at:]...)
}

// gaps appends one splice for every gap between surviving children of c in which something was deleted or inserted.
// A gap reaches from the end of a survivor (or, in front, the start of the first child) to the start of the next
// survivor (or, behind, the end of the last child), so that the blanks along the brackets stay.
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
				// The separator in front of the next survivor, as it stands.
				end, _ = ch.outer()
				_, sep := prev.outer()
				text = append(text, e.doc.body[sep:end]...)
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
