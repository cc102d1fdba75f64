// SPDX-License-Identifier: Apache-2.0

package preamble

import (
	"cmp"
	"slices"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// canonical rewrites the body in canonical form.
func (w *work) canonical() error {
	if codec.DocOf(w.r) == nil {
		return w.canonicalBuilt()
	}
	c := canon{api: w.r.API(), w: w}
	return codec.Rewrite(w.r, func(e *jsonscan.Edits, root jsonscan.Value) bool {
		c.e = e
		tools := root.Get("tools")
		for t := range elements(tools) {
			c.tool(t)
			for in := range elements(t.Get("tools")) { // a namespace
				c.tool(in)
			}
		}
		switch c.api {
		case block.Messages:
			c.content(root.Get("system"), 0)
			c.messages(root.Get("messages"))
		case block.Chat:
			c.messages(root.Get("messages"))
		case block.Responses:
			c.items(root.Get("input"))
		}
		return c.note()
	})
}

// canonicalBuilt does the same for a request without a body, where content has only one form.
func (w *work) canonicalBuilt() error {
	for _, t := range w.r.Turns() {
		for _, b := range t.Blocks {
			if b.Cache == nil && b.ID == "" {
				continue
			}
			b.Cache, b.ID = nil, ""
			if err := w.r.Set(b.At, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// elements ranges over the elements of v if it is an array.
func elements(v jsonscan.Value) func(yield func(jsonscan.Value) bool) {
	return func(yield func(jsonscan.Value) bool) {
		if v.Kind() != jsonscan.Array {
			return
		}
		for e := v.First(); e.Exists(); e = v.Next(e) {
			if !yield(e) {
				return
			}
		}
	}
}

// canon records the edits that produce the canonical form.
type canon struct {
	api   block.API
	w     *work
	e     *jsonscan.Edits
	cache Change
	form  Change
	ids   Change
}

// note adds the edits to the report. It returns whether there were any.
func (c *canon) note() bool {
	any := false
	for _, x := range []struct {
		rule string
		c    *Change
	}{{"canonical/cache", &c.cache}, {"canonical/content-form", &c.form}, {"canonical/item-id", &c.ids}} {
		if x.c.Count > 0 {
			x.c.Action, x.c.Rule = actRespelt, x.rule
			c.w.rep.Changes = append(c.w.rep.Changes, *x.c)
			any = true
		}
	}
	return any
}

// did counts an edit at v that removed n bytes of the body.
func (c *canon) did(x *Change, v jsonscan.Value, n int) {
	if x.Count++; x.Count == 1 {
		at := codec.At(v)
		x.Path, x.Offset = at.Path(), c.w.offset(at)
	}
	x.Bytes += n
}

// drop removes a field.
func (c *canon) drop(x *Change, obj jsonscan.Value, key string) {
	if v := obj.Get(key); v.Exists() && obj.Kind() == jsonscan.Object {
		c.e.Delete(obj, v)
		c.did(x, obj, len(v.Raw())+len(key)+3)
	}
}

// breakpoints are the names of the fields that mark a cache breakpoint.
var breakpoints = [...]string{"cache_control", "prompt_cache_breakpoint"}

// uncache removes the breakpoints of an object.
func (c *canon) uncache(obj jsonscan.Value) {
	for _, name := range breakpoints {
		c.drop(&c.cache, obj, name)
	}
}

func (c *canon) tool(t jsonscan.Value) {
	c.uncache(t)
	c.uncache(t.Get("function"))
}

// messages rewrites the messages of the Chat and Messages APIs.
func (c *canon) messages(list jsonscan.Value) {
	for m := range elements(list) {
		c.uncache(m)
		if c.api == block.Chat {
			c.drop(&c.ids, m, "id")
		}
		c.content(m.Get("content"), 0)
	}
}

// items rewrites the items of the Responses API.
func (c *canon) items(list jsonscan.Value) {
	for it := range elements(list) {
		c.uncache(it)
		kind, _ := it.Get("type").Str(nil)
		switch kind {
		case "", "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output":
			c.drop(&c.ids, it, "id")
		}
		switch kind {
		case "", "message":
			c.content(it.Get("content"), 0)
		case "function_call_output", "custom_tool_call_output":
			c.content(it.Get("output"), 0)
		}
	}
}

// maxNested limits the depth of content within content, such as a document in a result in a message.
const maxNested = 3

// content rewrites a list of blocks.
func (c *canon) content(v jsonscan.Value, depth int) {
	if v.Kind() != jsonscan.Array || v.Opaque() || depth > maxNested {
		return
	}
	for el := range elements(v) {
		c.uncache(el)
		c.content(el.Get("content"), depth+1)
		c.content(el.Get("source").Get("content"), depth+1)
	}
	if kind, _ := v.Parent().Get("type").Str(nil); kind == "search_result" { // the API permits only a list
		return
	}
	el := v.First()
	if !el.Exists() || v.Next(el).Exists() || el.Kind() != jsonscan.Object {
		return
	}
	for m := el.First(); m.Exists(); m = el.Next(m) {
		switch m.Key() {
		case "type":
			if kind, _ := m.Str(nil); kind != "text" && kind != "input_text" {
				return
			}
		case "text", "cache_control", "prompt_cache_breakpoint":
		default:
			return
		}
	}
	if text := el.Get("text"); text.Kind() == jsonscan.String && el.Get("type").Exists() {
		c.e.Replace(v, text.Raw())
		c.did(&c.form, v, len(v.Raw())-len(text.Raw()))
	}
}

// order determines the new order of the tools and adds it to the report.
func (w *work) order(o *Options) {
	tools := w.r.Tools()
	var units []unit
	for i := range tools {
		if n := len(units); n > 0 && tools[i].Namespace != "" && units[n-1].space == tools[i].Namespace {
			units[n-1].n++
			continue
		}
		units = append(units, unit{first: i, n: 1, space: tools[i].Namespace, name: cmp.Or(tools[i].Namespace, tools[i].Name, tools[i].Type), deferred: tools[i].Deferred && tools[i].Namespace == ""})
	}
	for i := range units {
		units[i].was = i
	}
	if o.SortTools {
		slices.SortStableFunc(units, func(a, b unit) int { return cmp.Compare(a.name, b.name) })
	}
	if o.DeferredLast {
		slices.SortStableFunc(units, func(a, b unit) int { return rank(a.deferred) - rank(b.deferred) })
	}
	moved := false
	for i, u := range units {
		if u.was == i {
			continue
		}
		moved = true
		rule := "sort-tools"
		if u.deferred && o.DeferredLast {
			rule = "deferred-last"
		} else if !o.SortTools {
			continue // it only filled a gap
		}
		at := tools[u.first].At
		w.rep.Changes = append(w.rep.Changes, Change{Action: actOrdered, Rule: rule, Path: at.Path(), Offset: w.offset(at), Text: u.name, Bytes: len(u.name), Count: 1})
	}
	if moved {
		w.tools = units
	}
}

// unit is a tool, or a namespace with its tools, which are moved together.
type unit struct {
	first, n, was int
	space, name   string
	deferred      bool
}

func rank(deferred bool) int {
	if deferred {
		return 1
	}
	return 0
}

// setTools writes the tools in the new order.
func (w *work) setTools() error {
	if w.tools == nil {
		return nil
	}
	tools := w.r.Tools()
	if codec.DocOf(w.r) == nil {
		var list []block.Tool
		for _, u := range w.tools {
			list = append(list, tools[u.first:u.first+u.n]...)
		}
		return w.r.SetTools(list...)
	}
	return codec.Rewrite(w.r, func(e *jsonscan.Edits, root jsonscan.Value) bool {
		list := root.Get("tools")
		raw := []byte{'['}
		n := 0
		for _, u := range w.tools {
			v := codec.ValueOf(tools[u.first].At)
			if u.space != "" {
				v = v.Parent().Parent()
			}
			if n++; n > 1 {
				raw = append(raw, ',')
			}
			raw = append(raw, v.Raw()...)
		}
		if n != list.Len() { // an element is not a tool: change nothing
			return false
		}
		e.Replace(list, append(raw, ']'))
		return true
	})
}
