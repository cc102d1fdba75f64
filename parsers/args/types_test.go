// SPDX-License-Identifier: Apache-2.0

package args

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSchema(t *testing.T) {
	s := Compile([]byte(`{
		"type":"object","$defs":{"n":{"type":["integer","null"]},"loop":{"$ref":"#/$defs/loop"},"a b":{"type":"array"}},
		"properties":{
			"s":{"type":"string"},"nullable":{"type":"string","nullable":true},"u":{"anyOf":[{"type":"string"},{"type":"number"}]},
			"r":{"$ref":"#/$defs/n"},"esc":{"$ref":"#/$defs/a%20b"},"loop":{"$ref":"#/$defs/loop"},"any":{},"t":true,
			"e":{"enum":["a",1]},"c":{"const":null},"all":{"allOf":[{"type":["string","null"]},{"type":["null","object"]}]},
			"p":{"properties":{}},"i":{"items":{}},"habit":{"type":"str"},"f":{"type":"float"},"bad":{"type":"string","const":1}
		}}`))
	for key, want := range map[string]Types{
		"s": String, "nullable": String | Null, "u": String | Number | Integer, "r": Integer | Null, "esc": Array, "loop": Any, "any": Any, "t": Any,
		"e": String | Number | Integer, "c": Null, "all": Null, "p": Object, "i": Array, "habit": String, "f": Number | Integer, "bad": Any,
		"undeclared": String,
	} {
		require.Equal(t, want, s.Of([]byte(key)), key)
	}
	require.Equal(t, String, (*Schema)(nil).Of([]byte("x")))
	require.Equal(t, String, Compile([]byte("{")).Of([]byte("x")))
	// A schema that fans out without end is answered, with bounded work.
	bomb := `{"properties":{"x":{"$ref":"#/d/a"}},"d":{"a":{"anyOf":[` + strings.Repeat(`{"$ref":"#/d/a"},`, 50) + `{"type":"string"}]}}}`
	require.Equal(t, Any, Compile([]byte(bomb)).Of([]byte("x")))
}

func TestAppendValue(t *testing.T) {
	for _, c := range []struct {
		raw  string
		t    Types
		want string
	}{
		{"007", String, `"007"`}, {"null", String, `"null"`}, {"null", String | Null, "null"}, {" 7 ", Integer, "7"}, {"42.0", Integer, "42"},
		{"42.5", Integer, `"42.5"`}, {"1e3", Integer, `"1e3"`}, {"1e3", Number | Integer, "1e3"}, {"9007199254740993", Integer, "9007199254740993"},
		{"True", Boolean, "true"}, {"yes", Boolean, `"yes"`}, {`{"a": 1}`, Object, `{"a": 1}`}, {`{"a": 1}`, Array, `"{\"a\": 1}"`},
		{"[1,", Array, `"[1,"`}, {"5", Any, "5"}, {"five", Any, `"five"`}, {`"q"`, Integer, `"q"`}, {`"q"`, Any, `"\"q\""`}, {"", Integer, `""`},
	} {
		require.Equal(t, c.want, string(AppendValue(nil, []byte(c.raw), c.t)), "%q as %b", c.raw, c.t)
	}
}
