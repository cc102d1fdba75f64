// SPDX-License-Identifier: Apache-2.0

package block

import (
	"slices"
	"unsafe"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/seam"
)

// This file decodes a request with the help of an earlier one. The document of the new body has copies of the nodes of
// values that are the same in both bodies, and knows which. It also has their bytes in the memory of the earlier document. The
// readers of the APIs ask for the turns and tools that were read from those values and move them to the new document.
//
// Most turns of a conversation have the same position in each request. Their blocks need not be moved, because the positions of
// blocks refer to a small document that contains only their turn.

// decoded is the result of decoding a body: its document and the parts of the view that later requests may repeat.
type decoded struct {
	doc   *jsonscan.Doc // nil: none
	turns []Turn
	tools []Tool
	seam.Decoding
}

// memory returns about how many bytes of memory d takes.
func (d *decoded) memory() int {
	turns, blocks := len(d.turns), 0
	if k := len(d.Blocks); k > 0 {
		blocks = int(d.Blocks[k-1])
	}
	n := d.doc.Memory() + d.doc.Values()*jsonscan.ValueSize + d.Memory // the positions of blocks have their values a second time
	n += turns * int(unsafe.Sizeof(Turn{})+unsafe.Sizeof(seam.Origin{})+16)
	n += blocks*int(unsafe.Sizeof(Block{})) + min(turns, blocks)*int(unsafe.Sizeof(jsonscan.Doc{}))
	return n + len(d.tools)*int(unsafe.Sizeof(Tool{}))
}

// decodeNext is decode for the API of prev, and copies what it keeps of body. It reports false if prev was not decoded, or was detached.
func decodeNext(prev *Request, body []byte, lim *Limits) (*Request, bool, error) {
	if prev == nil || prev.first.doc == nil {
		return nil, false, nil
	}
	r := &Request{dialect: prev.dialect, limits: lim.filled(), first: prev.first}
	if err := r.load(body); err != nil {
		return nil, true, err
	}
	r.first = decoded{r.doc, r.view.Turns, r.view.Tools, r.view.Decoding}
	return r, true, nil
}

// pending is the document of positions until everything is read. Blocks are copied meanwhile, and copies that are no longer needed
// must not keep the real document in memory.
var pending = new(jsonscan.Doc)

// settle completes the positions of a turn in doc. Its blocks get positions in a part of the document, so that the turn of a later
// request may have the same blocks.
func (t *Turn) settle(doc *jsonscan.Doc, parts *jsonscan.Parts) {
	t.At = t.At.in(doc)
	t.At.last = ^t.At.end()
	t.apart = false // until its blocks, some of which may be an earlier request's, are placed again
	first, last := valueOf(t.At), lastOf(t.At)
	from, to := first.Index(), last.End()
	if !within(t.Blocks, doc, from, to) {
		t.Blocks = inDocument(t.Blocks, doc)
		return
	}
	if len(t.Blocks) == 0 {
		return
	}
	if slices.ContainsFunc(t.Blocks, func(b Block) bool { return b.At.apart() }) {
		t.Blocks = slices.Clone(t.Blocks) // an earlier request has some
	}
	p := parts.Of(first, last)
	for i := range t.Blocks {
		t.Blocks[i].place(p, from)
	}
	t.apart = true
}

// within reports whether the positions of blocks are in the range [from, to) of a document's values.
func within(list []Block, doc *jsonscan.Doc, from, to int) bool {
	for i := range list {
		at := list[i].At.in(doc)
		if at.doc != doc || int(at.node) < from || int(at.last) >= to || !within(list[i].Content, doc, from, to) {
			return false
		}
	}
	return true
}

// place gives a block a position in part, which begins with the value at index from.
func (b *Block) place(part *jsonscan.Doc, from int) {
	if b.At.apart() {
		b.Content = slices.Clone(b.Content) // an earlier request has it, too
	}
	at := b.At.in(nil)
	b.At = Ref{doc: part, node: at.node - int32(from), last: at.last - int32(from)}
	for i := range b.Content {
		b.Content[i].place(part, from)
	}
}

// inDocument returns a copy of blocks with positions in the document and not in parts of it.
func inDocument(list []Block, doc *jsonscan.Doc) []Block {
	out := slices.Clone(list)
	for i := range out {
		out[i].At, out[i].Content = out[i].At.in(doc), inDocument(out[i].Content, doc)
	}
	return out
}

// apart reports whether a position is in a part of a document.
func (r Ref) apart() bool {
	if r.doc == nil {
		return false
	}
	_, _, ok := r.doc.Place()
	return ok
}

// in returns the position in doc if it is in a part of that, or pending.
func (r Ref) in(doc *jsonscan.Doc) Ref {
	switch {
	case r.doc == pending:
		r.doc = doc
	case r.apart():
		index, _, _ := r.doc.Place()
		return Ref{doc: doc, node: r.node + int32(index), last: r.last + int32(index)}
	}
	return r
}

// mover moves what was read from a value of an earlier document to the copy of that value.
type mover struct {
	now  *jsonscan.Doc
	copy *jsonscan.Copy
}

// ref moves the position of a turn or tool.
func (m *mover) ref(at Ref) Ref {
	if at.doc == nil {
		return at
	}
	return Ref{doc: m.now, node: int32(m.copy.Index(int(at.node))), last: int32(m.copy.Index(int(at.end())))}
}

// pending moves the position of a block.
func (m *mover) pending(at Ref) Ref {
	if at.doc == nil {
		return at
	}
	at = at.in(nil)
	return Ref{doc: pending, node: int32(m.copy.Index(int(at.node))), last: int32(m.copy.Index(int(at.last)))}
}

func moveTurn(t *Turn, now *jsonscan.Doc, c *jsonscan.Copy, apart bool) (Turn, bool) {
	m := mover{now, c}
	out := *t
	out.At = m.ref(t.At)
	out.At.last = ^out.At.last
	if !apart && !c.Moved() && (len(t.Blocks) == 0 || t.apart) {
		out.Blocks = slices.Clip(t.Blocks)
		return out, true
	}
	out.Blocks, out.apart = m.blocks(t.Blocks), false
	return out, false
}

// blocks moves a list of blocks. Their texts remain where they are.
func (m *mover) blocks(list []Block) []Block {
	if list == nil {
		return nil
	}
	out := make([]Block, len(list))
	for i := range list {
		m.block(&out[i], &list[i])
	}
	return out
}

// block sets to, which is zero, to the moved block b. It writes only what is there: few fields of a block are, and a
// write of a pointer is expensive while garbage is collected. Decoded blocks have no residue.
func (m *mover) block(to, b *Block) {
	to.Kind, to.Form, to.At = b.Kind, b.Form, m.pending(b.At)
	to.Summary, to.Redacted, to.Custom, to.Server, to.IsError = b.Summary, b.Redacted, b.Custom, b.Server, b.IsError
	if b.Type != "" {
		to.Type = b.Type
	}
	if b.ID != "" {
		to.ID = b.ID
	}
	if b.Text != "" {
		to.Text = b.Text
	}
	if b.Signature != "" {
		to.Signature = b.Signature
	}
	if b.Encrypted != "" {
		to.Encrypted = b.Encrypted
	}
	if b.CallID != "" {
		to.CallID = b.CallID
	}
	if b.Name != "" {
		to.Name = b.Name
	}
	if b.Namespace != "" {
		to.Namespace = b.Namespace
	}
	if b.Args != "" {
		to.Args = b.Args
	}
	if b.JSON != nil {
		to.JSON = b.JSON
	}
	if b.Content != nil {
		to.Content = m.blocks(b.Content)
	}
	if b.Media != nil {
		to.Media = b.Media
	}
	if b.Cache != nil {
		to.Cache = b.Cache
	}
}

func moveTool(t *Tool, now *jsonscan.Doc, c *jsonscan.Copy) Tool {
	m := mover{now: now, copy: c}
	out := *t
	out.At = m.ref(t.At)
	return out
}
