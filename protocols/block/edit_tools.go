// SPDX-License-Identifier: Apache-2.0

package block

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// SetTools replaces the declared tools. It writes only what differs: a tool of the request, recognized by its position At,
// keeps its bytes, even if it moves. A tool that was changed is declared again, which loses its unknown fields in a request
// with a body. If the API cannot express a tool, the request is unchanged.
func (r *Request) SetTools(tools ...Tool) error {
	old := r.Tools()
	c := toolChange{old: old, tools: tools, was: make([]int, len(tools)), stays: make([]bool, len(tools))}
	c.compare()
	if !slices.Contains(c.stays, false) && len(tools) == len(old) {
		return nil
	}
	if r.doc == nil {
		return r.replaceTools(&c)
	}
	return r.writeTools(&c)
}

// toolChange is a change of the tools from old to tools.
type toolChange struct {
	old, tools []Tool
	was        []int  // the index in old of each tool, or -1 for one that is new or was changed
	stays      []bool // whether the declaration remains where it is
}

func (c *toolChange) compare() {
	at := make(map[Ref]int, len(c.old))
	for i := range c.old {
		at[c.old[i].At] = i
	}
	next := 0
	for i := range c.tools {
		k, ok := at[c.tools[i].At]
		if !ok || !c.old[k].equal(&c.tools[i]) {
			c.was[i] = -1
			continue
		}
		delete(at, c.tools[i].At) // a copy is a new tool
		if c.was[i] = k; k >= next {
			c.stays[i], next = true, k+1
		}
	}
}

// replaceTools changes the tools of a request without a body.
func (r *Request) replaceTools(c *toolChange) error {
	tools := slices.Clone(c.tools)
	var gone map[string]*residue // of namespaces whose first tool is removed
	kept := make(map[Ref]bool, len(tools))
	for i := range tools {
		kept[tools[i].At] = true
	}
	for i := range c.old {
		if t := &c.old[i]; t.space != nil && !kept[t.At] {
			if gone == nil {
				gone = map[string]*residue{}
			}
			gone[t.Namespace] = t.space
		}
	}
	for i := range tools {
		t := &tools[i]
		if c.was[i] >= 0 {
			continue
		}
		for k, raw := range [][]byte{t.Schema, t.Format, t.JSON} {
			if err := r.checkRaw(raw); err != nil {
				return toolError(err, i, [...]string{"schema", "format", "json"}[k])
			}
		}
		t.At = r.newRef()
	}
	for i := range tools {
		t := &tools[i]
		if res := gone[t.Namespace]; res != nil && t.space == nil && (i == 0 || tools[i-1].Namespace != t.Namespace) {
			t.space = res // the namespace now begins with this tool
			delete(gone, t.Namespace)
		}
	}
	r.view.Tools = tools
	r.changed(true)
	return nil
}

// toolError adds the position of the invalid JSON of a tool to an error of checkRaw. A request without a body has the names of
// no API.
func toolError(err error, i int, field string) error {
	if e, ok := errors.AsType[*Error](err); ok {
		at := fmt.Sprintf("tools[%d].%s", i, field)
		if e.Path != "" && e.Path[0] != '[' {
			at += "."
		}
		e.Path = at + e.Path
	}
	return err
}

// writeTools changes the tools of the body.
func (r *Request) writeTools(c *toolChange) error {
	raws := make([][]byte, len(c.tools))
	for i := range c.tools {
		t := &c.tools[i]
		switch {
		case c.stays[i]:
			continue
		case c.was[i] >= 0:
			raws[i] = valueOf(c.old[c.was[i]].At).Raw()
			continue
		case t.Namespace != "" && r.API() != Responses:
			return &Error{Kind: Unsupported, Offset: -1, Msg: "only the Responses API has namespaces"}
		}
		var err error
		if raws[i], err = r.declare(t); err != nil {
			return err
		}
	}
	e, root := r.editor(), r.doc.Root()
	stays := make([]bool, len(c.old))
	for i, s := range c.stays {
		if s {
			stays[c.was[i]] = true
		}
	}
	for i := range c.old {
		if !stays[i] {
			v := valueOf(c.old[i].At)
			e.Delete(v.Parent(), v)
		}
	}
	r.changed(false)
	list := root.Get("tools")
	if list.Kind() != jsonscan.Array {
		all := []byte{'['}
		for i := range c.tools {
			if c.stays[i] {
				continue
			}
			if len(all) > 1 {
				all = append(all, ',')
			}
			all = append(all, inSpace(c.tools[i].Namespace, raws[i])...)
		}
		if len(all) > 1 {
			e.SetMember(root, "tools", append(all, ']'))
		}
		return nil
	}
	next := len(c.tools) // the next tool that stays
	before := make([]int, len(c.tools))
	for i := len(c.tools) - 1; i >= 0; i-- {
		if before[i] = next; c.stays[i] {
			next = i
		}
	}
	for i := range c.tools {
		if c.stays[i] {
			continue
		}
		space, in := c.tools[i].Namespace, list
		var to jsonscan.Value
		if k := before[i]; k < len(c.tools) {
			to = valueOf(c.tools[k].At)
			switch c.tools[k].Namespace {
			case "":
			case space:
				in = to.Parent()
			default:
				to = to.Parent().Parent() // before the namespace
			}
		}
		if in == list {
			raws[i] = inSpace(space, raws[i])
		}
		e.Insert(in, to, raws[i])
	}
	return nil
}

// inSpace wraps the declaration of a tool in a new namespace object, unless namespace is "".
func inSpace(namespace string, raw []byte) []byte {
	if namespace == "" {
		return raw
	}
	out := append([]byte(nil), `{"type":"namespace","name":`...)
	out = append(jsonscan.AppendString(out, namespace), `,"description":"","tools":[`...)
	return append(append(out, raw...), "]}"...)
}

// declare encodes the declaration of a tool for the body.
func (r *Request) declare(t *Tool) ([]byte, error) {
	var loss *Error
	raw := r.dialect.AppendTool(nil, t, func(path, why string) {
		loss = &Error{Kind: Unsupported, Path: path, Offset: -1, Msg: why}
	})
	if len(raw) == 0 && loss != nil {
		return nil, loss
	}
	return raw, nil
}
