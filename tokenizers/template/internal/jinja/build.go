// SPDX-License-Identifier: Apache-2.0

package jinja

import "math"

// outside is a rendering without limits, for work on values that no template has seen yet.
func outside() *render {
	return &render{t: &Template{}, maxText: math.MaxInt, maxAlloc: math.MaxInt, maxSteps: math.MaxInt}
}

// Concat joins strings; each byte keeps its origin.
func Concat(parts ...*Str) *Str {
	w := outside().buf()
	for _, p := range parts {
		w.addStr(p)
	}
	return w.str()
}

// Dump prints a value of JSON as json.dumps does with ensure_ascii off. All of it comes from src.
func Dump(v Value, src *Origin) *Str {
	rt := outside()
	w := rt.buf()
	rt.dumps(w, v, &jsonStyle{item: ", ", key: ": "}, 0, nil)
	return NewStr(string(w.b), src)
}

// NewDict returns an empty dict for a position in the request.
func NewDict(src *Origin) *Dict { return &Dict{src: src} }

// NewList returns a list of the template's own.
func NewList(items ...Value) *List { return &List{Items: items} }

// List returns a list of the request with the position o, which owns items.
func (o *Origin) List(items []Value) *List { return &List{Items: items, src: o} }

// Element returns the position of an element of the list at o.
func (o *Origin) Element(i int) *Origin { return &Origin{parent: o, index: i} }

// Trim removes white space from both ends, as str.strip does.
func Trim(s string) string {
	rt := outside()
	return rt.strip(&Str{s: s}, nil, true, true).s
}

// TrimRight removes white space from the end, as str.rstrip does.
func TrimRight(s string) string {
	rt := outside()
	return rt.strip(&Str{s: s}, nil, false, true).s
}
