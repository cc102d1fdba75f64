// SPDX-License-Identifier: Apache-2.0

package args

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAppendValue(t *testing.T) {
	deep := func(open, end string, n int) string { return strings.Repeat(open, n) + strings.Repeat(end, n) }
	for _, c := range []struct {
		raw  string
		t    Types
		want string
	}{
		// strings are verbatim
		{"007", String, `"007"`},
		{"null", String, `"null"`},
		{"true", String, `"true"`},
		{"[1, 2]", String, `"[1, 2]"`},
		{"\n a \"b\" \\ \x01\n", String, `"\n a \"b\" \\ \u0001\n"`},
		{`"q"`, String, `"\"q\""`},
		{"", String, `""`},
		// null
		{"null", String | Null, "null"},
		{" null\n", Null, "null"},
		{"None", Null | Integer, "null"},
		{"Null", Null, `"Null"`},
		{"nil", Null, `"nil"`},
		{"null", Integer, "null"}, // no string is permitted: the value is missing
		{"None", Integer, "null"},
		{" None\n", numbers, "null"},
		{"null", Boolean, "null"},
		{"None", Object | Array, "null"},
		{"Null", Integer, `"Null"`},
		{"null", String | Integer, `"null"`},
		{"None", String | Object, `"None"`},
		{"None", Any &^ Null, `"None"`},
		{"None", Any, "null"},
		{"nullable", Any, `"nullable"`},
		// booleans
		{"true", Boolean, "true"},
		{"True", Boolean, "true"},
		{"false", Boolean | String, "false"},
		{" False ", Boolean, "false"},
		{"TRUE", Boolean, "true"},
		{"fAlse", Boolean | Null, "false"},
		{"TRUE", Boolean | String, `"TRUE"`},
		{"truest", Boolean, `"truest"`},
		{"yes", Boolean, `"yes"`},
		{"1", Boolean, `"1"`},
		{"true", Integer, `"true"`},
		// numbers
		{" 7 ", Integer, "7"},
		{"-0", Integer, "-0"},
		{"42.0", Integer, "42"},
		{"42.000", Integer, "42"},
		{"42.0", Integer | String, "42"},
		{"42.0", numbers, "42.0"},
		{"42.5", Integer, `"42.5"`},
		{"42.", Integer, `"42."`},
		{"1e3", Integer, `"1e3"`},
		{"1.0e3", Integer, `"1.0e3"`},
		{"1e3", numbers, "1e3"},
		{"1E+400", numbers, "1E+400"},
		{"9007199254740993", Integer, "9007199254740993"},
		{"123456789012345678901234567890.0", Integer, "123456789012345678901234567890"},
		{"0.1000000000000000055511151231257827", numbers, "0.1000000000000000055511151231257827"},
		{"1.50", Number, "1.50"},
		{"2", Number, "2"},
		{"007", Integer, "7"},
		{"000", numbers, "0"},
		{"007", Integer | String, `"007"`},
		{"007.5", numbers, `"007.5"`},
		{"+5", Integer, `"+5"`},
		{".5", numbers, `".5"`},
		{"0x10", Integer, `"0x10"`},
		{"1_000", Integer, `"1_000"`},
		{"NaN", numbers, `"NaN"`},
		{"1 2", numbers, `"1 2"`},
		{"5", Boolean | Object, `"5"`},
		// JSON
		{` {"b": 1.50, "a" : [ ]} `, Object, `{"b": 1.50, "a" : [ ]}`},
		{`[1, 2]`, Array, `[1, 2]`},
		{`[1, 2]`, Array | String, `[1, 2]`},
		{`{"a": 1}`, Array, `"{\"a\": 1}"`},
		{`[1]`, Object, `"[1]"`},
		{`[1]`, numbers, `"[1]"`},
		{"[1,", Array, `"[1,"`},
		{`[1] 2`, Array, `"[1] 2"`},
		{deep("[", "]", 512), Array, deep("[", "]", 512)},
		{deep("[", "]", 513), Array, `"` + deep("[", "]", 513) + `"`},
		// a string in quotes for a type other than string
		{`"q"`, Integer, `"q"`},
		{` "q" `, Object | Array, `"q"`},
		{`"q`, Integer, `"\"q"`},
		{`"q"`, Any, `"\"q\""`},
		// unions prefer the typed reading
		{"5", Any, "5"},
		{"five", Any, `"five"`},
		{" five ", Any, `" five "`},
		{"[]", Any, "[]"},
		{"", Integer, `""`},
		{" ", Array, `" "`},
		// Python
		{`{'a': 1, "b": True}`, Object, `{"a":1,"b":true}`},
		{`['a', None, False, null, true, false,]`, Array, `["a",null,false,null,true,false]`},
		{`(1, 'x')`, Array, `[1,"x"]`},
		{`(1,)`, Array, `[1]`},
		{`()`, Array, `[]`},
		{`([1],)`, Array, `[[1]]`},
		{`([1, (2)])`, Array, `[1,2]`},
		{`{1, 2,}`, Array, `[1,2]`},
		{`{'s': {1}}`, Object, `{"s":[1]}`},
		{`{1: 'a', None: 2, 1.5: 3, True: ('k')}`, Object, `{"1":"a","null":2,"1.5":3,"true":"k"}`},
		{`{'a': {'b': [{'c': -1.50e3}]}}`, Object, `{"a":{"b":[{"c":-1.50e3}]}}`},
		{`{'it': "it's", 'q': 'say "hi"', 'e': '\'\"\\\n\t\x41\u00e9\U0001f5fc\a\v\b\f\r\0\101\q\/'}`, Object,
			`{"it":"it's","q":"say \"hi\"","e":"'\"\\\n\tAé🗼\u0007\u000b\b\f\r\u0000A\\q\\/"}`},
		{`['\ud83d\uddfc', '\ud83d']`, Array, `["\ud83d\uddfc","\ud83d"]`},
		{"['a\\\nb']", Array, `["ab"]`},
		{"{\n 'a' :\t1\n}\n", Object, `{"a":1}`},
		{strings.Repeat("(", 64) + "'a'," + strings.Repeat(")", 64), Array, `["a"]`},
		{strings.Repeat("[", 64) + "None" + strings.Repeat("]", 64), Array, strings.Repeat("[", 64) + "null" + strings.Repeat("]", 64)},
		{strings.Repeat("[", 65) + "None" + strings.Repeat("]", 65), Array,
			`"` + strings.Repeat("[", 65) + "None" + strings.Repeat("]", 65) + `"`},
		{`[,]`, Array, `"[,]"`},
		{`[1,,]`, Array, `"[1,,]"`},
		{`[1 2]`, Array, `"[1 2]"`},
		{`['a' 'b']`, Array, `"['a' 'b']"`},
		{`[(1]`, Array, `"[(1]"`},
		{`{'a'}`, Object, `"{'a'}"`},
		{`{'a': 1}`, Array, `"{'a': 1}"`},
		{`{'a': 1, 2}`, Object, `"{'a': 1, 2}"`},
		{`{1, 'a': 2}`, Array, `"{1, 'a': 2}"`},
		{`{[1]: 2}`, Object, `"{[1]: 2}"`},
		{`{'a': }`, Object, `"{'a': }"`},
		{`{'a'`, Object, `"{'a'"`},
		{`['a`, Array, `"['a"`},
		{`['\x4']`, Array, `"['\\x4']"`},
		{`['\U00110000']`, Array, `"['\\U00110000']"`},
		{`['\`, Array, `"['\\"`},
		{"['a\nb']", Array, `"['a\nb']"`[:4] + `\n` + `b']"`},
		{`[f(1)]`, Array, `"[f(1)]"`},
		{`[nan, 1]`, Array, `"[nan, 1]"`},
		{`['a'] # note`, Array, `"['a'] # note"`},
		{`('x')`, Array, `"('x')"`},
		{`{'a': 1}`, Object | String, `"{'a': 1}"`},
		{`{'a': 1}`, Any, `"{'a': 1}"`},
		{`{'a': 1}`, Object | Null, `{"a":1}`},
	} {
		got := string(AppendValue([]byte("x"), []byte(c.raw), c.t))
		require.Equal(t, "x"+c.want, got, "%q as %b", c.raw, c.t)
		require.True(t, json.Valid([]byte(got[1:])), "%q as %b", c.raw, c.t)
	}
}

// TestLiterals reads text that enum or const spells.
func TestLiterals(t *testing.T) {
	for _, c := range []struct{ schema, raw, want string }{
		{`{"enum":["1",2]}`, "1", `"1"`},
		{`{"enum":["1",2]}`, "2", `2`},
		{`{"enum":["1",2]}`, "3", `3`},
		{`{"enum":["1",2]}`, " 1", `1`},
		{`{"enum":["null",null]}`, "null", `"null"`},
		{`{"enum":["None",null]}`, "None", `"None"`},
		{`{"enum":["a",null]}`, "None", `null`},
		{`{"enum":["True",true]}`, "True", `"True"`},
		{`{"enum":["[]",[]]}`, "[]", `"[]"`},
		{`{"anyOf":[{"const":"7"},{"type":"integer"}]}`, "7", `"7"`},
		{`{"anyOf":[{"const":"7"},{"type":"integer"}]}`, "8", `8`},
		{`{"oneOf":[{"type":"number"},{"$ref":"#/properties/e"}]}`, "7", `"7"`},
		{`{"allOf":[{"enum":["7",8]}]}`, "7", `"7"`},
		{`{"type":"integer","enum":["7",8]}`, "7", `7`},
		{`{"type":"string","enum":["7"]}`, "8", `"8"`},
		{`{"type":["string","null"]}`, "null", `null`},
		{`{"type":["string","integer"]}`, "null", `"null"`},
		{`{"type":"integer"}`, "None", `null`},
		{`{"enum":[1,2]}`, "null", `null`},
		{`{"enum":["a","b"]}`, "null", `"null"`},
	} {
		s := Compile([]byte(`{"properties":{"x":` + c.schema + `,"e":{"enum":["7","8"]}}}`))
		require.Equal(t, c.want, string(s.Param([]byte("x")).AppendValue(nil, []byte(c.raw))), "%q under %s", c.raw, c.schema)
	}
	// A property that two alternatives declare has the strings of both.
	s := Compile([]byte(`{"oneOf":[{"properties":{"x":{"const":"1"}}},{"properties":{"x":{"type":"integer"}}}]}`))
	require.Equal(t, `"1"`, string(s.Param([]byte("x")).AppendValue(nil, []byte("1"))))
	require.Equal(t, `2`, string(s.Param([]byte("x")).AppendValue(nil, []byte("2"))))
}

func TestAppendValueDoesNotAllocate(t *testing.T) {
	dst := make([]byte, 0, 1024)
	for raw, types := range map[string]Types{
		"text": String, "42.0": Integer, "1.5": numbers, "null": Null, `{"a": [1]}`: Object,
		`{'a': [True, None, '\x41\'']}`: Object, "x": Any,
	} {
		b := []byte(raw)
		require.Zero(t, testing.AllocsPerRun(100, func() { dst = AppendValue(dst[:0], b, types) }), raw)
	}
}
