// SPDX-License-Identifier: Apache-2.0

// Package args turns the raw text of an argument into JSON, guided by the JSON Schema of the tool.
package args

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/weft-go/weft/parsers/internal/jsontext"
)

// Types is a set of JSON types.
type Types uint8

// The JSON types; Integer is a Number without a fraction.
const (
	String Types = 1 << iota
	Number
	Integer
	Boolean
	Object
	Array
	Null

	// Any is every type: the schema says nothing.
	Any = String | Number | Integer | Boolean | Object | Array | Null
)

// Schema knows the types of a tool's parameters. It is immutable and safe for concurrent use.
type Schema struct {
	params map[string]Types
	known  bool
}

// Compile reads the JSON Schema of a tool's arguments object. A schema that is absent or cannot be read knows no
// parameter. The work is bounded: at most 1024 schema nodes are visited per parameter, at most 64 deep; what lies
// beyond counts as Any.
func Compile(schema []byte) *Schema {
	s := &Schema{params: map[string]Types{}}
	if len(schema) == 0 {
		return s
	}
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber()
	var root any
	if dec.Decode(&root) != nil {
		return s
	}
	w := walker{root: root, left: 1024}
	s.properties(&w, root, 0)
	return s
}

// properties collects the parameters of node, also those behind $ref and allOf.
func (s *Schema) properties(w *walker, node any, depth int) {
	m, _ := w.deref(node).(map[string]any)
	if m == nil || depth > 8 {
		return
	}
	if props, ok := m["properties"].(map[string]any); ok {
		s.known = true
		for key, sub := range props {
			w.left = 1024
			s.params[key] = w.types(sub, 0)
		}
	}
	for _, comb := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := m[comb].([]any)
		for _, sub := range list {
			s.properties(w, sub, depth+1)
		}
	}
}

// Of returns the types that parameter key may have. A parameter that the schema does not declare is a String: its text
// is all that is known.
func (s *Schema) Of(key []byte) Types {
	if s != nil {
		if t, ok := s.params[string(key)]; ok {
			return t
		}
	}
	return String
}

type walker struct {
	root any
	left int
}

// deref follows local references, each at most once per step.
func (w *walker) deref(node any) any {
	for range 16 {
		m, ok := node.(map[string]any)
		if !ok {
			return node
		}
		ref, ok := m["$ref"].(string)
		if !ok {
			return node
		}
		to, ok := w.resolve(ref)
		if !ok {
			return true
		}
		node = to
	}
	return true
}

func (w *walker) resolve(ref string) (any, bool) {
	ptr, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	if u, err := url.PathUnescape(ptr); err == nil {
		ptr = u
	}
	at := w.root
	for _, tok := range strings.Split(ptr, "/")[1:] {
		tok = strings.NewReplacer("~1", "/", "~0", "~").Replace(tok)
		switch v := at.(type) {
		case map[string]any:
			if at, ok = v[tok]; !ok {
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

// types computes the set of types that node permits.
func (w *walker) types(node any, depth int) Types {
	if w.left--; w.left < 0 || depth > 64 {
		return Any
	}
	m, ok := w.deref(node).(map[string]any)
	if !ok {
		return Any
	}
	t := Any
	switch v := m["type"].(type) {
	case string:
		t = named(v)
	case []any:
		t = 0
		for _, n := range v {
			if s, ok := n.(string); ok {
				t |= named(s)
			}
		}
	default:
		if m["properties"] != nil {
			t = Object
		} else if m["items"] != nil || m["prefixItems"] != nil {
			t = Array
		}
	}
	if c, ok := m["const"]; ok {
		t &= kindOf(c)
	}
	if list, ok := m["enum"].([]any); ok {
		var e Types
		for _, c := range list {
			e |= kindOf(c)
		}
		t &= e
	}
	for _, comb := range []string{"anyOf", "oneOf"} {
		if list, ok := m[comb].([]any); ok {
			var u Types
			for _, sub := range list {
				u |= w.types(sub, depth+1)
			}
			t &= u
		}
	}
	if list, ok := m["allOf"].([]any); ok {
		for _, sub := range list {
			t &= w.types(sub, depth+1)
		}
	}
	if m["nullable"] == true {
		t |= Null
	}
	if t == 0 {
		return Any // the schema contradicts itself; take the text as it comes
	}
	return t
}

// named maps a type name to types. Besides JSON Schema's names it takes those that tool authors write by habit
// (Dynamo accepts the same ones).
func named(name string) Types {
	n := strings.ToLower(name)
	switch {
	case n == "null" || n == "none":
		return Null
	case n == "object" || strings.HasPrefix(n, "dict"):
		return Object
	case n == "array" || n == "arr" || strings.HasPrefix(n, "list"):
		return Array
	case n == "boolean" || n == "bool" || n == "binary":
		return Boolean
	case strings.HasPrefix(n, "int"), strings.HasPrefix(n, "uint"), strings.HasPrefix(n, "long"),
		strings.HasPrefix(n, "short"), strings.HasPrefix(n, "unsigned"):
		return Integer
	case strings.HasPrefix(n, "num"), strings.HasPrefix(n, "float"), n == "double", n == "decimal":
		return Number | Integer
	case n == "string" || n == "str" || n == "text" || n == "varchar" || n == "char" || n == "enum":
		return String
	}
	return Any
}

func kindOf(v any) Types {
	switch v := v.(type) {
	case nil:
		return Null
	case bool:
		return Boolean
	case string:
		return String
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return Number
		}
		return Number | Integer
	case map[string]any:
		return Object
	case []any:
		return Array
	}
	return Any
}

// AppendValue appends raw as a JSON value of one of the types t. A JSON reading wins over the string reading where both
// are allowed; text that fits none of the types becomes a string, for a validator to judge. JSON text is kept byte for
// byte: number spelling and key order are the model's.
func AppendValue(dst, raw []byte, t Types) []byte {
	if t == String {
		return jsontext.AppendQuoted(dst, raw)
	}
	s := bytes.TrimSpace(raw)
	if len(s) == 0 {
		return jsontext.AppendQuoted(dst, raw)
	}
	switch {
	case t&Null != 0 && (string(s) == "null" || string(s) == "None"):
		return append(dst, "null"...)
	case t&Boolean != 0 && (string(s) == "true" || string(s) == "True"):
		return append(dst, "true"...)
	case t&Boolean != 0 && (string(s) == "false" || string(s) == "False"):
		return append(dst, "false"...)
	}
	switch k := jsontext.Kind(s[0]); {
	case k == "number" && t&(Number|Integer) != 0 && jsontext.Valid(s):
		if t&Number == 0 {
			if i := bytes.IndexByte(s, '.'); i > 0 && len(bytes.Trim(s[i+1:], "0")) == 0 {
				s = s[:i] // 42.0 is the integer 42
			} else if bytes.ContainsAny(s, ".eE") {
				break
			}
		}
		return append(dst, s...)
	case k == "object" && t&Object != 0 && jsontext.Valid(s), k == "array" && t&Array != 0 && jsontext.Valid(s):
		return append(dst, s...)
	case k == "string" && t&String == 0 && jsontext.Valid(s):
		return append(dst, s...) // already quoted although no string was asked for
	}
	return jsontext.AppendQuoted(dst, raw)
}
