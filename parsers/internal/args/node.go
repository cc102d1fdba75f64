// SPDX-License-Identifier: Apache-2.0

package args

import (
	"math/bits"

	"github.com/weft-go/weft/parsers/internal/jsontext"
)

// The bounds of one look-up.
const (
	maxVisits = 1024 // schemas
	maxNested = 64   // $ref, allOf, anyOf and oneOf one after another
	maxAlts   = 4    // alternatives whose own properties and elements a Node knows
)

// Node holds the constraints of a schema on one value. The zero Node is a value that is not declared. It is a small
// value to be passed around; it is immutable and safe for concurrent use.
type Node struct {
	s    *Schema
	alts [maxAlts]int32
	n    uint8
	more Types // of alternatives for which alts has no room
	mask Types // what all other declarations of the value permit
}

// Root returns the arguments object.
func (s *Schema) Root() Node {
	if s == nil || s.root == none {
		return Node{}
	}
	return s.node(s.root)
}

// Param returns parameter key; it is short for Root().Property(key).
func (s *Schema) Param(key []byte) Node { return s.Root().Property(key) }

// AppendValue implements grammar.Schema.
func (s *Schema) AppendValue(dst, key, raw []byte) []byte { return s.Param(key).AppendValue(dst, raw) }

// Of returns the types of parameter key; it is short for Param(key).Types().
func (s *Schema) Of(key []byte) Types { return s.Param(key).Types() }

// Knows reports whether parameter key is declared; it is short for Param(key).Declared().
func (s *Schema) Knows(key []byte) bool { return s.Param(key).Declared() }

func (s *Schema) node(id int32) Node {
	return Node{s: s, alts: [maxAlts]int32{id}, n: 1, mask: Any}
}

// Declared reports whether the schema constrains the value.
func (n Node) Declared() bool { return n.s != nil }

// Types returns the types that the value may have, at least one: String if the value is not declared, Any if the schema
// contradicts itself or is too large to tell.
func (n Node) Types() Types {
	if n.s == nil {
		return String
	}
	w := walker{s: n.s, left: maxVisits}
	if t := w.of(n); t != 0 && w.left >= 0 {
		return t
	}
	return Any
}

// Property returns the property of that name, if the value is an object.
func (n Node) Property(key []byte) Node {
	sel := selector{what: property, key: key}
	child := n.child(&sel)
	for sel.what = matching; sel.what <= further && !child.Declared(); sel.what++ {
		child = n.child(&sel)
	}
	return child
}

// Item returns element i, from 0 on, if the value is an array.
func (n Node) Item(i int) Node {
	sel := selector{what: item, i: i}
	return n.child(&sel)
}

func (n Node) child(sel *selector) (child Node) {
	if n.s == nil {
		return Node{}
	}
	w := walker{s: n.s, left: maxVisits}
	for _, id := range n.alts[:n.n] {
		child = w.or(child, w.find(id, sel, 0))
	}
	if w.left < 0 {
		return n.s.node(anything)
	}
	return child
}

// AppendValue appends raw as a value of the types of n, by the rules of [AppendValue] and one more: where the value may
// be a string, text that is one of the strings in enum or const is that string, whatever else it could be.
//
//	{"enum": ["1", 2]}    1 is "1", 2 is 2
func (n Node) AppendValue(dst, raw []byte) []byte {
	t := n.Types()
	if t != String && t&String != 0 {
		w := walker{s: n.s, left: maxVisits}
		for _, id := range n.alts[:n.n] {
			if w.literal(id, raw, 0) {
				return jsontext.AppendQuoted(dst, raw)
			}
		}
	}
	return AppendValue(dst, raw, t)
}

// selector specifies which child of a schema is looked for.
type selector struct {
	what uint8
	key  []byte
	i    int
}

const (
	property uint8 = iota // declared by name
	matching              // by patternProperties
	further               // by additionalProperties
	item
)

func (sel *selector) in(n *node) int32 {
	switch {
	case sel.what == property:
		return n.props[string(sel.key)]
	case sel.what == item && (n.rest == nil || sel.i >= len(n.rest.prefix)):
		return n.items
	case n.rest == nil:
		return none
	case sel.what == item && sel.i >= 0:
		return n.rest.prefix[sel.i]
	case sel.what == matching:
		for _, p := range n.rest.byName {
			if p.name.Match(sel.key) {
				return p.id
			}
		}
		return none
	case sel.what == further:
		return n.rest.further
	}
	return none
}

// walker visits schemas for one look-up. When left is negative, the response is not known.
type walker struct {
	s    *Schema
	left int
}

// visit returns the schema id, or nil if that is one too many.
func (w *walker) visit(id int32, depth int) *node {
	if w.left--; depth > maxNested {
		w.left = -1
	}
	if w.left < 0 {
		return nil
	}
	return &w.s.nodes[id]
}

// of returns the types of n, perhaps none.
func (w *walker) of(n Node) Types {
	t := n.more
	for _, id := range n.alts[:n.n] {
		t |= w.types(id, 0)
	}
	return t & n.mask
}

// types returns the types that schema id permits, perhaps none.
func (w *walker) types(id int32, depth int) Types {
	n := w.visit(id, depth)
	if n == nil {
		return Any
	}
	t, r := n.types, n.rest
	if !r.composed() {
		return t
	}
	if r.ref != none {
		t &= w.types(r.ref, depth+1)
	}
	for _, id := range r.all {
		if w.left < 0 {
			return Any
		}
		t &= w.types(id, depth+1)
	}
	for _, alts := range r.alts {
		if alts == nil {
			continue
		}
		var u Types
		for _, id := range alts {
			if w.left < 0 {
				return Any
			}
			u |= w.types(id, depth+1)
		}
		t &= u
	}
	if n.nullable {
		t |= Null
	}
	return t
}

// find returns the child that schema id declares.
func (w *walker) find(id int32, sel *selector, depth int) (found Node) {
	n := w.visit(id, depth)
	if n == nil {
		return Node{}
	}
	if to := sel.in(n); to != none {
		found = w.s.node(to)
	}
	r := n.rest
	if !r.composed() {
		return found
	}
	if r.ref != none {
		found = w.and(found, w.find(r.ref, sel, depth+1))
	}
	for _, id := range r.all {
		if w.left < 0 {
			return Node{}
		}
		found = w.and(found, w.find(id, sel, depth+1))
	}
	for _, alts := range r.alts {
		var u Node
		for _, id := range alts {
			if w.left < 0 {
				return Node{}
			}
			u = w.or(u, w.find(id, sel, depth+1))
		}
		found = w.and(found, u)
	}
	return found
}

// and returns a value that is a and b: it has the types that both permit, and otherwise follows the narrower one.
func (w *walker) and(a, b Node) Node {
	if a.s == nil {
		return b
	}
	if b.s == nil {
		return a
	}
	ta, tb := w.of(a), w.of(b)
	if bits.OnesCount8(uint8(tb)) < bits.OnesCount8(uint8(ta)) {
		a, b = b, a
	}
	a.mask &= ta & tb
	return a
}

// or returns a value that is a or b.
func (w *walker) or(a, b Node) Node {
	if a.s == nil {
		return b
	}
	if b.s == nil {
		return a
	}
	a.more |= b.more
	a.mask |= b.mask
add:
	for _, id := range b.alts[:b.n] {
		for _, have := range a.alts[:a.n] {
			if have == id {
				continue add
			}
		}
		if a.n == maxAlts {
			a.more |= w.types(id, 0)
			continue
		}
		a.alts[a.n] = id
		a.n++
	}
	return a
}

// literal reports whether an enum or const of schema id has the string text.
func (w *walker) literal(id int32, text []byte, depth int) bool {
	n := w.visit(id, depth)
	if n == nil || n.rest == nil {
		return false
	}
	r := n.rest
	if _, ok := r.strings[string(text)]; ok {
		return true
	}
	if r.ref != none && w.literal(r.ref, text, depth+1) {
		return true
	}
	for _, list := range [...][]int32{r.all, r.alts[0], r.alts[1]} {
		for _, id := range list {
			if w.left < 0 {
				return false
			}
			if w.literal(id, text, depth+1) {
				return true
			}
		}
	}
	return false
}
