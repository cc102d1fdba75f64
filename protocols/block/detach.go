// SPDX-License-Identifier: Apache-2.0

package block

import (
	"slices"
	"strings"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/seam"
)

// This file is structured as follows: Detach and its helpers first, from the whole request down to its parts; then the
// encoding of a detached request; then cloning.

// Detach releases the body of the request and keeps its contents in turns, tools and parameters. [Request.AppendBody]
// then encodes the request in its own API, equal to the body as JSON: it keeps unknown fields and blocks, but not white
// space, order of fields and spelling of numbers and strings. Call arguments and schemas keep their bytes.
//
// A conversion reports the losses that it would report with the body, at the same paths, for the tools and turns that
// the request still has.
//
// Use it to hold many requests without their bodies, or to normalize the spelling of requests. Positions change. Edits
// work as in a built request, and blocks that are not edited keep their unknown fields. Detach costs about ten times as
// much as decoding.
func (r *Request) Detach() error {
	if r.doc == nil {
		return r.err
	}
	if err := r.Commit(); err != nil {
		return err
	}
	d := detacher{r: r, own: r.dialect, root: r.doc.Root()}
	view := d.view(r.view)
	r.toolsAs = "tools"
	if len(r.view.Tools) > 0 && valueOf(r.view.Tools[0].At).Parent().KeyIs("functions") {
		r.toolsAs = "functions"
	}
	r.loseRoot(keep(&r.lost))
	r.also = nil
	r.rest = d.params(&view)
	extra, err := scanOwn(r.rest.appendOwn(nil))
	if err != nil {
		return err
	}
	r.view, r.doc, r.extra = view, nil, extra
	r.first = decoded{}
	r.hold = hold{turns: true}
	return nil
}

// keep returns a function that appends to a list.
func keep(list *[]Loss) lossFunc {
	return func(path, why string) { *list = append(*list, Loss{Path: path, Why: why}) }
}

// detacher copies a view so that it no longer refers to the body.
type detacher struct {
	r    *Request
	own  dialect
	root jsonscan.Value
}

func (d *detacher) view(v view) view {
	out := view{Params: v.Params.clone()}
	if v.Tools != nil {
		out.Tools = make([]Tool, len(v.Tools))
	}
	for i := range v.Tools {
		out.Tools[i] = d.tool(&v.Tools[i])
	}
	d.namespaces(v.Tools, out.Tools)
	if v.Turns != nil {
		out.Turns = make([]Turn, len(v.Turns))
	}
	for i := range v.Turns {
		out.Turns[i] = d.turn(&v.Turns[i])
	}
	return out
}

func (d *detacher) tool(old *Tool) Tool {
	t := old.clone()
	t.At = d.r.newRef()
	d.r.loseTool(old, keep(&t.lost))
	d.r.noteMark(t.At, old.At)
	is := valueOf(old.At)
	if t.Kind == Hosted {
		return t
	}
	t.rest = d.residue(appendTool(nil, d.own, &t), is)
	return t
}

// namespaces stores in the first tool of each namespace the residue of the object that contains the tools.
func (d *detacher) namespaces(old, tools []Tool) {
	for i := 0; i < len(tools); {
		n, list := 1, valueOf(old[i].At).Parent()
		for i+n < len(tools) && valueOf(old[i+n].At).Parent() == list {
			n++
		}
		if tools[i].Namespace != "" {
			tools[i].space = d.residue(appendSpace(nil, d.own, tools[i:i+n]), list.Parent())
			if tools[i].space == nil {
				tools[i].space = &residue{size: -1} // marks the first tool of a namespace
			}
		}
		i += n
	}
}

func (d *detacher) turn(old *Turn) Turn {
	old = d.r.localTurn(old)
	t := old.clone()
	t.At = d.r.newRef()
	var lost []Loss
	if d.r.loseTurn(old, keep(&lost)); lost != nil {
		t.lost = &lost
	}
	t.Blocks = d.blocks(&t, old.Blocks)
	d.messages(&t, old.Blocks)
	first, last := valueOf(old.At), lastOf(old.At)
	if t.Form&seam.FormMember != 0 {
		t.rest = d.residue(d.own.AppendTurn(nil, &t), first)
		return t
	}
	// The items of the turn, as a JSON array.
	is := []byte{'['}
	for v := first; v.Exists(); v = first.Parent().Next(v) {
		if len(is) > 1 {
			is = append(is, ',')
		}
		is = append(is, v.Raw()...)
		if v == last {
			break
		}
	}
	doc, err := scanOwn(append(is, ']'))
	if err == nil {
		t.rest = d.residue(append(d.own.AppendTurn([]byte{'['}, &t), ']'), doc.Root())
	}
	return t
}

// messages marks the first block of each message in a turn with several messages, as the Responses API allows, and
// stores there the residue of the message object.
func (d *detacher) messages(t *Turn, old []Block) {
	if d.own.API() != Responses || t.Form&seam.FormMember != 0 {
		return
	}
	around := func(i int) jsonscan.Value {
		v := valueOf(old[i].At)
		p := v.Parent() // content, or the message if content is a string
		switch {
		case v.KeyIs("content"):
			return p
		case p.Kind() == jsonscan.Array && p.KeyIs("content"):
			return p.Parent()
		}
		return jsonscan.Value{}
	}
	if len(old) == 0 || t.Role != RoleAssistant {
		return
	}
	for i := 0; i < len(old); {
		msg, n := around(i), 1
		for msg.Exists() && i+n < len(old) && around(i+n) == msg {
			n++
		}
		if msg.Exists() {
			t.Blocks[i].opens = true
			part := *t
			part.Blocks = t.Blocks[i : i+n]
			if valueOf(old[i].At).Kind() == jsonscan.String {
				part.Form = seam.FormString
			}
			t.Blocks[i].env = d.residue(d.own.AppendTurn(nil, &part), msg)
		}
		i += n
	}
}

func (d *detacher) blocks(t *Turn, old []Block) []Block {
	if old == nil {
		return nil
	}
	list := make([]Block, len(old))
	for i := range old {
		b := old[i].clone()
		b.At = d.r.newRef()
		b.Content = d.blocks(t, old[i].Content)
		d.r.noteMark(b.At, old[i].At)
		is := valueOf(old[i].At)
		switch {
		case b.Kind == Unknown || b.Kind == ServerItem:
		case is.Kind() == jsonscan.Object && lastOf(old[i].At) == is:
			if was := d.own.AppendBlock(nil, t, &b); len(was) > 0 {
				b.rest = d.residue(was, is)
			}
		}
		list[i] = b
	}
	return list
}

// residue returns the difference between our encoder's output was and the body's value is.
func (d *detacher) residue(was []byte, is jsonscan.Value) *residue {
	doc, err := scanOwn(was)
	if err != nil || !is.Exists() {
		return nil
	}
	return diff(doc.Root(), is)
}

// params returns the residue of the fields other than turns and tools.
func (d *detacher) params(v *view) *residue {
	held := d.r.held(v)
	was, err := scanOwn(append(d.r.appendParams([]byte{'{'}, v, func(key string) bool {
		if d.root.Get(key).Exists() {
			d.r.also = append(d.r.also, key)
			return true
		}
		return false
	}), '}'))
	if err != nil {
		return nil
	}
	return diffObject(was.Root(), d.root, func(key string) bool { return slices.Contains(held, key) })
}

// held lists the fields that are written from turns and tools.
func (r *Request) held(v *view) (list []string) {
	own := r.dialect
	if len(v.Tools) > 0 {
		list = append(list, r.toolsAs)
	}
	for i := range v.Turns {
		name := own.TurnMember(&v.Turns[i])
		if name == "" {
			name = own.ListMember()
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// appendParams appends the fields of the parameters to an open object. also reports whether the alternative name of a
// field is used.
func (r *Request) appendParams(dst []byte, v *view, also func(key string) bool) []byte {
	for _, m := range r.dialect.Members(&v.Params, v.Tools, func(string, string) {}) {
		key := m.Key
		if m.Also != "" && also(m.Also) {
			key = m.Also
		}
		dst = append(appendKey(dst, key), m.Value...)
	}
	return dst
}

// appendDetached appends a request without a body.
func (r *Request) appendDetached(dst []byte) []byte {
	own, v := r.dialect, &r.view
	from := len(dst)
	held := r.held(v)
	dst = r.appendParams(append(dst, '{'), v, func(key string) bool { return slices.Contains(r.also, key) })
	dst = r.rest.without(held).patch(append(dst, '}'), from)
	dst = dst[:len(dst)-1]
	if len(v.Tools) > 0 {
		dst = append(r.appendTools(append(appendKey(dst, r.toolsAs), '['), v.Tools), ']')
	}
	list := false
	for i := range v.Turns {
		t := &v.Turns[i]
		name := own.TurnMember(t)
		if name == "" || list || len(v.Turns) > i+1 && own.TurnMember(&v.Turns[i+1]) == name || name == own.ListMember() && i+1 < len(v.Turns) {
			if !list {
				dst = append(appendKey(dst, own.ListMember()), '[')
			}
			at := len(dst)
			if list && dst[at-1] != '[' {
				dst = append(dst, ',')
			}
			list = true
			n := len(dst)
			if dst = appendTurn(dst, own, t); len(dst) == n {
				dst = dst[:at]
			}
			continue
		}
		dst = appendKey(dst, name)
		n := len(dst)
		dst = t.rest.patch(own.AppendTurn(dst, t), n)
	}
	switch {
	case list:
		dst = append(dst, ']')
	case (r.API() == Chat || r.API() == Messages) && !slices.Contains(held, own.ListMember()) && !r.rest.adds(own.ListMember()):
		dst = append(appendKey(dst, own.ListMember()), "[]"...) // all turns were deleted, but the API requires the field
	}
	return append(dst, '}')
}

// appendTurn appends the items of a turn.
func appendTurn(dst []byte, own dialect, t *Turn) []byte {
	if t.Form&seam.FormMember != 0 { // the turn was a field of the request, but other turns now precede it, so it becomes an item
		as := *t
		as.Form, as.rest = 0, nil
		return own.AppendTurn(dst, &as)
	}
	if t.rest == nil {
		return own.AppendTurn(dst, t)
	}
	from := len(dst)
	dst = t.rest.patch(append(own.AppendTurn(append(dst, '['), t), ']'), from)
	return append(dst[:from], dst[from+1:len(dst)-1]...)
}

// appendTools appends tool declarations, separated by commas.
func (r *Request) appendTools(dst []byte, tools []Tool) []byte {
	d := r.dialect
	for i := 0; i < len(tools); {
		if i > 0 {
			dst = append(dst, ',')
		}
		n := spaceLen(tools[i:])
		if tools[i].Namespace == "" || d.API() != Responses {
			n = 1
			from := len(dst)
			dst = appendTool(dst, d, &tools[i])
			if r.toolsAs == "functions" { // added after detaching: write only the function object of the declaration
				if doc, err := scanOwn(dst[from:]); err == nil && doc.Root().Get("function").Exists() {
					dst = append(dst[:from], slices.Clone(doc.Root().Get("function").Raw())...)
				}
			}
		} else {
			from := len(dst)
			dst = tools[i].space.patch(appendSpace(dst, d, tools[i:i+n]), from)
		}
		i += n
	}
	return dst
}

// spaceLen returns the number of leading tools that share the namespace of the first one, or 1 if it has none.
func spaceLen(tools []Tool) int {
	n := 1
	for tools[0].Namespace != "" && n < len(tools) && tools[n].Namespace == tools[0].Namespace && tools[n].space == nil {
		n++
	}
	return n
}

// appendSpace appends a namespace and its tools.
func appendSpace(dst []byte, d dialect, tools []Tool) []byte {
	dst = append(dst, `{"type":"namespace","name":`...)
	dst = jsonscan.AppendString(dst, tools[0].Namespace)
	dst = append(dst, `,"tools":[`...)
	for i := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendTool(dst, d, &tools[i])
	}
	return append(dst, "]}"...)
}

func appendTool(dst []byte, d dialect, t *Tool) []byte {
	if t.Kind == Hosted {
		return append(dst, t.JSON...)
	}
	from := len(dst)
	return t.rest.patch(d.AppendTool(dst, t, func(string, string) {}), from)
}

func (p Params) clone() Params {
	text(&p.Model, &p.Verbosity, &p.User, &p.CacheKey, &p.ServiceTier, &p.Thinking.Effort,
		&p.Thinking.Summary, &p.Format.Type, &p.Format.Name, &p.Format.Description)
	p.Format.Schema = slices.Clone(p.Format.Schema)
	p.Sampling.Stop, p.ToolChoice.Allow = texts(p.Sampling.Stop), texts(p.ToolChoice.Allow)
	return p
}

func (t Tool) clone() Tool {
	text(&t.Name, &t.Namespace, &t.Description, &t.Type, &t.ModelName)
	t.Schema, t.Format, t.JSON = slices.Clone(t.Schema), slices.Clone(t.Format), slices.Clone(t.JSON)
	t.Cache = t.Cache.clone()
	return t
}

func (t Turn) clone() Turn {
	text(&t.ID, &t.Name)
	return t
}

// clone copies all fields except Content.
func (b Block) clone() Block {
	text(&b.Type, &b.ID, &b.Text, &b.Signature, &b.Encrypted, &b.CallID, &b.Name, &b.Namespace, &b.Args)
	b.JSON = slices.Clone(b.JSON)
	if b.Media != nil {
		m := *b.Media
		text(&m.MIME, &m.URL, &m.Data, &m.FileID, &m.Name, &m.Detail)
		b.Media = &m
	}
	b.Cache = b.Cache.clone()
	return b
}

func (c *Cache) clone() *Cache {
	if c == nil {
		return nil
	}
	out := *c
	text(&out.Type, &out.TTL, &out.Scope)
	return &out
}

// text clones the strings in place.
func text(list ...*string) {
	for _, s := range list {
		*s = strings.Clone(*s)
	}
}

func texts(list []string) []string {
	out := slices.Clone(list)
	for i := range out {
		out[i] = strings.Clone(out[i])
	}
	return out
}
