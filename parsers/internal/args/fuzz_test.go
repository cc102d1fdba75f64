// SPDX-License-Identifier: Apache-2.0

package args

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"
)

func FuzzTypes(f *testing.F) {
	for _, s := range []string{
		`{"properties":{"x":{"type":"integer"}}}`,
		`{"properties":{"x":{"anyOf":[{"$ref":"#/$defs/a%20b"},{"enum":["1",2,null]}],"nullable":true}},
			"$defs":{"a b":{"items":{"$ref":"#"}}}}`,
		`{"allOf":[{"$ref":"#"},{"additionalProperties":{"prefixItems":[{"const":1.0}],"items":false}}]}`,
		`{"oneOf":[{"properties":{"x":{"type":["string","null"]}}},{"properties":{"x":{"type":[]}}}]}`,
	} {
		f.Add([]byte(s), []byte("x"), []byte("1"))
	}
	f.Fuzz(func(t *testing.T, schema, key, raw []byte) {
		a, b := Compile(schema), Compile(schema)
		n, m := a.Root(), b.Root()
		for i := range 4 {
			types := n.Types()
			if types == 0 || types&^Any != 0 {
				t.Fatalf("types %b", types)
			}
			if !n.Declared() && types != String {
				t.Fatalf("types %b of what is not declared", types)
			}
			if types != m.Types() {
				t.Fatalf("types %b and %b of the same schema", types, m.Types())
			}
			if out := n.AppendValue(nil, raw); !json.Valid(out) || !bytes.Equal(out, m.AppendValue(nil, raw)) {
				t.Fatalf("%q is %s", raw, out)
			}
			if e := n.Item(i); e.Declared() {
				e.Types()
			}
			n, m = n.Property(key), m.Property(key)
			if i == 0 && n.Types() != a.Of(key) {
				t.Fatalf("types %b and %b of one parameter", n.Types(), a.Of(key))
			}
		}
	})
}

func FuzzAppendValue(f *testing.F) {
	for _, raw := range []string{
		"42.0", "-1e5", "null", "None", "True", `{"a": [1, 2.50]}`, `{'a': (1, {2}), "b": None}`,
		`['\x41\u00e9\ud83d\uddfc\0\q']`, `"q"`, "x\x00\xff", "([1])",
	} {
		f.Add([]byte(raw), byte(Any))
		f.Add([]byte(raw), byte(Object|Array))
	}
	f.Fuzz(func(t *testing.T, raw []byte, types byte) {
		ty := Types(types) & Any
		dst := append(make([]byte, 0, 1+len(raw)%64), 'x')
		out := AppendValue(dst, raw, ty)
		if out[0] != 'x' {
			t.Fatal("what was in dst is gone")
		}
		out = out[1:]
		if !json.Valid(out) {
			t.Fatalf("%q as %b is %s", raw, ty, out)
		}
		var is Types
		switch out[0] {
		case '"':
			is = Any // a string if nothing else fits
		case '{':
			is = Object
		case '[':
			is = Array
		case 't', 'f':
			is = Boolean
		case 'n':
			is = Null
			if ty&String == 0 {
				is = Any // what is missing, where no string is permitted
			}
		default:
			is = Number | Integer
		}
		if ty&is == 0 && ty != 0 {
			t.Fatalf("%q as %b is %s", raw, ty, out)
		}
		if ty == String && utf8.Valid(raw) {
			var s string
			if err := json.Unmarshal(out, &s); err != nil || s != string(raw) {
				t.Fatalf("%q is %s", raw, out)
			}
		}
	})
}
