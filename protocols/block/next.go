// SPDX-License-Identifier: Apache-2.0

package block

import (
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/seam"
)

// This file decodes a request with the help of an earlier one. The document of the new body has copies of the nodes of
// values that are the same in both bodies, and knows which. The readers of the APIs ask for the turns and tools that
// were read from those values and move them to the new document.

// decoded is the result of decoding a body: its document and the parts of the view that later requests may repeat.
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
	return Ref{doc: m.now, node: int32(m.copy.Index(int(at.node))), last: int32(m.copy.Index(int(at.end())))}
}

func moveTurn(t *Turn, now *jsonscan.Doc, c *jsonscan.Copy, room func(n int) []Block) Turn {
	m := mover{now, c, room}
	return Turn{Role: t.Role, Blocks: m.blocks(t.Blocks), ID: c.Text(t.ID), Name: c.Text(t.Name), Form: t.Form, At: m.ref(t.At)}
}

func (m *mover) blocks(list []Block) []Block {
	if list == nil {
		return nil
	}
	out := m.room(len(list))[:len(list)]
	for i := range list {
		m.block(&out[i], &list[i])
	}
	return out
}

// block sets to, which is zero, to the moved block b. It writes only what is there: few fields of a block are, and a
// write of a pointer is expensive while garbage is collected. Decoded blocks have no residue.
func (m *mover) block(to, b *Block) {
	c := m.copy
	to.Kind, to.Form, to.At = b.Kind, b.Form, m.ref(b.At)
	to.Summary, to.Redacted, to.Custom, to.Server, to.IsError = b.Summary, b.Redacted, b.Custom, b.Server, b.IsError
	if b.Type != "" {
		to.Type = c.Text(b.Type)
	}
	if b.ID != "" {
		to.ID = c.Text(b.ID)
	}
	if b.Text != "" {
		to.Text = c.Text(b.Text)
	}
	if b.Signature != "" {
		to.Signature = c.Text(b.Signature)
	}
	if b.Encrypted != "" {
		to.Encrypted = c.Text(b.Encrypted)
	}
	if b.CallID != "" {
		to.CallID = c.Text(b.CallID)
	}
	if b.Name != "" {
		to.Name = c.Text(b.Name)
	}
	if b.Namespace != "" {
		to.Namespace = c.Text(b.Namespace)
	}
	if b.Args != "" {
		to.Args = c.Text(b.Args)
	}
	if b.JSON != nil {
		to.JSON = c.Raw(b.JSON)
	}
	if b.Content != nil {
		to.Content = m.blocks(b.Content)
	}
	if x := b.Media; x != nil {
		to.Media = &Media{
			MIME: c.Text(x.MIME), URL: c.Text(x.URL), Data: c.Text(x.Data), FileID: c.Text(x.FileID), Name: c.Text(x.Name), Detail: c.Text(x.Detail),
		}
	}
	if b.Cache != nil {
		to.Cache = moveCache(b.Cache, c)
	}
}

func moveCache(x *Cache, c *jsonscan.Copy) *Cache {
	return &Cache{Type: c.Text(x.Type), TTL: c.Text(x.TTL), Scope: c.Text(x.Scope)}
}

func moveTool(t *Tool, now *jsonscan.Doc, c *jsonscan.Copy) Tool {
	m := mover{now: now, copy: c}
	out := Tool{
		Kind: t.Kind, Name: c.Text(t.Name), Namespace: c.Text(t.Namespace), Description: c.Text(t.Description),
		Schema: c.Raw(t.Schema), Format: c.Raw(t.Format), Strict: t.Strict, Deferred: t.Deferred, Type: c.Text(t.Type), At: m.ref(t.At),
	}
	if t.JSON != nil {
		out.JSON = c.Raw(t.JSON)
	}
	if t.Cache != nil {
		out.Cache = moveCache(t.Cache, c)
	}
	return out
}
