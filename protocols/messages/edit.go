// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/wire"
)

// Set writes what differs between old and b into the members of the block's object, or the whole block anew.
func (d reqDialect) Set(e *jsonscan.Edits, _ *block.Turn, old, b *block.Block) (bool, error) {
	v := block.ValueOf(old.At)
	if err := wire.Guard(e, v); err != nil {
		return false, err
	}
	if v.Kind() == jsonscan.String { // content that is a string
		if b.Kind == block.Text && b.Cache == nil {
			e.Replace(v, wire.Str(b.Text))
			return wire.OnlyText(old, b), nil
		}
		raw, err := d.one(b)
		if err != nil {
			return false, err
		}
		if v.KeyIs("content") || v.KeyIs("system") {
			raw = wire.Array([][]byte{raw})
		}
		e.Replace(v, raw)
		return false, nil
	}
	if old.Kind == b.Kind && !e.Replaced(v) {
		patches, ok, err := d.patches(old, b)
		if err != nil {
			return false, err
		}
		if ok && wire.Apply(e, v, patches) {
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

// patches returns the members that turn old into b. ok is false when that takes more.
func (d reqDialect) patches(old, b *block.Block) (list []wire.Patch, ok bool, err error) {
	put := func(key string, raw []byte) { list = append(list, wire.Patch{Key: key, Raw: raw}) }
	for _, f := range wire.Diff(old, b) {
		switch {
		case f == wire.FText && b.Kind == block.Text:
			put("text", wire.Str(b.Text))
		case f == wire.FText && old.Type == "thinking":
			put("thinking", wire.Str(b.Text))
		case f == wire.FSignature && old.Type == "thinking" && !needCarrier(old) && !needCarrier(b):
			put("signature", wire.Str(b.Signature))
		case f == wire.FEncrypted && old.Redacted && b.Redacted:
			put("data", wire.Str(b.Encrypted))
		case f == wire.FName && b.Kind == block.ToolCall:
			put("name", wire.Str(b.Name))
		case f == wire.FCallID && b.Kind == block.ToolCall:
			put("id", wire.Str(reqCallID(b.CallID)))
		case f == wire.FArgs && b.Kind == block.ToolCall:
			w := reqWriter{}
			put("input", w.appendInput(nil, b))
		case f == wire.FCallID && b.Kind == block.ToolResult:
			put("tool_use_id", wire.Str(reqCallID(b.CallID)))
		case f == wire.FIsError && b.Kind == block.ToolResult:
			put("is_error", wire.Bool(b.IsError))
		case f == wire.FCache && b.Cache == nil:
			put("cache_control", nil)
		case f == wire.FCache:
			put("cache_control", reqCache(nil, b.Cache))
		case f == wire.FContent && b.Kind == block.ToolResult:
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

// one writes a block that the API must be able to express.
func (d reqDialect) one(b *block.Block) ([]byte, error) {
	w := reqWriter{Lossy: wire.Lossy{Strict: true}}
	raw := w.block(nil, b)
	if w.Err != nil {
		return nil, w.Err
	}
	return raw, nil
}

// Insert adds blocks to the content of a message, of the system text, or of a tool result.
func (d reqDialect) Insert(e *jsonscan.Edits, t *block.Turn, holder *block.Block, at int, list []block.Block) error {
	obj, name, siblings := d.holder(t, holder)
	if err := wire.Guard(e, obj); err != nil {
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
		before = block.ValueOf(siblings[at].At)
	}
	return wire.InsertContent(e, obj, name, before, raws, func(raw []byte) []byte {
		return append(append([]byte(`{"type":"text","text":`), raw...), '}')
	})
}

// holder returns the object and the member that hold a turn's or a block's content.
func (reqDialect) holder(t *block.Turn, holder *block.Block) (obj jsonscan.Value, name string, list []block.Block) {
	if holder != nil {
		v := block.ValueOf(holder.At)
		if holder.Kind == block.Document {
			v = v.Get("source")
		}
		return v, "content", holder.Content
	}
	v := block.ValueOf(t.At)
	if v.KeyIs("system") { // the only turn whose place is a member
		return v.Doc().Root(), "system", t.Blocks
	}
	return v, "content", t.Blocks
}

// Delete removes a block, and the message or the system text with its last one.
func (d reqDialect) Delete(e *jsonscan.Edits, t *block.Turn, holder *block.Block, at int) (bool, error) {
	obj, name, list := d.holder(t, holder)
	v := block.ValueOf(list[at].At)
	if err := wire.Guard(e, v); err != nil {
		return false, err
	}
	c := obj.Get(name)
	switch {
	case holder == nil && len(list) == 1:
		return false, d.DeleteTurn(e, t)
	case c == v: // a result that is a string
		e.Replace(v, []byte(`""`))
		return false, nil
	}
	e.Delete(c, v)
	return true, nil
}

// InsertTurn adds a message in front of turn number at. System text in front of everything becomes system blocks.
func (d reqDialect) InsertTurn(e *jsonscan.Edits, turns []block.Turn, at int, t *block.Turn) error {
	root := e.Doc().Root()
	hasSystem := len(turns) > 0 && block.ValueOf(turns[0].At).KeyIs("system")
	w := reqWriter{Lossy: wire.Lossy{Strict: true}}
	if (t.Role == block.RoleSystem || t.Role == block.RoleDeveloper) && at == 0 {
		if hasSystem {
			return d.Insert(e, &turns[0], nil, 0, t.Blocks)
		}
		e.SetMember(root, "system", w.content(nil, t.Blocks, 0))
		return w.Err
	}
	if at == 0 && hasSystem {
		return wire.Unsupported("only system text can stand in front of the system text")
	}
	raw := w.message(nil, t)
	if w.Err != nil {
		return w.Err
	}
	var before jsonscan.Value
	if at < len(turns) {
		before = block.ValueOf(turns[at].At)
	}
	e.Insert(root.Get("messages"), before, raw)
	return nil
}

// DeleteTurn removes a message, or all system text.
func (reqDialect) DeleteTurn(e *jsonscan.Edits, t *block.Turn) error {
	v := block.ValueOf(t.At)
	if v.KeyIs("system") {
		e.Delete(v.Doc().Root(), v)
		return nil
	}
	e.Delete(v.Doc().Root().Get("messages"), v)
	return nil
}
