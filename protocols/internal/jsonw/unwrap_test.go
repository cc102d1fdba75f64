// SPDX-License-Identifier: Apache-2.0

package jsonw

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func unwrap(args string, cuts uint64) string {
	var u Unwrap
	var out []byte
	for rest := []byte(args); len(rest) > 0; {
		cuts = cuts*6364136223846793005 + 1442695040888963407
		k := min(int(cuts>>33%5), len(rest))
		out = u.Next(out, rest[:k])
		rest = rest[k:]
	}
	return string(u.Close(out))
}

func TestUnwrap(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"input":"*** Begin Patch\n+a\n"}`, "*** Begin Patch\n+a\n"},
		{` { "input" : "" } `, ""},
		{`{"why":{"input":"no","x":[1,"}"]},"n":1.5 ,"input":"yes","input":"again"}`, "yes"},
		{`{"input":"\u00e9\ud83d\ude00\ud83d!\ude00\/\b\f\r\t\\\""}`, "é😀\uFFFD!\uFFFD/\b\f\r\t\\\""},
		{`{"input":"cut \u00`, "cut "},
		{`{"input":"cut \ud83d`, "cut \uFFFD"},
		{`{"input":"\ud83d"}`, "\uFFFD"},
		{`{"input":["not text"]}`, `{"input":["not text"]}`},
		{`{"in\u0070ut":"other spelling"}`, `{"in\u0070ut":"other spelling"}`},
		{`{"cmd":"x"}`, `{"cmd":"x"}`},
		{`{}`, `{}`},
		{`{`, `{`},
		{`{"input"x`, `{"input"x`},
		{`just text`, `just text`},
		{``, ``},
	} {
		for cuts := range uint64(20) {
			require.Equal(t, c.want, unwrap(c.in, cuts), c.in)
		}
	}
}

func TestUnwrapAny(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.String().Draw(rt, "text")
		args, err := json.Marshal(map[string]string{"input": text})
		require.NoError(t, err)
		require.Equal(t, string(AppendValid(nil, text)), unwrap(string(args), rapid.Uint64().Draw(rt, "cuts")))
	})
}

func FuzzUnwrap(f *testing.F) {
	f.Add(`{"a":[{}],"input":"x\u00e9"}`, uint64(3))
	f.Fuzz(func(t *testing.T, args string, cuts uint64) {
		args = string(AppendValid(nil, args))
		if a, b := unwrap(args, cuts), unwrap(args, 99); a != b {
			t.Fatalf("%q: %q and %q", args, a, b)
		}
	})
}
