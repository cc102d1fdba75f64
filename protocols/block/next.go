// SPDX-License-Identifier: Apache-2.0

package block

import (
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/seam"
)

// This file decodes a request with the help of an earlier one. The document of the new body has copies of the nodes of
// values that are the same in both bodies, and knows which. The readers of the APIs ask for the turns and tools that
// were read from those values and move them to the new document.

// decoded is what a body was decoded into: its document and the parts of the view that later requests may repeat.
type decoded struct {
	doc   *jsonscan.Doc // nil: none
	turns []Turn
	tools []Tool
	seam.Decoding
}

// decodeNext is decode for the API of prev. It reports false if prev was not decoded, or was detached.
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

// mover moves what was read from a value of an earlier document to the copy of that value.
type mover struct {
	now  *jsonscan.Doc
	copy *jsonscan.Copy
	room func(n int) []Block
}

func (m *mover) ref(at Ref) Ref {
	if at.doc == nil {
		return at
	}
	return Ref{doc: m.now, node: int32(m.copy.Index(int(at.node))), last: int32(m.copy.Index(int(at.last)))}
}

func (m *mover) text(list ...*string) {
	for _, s := range list {
		*s = m.copy.Text(*s)
	}
}

func moveTurn(t *Turn, now *jsonscan.Doc, c *jsonscan.Copy, room func(n int) []Block) Turn {
	m, out := mover{now, c, room}, *t
	m.text(&out.ID, &out.Name)
	out.At = m.ref(t.At)
	out.Blocks = m.blocks(t.Blocks)
	return out
}

func (m *mover) blocks(list []Block) []Block {
	if list == nil {
		return nil
	}
	out := append(m.room(len(list)), list...)
	for i := range out {
		b := &out[i]
		m.text(&b.Type, &b.ID, &b.Text, &b.Signature, &b.Encrypted, &b.CallID, &b.Name, &b.Namespace, &b.Args)
		b.JSON = m.copy.Raw(b.JSON)
		b.At = m.ref(b.At)
		b.Content = m.blocks(b.Content)
		if b.Media != nil {
			x := *b.Media
			m.text(&x.MIME, &x.URL, &x.Data, &x.FileID, &x.Name, &x.Detail)
			b.Media = &x
		}
		b.Cache = m.cache(b.Cache)
	}
	return out
}

func (m *mover) cache(c *Cache) *Cache {
	if c == nil {
		return nil
	}
	out := *c
	m.text(&out.Type, &out.TTL, &out.Scope)
	return &out
}

func moveTool(t *Tool, now *jsonscan.Doc, c *jsonscan.Copy) Tool {
	m, out := mover{now: now, copy: c}, *t
	m.text(&out.Name, &out.Namespace, &out.Description, &out.Type)
	out.ModelName = ""
	out.Schema, out.Format, out.JSON = c.Raw(t.Schema), c.Raw(t.Format), c.Raw(t.JSON)
	out.Cache = m.cache(t.Cache)
	out.At = m.ref(t.At)
	return out
}
