// SPDX-License-Identifier: Apache-2.0

package chat

import (
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
	var losses []block.Loss
	dst = append(dst, '[')
	n := 0
	for _, t := range r.Tools() {
		if !listed(&t) {
			if !t.Deferred {
				losses = append(losses, block.Loss{Path: t.At.Path(), Why: "a tool that another API runs: " + t.Type})
			}
			continue
		}
		if n++; n > 1 {
			dst = append(dst, ',')
		}
		if r.API() == block.Chat && t.Kind == block.Function && t.Cache == nil {
			dst = append(dst, t.Raw()...)
			continue
		}
		dst = renderTool(dst, &t)
	}
	return append(dst, ']'), losses
}

// listed reports whether a tool is in the list.
func listed(t *block.Tool) bool { return !t.Deferred && t.Kind != block.Hosted }

// customSchema is the schema of a free-text tool, as shown to the model.
const customSchema = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`

func renderTool(dst []byte, t *block.Tool) []byte {
	in, o := codec.Open(nil), codec.Open(dst)
	in.Str("name", cmpOr(t.ModelName, t.Name))
	in.OptStr("description", t.Description)
	switch {
	case t.Kind == block.CustomTool:
		in.Raw("parameters", []byte(customSchema))
	default:
		in.OptRaw("parameters", t.Schema)
	}
	if t.Strict != nil {
		in.Bool("strict", *t.Strict)
	}
	o.Str("type", "function")
	o.Raw("function", in.Close())
	return o.Close()
}
