// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var testLimits = Limits{Bytes: 1 << 26, Depth: 128, Values: 1 << 20}

func TestScanFaults(t *testing.T) {
	deep := strings.Repeat("[", 129)
	tests := []struct {
		name, body string
		kind       ErrorKind
		path       string
		off        int
	}{
		{"empty", "", Syntax, "", 0},
		{"blank", " \n", Syntax, "", 2},
		{"byte order mark", "\ufeff{}", Syntax, "", 0},
		{"cut object", `{"a":1`, Syntax, "a", 6},
		{"cut array", `{"a":[1,`, Syntax, "a[1]", 8},
		{"cut string", `{"a":"xy`, Syntax, "a", 8},
		{"cut escape", `{"a":"x\`, Syntax, "a", 8},
		{"cut unicode escape", `{"a":"\u12`, Syntax, "a", 10},
		{"cut literal", `[tru`, Syntax, "[0]", 4},
		{"cut number", `[-`, Syntax, "[0]", 2},
		{"cut name", `{"a`, Syntax, "", 3},
		{"no colon", `{"a" 1}`, Syntax, "a", 5},
		{"trailing comma in array", `[1,]`, Syntax, "[1]", 3},
		{"trailing comma in object", `{"a":1,}`, Syntax, "a", 7},
		{"wrong closer", `{"a":[1}`, Syntax, "a[0]", 7},
		{"trailing text", `{} x`, Syntax, "", 3},
		{"two values", `{}{}`, Syntax, "", 2},
		{"leading zero", `[01]`, Syntax, "[0]", 2},
		{"bare point", `[1.]`, Syntax, "[0]", 3},
		{"bare exponent", `[1e]`, Syntax, "[0]", 3},
		{"plus", `[+1]`, Syntax, "[0]", 1},
		{"NaN", `[NaN]`, Syntax, "[0]", 1},
		{"single quotes", `['a']`, Syntax, "[0]", 1},
		{"comment", `[1/**/]`, Syntax, "[0]", 2},
		{"control in string", "[\"a\nb\"]", Syntax, "[0]", 3},
		{"bad escape", `["\x"]`, Syntax, "[0]", 3},
		{"bad unicode escape", `["\u12g4"]`, Syntax, "[0]", 6},
		{"invalid UTF-8", "{\"m\":[{},{\"t\":\"a\xffb\"}]}", Encoding, "m[1].t", 16},
		{"overlong UTF-8", "[\"\xc0\xaf\"]", Encoding, "[0]", 2},
		{"UTF-8 surrogate", "[\"\xed\xa0\x80\"]", Encoding, "[0]", 2},
		{"cut UTF-8", "[\"\xe2\x82\"]", Encoding, "[0]", 2},
		{"invalid UTF-8 in name", "{\"\xff\":1}", Encoding, "", 2},
		{"duplicate", `{"a":{"b":1,"c":2,"b":3}}`, Duplicate, "a.b", 18},
		{"duplicate by escape", `{"a":1,"\u0061":2}`, Duplicate, "a", 7},
		{"duplicate by escape, the other way", `{"\u0061":1,"a":2}`, Duplicate, "a", 12},
		{"same name in another object", `[{"a":1},{"a":1},{"b":{"a":1},"a":2}, 01]`, Syntax, "[3]", 39},
		{"depth", deep, Limit, strings.Repeat("[0]", 128), 128},
		{"odd name in path", `{"a b":{"1":{"":[x`, Syntax, `["a b"]["1"][""][0]`, 17},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Scan([]byte(tt.body), testLimits)
			se, ok := errors.AsType[*Error](err)
			require.True(t, ok, "no error: %v", err)
			require.Equal(t, tt.kind, se.Kind, se.Error())
			require.Equal(t, tt.path, se.Path, se.Error())
			require.Equal(t, tt.off, se.Offset, se.Error())
		})
	}
}

func TestScanLimits(t *testing.T) {
	lim := Limits{Bytes: 20, Depth: 3, Values: 5, Opaque: func(key []byte, _ int) bool { return string(key) == "o" }}
	for body, want := range map[string]string{
		`[[[1]]]`:                "",
		`[[[[]]]]`:               "depth",
		`{"o":[[[]]]}`:           "depth", // also inside opaque values
		`[1,2,3,4]`:              "",
		`[1,2,3,4,5]`:            "values",
		`{"o":[1,2,3,4,5,6]}`:    "",
		`[1,2,                 `: "body bytes",
	} {
		_, err := Scan([]byte(body), lim)
		if want == "" {
			require.NoError(t, err, body)
			continue
		}
		se, ok := errors.AsType[*Error](err)
		require.True(t, ok, body)
		require.Equal(t, want, se.Limit, body)
	}
}

func TestManyKeys(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"o":{`)
	for i := range 20_000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"k%d":%d`, i, i)
	}
	_, err := Scan([]byte(b.String()+`}}`), testLimits)
	require.NoError(t, err)
	_, err = Scan([]byte(b.String()+`,"\u006b777":0}}`), testLimits)
	require.Equal(t, Duplicate, err.(*Error).Kind)
	require.Equal(t, "o.k777", err.(*Error).Path)
}

// TestLongNames reads names around the length from which nodes do not store it, before white space and after other names.
func TestLongNames(t *testing.T) {
	for _, n := range []int{0, 1, longKey - 1, longKey, longKey + 1, 3 * longKey} {
		for _, end := range []string{"", `\"`, `:`} {
			name := strings.Repeat("x", n) + end
			want := strings.ReplaceAll(name, `\`, "")
			body := []byte(`[{"y":"a","` + name + "\" \n:\t \"b\",\"" + name + `z":{"c":1}}]`)
			d, err := Scan(body, testLimits)
			require.NoError(t, err)
			moved, err := Scan(bytes.Replace(body, []byte("a"), []byte("abc"), 1), testLimits)
			require.NoError(t, err)
			next, _, err := ScanNext(moved, body, testLimits)
			require.NoError(t, err)
			require.True(t, slices.Equal(d.list(), next.list()))
			for _, d := range []*Doc{d, next} {
				o := d.Root().First()
				v := o.Get(want)
				require.Equal(t, `"b"`, v.RawStr(), n)
				require.True(t, v.Key() == want && v.KeyIs(want) && !v.KeyIs(want+"z"))
				require.True(t, o.Get(want+"z").Key() == want+"z" && !o.Get(want+"zz").Exists() && !o.Get("q"+want).Exists())
				require.Equal(t, "1", o.Get(want+"z").Get("c").RawStr())
				e := NewEdits(d)
				e.Delete(o, v)
				require.Equal(t, `[{"y":"a","`+name+`z":{"c":1}}]`, string(e.Append(nil)))
			}
		}
	}
}

// TestDepth checks that depth uses no stack.
func TestDepth(t *testing.T) {
	depth := 200_000
	if testing.Short() {
		depth = 50_000
	}
	body := strings.Repeat(`{"a":[`, depth)
	lim := testLimits
	lim.Depth, lim.Values = 4_000_000, 4_000_000
	_, err := Scan([]byte(body), lim)
	require.Equal(t, Syntax, err.(*Error).Kind)
}

func TestStringValues(t *testing.T) {
	for raw, want := range map[string]string{
		`""`:                   "",
		`"plain"`:              "plain",
		`"é 日本 😀"`:             "é 日本 😀",
		`"\"\\\/\b\f\n\r\t"`:   "\"\\/\b\f\n\r\t",
		`"\u00e9\u65E5"`:       "é日",
		`"\ud83d\ude00!"`:      "😀!",
		`"a\ud83d"`:            "a\ufffd",
		`"\ude00b"`:            "\ufffdb",
		`"\ud83d\ud83d\ude00"`: "\ufffd😀",
		`"\ud83dx"`:            "\ufffdx",
		`"\ud83d\n"`:           "\ufffd\n",
		`"\u0000"`:             "\x00",
	} {
		d, err := Scan([]byte(raw), testLimits)
		require.NoError(t, err, raw)
		var a Arena
		got, ok := d.Root().Str(&a)
		require.True(t, ok)
		require.Equal(t, want, got, raw)
		own, _ := d.Root().Str(nil)
		require.Equal(t, want, own, raw)
		var std string
		require.NoError(t, json.Unmarshal([]byte(raw), &std))
		require.Equal(t, std, got)
		back := AppendString(nil, got)
		var again string
		require.NoError(t, json.Unmarshal(back, &again))
		require.Equal(t, got, again)
	}
	require.Equal(t, `"\u0001\ufffd"`, strings.ReplaceAll(string(AppendString(nil, "\x01\xff")), "\ufffd", `\ufffd`))
}

func TestValue(t *testing.T) {
	d, err := Scan([]byte(` { "a" : [ 1 , {"\u0062":true} , [] ] , "n":null,"f":1.5e1,"big":1e400,"s":"x" } `), testLimits)
	require.NoError(t, err)
	root := d.Root()
	require.Equal(t, 5, root.Len())
	b := root.Get("a").First()
	b = root.Get("a").Next(b).Get("b")
	require.Equal(t, "a[1].b", b.Path())
	require.Equal(t, "b", b.Key())
	require.Equal(t, "a[1]", b.Parent().Path())
	require.Equal(t, root, root.Get("a").Parent())
	require.False(t, root.Parent().Exists())
	ok, _ := b.Bool()
	require.True(t, ok)
	n, isInt := root.Get("f").Int()
	require.True(t, isInt)
	require.EqualValues(t, 15, n)
	_, fine := root.Get("big").Float()
	require.False(t, fine)
	require.True(t, root.Get("n").IsNull())
	require.True(t, root.Get("zz").Get("y").First().IsNull())
	require.Equal(t, "1.5e1", root.Get("f").RawStr())
}

// FuzzScan compares the set of accepted inputs, and all values, with encoding/json.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-0.5e+3,"x\ud83d\ude00",true,false,null,{}],"b":{"c":"é"}}`, `{"a":1,"a":2}`, `[[[[[[]]]]]]`, "\"\xff\"", `01`,
		`{"input":{"x":[1,{"y":2}]}}`, "[\"\\u12\"", `  [ ]  `, `"\ud800"`, `12345678"`, `"1234567`, `"12345678\n12345678"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := Scan(body, testLimits)
		var std any
		stdErr := json.Unmarshal(body, &std)
		if err != nil {
			se := err.(*Error)
			if se.Offset < 0 || se.Offset > len(body) {
				t.Fatalf("offset %d of %d", se.Offset, len(body))
			}
			if stdErr == nil && se.Kind == Syntax {
				t.Fatalf("rejected, but encoding/json accepts: %v", err)
			}
			return
		}
		if stdErr != nil && !strings.Contains(stdErr.Error(), "cannot unmarshal number") {
			t.Fatalf("accepted, but encoding/json rejects: %v", stdErr)
		}
		if !utf8.Valid(body) {
			t.Fatal("invalid UTF-8 accepted")
		}
		if stdErr == nil {
			if diff := cmp.Diff(std, plain(d.Root())); diff != "" {
				t.Fatal(diff)
			}
		}
		// With everything opaque, the same inputs are accepted.
		lim := testLimits
		lim.Opaque = func([]byte, int) bool { return true }
		if _, err := Scan(body, lim); err != nil {
			t.Fatal("opaque:", err)
		}
		if out := NewEdits(d).Append(nil); string(out) != string(body) {
			t.Fatal("no edits, but the bytes differ")
		}
	})
}

// plain decodes a value as encoding/json does.
func plain(v Value) any {
	switch v.Kind() {
	case Array:
		list := []any{}
		for e := v.First(); e.Exists(); e = v.Next(e) {
			list = append(list, plain(e))
		}
		return list
	case Object:
		m := map[string]any{}
		for e := v.First(); e.Exists(); e = v.Next(e) {
			m[e.Key()] = plain(e)
		}
		return m
	case String:
		s, _ := v.Str(nil)
		return s
	case Number:
		f, _ := v.Float()
		return f
	case True, False:
		b, _ := v.Bool()
		return b
	}
	return nil
}
