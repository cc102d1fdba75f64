// SPDX-License-Identifier: Apache-2.0

package args

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const numbers = Number | Integer

// params returns the schema of an object with the one parameter x.
func params(x string) *Schema { return Compile([]byte(`{"properties":{"x":` + x + `}}`)) }

func TestTypes(t *testing.T) {
	for _, c := range []struct {
		schema string
		want   Types
	}{
		// type
		{`{"type":"string"}`, String},
		{`{"type":"number"}`, numbers},
		{`{"type":"integer"}`, Integer},
		{`{"type":"boolean"}`, Boolean},
		{`{"type":"object"}`, Object},
		{`{"type":"array"}`, Array},
		{`{"type":"null"}`, Null},
		{`{"type":["string","null"]}`, String | Null},
		{`{"type":["integer",7,"array"]}`, Integer | Array},
		{`{"type":[]}`, Any},
		{`{"type":7}`, Any},
		{`{"type":"mystery"}`, Any},
		{`{"type":"any"}`, Any},
		{`{}`, Any},
		{`true`, Any},
		{`false`, Any},
		{`7`, Any},
		{`{"properties":{}}`, Object},
		{`{"items":{}}`, Array},
		{`{"prefixItems":[]}`, Array},
		{`{"type":"string","properties":{}}`, String},
		// habit
		{`{"type":"str"}`, String}, {`{"type":"VARCHAR"}`, String}, {`{"type":"text"}`, String}, {`{"type":"enum"}`, String},
		{`{"type":"int64"}`, Integer}, {`{"type":"uint8"}`, Integer}, {`{"type":"long"}`, Integer}, {`{"type":"unsigned int"}`, Integer},
		{`{"type":"float"}`, numbers}, {`{"type":"double"}`, numbers}, {`{"type":"Number"}`, numbers}, {`{"type":"decimal"}`, numbers},
		{`{"type":"bool"}`, Boolean}, {`{"type":"binary"}`, Boolean}, {`{"type":"None"}`, Null},
		{`{"type":"dict[str, int]"}`, Object}, {`{"type":"map"}`, Object},
		{`{"type":"list[int]"}`, Array}, {`{"type":"arr"}`, Array}, {`{"type":"sequence"}`, Array},
		// enum, const
		{`{"enum":["a",1]}`, String | numbers},
		{`{"enum":["a",null,true,{},[]]}`, String | Null | Boolean | Object | Array},
		{`{"enum":[1.5]}`, Number},
		{`{"enum":[1.0]}`, numbers},
		{`{"enum":[1e2]}`, Number},
		{`{"type":"integer","enum":[1,2]}`, Integer},
		{`{"type":"string","enum":["a",1]}`, String},
		{`{"const":null}`, Null},
		{`{"const":"a"}`, String},
		{`{"enum":[]}`, Any},
		{`{"type":"string","const":1}`, Any},
		// nullable
		{`{"type":"string","nullable":true}`, String | Null},
		{`{"type":"string","nullable":false}`, String},
		{`{"type":"string","enum":["a"],"nullable":true}`, String | Null},
		{`{"anyOf":[{"type":"string"}],"nullable":true}`, String | Null},
		{`{"$ref":"#/$defs/s","nullable":true}`, String | Null},
		// combinations
		{`{"anyOf":[{"type":"string"},{"type":"number"}]}`, String | numbers},
		{`{"oneOf":[{"type":"string"},{"type":"null"}]}`, String | Null},
		{`{"anyOf":[{"type":"string"},{}]}`, Any},
		{`{"anyOf":[{"type":"string"},false]}`, String},
		{`{"anyOf":[{"type":"string","const":1},{"type":"null"}]}`, Null},
		{`{"anyOf":[]}`, Any},
		{`{"anyOf":{}}`, Any},
		{`{"allOf":[{"type":["string","null"]},{"type":["null","object"]}]}`, Null},
		{`{"allOf":[{"type":"number"},{"type":"integer"}]}`, Integer},
		{`{"allOf":[{"type":"string"},{"type":"object"}]}`, Any},
		{`{"type":"string","allOf":[{"minLength":1}]}`, String},
		{`{"type":["string","array"],"anyOf":[{"type":"array"},{"type":"object"}]}`, Array},
		{`{"anyOf":[{"type":"string"},{"type":"null"}],"oneOf":[{"type":"null"},{"type":"array"}]}`, Null},
		{`{"allOf":[{"anyOf":[{"type":"string"},{"$ref":"#/$defs/n"}]},{"type":["integer","array"]}]}`, Integer},
		// references
		{`{"$ref":"#/$defs/s"}`, String},
		{`{"$ref":"#/$defs/n"}`, Integer | Null},
		{`{"$ref":"#/$defs/n","type":"integer"}`, Integer},
		{`{"$ref":"#/$defs/a%20b"}`, Array},
		{`{"$ref":"#/$defs/a~1b~0c"}`, Boolean},
		{`{"$ref":"#/$defs/a~01"}`, Null},
		{`{"$ref":"#%2F$defs%2Fs"}`, String},
		{`{"$ref":"#/$defs/bad%zz"}`, Object},
		{`{"$ref":"#/$defs/many/anyOf/1"}`, Boolean},
		{`{"$ref":"#/$defs/many/anyOf/2"}`, Any},
		{`{"$ref":"#/$defs/many/anyOf/-1"}`, Any},
		{`{"$ref":"#/$defs/s/type/0"}`, Any},
		{`{"$ref":"#/$defs/absent"}`, Any},
		{`{"$ref":"#/$defs/yes"}`, Any},
		{`{"$ref":"#"}`, Object},
		{`{"$ref":""}`, Any},
		{`{"$ref":"#anchor"}`, Any},
		{`{"$ref":"https://example.com/s.json#/$defs/s"}`, Any},
		{`{"$ref":7,"type":"string"}`, String},
		// cycles
		{`{"$ref":"#/$defs/loop"}`, Any},
		{`{"$ref":"#/$defs/ping"}`, Any},
		{`{"$ref":"#/$defs/tree"}`, Object},
		{`{"anyOf":[{"$ref":"#/$defs/loop"},{"type":"string"}]}`, Any},
		{`{"$ref":"#/$defs/bomb"}`, Any},
	} {
		s := Compile([]byte(`{"properties":{"x":` + c.schema + `},"$defs":{
			"s":{"type":"string"},"n":{"type":["integer","null"]},"a b":{"type":"array"},"a/b~c":{"type":"boolean"},
			"a~1":{"type":"null"},"bad%zz":{"type":"object"},"yes":true,
			"many":{"anyOf":[{"type":"string"},{"type":"boolean"}]},
			"loop":{"$ref":"#/$defs/loop"},"ping":{"$ref":"#/$defs/pong"},"pong":{"$ref":"#/$defs/ping"},
			"tree":{"properties":{"kids":{"items":{"$ref":"#/$defs/tree"}}}},
			"bomb":{"anyOf":[` + strings.Repeat(`{"$ref":"#/$defs/bomb"},`, 50) + `{"type":"string"}]}
		}}`))
		require.Equal(t, c.want, s.Of([]byte("x")), c.schema)
		require.True(t, s.Knows([]byte("x")), c.schema)
		require.Equal(t, String, s.Of([]byte("y")))
		require.False(t, s.Knows([]byte("y")))
	}
}

func TestUndeclared(t *testing.T) {
	for _, schema := range []string{
		``, `{`, `null`, `[]`, `true`, `{}`, `{"type":"object"}`, `{"properties":{}}`, `{"properties":{"y":{}}}`, `{"properties":[]}`,
		`{"type":"object","additionalProperties":true}`, `{"additionalProperties":false}`, `{"anyOf":[{"properties":{"y":{}}}]}`,
		`{"$ref":"#/nowhere"}`,
	} {
		s := Compile([]byte(schema))
		require.Equal(t, String, s.Of([]byte("x")), schema)
		require.False(t, s.Knows([]byte("x")), schema)
	}
	var s *Schema
	require.Equal(t, String, s.Of([]byte("x")))
	require.False(t, s.Root().Declared())
	require.Equal(t, String, Node{}.Types())
	require.False(t, Node{}.Property([]byte("x")).Item(0).Declared())
	require.Equal(t, `"5"`, string(Node{}.AppendValue(nil, []byte("5"))))
}

// TestWhere finds a parameter wherever a schema may declare it.
func TestWhere(t *testing.T) {
	for _, c := range []struct {
		schema string
		want   Types
	}{
		{`{"properties":{"x":{"type":"integer"}}}`, Integer},
		{`{"type":"object","additionalProperties":{"type":"integer"}}`, Integer},
		{`{"additionalProperties":{}}`, Any},
		{`{"properties":{"x":{"type":"null"}},"additionalProperties":{"type":"integer"}}`, Null},
		{`{"additionalProperties":{"type":"integer"},"allOf":[{"properties":{"x":{"type":"null"}}}]}`, Null},
		{`{"patternProperties":{"^y":{"type":"array"},"^x$":{"type":"null"}},"additionalProperties":{"type":"integer"}}`, Null},
		{`{"patternProperties":{"^y":{"type":"array"},"(?=x)":{}},"additionalProperties":{"type":"integer"}}`, Integer},
		{`{"patternProperties":{"x":{"type":"array"}},"properties":{"x":{"type":"null"}}}`, Null},
		{`{"$ref":"#/$defs/o"}`, Integer},
		{`{"allOf":[{"$ref":"#/$defs/o"}]}`, Integer},
		{`{"oneOf":[{"properties":{"y":{}}},{"$ref":"#/$defs/o"}]}`, Integer},
		{`{"oneOf":[{"properties":{"x":{"type":"string"}}},{"$ref":"#/$defs/o"}]}`, String | Integer},
		{`{"properties":{"x":{}},"allOf":[{"$ref":"#/$defs/o"}]}`, Integer},
		{`{"properties":{"x":{"type":["integer","array"]}},"allOf":[{"properties":{"x":{"type":["array","null"]}}}]}`, Array},
		{`{"properties":{"x":{"type":"string"}},"anyOf":[{"properties":{"x":{"const":"a"}}},{"required":["y"]}]}`, String},
		{`{"properties":{"x":{"type":"string"}},"allOf":[{"properties":{"x":{"type":"integer"}}}]}`, Any},
		{`{"anyOf":[{"properties":{"x":{"const":"a"}}},{"properties":{"x":{"const":"b"}}},{"properties":{"x":{"const":"c"}}},
			{"properties":{"x":{"const":"d"}}},{"properties":{"x":{"const":"e"}}},{"properties":{"x":{"const":6}}}]}`, String | numbers},
		{`{"anyOf":[{"additionalProperties":{"type":"string"}},{"additionalProperties":{"type":"null"}}]}`, String | Null},
		{`{"allOf":[{"$ref":"#"},{"properties":{"x":{"type":"integer"}}}]}`, Any}, // without end
		{`{"$ref":"#"}`, Any},
	} {
		s := Compile([]byte(c.schema[:len(c.schema)-1] + `,"$defs":{"o":{"properties":{"x":{"type":"integer"}}}}}`))
		require.Equal(t, c.want, s.Of([]byte("x")), c.schema)
		require.Equal(t, c.want, s.Param([]byte("x")).Types(), c.schema)
		require.Equal(t, c.want, s.Root().Property([]byte("x")).Types(), c.schema)
	}
}

// TestPaths walks to values inside a parameter.
func TestPaths(t *testing.T) {
	s := Compile([]byte(`{"properties":{
		"o":{"type":"object","properties":{"k":{"type":"integer"},"deep":{"properties":{"k":{"type":"null"}}}}},
		"map":{"additionalProperties":{"items":{"type":"boolean"}}},
		"a":{"items":{"properties":{"k":{"type":"number"}}}},
		"tuple":{"prefixItems":[{"type":"string"},{"type":"null"}],"items":{"type":"integer"}},
		"old":{"items":[{"type":"string"}],"additionalItems":{"type":"boolean"}},
		"closed":{"prefixItems":[{"type":"integer"}],"items":false},
		"opt":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]},
		"either":{"oneOf":[{"items":{"type":"string"}},{"items":{"type":"null"}},{"properties":{"k":{"type":"array"}}}]},
		"any":{}
		},"$defs":{"tree":{"properties":{"name":{"type":"string"},"kids":{"items":{"$ref":"#/$defs/tree"}}}}}}`))
	walk := func(path string) Node {
		n := s.Root()
		for _, step := range strings.Split(path, ".") {
			var i int
			if _, err := fmt.Sscanf(step, "%d", &i); err == nil {
				n = n.Item(i)
				continue
			}
			n = n.Property([]byte(step))
		}
		return n
	}
	for path, want := range map[string]Types{
		"o": Object, "o.k": Integer, "o.deep.k": Null, "map": Any, "map.x.0": Boolean, "map.x.9": Boolean, "a.3.k": numbers,
		"tuple.0": String, "tuple.1": Null, "tuple.2": Integer, "tuple.99": Integer, "old.0": String, "old.1": Boolean, "closed.0": Integer,
		"closed.1": Any, "opt": Object | Null, "opt.kids.0.kids.1.name": String, "opt.kids.0.kids.1.kids": Array, "opt.kids.5": Object,
		"either": Array | Object, "either.0": String | Null, "either.k": Array, "any": Any,
	} {
		require.Equal(t, want, walk(path).Types(), path)
		require.True(t, walk(path).Declared(), path)
	}
	for _, path := range []string{"x", "o.x", "o.0", "o.k.x", "any.x", "any.0", "a.0.x", "a.x", "opt.0", "tuple.-1"} {
		require.False(t, walk(path).Declared(), path)
	}
}

// TestHugeSchemas compiles and asks what is made to take long.
func TestHugeSchemas(t *testing.T) {
	n := 20_000
	switch {
	case testing.Short():
		n = 5_000
	case os.Getenv("WEFT_TEST") == "long":
		n = 100_000
	}
	list := func(one string) string { return strings.Repeat(one+",", n-1) + one }
	var props, chain strings.Builder
	for i := range n {
		fmt.Fprintf(&props, `"p%d":{"type":"integer","$ref":"#/properties/p%d"},`, i, (i+1)%n)
		fmt.Fprintf(&chain, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"properties":{"k%d":{"$ref":"#/$defs/d%d"}}}]},`, i, (i+7)%n, i, i/2)
	}
	for name, schema := range map[string]string{
		"properties":     `{"properties":{` + props.String() + `"x":{}}}`,
		"defs":           `{"$ref":"#/$defs/d0","$defs":{` + chain.String() + `"x":{}}}`,
		"alternatives":   `{"properties":{"x":{"anyOf":[` + list(`{"type":"string"}`) + `]}}}`,
		"declarations":   `{"allOf":[` + list(`{"properties":{"x":{"type":"string"}}}`) + `]}`,
		"strings":        `{"properties":{"x":{"enum":[` + list(`"a"`) + `,1]}}}`,
		"deep items":     `{"properties":{"x":` + strings.Repeat(`{"items":`, 9000) + `{}` + strings.Repeat("}", 9000) + `}}`,
		"deep anyOf":     `{"properties":{"x":` + strings.Repeat(`{"anyOf":[`, 4000) + `{}` + strings.Repeat("]}", 4000) + `}}`,
		"too deep":       `{"properties":{"x":` + strings.Repeat(`{"items":`, 11000) + `{}` + strings.Repeat("}", 11000) + `}}`,
		"long reference": `{"properties":{"x":{"$ref":"#` + strings.Repeat("/properties/x", n/10) + `"}}}`,
		"spellings": `{"$defs":{"aaaaaa":` + strings.Repeat(`{"items":`, 1000) + `{}` + strings.Repeat("}", 1000) +
			`},"allOf":[` + spellings() + `]}`,
		"fan": `{"properties":{"x":{"$ref":"#/d/0"}},"d":[` + func() string {
			var b strings.Builder
			for i := range 200 {
				fmt.Fprintf(&b, `{"anyOf":[{"$ref":"#/d/%d"},{"$ref":"#/d/%d"}],"properties":{"x":{"$ref":"#/d/%d"}}},`, i+1, i+1, i+1)
			}
			return b.String() + `{"type":"string"}]}`
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			s := Compile([]byte(schema))
			require.LessOrEqual(t, len(s.nodes), 5*n)
			n := s.Root()
			for range 100 {
				n.Types()
				n.AppendValue(nil, []byte("a"))
				n.Item(0).Types()
				s.Of([]byte("p5"))
				n = n.Property([]byte("x"))
			}
		})
	}
	// An exhausted look-up has no result, regardless of what it visited before.
	require.Equal(t, Any, params(`{"anyOf":[`+strings.Repeat(`{"type":"string"},`, 2000)+`{"type":"string"}]}`).Of([]byte("x")))
	require.Equal(t, String, params(`{"anyOf":[`+strings.Repeat(`{"type":"string"},`, 900)+`{"type":"string"}]}`).Of([]byte("x")))
	deep := func(n int) *Schema {
		return params(strings.Repeat(`{"anyOf":[`, n) + `{"type":"string"}` + strings.Repeat("]}", n))
	}
	require.Equal(t, String, deep(maxNested).Of([]byte("x")))
	require.Equal(t, Any, deep(maxNested+1).Of([]byte("x")))
	require.Equal(t, Array, params(strings.Repeat(`{"items":`, 4000)+`{}`+strings.Repeat("}", 4000)).Of([]byte("x")))
}

// spellings returns references to one position in many spellings: each leads to the same node.
func spellings() string {
	var b strings.Builder
	for i := range 1 << 12 {
		b.WriteString(`{"$ref":"#/`)
		for j, c := range []byte("$defs/aaaaaa") {
			if i>>j&1 == 1 {
				fmt.Fprintf(&b, "%%%02x", c)
			} else {
				b.WriteByte(c)
			}
		}
		b.WriteString(`"},`)
	}
	return b.String() + "{}"
}

func TestLookUpsDoNotAllocate(t *testing.T) {
	s := Compile([]byte(`{"properties":{"o":{"anyOf":[{"properties":{"k":{"enum":["1",2]}}},{"items":{"type":"integer"}}]}},
		"allOf":[{"properties":{"o":{}}}]}`))
	o, k, raw, dst := []byte("o"), []byte("k"), []byte("12"), make([]byte, 0, 64)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		n := s.Param(o)
		dst = n.Property(k).AppendValue(dst[:0], raw)
		dst = n.Item(1).AppendValue(dst, raw)
		if n.Types() != Object|Array || s.Of(k) != String {
			panic(n.Types())
		}
	}))
	require.Equal(t, "1212", string(dst))
}
