// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/callid"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Set writes the differences between old and b to the block's object, or rewrites the whole block.
func (d reqDialect) Set(e *jsonscan.Edits, _ *block.Turn, old, b *block.Block) (bool, error) {
	v := codec.ValueIn(e, old.At)
	if err := codec.Guard(e, v); err != nil {
		return false, err
	}
	if v.Kind() == jsonscan.String { // content that is a string
		if b.Kind == block.Text && b.Cache == nil {
			e.Replace(v, codec.Str(b.Text))
			return codec.OnlyText(old, b), nil
		}
		raw, err := d.one(b)
		if err != nil {
			return false, err
		}
		if v.KeyIs("content") || v.KeyIs("system") {
			raw = codec.Array([][]byte{raw})
		}
		e.Replace(v, raw)
		return false, nil
	}
	if old.Kind == b.Kind && !e.Replaced(v) {
		patches, ok, err := d.patches(old, b)
		if err != nil {
			return false, err
		}
		if ok && codec.Apply(e, v, patches) {
			return true, nil
		}
	}
	raw, err := d.one(b)
	if err != nil {
		return false, err
	}
	e.Replace(v, raw)
	return false, nil
}

// patches returns the field changes that turn old into b. ok is false if other changes are necessary.
func (d reqDialect) patches(old, b *block.Block) (list []codec.Patch, ok bool, err error) {
	put := func(key string, raw []byte) { list = append(list, codec.Patch{Key: key, Raw: raw}) }
	for _, f := range codec.Diff(old, b) {
		switch {
		case f == codec.FText && b.Kind == block.Text:
			put("text", codec.Str(b.Text))
		case f == codec.FText && old.Type == "thinking":
			put("thinking", codec.Str(b.Text))
		case f == codec.FSignature && old.Type == "thinking" && !needsPack(old) && !needsPack(b):
			put("signature", codec.Str(b.Signature))
		case f == codec.FEncrypted && old.Redacted && b.Redacted:
			put("data", codec.Str(b.Encrypted))
		case f == codec.FName && b.Kind == block.ToolCall:
			put("name", codec.Str(b.Name))
		case f == codec.FCallID && b.Kind == block.ToolCall:
			put("id", codec.Str(callid.Escape(b.CallID)))
		case f == codec.FArgs && b.Kind == block.ToolCall:
			w := reqWriter{}
			put("input", w.appendInput(nil, b))
		case f == codec.FCallID && b.Kind == block.ToolResult:
			put("tool_use_id", codec.Str(callid.Escape(b.CallID)))
		case f == codec.FIsError && b.Kind == block.ToolResult:
			put("is_error", codec.Bool(b.IsError))
		case f == codec.FCache && b.Cache == nil:
			put("cache_control", nil)
		case f == codec.FCache:
			put("cache_control", reqCache(nil, b.Cache))
		case f == codec.FContent && b.Kind == block.ToolResult:
			w := reqWriter{}
			put("content", w.content(nil, b.Content, 0))
			if w.Err != nil {
				return nil, false, w.Err
			}
		default:
			return nil, false, nil
		}
	}
	return list, true, nil
}

// one encodes a block and returns an error if the API cannot express it.
func (d reqDialect) one(b *block.Block) ([]byte, error) {
	w := reqWriter{Lossy: codec.Lossy{Strict: true}}
	raw := w.block(nil, b)
	if w.Err != nil {
		return nil, w.Err
	}
	return raw, nil
}

// Insert inserts blocks into the content of a message, of the system text, or of a tool result.
func (d reqDialect) Insert(e *jsonscan.Edits, t *block.Turn, holder *block.Block, at int, list []block.Block) error {
	obj, name, siblings := d.holder(e, t, holder)
	if err := codec.Guard(e, obj); err != nil {
		return err
	}
	raws := make([][]byte, len(list))
	for i := range list {
		raw, err := d.one(&list[i])
		if err != nil {
			return err
		}
		raws[i] = raw
	}
	var before jsonscan.Value
	if at < len(siblings) {
		before = codec.ValueIn(e, siblings[at].At)
	}
	return codec.InsertContent(e, obj, name, before, raws, func(raw []byte) []byte {
		return append(append([]byte(`{"type":"text","text":`), raw...), '}')
	})
}

// holder returns the object and the name of its field with a turn's or a block's content.
func (reqDialect) holder(e *jsonscan.Edits, t *block.Turn, holder *block.Block) (obj jsonscan.Value, name string, list []block.Block) {
	if holder != nil {
		v := codec.ValueIn(e, holder.At)
		if holder.Kind == block.Document {
			v = v.Get("source")
		}
		return v, "content", holder.Content
	}
	v := codec.ValueIn(e, t.At)
	if v.KeyIs("system") { // the only turn that is a field of the request
		return v.Doc().Root(), "system", t.Blocks
	}
	return v, "content", t.Blocks
}

// Delete removes a block. With the last block, it removes the message or the system text.
func (d reqDialect) Delete(e *jsonscan.Edits, t *block.Turn, holder *block.Block, at int) (bool, error) {
	obj, name, list := d.holder(e, t, holder)
	v := codec.ValueIn(e, list[at].At)
	if err := codec.Guard(e, v); err != nil {
		return false, err
	}
	c := obj.Get(name)
	switch {
	case holder == nil && len(list) == 1:
		return d.DeleteTurn(e, t)
	case c == v: // a tool result that is a string
		e.Replace(v, []byte(`""`))
		return false, nil
	}
	e.Delete(c, v)
	return true, nil
}

// InsertTurn inserts a message before turn number at. System text before all messages becomes system blocks.
func (d reqDialect) InsertTurn(e *jsonscan.Edits, turns []block.Turn, at int, t *block.Turn) error {
	root := e.Doc().Root()
	hasSystem := len(turns) > 0 && codec.ValueIn(e, turns[0].At).KeyIs("system")
	w := reqWriter{Lossy: codec.Lossy{Strict: true}}
	if (t.Role == block.RoleSystem || t.Role == block.RoleDeveloper) && at == 0 {
		if hasSystem {
			return d.Insert(e, &turns[0], nil, 0, t.Blocks)
		}
		e.SetMember(root, "system", w.content(nil, t.Blocks, 0))
		return w.Err
	}
	if at == 0 && hasSystem {
		return codec.Unsupported("only system text can precede the system text")
	}
	raw := w.message(nil, t)
	if w.Err != nil {
		return w.Err
	}
	var before jsonscan.Value
	if at < len(turns) {
		before = codec.ValueIn(e, turns[at].At)
	}
	e.Insert(root.Get("messages"), before, raw)
	return nil
}

// DeleteTurn removes a message, or all system text.
func (reqDialect) DeleteTurn(e *jsonscan.Edits, t *block.Turn) (bool, error) {
	v := codec.ValueIn(e, t.At)
	e.Delete(v.Parent(), v)
	return true, nil
}
