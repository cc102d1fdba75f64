// SPDX-License-Identifier: Apache-2.0

package args

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Schema is the compiled JSON Schema of a tool's arguments object. A nil Schema declares nothing. It is immutable and
// safe for concurrent use.
type Schema struct {
	nodes []node // by id; the first ones are the fixed schemas below
	root  int32
}

// The ids of schemas that every Schema has.
const (
	none     int32 = iota // no schema at all
	anything              // true
	nothing               // false
	firstID
)

// node is one schema. Other ids are absent if the keyword is missing.
type node struct {
	types    Types // what type, enum and const permit, and nullable if rest has no other schemas for the same value
	nullable bool
	props    map[string]int32
	items    int32 // elements after rest.prefix
	rest     *rest // nil for most
}

// rest holds what few schemas have.
type rest struct {
	ref     int32
	all     []int32
	alts    [2][]int32 // anyOf and oneOf
	prefix  []int32
	further int32               // additionalProperties
	byName  []byName            // patternProperties
	strings map[string]struct{} // strings of enum and const
}

// byName is the schema of properties whose names match a regular expression.
type byName struct {
	name *regexp.Regexp
	id   int32
}

// composed reports whether other schemas speak of the same value.
func (r *rest) composed() bool {
	return r != nil && (r.ref != none || r.all != nil || r.alts[0] != nil || r.alts[1] != nil)
}

// Compile reads the JSON Schema of a tool's arguments object. A schema that is empty, or cannot be read because it is
// not JSON or nested more than 10000 deep, declares nothing. It does not keep schema.
func Compile(schema []byte) *Schema {
	s := &Schema{nodes: make([]node, firstID, 16)}
	s.nodes[anything].types = Any
	if len(schema) == 0 {
		return s
	}
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber()
	c := compiler{s: s, ids: map[uintptr]int32{}, refs: map[string]int32{}}
	if dec.Decode(&c.doc) != nil {
		return s
	}
	if _, ok := c.doc.(map[string]any); ok {
		s.root = c.add(c.doc)
	}
	for len(c.todo) > 0 { // what a reference leads to may hold more of them
		t := c.todo[len(c.todo)-1]
		c.todo = c.todo[:len(c.todo)-1]
		s.nodes[t.id].rest.ref = c.resolve(t.ref)
	}
	return s
}

// compiler makes nodes of a decoded document, each object of it once however many references lead there.
type compiler struct {
	s    *Schema
	doc  any
	ids  map[uintptr]int32 // by identity of the object
	refs map[string]int32
	todo []pending
}

type pending struct {
	id  int32
	ref string
}

func (c *compiler) add(v any) int32 {
	m, ok := v.(map[string]any)
	if !ok {
		if v == false {
			return nothing
		}
		return anything
	}
	at := reflect.ValueOf(m).Pointer()
	if id, ok := c.ids[at]; ok {
		return id
	}
	id := int32(len(c.s.nodes))
	c.ids[at] = id
	c.s.nodes = append(c.s.nodes, node{})
	n := c.node(m)
	if ref, ok := m["$ref"].(string); ok {
		n.more().ref = anything
		c.todo = append(c.todo, pending{id, ref})
	}
	n.nullable = m["nullable"] == true
	if n.nullable && !n.rest.composed() {
		n.types |= Null
	}
	c.s.nodes[id] = n
	return id
}

func (n *node) more() *rest {
	if n.rest == nil {
		n.rest = &rest{}
	}
	return n.rest
}

// node reads all keywords but $ref and nullable.
func (c *compiler) node(m map[string]any) (n node) {
	n.types = c.typesOf(m)
	if v, ok := m["const"]; ok {
		n.types &= kindOf(v)
		n.literal(v)
	}
	if list, ok := m["enum"].([]any); ok {
		var t Types
		for _, v := range list {
			t |= kindOf(v)
			n.literal(v)
		}
		n.types &= t
	}
	if props, ok := m["properties"].(map[string]any); ok && len(props) > 0 {
		n.props = make(map[string]int32, len(props))
		for key, v := range props {
			n.props[key] = c.add(v)
		}
	}
	if _, ok := m["additionalProperties"].(map[string]any); ok {
		n.more().further = c.add(m["additionalProperties"])
	}
	if patterns, ok := m["patternProperties"].(map[string]any); ok {
		for _, p := range slices.Sorted(maps.Keys(patterns)) {
			if re, err := regexp.Compile(p); err == nil { // not every expression of JavaScript is one of Go
				n.more().byName = append(n.more().byName, byName{re, c.add(patterns[p])})
			}
		}
	}
	items, further := m["prefixItems"], m["items"]
	if _, ok := further.([]any); ok { // before draft 2020-12
		items, further = further, m["additionalItems"]
	}
	if list := c.list(items); list != nil {
		n.more().prefix = list
	}
	if further != nil {
		n.items = c.add(further)
	}
	if list := c.list(m["allOf"]); list != nil {
		n.more().all = list
	}
	for i, key := range [...]string{"anyOf", "oneOf"} {
		if list := c.list(m[key]); list != nil {
			n.more().alts[i] = list
		}
	}
	return n
}

func (c *compiler) typesOf(m map[string]any) Types {
	switch v := m["type"].(type) {
	case string:
		return named(v)
	case []any:
		var t Types
		for _, name := range v {
			if s, ok := name.(string); ok {
				t |= named(s)
			}
		}
		if t != 0 {
			return t
		}
	}
	switch {
	case m["properties"] != nil:
		return Object
	case m["items"] != nil || m["prefixItems"] != nil:
		return Array
	}
	return Any
}

func (c *compiler) list(v any) []int32 {
	list, _ := v.([]any)
	if len(list) == 0 {
		return nil
	}
	ids := make([]int32, len(list))
	for i, v := range list {
		ids[i] = c.add(v)
	}
	return ids
}

// literal notes v, a value of enum or const, if it is a string.
func (n *node) literal(v any) {
	s, ok := v.(string)
	if !ok {
		return
	}
	r := n.more()
	if r.strings == nil {
		r.strings = map[string]struct{}{}
	}
	r.strings[s] = struct{}{}
}

// resolve returns the schema that a reference leads to.
func (c *compiler) resolve(ref string) int32 {
	if id, ok := c.refs[ref]; ok {
		return id
	}
	id := anything
	if v, ok := c.find(ref); ok {
		id = c.add(v)
	}
	c.refs[ref] = id
	return id
}

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

// find follows a JSON Pointer (RFC 6901) in the fragment of ref.
func (c *compiler) find(ref string) (any, bool) {
	ptr, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	if u, err := url.PathUnescape(ptr); err == nil {
		ptr = u
	}
	if ptr == "" {
		return c.doc, true
	}
	if ptr[0] != '/' {
		return nil, false
	}
	at := c.doc
	for tok := range strings.SplitSeq(ptr[1:], "/") {
		switch v := at.(type) {
		case map[string]any:
			if at, ok = v[unescapePointer.Replace(tok)]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(tok)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			at = v[i]
		default:
			return nil, false
		}
	}
	return at, true
}
