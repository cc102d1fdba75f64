// SPDX-License-Identifier: Apache-2.0

package jsontext

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var samples = []string{
	`{}`, `[]`, `{"a":1}`, ` { "a" : [ 1 , -0.5e+3 , true , false , null , "x\n\u00e9\\" ] } `, `"s"`, `12`, `-0`, `0.1`, `1e5`, `[[[]]]`,
	`{"a":{"b":[{}]}}`, ``, ` `, `{`, `}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[,1]`, `[1 2]`, `01`, `1.`, `.5`, `-`, `1e`, `1e+`, `+1`,
	`tru`, `truex`, `nul`, `NaN`, `"a`, "\"a\nb\"", `"\x"`, `"\u12g4"`, `{"a":1}}`, `[1]]`, `{'a':1}`, `{"a":1 "b":2}`, `1 2`, `{"":""}`, `"\ud800"`,
}

func TestValid(t *testing.T) {
	for _, s := range samples {
		require.Equal(t, json.Valid([]byte(s)), Valid([]byte(s)), "%q", s)
	}
}

// FuzzLexer compares with encoding/json, whole and byte by byte.
func FuzzLexer(f *testing.F) {
	for _, s := range samples {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Count(s, "[")+strings.Count(s, "{") > MaxDepth {
			t.Skip()
		}
		require.Equal(t, json.Valid([]byte(s)), Valid([]byte(s)), "%q", s)
		var whole, single Lexer
		n, st := whole.Scan([]byte(s))
		m, sst := 0, Open
		for m < len(s) && sst == Open {
			var k int
			k, sst = single.Scan([]byte(s[m : m+1]))
			m += k
			if k == 0 && sst == Open {
				break
			}
		}
		if sst == Done && st == Open {
			return // a bare number at the end
		}
		require.Equal(t, st, sst, "%q", s)
		require.Equal(t, n, m, "%q", s)
	})
}

func TestQuote(t *testing.T) {
	for _, s := range []string{"", "a", "\"\\\n\r\t\b\f\x00\x1f\x7f", "é東🗼", "<&>"} {
		q := AppendQuoted(nil, s)
		var back string
		require.NoError(t, json.Unmarshal(q, &back))
		require.Equal(t, s, back)
		require.Equal(t, s, string(AppendUnquoted(nil, q)))
	}
	require.Equal(t, "🗼/�", string(AppendUnquoted(nil, []byte(`"\ud83d\uddfc\/\ud800"`))))
}

func TestWalk(t *testing.T) {
	var got []string
	Members([]byte(` {"a": [1, {"b":2}] , "c":"}"}`)[1:], func(k, v []byte) bool {
		got = append(got, string(k)+"="+string(v))
		return true
	})
	Elements([]byte(`[ 1,"]" , {} ]`), func(v []byte) bool { got = append(got, string(v)); return true })
	require.Equal(t, []string{`"a"=[1, {"b":2}]`, `"c"="}"`, "1", `"]"`, "{}"}, got)
}
