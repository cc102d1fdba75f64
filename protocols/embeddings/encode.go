// SPDX-License-Identifier: Apache-2.0

package embeddings

import (
	"math"
	"slices"

	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// AppendJSON appends the request to dst: a decoded one as its body with the changes, a built one anew. To find the
// changes, it parses the fields of the body again.
func (r *Request) AppendJSON(dst []byte) []byte {
	if r.doc == nil {
		o := codec.Open(dst)
		o.Raw("model", codec.Str(r.Model))
		if r.Texts != nil || r.Tokens != nil {
			o.Raw("input", r.input())
		}
		for _, m := range r.edits {
			if m.value != nil {
				o.Raw(string(jsonscan.AppendStringBody(nil, m.name)), m.value)
			}
		}
		return o.Close()
	}
	was, err := read(r.doc, math.MaxInt)
	if err != nil {
		return append(dst, r.doc.Body()...) // cannot happen: Decode parsed it
	}
	root, e := r.doc.Root(), jsonscan.NewEdits(r.doc)
	find := jsonscan.NewFinder(root)
	set := func(name string, raw []byte) {
		switch v := find.Get(name); {
		case v.Exists() && raw == nil:
			e.Delete(root, v)
		case v.Exists():
			if string(v.Raw()) != string(raw) {
				e.Replace(v, raw)
			}
		case raw != nil:
			e.Insert(root, jsonscan.Value{}, append(append(jsonscan.AppendString(nil, name), ':'), raw...))
		}
	}
	if r.Model != was.Model {
		set("model", codec.Str(r.Model))
	}
	switch {
	case slices.Equal(r.Texts, was.Texts) && slices.EqualFunc(r.Tokens, was.Tokens, slices.Equal[[]uint32]) &&
		(r.Texts == nil) == (was.Texts == nil):
	case r.Texts == nil && r.Tokens == nil:
		set("input", nil)
	default:
		set("input", r.input())
	}
	for _, m := range r.edits {
		set(m.name, m.value)
	}
	return e.Append(dst)
}

// input returns the value of the field input.
func (r *Request) input() []byte {
	one := r.one && len(r.Texts)+len(r.Tokens) == 1
	raws := make([][]byte, 0, len(r.Texts)+len(r.Tokens))
	for _, s := range r.Texts {
		raws = append(raws, codec.Str(s))
	}
	for _, ids := range r.Tokens {
		raws = append(raws, codec.TokenIDs(ids))
	}
	if one {
		return raws[0]
	}
	return codec.Array(raws)
}
