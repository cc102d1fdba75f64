// SPDX-License-Identifier: Apache-2.0

package jsonr

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// walk reads a whole value with all methods and returns it compactly.
func walk(r *Reader, w *bytes.Buffer) {
	switch r.Peek() {
	case '{':
		w.WriteByte('{')
		var key []byte
		n := 0
		for r.Object(); r.Key(&key); n++ {
			if n > 0 {
				w.WriteByte(',')
			}
			k, _ := json.Marshal(string(key))
			w.Write(k)
			w.WriteByte(':')
			walk(r, w)
		}
		w.WriteByte('}')
	case '[':
		w.WriteByte('[')
		n := 0
		for r.Array(); r.Next(); n++ {
			if n > 0 {
				w.WriteByte(',')
			}
			walk(r, w)
		}
		w.WriteByte(']')
	case '"':
		s, _ := json.Marshal(string(r.String(nil)))
		w.Write(s)
	default:
		w.Write(r.Raw().Data)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{``, `x: ends where a value should be at offset 0`},
		{`{`, `x: ends where a string should be at offset 1`},
		{`{"a"`, `x.a: ends where a colon should be at offset 4`},
		{`{"a":1`, `x.a: ends where a comma or the end of the object should be at offset 6`},
		{`{"a":[1,{"b":nul}]}`, `x.a[1].b: has "nul" where a value should be at offset 16`},
		{`[1 2]`, `x[0]: has '2' where a comma or the end of the array should be at offset 3`},
		{`[01]`, `x[0]: has "01" where a value should be at offset 3`},
		{`[1.]`, `x[0]: has "1." where a value should be at offset 3`},
		{`["\ud800"]`, `x[0]: has half a surrogate pair in a string at offset 8`},
		{"[\"\xff\"]", `x[0]: has a string that is not UTF-8 at offset 3`},
		{"[\"\n\"]", `x[0]: has a control character in a string at offset 2`},
		{`["\x"]`, `x[0]: has the unknown escape \x in a string at offset 4`},
		{`["abc`, `x[0]: ends inside a string at offset 5`},
		{`{} {}`, `x: has '{' after its end at offset 3`},
		{strings.Repeat("[", 300), `x` + strings.Repeat("[0]", 256) + `: is nested deeper than 256 at offset 257`},
	} {
		r := New(Span{Data: []byte(c.in)}, "x")
		var w bytes.Buffer
		walk(r, &w)
		err := r.End()
		if _, ok := errors.AsType[*Error](err); !ok || err.Error() != c.want {
			t.Errorf("%.20s\ngot  %v\nwant %s", c.in, err, c.want)
		}
	}
}

// Raw finds the end of a broken value too, and reports where it breaks.
func TestRaw(t *testing.T) {
	for _, c := range []struct{ in, raw, err string }{
		{` {"a":[1,"}]\""]} ,`, `{"a":[1,"}]\""]}`, ``},
		{`"a\"b"x`, `"a\"b"`, ``},
		{`-1.5e3]`, `-1.5e3`, ``},
		{`[{"a":"x`, ``, `x[0].a: ends inside a string at offset 8`},
		{`[1,[2}`, ``, `x[1][0]: has '}' where a comma or the end of the value should be at offset 5`},
	} {
		r := New(Span{Data: []byte(c.in)}, "x")
		s := r.Raw()
		if string(s.Data) != c.raw {
			t.Errorf("%s: got %s", c.in, s.Data)
		}
		if err := r.Err(); (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %v", c.in, err)
		}
	}
}

func TestUint32(t *testing.T) {
	for in, want := range map[string]string{
		"4294967295": "", "0": "", "4294967296": "is over", "-1": "is not an unsigned", "1.5": "is not an unsigned", "01": "is not an unsigned", "1e3": "is not an unsigned", `"1"`: "is not an unsigned",
	} {
		r := New(Span{Data: []byte(in)}, "x")
		r.Uint32()
		err := r.End()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// What this reader accepts encoding/json accepts too, with the same value; it is stricter about strings.
func FuzzReader(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e+3,true,null,"\u00e9\ud83d\ude00\n"],"b":{}}`, `[[[]]]`, ` "x" `, `{"a":1,}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := New(Span{Data: data}, "x")
		var w bytes.Buffer
		walk(r, &w)
		if err := r.End(); err != nil {
			if e, ok := errors.AsType[*Error](err); !ok || e.Offset < 0 || e.Offset > int64(len(data)) {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		var a, b any
		if err := json.Unmarshal(data, &a); err != nil {
			if strings.Contains(err.Error(), "cannot unmarshal number") {
				return // too large for a float64
			}
			t.Fatalf("%q: accepted, encoding/json: %v", data, err)
		}
		if err := json.Unmarshal(w.Bytes(), &b); err != nil {
			t.Fatalf("%q: walked to %q: %v", data, w.Bytes(), err)
		}
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if !bytes.Equal(x, y) {
			t.Fatalf("%q: %s and %s", data, x, y)
		}
		n := New(Span{Data: data}, "x")
		if s := n.Raw(); n.End() != nil || !bytes.Equal(bytes.TrimSpace(data), bytes.TrimSpace(s.Data)) {
			t.Fatalf("%q: Raw gives %q", data, s.Data)
		}
	})
}
