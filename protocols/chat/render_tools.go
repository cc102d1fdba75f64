// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"strconv"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
)

// AppendTools appends the tools of r, of any API, as the ordered JSON list that chat templates read, and returns a list
// of what it omits. It appends [] if there are no tools.
//
// Function tools of a Chat request are copied byte for byte. A tool with free-text input becomes a function with one
// string argument named input. It omits tools that another server runs and deferred tools: [AppendMessages] writes
// those at the first tool reference that names them, so that the prompt before it does not change.
func AppendTools(dst []byte, r *block.Request) ([]byte, []block.Loss) {
	out := values{dst: append(dst, '[')}
	losses := out.tools(r)
	return append(out.dst, ']'), losses
}

// tools writes the tools of r, without the brackets of their list.
func (v *values) tools(r *block.Request) (losses []block.Loss) {
	list := r.Tools()
	for i := range list {
		t := &list[i]
		switch {
		case listed(t):
			own := codec.ValueOf(t.At)
			if r.API() == block.Chat && t.Kind == block.Function && t.Cache == nil && own.Exists() {
				v.raw(own.RawStr())
			} else {
				v.tool(t)
			}
		case !t.Deferred:
			losses = append(losses, block.Loss{Path: t.At.Path(), Why: "a tool that another API runs: " + t.Type})
		}
	}
	return losses
}

// listed reports whether a tool is in the list.
func listed(t *block.Tool) bool { return !t.Deferred && t.Kind != block.Hosted }

// customSchema is the schema of a free-text tool, as shown to the model.
const customSchema = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`

// tool writes a tool.
func (v *values) tool(t *block.Tool) {
	v.begin('{')
	v.member("type", "function")
	v.key("function")
	v.begin('{')
	v.member("name", cmpOr(t.ModelName, t.Name))
	if t.Description != "" {
		v.member("description", t.Description)
	}
	switch {
	case t.Kind == block.CustomTool:
		v.key("parameters")
		v.raw(customSchema)
	case len(t.Schema) > 0:
		v.key("parameters")
		v.rawBytes(t.Schema)
	}
	if t.Strict != nil {
		v.key("strict")
		v.raw(strconv.FormatBool(*t.Strict))
	}
	v.end('}')
	v.end('}')
}
