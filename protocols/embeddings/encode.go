// SPDX-License-Identifier: Apache-2.0

package embeddings

import (
	"math"
	"slices"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/wire"
)

// AppendJSON appends the request to dst: a decoded one as its body with the fields that were changed, a built one anew. To
// find out what was changed, it reads the fields of the body again.
func (r *Request) AppendJSON(dst []byte) []byte {
	if r.doc == nil {
		o := wire.Open(dst)
		r.members(&Request{}, func(name string, raw []byte) { o.Raw(string(jsonscan.AppendStringBody(nil, name)), raw) })
		return o.Close()
	}
	was, err := read(r.doc, math.MaxInt)
	if err != nil {
		return append(dst, r.doc.Body()...) // it was read before
	}
	var changes []Member // without a value: the member goes
	var place map[string]int
	r.members(was, func(name string, raw []byte) {
		if i, twice := place[name]; twice {
			changes[i].Value = raw
			return
		}
		if place == nil {
			place = map[string]int{}
		}
		place[name] = len(changes)
		changes = append(changes, Member{Key: name, Value: raw})
	})
	if changes == nil {
		return append(dst, r.doc.Body()...)
	}
	root, e := r.doc.Root(), jsonscan.NewEdits(r.doc)
	find := jsonscan.NewFinder(root)
	for _, c := range changes {
		switch v := find.Get(c.Key); {
		case v.Exists() && c.Value == nil:
			e.Delete(root, v)
		case v.Exists():
			e.Replace(v, c.Value)
		case c.Value != nil:
			e.Insert(root, jsonscan.Value{}, append(append(jsonscan.AppendString(nil, c.Key), ':'), c.Value...))
		}
	}
	return e.Append(dst)
}

// change calls set with v if it says otherwise than old, nil if v does not say anything any more.
func change[T comparable](set func(name string, raw []byte), name string, v, old *T, raw func(T) []byte) {
	switch {
	case v == nil && old == nil, v != nil && old != nil && *v == *old:
	case v == nil:
		set(name, nil)
	default:
		set(name, raw(*v))
	}
}

// members calls set with each member that r says otherwise than was, nil for one that r does not say any more.
func (r *Request) members(was *Request, set func(name string, raw []byte)) {
	str := func(name, s, old string) {
		switch {
		case s == old:
		case s == "":
			set(name, nil)
		default:
			set(name, wire.Str(s))
		}
	}
	if r.Model != was.Model || r.doc == nil {
		set("model", wire.Str(r.Model))
	}
	switch {
	case r.One == was.One && slices.Equal(r.Texts, was.Texts) && slices.EqualFunc(r.Tokens, was.Tokens, slices.Equal[[]uint32]) &&
		(r.Texts == nil) == (was.Texts == nil):
	case r.Texts == nil && r.Tokens == nil:
		set("input", nil)
	default:
		set("input", r.input())
	}
	if string(r.Messages) != string(was.Messages) {
		set("messages", r.Messages)
	}
	number := func(name string, n, old *int64) { change(set, name, n, old, wire.Int) }
	flag := func(name string, b, old *bool) { change(set, name, b, old, wire.Bool) }
	number("dimensions", r.Dimensions, was.Dimensions)
	str("encoding_format", string(r.EncodingFormat), string(was.EncodingFormat))
	str("user", r.User, was.User)
	number("truncate_prompt_tokens", r.TruncatePromptTokens, was.TruncatePromptTokens)
	flag("add_special_tokens", r.AddSpecialTokens, was.AddSpecialTokens)
	flag("normalize", r.Normalize, was.Normalize)
	number("priority", r.Priority, was.Priority)
	now, old := places(r.Extra), places(was.Extra)
	for _, m := range was.Extra {
		if now(m.Key) < 0 {
			set(m.Key, nil)
		}
	}
	for _, m := range r.Extra {
		if i := old(m.Key); i < 0 || string(was.Extra[i].Value) != string(m.Value) {
			set(m.Key, m.Value)
		}
	}
}

// manyMembers is the length of a list from which a map of it pays: one list searched for each name of another takes
// quadratic time.
const manyMembers = 16

// places returns a function for the place of the first member with a name, -1 if there is none.
func places(list []Member) func(name string) int {
	if len(list) <= manyMembers {
		return func(name string) int {
			return slices.IndexFunc(list, func(m Member) bool { return m.Key == name })
		}
	}
	at := make(map[string]int, len(list))
	for i, m := range slices.Backward(list) {
		at[m.Key] = i
	}
	return func(name string) int {
		if i, ok := at[name]; ok {
			return i
		}
		return -1
	}
}

// input returns the value of input.
func (r *Request) input() []byte {
	one := r.One && len(r.Texts)+len(r.Tokens) == 1
	raws := make([][]byte, 0, len(r.Texts)+len(r.Tokens))
	for _, s := range r.Texts {
		raws = append(raws, wire.Str(s))
	}
	for _, ids := range r.Tokens {
		raws = append(raws, wire.TokenIDs(ids))
	}
	if one {
		return raws[0]
	}
	return wire.Array(raws)
}
