// SPDX-License-Identifier: Apache-2.0

package jsonscan

// place is the position of a part in the document from which it was taken.
type place struct {
	part bool
	path string // of the array that contains its values, or of its only value, a field
	base int32  // index of its first value
	off  int    // offset of its text
}

// named is node.key of a field in a part: place.path ends with its name, which the text does not contain.
const named = -1

// Parts makes parts of a document: documents with some of its values that have no reference to the others. Values of a part have the
// paths that they have in the document. Their indexes and spans begin at the part; see [Doc.Place]. Each part has memory of its own,
// because a later request may keep one and not the others.
type Parts struct {
	doc  *Doc
	in   int32 // the array of the last part, or 0
	path string
}

// Parts returns what makes parts of the document.
func (d *Doc) Parts() Parts { return Parts{doc: d} }

// Of returns a part with the values from first to last, a later sibling or first itself.
func (p *Parts) Of(first, last Value) *Doc {
	from, to := first.i, p.doc.node(last.i).next
	off, _ := first.Span()
	_, end := last.Span()
	d := &Doc{
		escaped: -1,
		depth:   p.doc.depth,
		of:      place{true, p.pathOf(first), from, off},
	}
	if b, ok := p.doc.one(off, end); ok {
		d.is(b)
	} else {
		d.hold(p.doc.cut(nil, off, end, 0))
	}
	d.expect(int(to - from))
	d.extend(&p.doc.nodes, from, to, -int32(off), false)
	if top := d.node(0); top.flags&flagMember != 0 {
		top.flags &^= flagMember | flagKeyEscaped
		top.key, top.keyLen = named, 0
	}
	return d
}

// pathOf returns place.path of a part that begins with first.
func (p *Parts) pathOf(first Value) string {
	n := p.doc.node(first.i)
	if n.flags&flagMember != 0 {
		return first.Path()
	}
	if n.parent != p.in || p.path == "" {
		p.in, p.path = n.parent, Value{p.doc, n.parent}.Path()
	}
	return p.path
}

// Place returns the index of the first value of a part in the document from which it was taken, and the offset of the part's text.
// For a whole document, they are 0, and ok is false.
func (d *Doc) Place() (index, offset int, ok bool) { return int(d.of.base), d.of.off, d.of.part }
