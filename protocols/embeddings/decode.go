// SPDX-License-Identifier: Apache-2.0

package embeddings

import (
	"errors"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/streamdec"
	"github.com/weft-go/weft/protocols/internal/wire"
)

// Decode checks and reads a request, which owns body from here on. Errors are *[block.Error].
func Decode(body []byte, lim *Limits) (*Request, error) {
	doc, err := jsonscan.Scan(body, lim.scan(64<<20))
	if err != nil {
		err = streamdec.Fault(err)
		if e, ok := errors.AsType[*block.Error](err); ok {
			e.Answer = false // this is a request
		}
		return nil, err
	}
	return read(doc, lim.inputs())
}

// read reads the fields of a checked body.
func read(doc *jsonscan.Doc, inputs int) (*Request, error) {
	root := doc.Root()
	d := decoder{Reader: wire.NewReader(root, block.Limits{}), inputs: inputs}
	r := &Request{doc: doc}
	for m := root.First(); m.Exists() && root.Kind() == jsonscan.Object; m = root.Next(m) {
		switch m.Key() {
		case "model":
			r.Model = d.Str(m)
		case "input":
			d.input(r, m)
		case "messages":
			r.Messages = d.List(m).Raw()
		case "dimensions":
			r.Dimensions = d.Int(m)
		case "encoding_format":
			r.EncodingFormat = Format(d.Str(m))
		case "user":
			r.User = d.Str(m)
		case "truncate_prompt_tokens":
			r.TruncatePromptTokens = d.Int(m)
		case "add_special_tokens":
			r.AddSpecialTokens = d.BoolPtr(m)
		case "normalize":
			r.Normalize = d.BoolPtr(m)
		case "priority":
			r.Priority = d.Int(m)
		default:
			r.Extra = append(r.Extra, Member{Key: m.Key(), Value: m.Raw()})
		}
	}
	if root.Get("input").IsNull() && r.Messages == nil {
		d.Missing(root, "input", wantInput)
	}
	if d.over != nil {
		return nil, d.over
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return r, nil
}

type decoder struct {
	*wire.Reader
	inputs int
	over   *block.Error // too many inputs
}

const wantInput = "a string, an array of strings, or token ids"

func (d *decoder) input(r *Request, v jsonscan.Value) {
	switch first := v.First(); {
	case v.IsNull():
	case v.Kind() == jsonscan.String:
		r.Texts, r.One = []string{d.Str(v)}, true
	case v.Kind() != jsonscan.Array:
		d.Want(v, wantInput)
	case first.Kind() == jsonscan.Number:
		r.Tokens, r.One = [][]uint32{d.ids(v)}, true
	case v.Len() > d.inputs:
		d.limit(v)
	case first.Kind() == jsonscan.Array:
		r.Tokens = make([][]uint32, 0, v.Len())
		for e := first; e.Exists() && d.Err() == nil; e = v.Next(e) {
			if e.Kind() != jsonscan.Array {
				d.Want(e, "an array of token ids, as in front of it,")
				return
			}
			r.Tokens = append(r.Tokens, d.ids(e))
		}
	default:
		r.Texts = make([]string, 0, v.Len())
		for e := first; e.Exists() && d.Err() == nil; e = v.Next(e) {
			if e.Kind() != jsonscan.String {
				d.Want(e, "a string")
				return
			}
			r.Texts = append(r.Texts, d.Str(e))
		}
	}
}

func (d *decoder) ids(v jsonscan.Value) []uint32 {
	ids := make([]uint32, 0, v.Len())
	for e := v.First(); e.Exists(); e = v.Next(e) {
		n, ok := e.Uint32()
		if !ok {
			d.Want(e, "a token id")
			return nil
		}
		ids = append(ids, n)
	}
	return ids
}

func (d *decoder) limit(v jsonscan.Value) {
	off, _ := v.Span()
	d.over = &block.Error{
		Kind: block.LimitPassed, Path: v.Path(), Offset: int64(off), Msg: "too many inputs", Limit: "inputs", Max: int64(d.inputs),
	}
}
