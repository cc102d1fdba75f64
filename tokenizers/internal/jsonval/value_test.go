// SPDX-License-Identifier: Apache-2.0

package jsonval

import (
	"encoding/json"
	"testing"
)

// The wanted texts were printed by Python 3.11: json.dumps(json.loads(s), ensure_ascii=False) and str of it.
func TestAppendJSON(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"b":1,"a":[true,false,null]}`, `{"b": 1, "a": [true, false, null]}`},
		{`{"a":1,"b":2,"a":3}`, `{"a": 3, "b": 2}`},
		{`[1.0,1e5,1e16,1E+22,1e-4,1e-5,0.1,-0,-0.0,1e400,-1e400]`, `[1.0, 100000.0, 1e+16, 1e+22, 0.0001, 1e-05, 0.1, 0, -0.0, Infinity, -Infinity]`},
		{`[123456789012345678901234567890,5e-324,1.7976931348623157e308,123456789.123456789]`, `[123456789012345678901234567890, 5e-324, 1.7976931348623157e+308, 123456789.12345679]`},
		{`"\u00e9\ud83d\ude00<&>\u2028\/\"\\\n\t\r\b\f\u0000\u001f\u007f"`, "\"\u00e9\U0001f600<&>\u2028/\\\"\\\\\\n\\t\\r\\b\\f\\u0000\\u001f\u007f\""},
		{`{}`, `{}`},
		{`[[],{"":{}}]`, `[[], {"": {}}]`},
		{`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"b":11,"j":12}`, `{"a": 1, "b": 11, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9, "j": 12}`},
	} {
		v, err := Parse([]byte(c.in), "x")
		if err != nil {
			t.Fatal(err)
		}
		if got := string(v.AppendJSON(nil)); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{`true`: "True", `false`: "False", `null`: "None", `3`: "3", `1e3`: "1000.0", `1e999`: "inf", `"a b"`: "a b"} {
		v, err := Parse([]byte(in), "x")
		if err != nil {
			t.Fatal(err)
		}
		if got := v.Text(); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestTrue(t *testing.T) {
	for in, want := range map[string]bool{`0`: false, `-0`: false, `0.0`: false, `1`: true, `""`: false, `"x"`: true, `[]`: false, `[0]`: true, `{}`: false, `null`: false, `false`: false} {
		v, err := Parse([]byte(in), "x")
		if err != nil {
			t.Fatal(err)
		}
		if v.True() != want {
			t.Errorf("%s: %t", in, v.True())
		}
	}
	if (Value{}).Get("x").True() {
		t.Error("undefined is true")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"a":[1,2.5e3,"x\ud83d\ude00"],"a":null}`)
	f.Fuzz(func(t *testing.T, s string) {
		v, err := Parse([]byte(s), "x")
		if err != nil {
			return
		}
		once := v.AppendJSON(nil)
		if !json.Valid(once) {
			// Python prints infinities as names.
			return
		}
		again, err := Parse(once, "x")
		if err != nil || string(again.AppendJSON(nil)) != string(once) {
			t.Fatalf("%q: %s, then %s, %v", s, once, again.AppendJSON(nil), err)
		}
	})
}
