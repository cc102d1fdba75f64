// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// This file is structured as follows. A turn is a prompt: the value of the field prompt or one of its elements. Every
// edit replaces, inserts or deletes one such value.

// Set rewrites the prompt.
func (reqDialect) Set(e *jsonscan.Edits, _ *block.Turn, old, b *block.Block) (bool, error) {
	v := codec.ValueIn(e, old.At)
	if err := codec.Guard(e, v); err != nil {
		return false, err
	}
	raw, err := prompt(b)
	if err != nil {
		return false, err
	}
	e.Replace(v, raw)
	return v.Kind() == jsonscan.String && codec.OnlyText(old, b), nil
}

// prompt returns the JSON of a prompt.
func prompt(b *block.Block) ([]byte, error) {
	switch {
	case b.Cache != nil:
		return nil, codec.Unsupported("a prompt cannot have a cache breakpoint")
	case b.Kind == block.Text:
		return codec.Str(b.Text), nil
	case isTokens(b):
		return b.JSON, nil
	}
	return nil, codec.Unsupported("a prompt is text or token IDs, not a " + b.Kind.String())
}

// Insert returns an error: a prompt is one text.
func (reqDialect) Insert(*jsonscan.Edits, *block.Turn, *block.Block, int, []block.Block) error {
	return codec.Unsupported("a prompt is one text: set it, or insert a turn")
}

// Delete removes a prompt.
func (d reqDialect) Delete(e *jsonscan.Edits, t *block.Turn, _ *block.Block, _ int) (bool, error) {
	return d.DeleteTurn(e, t)
}

// InsertTurn inserts a prompt before prompt number at.
func (reqDialect) InsertTurn(e *jsonscan.Edits, turns []block.Turn, at int, t *block.Turn) error {
	if t.Role != block.RoleUser || len(t.Blocks) != 1 {
		return codec.Unsupported("a prompt is a user turn with one block")
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
	case len(turns) == 1 && codec.ValueIn(e, turns[0].At) == list: // convert the single prompt to the first element of an array
		old, err := prompt(&turns[0].Blocks[0])
		if err != nil {
			return err
		}
		two := [][]byte{raw, old}
		if at > 0 {
			two = [][]byte{old, raw}
		}
		e.Replace(list, codec.Array(two))
	default:
		var before jsonscan.Value
		if at < len(turns) {
			before = codec.ValueIn(e, turns[at].At)
		}
		e.Insert(list, before, raw)
	}
	return nil
}

// DeleteTurn removes a prompt. The last deletion leaves an empty array of prompts.
func (reqDialect) DeleteTurn(e *jsonscan.Edits, t *block.Turn) (bool, error) {
	v, list := codec.ValueIn(e, t.At), e.Doc().Root().Get("prompt")
	if v == list {
		e.Replace(v, []byte("[]"))
		return false, nil
	}
	e.Delete(list, v)
	return false, nil
}
