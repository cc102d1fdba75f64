// SPDX-License-Identifier: Apache-2.0

package embeddings

import (
	"errors"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// Decode validates and parses a request, which takes ownership of body. Errors are of type *[block.Error].
//
// Each input counts as a block toward the limits, and each token ID as a value. The defaults are 64 MiB, 4,194,304
// values and 2,048 inputs, OpenAI's limit.
func Decode(body []byte, lim *block.Limits) (*Request, error) {
	scan, inputs := bounds(lim, 64<<20)
	doc, err := jsonscan.Scan(body, scan)
	if err != nil {
		err = streamdec.Fault(err)
		if e, ok := errors.AsType[*block.Error](err); ok {
			e.Answer = false // not in a response
		}
		return nil, err
	}
	return read(doc, inputs)
}

// read reads the fields of a validated body.
func read(doc *jsonscan.Doc, inputs int) (*Request, error) {
	root := doc.Root()
	d := decoder{Reader: codec.NewReader(root, block.Limits{}, nil), inputs: inputs}
	r := &Request{doc: doc}
	for m := root.First(); m.Exists() && root.Kind() == jsonscan.Object; m = root.Next(m) {
		switch m.Key() {
		case "model":
			r.Model = d.Str(m)
		case "input":
			d.input(r, m)
		case "messages":
			d.List(m)
		case "encoding_format", "user":
			d.Str(m)
		case "dimensions", "truncate_prompt_tokens", "priority":
			d.Int(m)
		case "add_special_tokens", "normalize":
			d.BoolPtr(m)
		}
	}
	if root.Get("input").IsNull() && root.Get("messages").IsNull() {
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
	*codec.Reader
	inputs int
	over   *block.Error // too many inputs
}

const wantInput = "a string, an array of strings, or token IDs"

func (d *decoder) input(r *Request, v jsonscan.Value) {
	switch first := v.First(); {
	case v.IsNull():
	case v.Kind() == jsonscan.String:
		r.Texts, r.one = []string{d.Str(v)}, true
	case v.Kind() != jsonscan.Array:
		d.Want(v, wantInput)
	case first.Kind() == jsonscan.Number:
		r.Tokens, r.one = [][]uint32{d.ids(v)}, true
	case v.Len() > d.inputs:
		d.limit(v)
	case first.Kind() == jsonscan.Array:
		r.Tokens = make([][]uint32, 0, v.Len())
		for e := first; e.Exists() && d.Err() == nil; e = v.Next(e) {
			if e.Kind() != jsonscan.Array {
				d.Want(e, "an array of token IDs, like the elements before it,")
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
			d.Want(e, "a token ID")
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
