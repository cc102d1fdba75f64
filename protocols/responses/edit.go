// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/sigpack"
)

// This file is structured as follows. A block of the Responses API has one of three positions: a string (instructions,
// input, content, output), a part in a content array, or, as reasoning, call or tool result, a whole item.

// Set writes the differences between old and b, or rewrites the whole part or item.
func (d reqDialect) Set(e *jsonscan.Edits, t *block.Turn, old, b *block.Block) (bool, error) {
	v := codec.ValueIn(e, old.At)
	if err := codec.Guard(e, v); err != nil {
		return false, err
	}
	if v.Kind() == jsonscan.String {
		if b.Kind == block.Text && b.Cache == nil {
			e.Replace(v, codec.Str(b.Text))
			return codec.OnlyText(old, b), nil
		}
		raw, err := d.one(b, t.Role)
		switch {
		case err != nil:
			return false, err
		case v.KeyIs("instructions") || isItem(b):
			return false, codec.Unsupported("a " + b.Kind.String() + " cannot replace this text")
		case v.KeyIs("input"):
			e.Replace(v, codec.Array([][]byte{userItem(codec.Array([][]byte{raw}))}))
		case v.KeyIs("content") || v.KeyIs("output"):
			e.Replace(v, codec.Array([][]byte{raw}))
		default: // a string in an array
			e.Replace(v, raw)
		}
		return false, nil
	}
	if old.Kind == b.Kind && !e.Replaced(v) {
		if ok, err := d.patch(e, v, old, b); ok || err != nil {
			return ok, err
		}
	}
	if isItem(old) != isItem(b) {
		return false, codec.Unsupported("a " + b.Kind.String() + " cannot replace a " + old.Kind.String())
	}
	raw, err := d.one(b, t.Role)
	if err != nil {
		return false, err
	}
	e.Replace(v, raw)
	return false, nil
}

// isItem reports whether a block is an item and not a part of a message.
func isItem(b *block.Block) bool {
	switch b.Kind {
	case block.Reasoning, block.ToolCall, block.ToolResult, block.Compaction, block.ServerItem:
		return true
	}
	return false
}

// patch sets the fields in which the blocks differ. It returns false, and does nothing, if other changes are necessary.
func (reqDialect) patch(e *jsonscan.Edits, v jsonscan.Value, old, b *block.Block) (bool, error) {
	var list []codec.Patch
	put := func(key string, raw []byte) { list = append(list, codec.Patch{Key: key, Raw: raw}) }
	args := "arguments"
	if old.Custom {
		args = "input"
	}
	var thought jsonscan.Value // the only part with the text of reasoning
	for _, f := range codec.Diff(old, b) {
		switch {
		case f == codec.FText && b.Kind == block.Text:
			put("text", codec.Str(b.Text))
		case f == codec.FText && b.Kind == block.Refusal:
			put("refusal", codec.Str(b.Text))
		case f == codec.FText && b.Kind == block.Reasoning:
			parts := v.Get("content")
			if old.Summary {
				parts = v.Get("summary")
			}
			if parts.Kind() != jsonscan.Array || parts.Len() != 1 {
				return false, nil
			}
			thought = parts.First()
		case (f == codec.FSignature || f == codec.FEncrypted) && bridged(v): // one string contains both
			return false, nil
		case f == codec.FSignature:
			put("signature", codec.Str(b.Signature))
		case f == codec.FEncrypted:
			put("encrypted_content", codec.Str(b.Encrypted))
		case f == codec.FCallID:
			put("call_id", codec.Str(b.CallID))
		case f == codec.FName && b.Kind == block.ToolCall:
			put("name", codec.Str(b.Name))
		case f == codec.FNamespace && b.Kind == block.ToolCall && b.Namespace != "":
			put("namespace", codec.Str(b.Namespace))
		case f == codec.FArgs && b.Kind == block.ToolCall:
			put(args, codec.Str(b.Args))
		case f == codec.FContent && b.Kind == block.ToolResult:
			w := reqWriter{Lossy: codec.Lossy{Strict: true}}
			raw := w.output(nil, b.Content, 0)
			if w.Err != nil {
				return false, w.Err
			}
			put("output", raw)
		case f == codec.FIsError:
			return false, codec.Unsupported("the Responses API has no mark for failed tools")
		default:
			return false, nil
		}
	}
	if thought.Exists() {
		if thought.Kind() != jsonscan.Object {
			return false, nil
		}
		e.SetMember(thought, "text", codec.Str(b.Text))
	}
	return codec.Apply(e, v, list), nil
}

// bridged reports whether the encrypted content of an item contains the signature of another API.
func bridged(v jsonscan.Value) bool {
	s, _ := v.Get("encrypted_content").Str(nil)
	_, _, _, ok := sigpack.Open(s)
	return ok
}

// one encodes a part for a message of the role, or an item.
func (reqDialect) one(b *block.Block, role block.Role) ([]byte, error) {
	w := reqWriter{Lossy: codec.Lossy{Strict: true}}
	var raw []byte
	if isItem(b) {
		raw = w.item(nil, b)
	} else {
		raw = w.part(nil, b, role)
	}
	return raw, w.Err
}

func userItem(content []byte) []byte {
	o := codec.Open(nil)
	o.Str("type", "message")
	o.Str("role", "user")
	o.Raw("content", content)
	return o.Close()
}

// messageOf returns the message item that contains a part. It does not exist for items and for strings at the top
// level.
func messageOf(e *jsonscan.Edits, b *block.Block) jsonscan.Value {
	v := codec.ValueIn(e, b.At)
	p := v.Parent() // content, or the message if content is a string
	if v.KeyIs("content") {
		return p
	}
	if p.Kind() == jsonscan.Array && p.KeyIs("content") {
		return p.Parent()
	}
	return jsonscan.Value{}
}

// Insert inserts parts into a message or a tool result, and items into a sequence of items.
func (d reqDialect) Insert(e *jsonscan.Edits, t *block.Turn, holder *block.Block, at int, list []block.Block) error {
	first := codec.ValueIn(e, t.At)
	if err := codec.Guard(e, first); err != nil {
		return err
	}
	text := func(role block.Role) func([]byte) []byte {
		return func(raw []byte) []byte {
			o := codec.Open(nil)
			o.Str("type", textType(role))
			o.Raw("text", raw)
			return o.Close()
		}
	}
	siblings := t.Blocks
	if holder != nil {
		siblings = holder.Content
	}
	var before jsonscan.Value
	if at < len(siblings) {
		before = codec.ValueIn(e, siblings[at].At)
	}
	raws := make([][]byte, len(list))
	items := 0
	for i := range list {
		raw, err := d.one(&list[i], t.Role)
		if err != nil {
			return err
		}
		raws[i] = raw
		if isItem(&list[i]) {
			items++
		}
	}
	switch {
	case holder != nil:
		if items > 0 {
			return codec.Unsupported("a tool result can contain only text and media")
		}
		return codec.InsertContent(e, codec.ValueIn(e, holder.At), "output", before, raws, text(block.RoleUser))
	case first.KeyIs("instructions"):
		return codec.Unsupported("instructions are one text: set it")
	case first.KeyIs("input"):
		if items > 0 {
			return codec.Unsupported("insert a turn before or after the input text")
		}
		if e.Replaced(first) {
			return codec.Stale(first)
		}
		old := text(block.RoleUser)(first.Raw())
		all := append([][]byte{old}, raws...)
		if before.Exists() {
			all = append(raws, old)
		}
		e.Replace(first, codec.Array([][]byte{userItem(codec.Array(all))}))
		return nil
	case t.Role != block.RoleAssistant && t.Role != block.RoleTool:
		if items > 0 {
			return codec.Unsupported("this message can contain only text and media")
		}
		return codec.InsertContent(e, first, "content", before, raws, text(t.Role))
	}
	return d.insertItems(e, t, at, list, raws, text(t.Role))
}

// insertItems inserts blocks into a sequence of items: parts join the adjacent message, and other blocks become items.
func (d reqDialect) insertItems(e *jsonscan.Edits, t *block.Turn, at int, list []block.Block, raws [][]byte,
	text func([]byte) []byte) error {
	var msg, part jsonscan.Value // the adjacent message, and its part before which to insert
	if at < len(t.Blocks) {
		if msg = messageOf(e, &t.Blocks[at]); msg.Exists() {
			part = codec.ValueIn(e, t.Blocks[at].At)
		}
	}
	if !msg.Exists() && at > 0 {
		msg = messageOf(e, &t.Blocks[at-1])
	}
	items := codec.ValueIn(e, t.At).Parent()
	var before jsonscan.Value // the item before which to insert
	if at < len(t.Blocks) {
		if before = messageOf(e, &t.Blocks[at]); !before.Exists() {
			before = codec.ValueIn(e, t.Blocks[at].At)
		}
	} else {
		before = items.Next(codec.LastIn(e, t.At))
	}
	for i, raw := range raws {
		switch {
		case isItem(&list[i]):
			e.Insert(items, before, raw)
		case msg.Exists():
			if err := codec.InsertContent(e, msg, "content", part, [][]byte{raw}, text); err != nil {
				return err
			}
		default:
			w := reqWriter{Lossy: codec.Lossy{Strict: true}}
			e.Insert(items, before, w.message(nil, t.Role, "", list[i:i+1], 0))
			if w.Err != nil {
				return w.Err
			}
		}
	}
	return nil
}

// Delete removes a part, the message with its last part, or an item.
func (reqDialect) Delete(e *jsonscan.Edits, t *block.Turn, holder *block.Block, at int) (bool, error) {
	list := t.Blocks
	if holder != nil {
		list = holder.Content
	}
	v := codec.ValueIn(e, list[at].At)
	if err := codec.Guard(e, v); err != nil {
		return false, err
	}
	parent := v.Parent()
	switch {
	case v.KeyIs("instructions"):
		e.Delete(parent, v)
		return false, nil
	case v.KeyIs("input") || v.KeyIs("output"):
		e.Replace(v, []byte(`""`))
		return false, nil
	}
	msg := messageOf(e, &list[at])
	if !msg.Exists() || holder != nil { // an item, or a part of a tool result
		e.Delete(parent, v)
		return len(t.Blocks) > 1 || holder != nil, nil
	}
	left := 0
	for c := parent.First(); c.Exists() && parent.Kind() == jsonscan.Array; c = parent.Next(c) {
		if !e.Replaced(c) || c == v {
			left++
		}
	}
	if left <= 1 {
		e.Delete(msg.Parent(), msg)
	} else {
		e.Delete(parent, v)
	}
	return len(t.Blocks) > 1, nil
}

// InsertTurn inserts the items of a turn before turn number at.
func (d reqDialect) InsertTurn(e *jsonscan.Edits, turns []block.Turn, at int, t *block.Turn) error {
	w := reqWriter{Lossy: codec.Lossy{Strict: true}}
	raws := w.turn(t)
	if w.Err != nil {
		return w.Err
	}
	if len(raws) == 0 {
		return codec.Unsupported("a turn without blocks")
	}
	root := e.Doc().Root()
	hasInstructions := len(turns) > 0 && codec.ValueIn(e, turns[0].At).KeyIs("instructions")
	if at == 0 && hasInstructions {
		return codec.Unsupported("nothing can precede the instructions")
	}
	switch in := root.Get("input"); in.Kind() {
	case jsonscan.Array:
		var before jsonscan.Value
		if at < len(turns) {
			before = codec.ValueIn(e, turns[at].At)
		}
		for _, raw := range raws {
			e.Insert(in, before, raw)
		}
	case jsonscan.String:
		if e.Replaced(in) {
			return codec.Stale(in)
		}
		old := userItem(in.Raw())
		if at < len(turns) {
			raws = append(raws, old)
		} else {
			raws = append([][]byte{old}, raws...)
		}
		e.Replace(in, codec.Array(raws))
	default:
		e.SetMember(root, "input", codec.Array(raws))
	}
	return nil
}

// DeleteTurn removes the items of a turn, or the instructions; input that is a string becomes the empty string.
func (reqDialect) DeleteTurn(e *jsonscan.Edits, t *block.Turn) (bool, error) {
	v := codec.ValueIn(e, t.At)
	parent := v.Parent()
	switch {
	case v.KeyIs("instructions"):
		e.Delete(parent, v)
	case v.KeyIs("input"):
		e.Replace(v, []byte(`""`))
	default:
		last := codec.LastIn(e, t.At)
		for c := v; c.Exists(); c = parent.Next(c) {
			e.Delete(parent, c)
			if c == last {
				break
			}
		}
	}
	return false, nil // the turns around it may become one
}
