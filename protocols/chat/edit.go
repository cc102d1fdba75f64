// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"strings"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// This file is structured as follows. A block of the Chat API has one of six positions: content that is a string, an
// element of content, a separate field (reasoning, refusal), an element of tool_calls or of reasoning_details, or, as a
// tool result, the whole message. Every edit first distinguishes these.

// Set writes the differences between old and b, or rewrites the whole element.
func (d reqDialect) Set(e *jsonscan.Edits, t *block.Turn, old, b *block.Block) (bool, error) {
	v := codec.ValueIn(e, old.At)
	if err := codec.Guard(e, v); err != nil {
		return false, err
	}
	if inDetails(e, old) {
		return setDetail(e, t, old, b)
	}
	if v.Kind() == jsonscan.String {
		if b.Kind == old.Kind && b.Cache == nil {
			e.Replace(v, codec.Str(b.Text))
			return codec.OnlyText(old, b), nil
		}
		if old.Kind != block.Text || b.Kind == block.ToolCall || b.Kind == block.ToolResult || b.Kind == block.Reasoning {
			return false, codec.Unsupported("a " + b.Kind.String() + " cannot replace a " + old.Kind.String())
		}
		raw, err := d.one(b)
		if err != nil {
			return false, err
		}
		if v.KeyIs("content") {
			raw = codec.Array([][]byte{raw})
		}
		e.Replace(v, raw)
		return false, nil
	}
	if old.Kind == b.Kind && !e.Replaced(v) {
		patches, ok, err := d.patches(v, old, b)
		if err != nil {
			return false, err
		}
		if ok && codec.Apply(e, v, patches) {
			return true, nil
		}
	}
	if old.Kind == block.ToolCall != (b.Kind == block.ToolCall) || old.Kind == block.ToolResult != (b.Kind == block.ToolResult) {
		return false, codec.Unsupported("a " + b.Kind.String() + " cannot replace a " + old.Kind.String())
	}
	raw, err := d.one(b)
	if err != nil {
		return false, err
	}
	e.Replace(v, raw)
	return false, nil
}

func (d reqDialect) patches(v jsonscan.Value, old, b *block.Block) (list []codec.Patch, ok bool, err error) {
	put := func(key string, raw []byte) { list = append(list, codec.Patch{Key: key, Raw: raw}) }
	in := "function."
	args := "function.arguments"
	if old.Custom {
		in, args = "custom.", "custom.input"
	}
	if v.KeyIs("function_call") {
		in, args = "", "arguments"
	}
	for _, f := range codec.Diff(old, b) {
		switch {
		case f == codec.FText && b.Kind == block.Text:
			put("text", codec.Str(b.Text))
		case f == codec.FText && b.Kind == block.Refusal:
			put("refusal", codec.Str(b.Text))
		case f == codec.FCallID && b.Kind == block.ToolCall && in != "":
			put("id", codec.Str(b.CallID))
		case f == codec.FName && b.Kind == block.ToolCall:
			put(in+"name", codec.Str(b.Name))
		case f == codec.FArgs && b.Kind == block.ToolCall:
			put(args, codec.Str(b.Args))
		case f == codec.FCallID && b.Kind == block.ToolResult:
			put("tool_call_id", codec.Str(b.CallID))
		case f == codec.FContent && b.Kind == block.ToolResult:
			w := reqWriter{Lossy: codec.Lossy{Strict: true}}
			raw := w.content(nil, b.Content, 0)
			if w.Err != nil {
				return nil, false, w.Err
			}
			put("content", raw)
		case f == codec.FIsError:
			return nil, false, codec.Unsupported("the Chat API has no mark for failed tools")
		default:
			return nil, false, nil
		}
	}
	return list, true, nil
}

// one encodes an element: a content part, a call, or a message with a tool result.
func (reqDialect) one(b *block.Block) ([]byte, error) {
	w := reqWriter{Lossy: codec.Lossy{Strict: true}}
	var raw []byte
	switch b.Kind {
	case block.ToolCall:
		raw = w.call(nil, b)
	case block.ToolResult:
		raw = w.result(nil, b)
	default:
		raw = w.part(nil, b)
	}
	return raw, w.Err
}

// Insert inserts parts, calls or reasoning into a message, or parts into a tool result.
func (d reqDialect) Insert(e *jsonscan.Edits, t *block.Turn, holder *block.Block, at int, list []block.Block) error {
	msg := codec.ValueIn(e, t.At)
	if err := codec.Guard(e, msg); err != nil {
		return err
	}
	siblings := t.Blocks
	if holder != nil {
		siblings = holder.Content
	} else if t.Role == block.RoleTool {
		return codec.Unsupported("a tool message holds one result: insert a turn, or insert into the result")
	}
	var parts, calls [][]byte
	for i := range list {
		b := &list[i]
		switch {
		case b.Kind == block.ToolResult, b.Kind == block.ToolCall && (t.Role != block.RoleAssistant || holder != nil):
			return codec.Unsupported("a " + b.Kind.String() + " cannot be part of this message")
		case b.Kind == block.Reasoning:
			if t.Role != block.RoleAssistant || !reasoningOf(msg).IsNull() || detailsOf(msg).Exists() {
				return codec.Unsupported("a message has one run of reasoning, at its start")
			}
			e.SetMember(msg, "reasoning_content", codec.Str(b.Text))
		default:
			raw, err := d.one(b)
			if err != nil {
				return err
			}
			if b.Kind == block.ToolCall {
				calls = append(calls, raw)
			} else {
				parts = append(parts, raw)
			}
		}
	}
	// The element before which the new ones are inserted: the first sibling from here on in the same list.
	next := func(call bool) jsonscan.Value {
		for _, s := range siblings[min(at, len(siblings)):] {
			v := codec.ValueIn(e, s.At)
			if (s.Kind == block.ToolCall) == call && s.Kind != block.Reasoning && !v.KeyIs("refusal") {
				return v
			}
		}
		return jsonscan.Value{}
	}
	text := func(raw []byte) []byte { return append(append([]byte(`{"type":"text","text":`), raw...), '}') }
	if len(parts) > 0 {
		if err := codec.InsertContent(e, msg, "content", next(false), parts, text); err != nil {
			return err
		}
	}
	if len(calls) > 0 {
		return codec.InsertContent(e, msg, "tool_calls", next(true), calls, text)
	}
	return nil
}

// Delete removes a block and any container that would be left empty: the message with its only block, tool_calls with
// its last call.
func (d reqDialect) Delete(e *jsonscan.Edits, t *block.Turn, holder *block.Block, at int) (bool, error) {
	list := t.Blocks
	if holder != nil {
		list = holder.Content
	}
	b := &list[at]
	v := codec.ValueIn(e, b.At)
	if err := codec.Guard(e, v); err != nil {
		return false, err
	}
	parent := v.Parent()
	switch {
	case holder == nil && len(t.Blocks) == 1:
		return d.DeleteTurn(e, t)
	case inDetails(e, b):
		deleteDetail(e, t, b)
		return true, nil
	case v.KeyIs("content") && holder == nil: // next to calls
		e.Replace(v, []byte("null"))
		return true, nil
	case v.KeyIs("content"):
		e.Replace(v, []byte(`""`))
		return false, nil
	case v.KeyIs("refusal"), v.KeyIs("function_call"), parent.Kind() == jsonscan.Object:
		e.Delete(parent, v)
		return true, nil
	case b.Kind == block.ToolCall:
		left := 0
		for c := parent.First(); c.Exists(); c = parent.Next(c) {
			if !e.Replaced(c) || c == v {
				left++
			}
		}
		if left <= 1 { // some servers reject an empty list of calls
			e.Delete(parent.Parent(), parent)
			return true, nil
		}
	case b.Kind == block.Reasoning: // one of several segments, whose number is significant
		e.Replace(v, []byte(`""`))
		return true, nil
	}
	e.Delete(parent, v)
	return true, nil
}

// InsertTurn inserts the messages of a turn before turn number at.
func (reqDialect) InsertTurn(e *jsonscan.Edits, turns []block.Turn, at int, t *block.Turn) error {
	var before jsonscan.Value
	if at < len(turns) {
		before = codec.ValueIn(e, turns[at].At)
	}
	w := reqWriter{Lossy: codec.Lossy{Strict: true}}
	raw := w.turn(nil, t)
	if w.Err != nil {
		return w.Err
	}
	if len(raw) == 0 {
		return codec.Unsupported("a turn without blocks")
	}
	e.Insert(e.Doc().Root().Get("messages"), before, raw)
	return nil
}

// DeleteTurn removes a message.
func (reqDialect) DeleteTurn(e *jsonscan.Edits, t *block.Turn) (bool, error) {
	e.Delete(e.Doc().Root().Get("messages"), codec.ValueIn(e, t.At))
	return true, nil
}

// joinNonEmpty joins the strings that are not empty.
func joinNonEmpty(sep string, list ...string) string {
	var b strings.Builder
	for _, s := range list {
		if s != "" {
			if b.Len() > 0 {
				b.WriteString(sep)
			}
			b.WriteString(s)
		}
	}
	return b.String()
}
