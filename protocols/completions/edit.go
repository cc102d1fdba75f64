// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/wire"
)

// This file is structured as follows. A turn is a prompt, and a prompt is the value of the member prompt or an element of
// it. Every edit replaces, inserts or deletes such a value whole.

// Set writes the prompt anew.
func (reqDialect) Set(e *jsonscan.Edits, _ *block.Turn, old, b *block.Block) (bool, error) {
	v := block.ValueOf(old.At)
	if err := wire.Guard(e, v); err != nil {
		return false, err
	}
	raw, err := prompt(b)
	if err != nil {
		return false, err
	}
	e.Replace(v, raw)
	return v.Kind() == jsonscan.String && wire.OnlyText(old, b), nil
}

// prompt returns the JSON of a prompt.
func prompt(b *block.Block) ([]byte, error) {
	switch {
	case b.Cache != nil:
		return nil, wire.Unsupported("a prompt cannot have a cache breakpoint")
	case b.Kind == block.Text:
		return wire.Str(b.Text), nil
	case isTokens(b):
		return b.Raw(), nil
	}
	return nil, wire.Unsupported("a prompt is text or token ids, not a " + b.Kind.String())
}

// Insert fails: a prompt is one text.
func (reqDialect) Insert(*jsonscan.Edits, *block.Turn, *block.Block, int, []block.Block) error {
	return wire.Unsupported("a prompt is one text: set it, or insert a turn")
}

// Delete removes a prompt.
func (d reqDialect) Delete(e *jsonscan.Edits, t *block.Turn, _ *block.Block, _ int) (bool, error) {
	return false, d.DeleteTurn(e, t)
}

// InsertTurn adds a prompt in front of prompt number at.
func (reqDialect) InsertTurn(e *jsonscan.Edits, turns []block.Turn, at int, t *block.Turn) error {
	if t.Role != block.RoleUser || len(t.Blocks) != 1 {
		return wire.Unsupported("a prompt is a user turn with one block")
	}
	raw, err := prompt(&t.Blocks[0])
	if err != nil {
		return err
	}
	root := e.Doc().Root()
	list := root.Get("prompt")
	switch {
	case list.IsNull():
		e.SetMember(root, "prompt", raw)
	case len(turns) == 1 && block.ValueOf(turns[0].At) == list: // the one prompt becomes one of two
		old, err := prompt(&turns[0].Blocks[0])
		if err != nil {
			return err
		}
		two := [][]byte{raw, old}
		if at > 0 {
			two = [][]byte{old, raw}
		}
		e.Replace(list, wire.Array(two))
	default:
		var before jsonscan.Value
		if at < len(turns) {
			before = block.ValueOf(turns[at].At)
		}
		e.Insert(list, before, raw)
	}
	return nil
}

// DeleteTurn removes a prompt. Without any, the request has an empty list of prompts.
func (reqDialect) DeleteTurn(e *jsonscan.Edits, t *block.Turn) error {
	v, list := block.ValueOf(t.At), e.Doc().Root().Get("prompt")
	if v == list {
		e.Replace(v, []byte("[]"))
		return nil
	}
	e.Delete(list, v)
	return nil
}
