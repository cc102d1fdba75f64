// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"strings"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// This file renders the tools that the Responses API defines and the client runs: local_shell_call, shell_call,
// apply_patch_call, computer_call and their outputs. They are kept as raw JSON in a request. For a template, they are
// ordinary calls and results. If a result were rendered as a user message, it would be a new question, and the
// reasoning of the current work would be dropped. Items that the server ran, such as web_search_call and mcp_call, are
// part of the response that contains them. Templates do not know them, so they are omitted.

// rawCall converts an item that calls a tool of the client to a call. Calls that the server runs have no call_id.
func rawCall(b *block.Block) (block.Block, bool) {
	name, ok := strings.CutSuffix(b.Type, "_call")
	if b.Kind != block.ServerItem || !ok || b.CallID == "" {
		return block.Block{}, false
	}
	v, c := codec.Parsed(b), block.Block{Kind: block.ToolCall, Type: b.Type, ID: b.ID, CallID: b.CallID, Name: name, Args: "{}", At: b.At}
	for _, m := range [...]string{"action", "operation", "actions", "arguments", "input"} {
		if a := v.Get(m); a.Kind() == jsonscan.Object {
			c.Args = a.RawStr()
			break
		} else if !a.IsNull() {
			o := codec.Open(nil)
			o.Raw(m, a.Raw())
			c.Args = string(o.Close())
			break
		}
	}
	return c, true
}

// rawResult converts the output of such a tool to a tool result.
func (w *renderer) rawResult(b *block.Block) *block.Block {
	name := strings.TrimSuffix(strings.TrimSuffix(b.Type, "_output"), "_call")
	r := &block.Block{Kind: block.ToolResult, Type: b.Type, CallID: b.CallID, Name: name, At: b.At}
	if r.CallID == "" { // local_shell_call_output has the call's ID as its id
		r.CallID = b.ID
	}
	for i := range w.calls {
		if w.calls[i].ID != "" && w.calls[i].ID == r.CallID {
			r.CallID = w.calls[i].CallID
		}
	}
	r.Content = outputOf(codec.Parsed(b))
	return r
}

// outputOf returns the content of an item's output: its text and images, or its JSON.
func outputOf(item jsonscan.Value) []block.Block {
	out := item.Get("output")
	text := func(s string) []block.Block { return []block.Block{{Kind: block.Text, Text: s}} }
	switch out.Kind() {
	case jsonscan.String:
		s, _ := out.Str(nil)
		return text(s)
	case jsonscan.Object:
		if b, ok := outputPart(out); ok {
			return []block.Block{b}
		}
	case jsonscan.Array:
		var list []block.Block
		for e := out.First(); e.Exists(); e = out.Next(e) {
			b, ok := outputPart(e)
			if !ok {
				return text(out.RawStr())
			}
			list = append(list, b)
		}
		return list
	case jsonscan.Absent, jsonscan.Null:
		return text(item.RawStr())
	}
	return text(out.RawStr())
}

// outputPart converts a part of an output that is text or an image, or the complete output of a command.
func outputPart(v jsonscan.Value) (block.Block, bool) {
	kind, _ := v.Get("type").Str(nil)
	switch kind {
	case "input_text", "output_text", "text":
		s, _ := v.Get("text").Str(nil)
		return block.Block{Kind: block.Text, Text: s, At: codec.At(v)}, true
	case "input_image", "computer_screenshot":
		url, _ := v.Get("image_url").Str(nil)
		b := block.Block{Kind: block.Image, Type: kind, Media: codec.MediaURL(url), At: codec.At(v)}
		b.Media.FileID, _ = v.Get("file_id").Str(nil)
		return b, true
	}
	// shell_call_output: the raw JSON is shown unless the command succeeded with an empty stderr.
	stdout, ok := v.Get("stdout").Str(nil)
	stderr, _ := v.Get("stderr").Str(nil)
	code, exited := v.Get("outcome").Get("exit_code").Int()
	return block.Block{Kind: block.Text, Text: stdout, At: codec.At(v)}, ok && stderr == "" && exited && code == 0
}
