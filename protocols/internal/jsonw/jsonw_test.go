// SPDX-License-Identifier: Apache-2.0

package jsonw

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/internal/race"
)

// replaced is a slow, independent implementation of AppendValid: the maximal subpart is the longest run that
// utf8.FullRune considers the beginning of a character.
func replaced(s string) (out string) {
	for len(s) > 0 {
		if r, n := utf8.DecodeRuneInString(s); r != utf8.RuneError || n > 1 {
			out, s = out+s[:n], s[n:]
			continue
		}
		n := 1
		for n < len(s) && !utf8.FullRuneInString(s[:n]) && !utf8.FullRuneInString(s[:n+1]) {
			n++
		}
		out, s = out+Replacement, s[n:]
	}
	return out
}

func TestAppendValid(t *testing.T) {
	for in, want := range map[string]string{
		"a\xf1\x80\x80\xe1\x80\xc2b\x80c\x80\xbfd": "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd",          // Unicode 16, table 3-8
		"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82A":        "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA", // table 3-9
		"\xed\xa0\x80\xed\xbf\xbf\xed\xafA":        "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA", // table 3-10
		"\xf4\x91\x92\x93\xffA\x80\xbfB":           "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA\uFFFD\uFFFDB",      // table 3-11
		"\xe1\x80\xe2\xf0\x91\x92\xf1\xbfA":        "\uFFFD\uFFFD\uFFFD\uFFFDA",                         // table 3-11 of Unicode 16
		"€😀é":                                      "€😀é",
		"\uFFFD":                                   "\uFFFD",
	} {
		require.Equal(t, want, string(AppendValid(nil, in)), "%q", in)
		require.Equal(t, want, replaced(in), "the reference itself, %q", in)
	}
}

func check(t *testing.T, s string, cuts uint64) {
	t.Helper()
	valid := string(AppendValid(nil, s))
	require.Equal(t, replaced(s), valid)

	quoted := AppendString(nil, s)
	var back string
	require.NoError(t, json.Unmarshal(quoted, &back), "%s", quoted)
	require.Equal(t, valid, back)
	require.Equal(t, string(quoted), `"`+string(AppendText(nil, valid))+`"`)
	require.Equal(t, string(quoted), string(AppendString(nil, []byte(s))))

	var c Carry
	var got []byte
	for rest := []byte(s); len(rest) > 0; {
		cuts = cuts*6364136223846793005 + 1442695040888963407
		k := min(int(cuts>>33%5), len(rest))
		piece := c.Next(rest[:k])
		require.True(t, utf8.Valid(piece))
		got = append(got, piece...)
		require.LessOrEqual(t, c.n, uint8(3))
		rest = rest[k:]
	}
	require.Equal(t, valid, string(append(got, c.Flush()...)))
	require.Empty(t, c.Flush())
}

func TestAppendText(t *testing.T) {
	bytes := rapid.SliceOfN(rapid.SampledFrom([]byte("a\"\\\n\r\t\b\f\x00\x1f\x7f\x80\xa0\xbf\xc0\xc3\xe0\xe2\xed\xf0\x90\x9f\xf4\x8f\xf5\xff")), 0, 20)
	rapid.Check(t, func(rt *rapid.T) {
		check(t, string(bytes.Draw(rt, "bytes")), rapid.Uint64().Draw(rt, "cuts"))
	})
}

func FuzzText(f *testing.F) {
	f.Add("a\xe2\x82\xac\xf0\x9f", uint64(1))
	f.Fuzz(check)
}

func TestMembersCallsYield(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		raw := object(rt, 3)
		require.True(t, json.Valid([]byte(raw)), raw)
		want := map[string]json.RawMessage{}
		require.NoError(t, json.Unmarshal([]byte(raw), &want))
		got := map[string]json.RawMessage{}
		Members([]byte(raw), func(key, value []byte) bool {
			var k string
			require.NoError(t, json.Unmarshal(key, &k))
			got[k] = value
			return true
		})
		require.Empty(t, cmp.Diff(want, got), raw)

		cut := rapid.IntRange(0, len(raw)-1).Draw(rt, "cut")
		var b Balance
		b.Feed([]byte(raw[:cut]))
		require.Equal(t, cut > 0, b.Open(), raw[:cut])
		require.Equal(t, cut == 0, b.Blank())
		b.Feed([]byte(raw[cut:]))
		require.False(t, b.Open())
		require.Equal(t, `"`, b.Spoiler())
		require.False(t, json.Valid([]byte(raw+b.Spoiler())))
		require.Equal(t, "{", (&Balance{}).Spoiler())
		Members([]byte(raw[:cut]), func(_, _ []byte) bool { return true }) // must not panic
	})
}

func TestBlank(t *testing.T) {
	for raw, want := range map[string]bool{"": true, " \t\r\n": true, " {}": false, "\u00a0": false} {
		var b Balance
		b.Feed([]byte(raw))
		require.Equal(t, want, b.Blank(), raw)
		require.Equal(t, want, IsBlank([]byte(raw)), raw)
	}
}

// object draws a JSON object without leading white space, so that each of its prefixes is open.
func object(t *rapid.T, depth int) string {
	s := "{"
	for i := range rapid.IntRange(0, 3).Draw(t, "members") {
		if i > 0 {
			s += ", "
		}
		s += string(rune('a' + i)) // distinct keys
		s = s[:len(s)-1] + `"` + s[len(s)-1:] + `" : `
		switch k := rapid.IntRange(0, 4).Draw(t, "value"); {
		case k == 0 && depth > 0:
			s += object(t, depth-1)
		case k == 1:
			s += `[1.50, "]", {"x":null}]`
		case k == 2:
			s += string(AppendString(nil, rapid.String().Draw(t, "string")))
		case k == 3:
			s += "-1e5"
		default:
			s += "true"
		}
	}
	return s + "}"
}

func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"\"}"}], "c" : 1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		valid := json.Valid(raw)
		Members(raw, func(key, value []byte) bool {
			if valid && !(json.Valid(key) && json.Valid(value)) {
				t.Fatalf("%q: member %q %q", raw, key, value)
			}
			return true
		})
	})
}

func TestAppendRaw(t *testing.T) {
	require.Equal(t, "{ \"a\" :  1.50}", string(AppendRaw(nil, []byte("{ \"a\" :\r\n1.50}"))))
	require.Equal(t, "\"\uFFFD\"", string(AppendRaw(nil, []byte("\"\xff\""))))
	dst := []byte("[")
	for _, a := range []string{"[ ]", "[1]", " [2, 3 ]\n", "[]"} {
		require.True(t, IsArray([]byte(a)))
		dst = AppendElements(dst, []byte(a))
	}
	require.Equal(t, "[1,2, 3", string(dst))
	require.True(t, IsObject([]byte(" {}")))
	for in, want := range map[string]bool{`{}`: false, `{"type":""}`: false, `{"type":1}`: false, `[]`: false, `{"type":"x"`: false, ` {"a":{},"type" : "x"}`: true} {
		require.Equal(t, want, IsTyped([]byte(in)), in)
	}
	require.False(t, IsObject([]byte("[]")))
	require.False(t, IsObject([]byte("{")))
	require.False(t, IsObject(nil))
}

func TestAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	dst := make([]byte, 0, 1024)
	text := []byte("some \"text\" with é and 😀 in it")
	var c Carry
	c.Next(text[:26]) // grow the buffers
	c.Next(text[26:])
	require.Zero(t, testing.AllocsPerRun(100, func() {
		dst = AppendText(dst[:0], c.Next(text))
		dst = AppendText(dst, c.Next(text[:26]))
		dst = AppendText(dst, c.Next(text[26:]))
		dst = AppendText(dst, c.Flush())
	}))
}

func BenchmarkAppendText(b *testing.B) {
	text := []byte("The quick brown fox \"jumps\" over the lazy dog, and so on and on until the line ends.\n")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var dst []byte
	for b.Loop() {
		dst = AppendText(dst[:0], text)
	}
}
