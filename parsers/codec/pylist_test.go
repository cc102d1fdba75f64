// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers/codec"
	"github.com/weft-go/weft/parsers/grammar"
)

func scanList(t testing.TB, chunks ...string) (at int, st grammar.Status) {
	var s codec.ListScanner
	for _, c := range chunks {
		var n int
		if n, st = s.Scan([]byte(c)); n < 0 || n > len(c) || st == grammar.More && n < len(c) {
			t.Fatalf("%q: %d of %d bytes, %d", chunks, n, len(c), st)
		}
		at += n
		if st != grammar.More {
			n, again := s.Scan([]byte("x"))
			require.Equal(t, 0, n)
			require.Equal(t, st, again)
			break
		}
	}
	return at, st
}

func checkList(t testing.TB, text string, seed uint64) (int, grammar.Status) {
	at, st := scanList(t, text)
	r := newRand(seed)
	for _, chunks := range [][]string{split(text, func() int { return 1 }), split(text, func() int { return 1 + r.IntN(7) })} {
		n, s := scanList(t, chunks...)
		if n != at || s != st {
			t.Fatalf("%q: %d, %d whole but %d, %d cut", chunks, at, st, n, s)
		}
	}
	return at, st
}

func TestListScanner(t *testing.T) {
	for _, c := range []struct {
		in string
		at int
		st grammar.Status
	}{
		{"[]x", 2, grammar.Done},
		{`[f(a=1, b="]")] tail`, 15, grammar.Done},
		{`[f(a='it\'s ]'), g(b=[1, {"k": ')'}])]`, 38, grammar.Done},
		{`[f(a='''it's "]" ''', b="""a"b""c]""\"""")]]`, 43, grammar.Done},
		{`[f(a="", b='', c='''''', d="""""")]`, 35, grammar.Done},
		{`[f(a=r"\"]", b=Rf'\\', c=f"{x}")]`, 33, grammar.Done},
		{"[f(a='p\nq')]", 12, grammar.Done},
		{"[see (a) and b] x", 15, grammar.Done},
		{"", 0, grammar.More},
		{"[", 1, grammar.More},
		{"[f(a='x", 7, grammar.More},
		{"[f(a='''x''", 11, grammar.More},
		{"x", 0, grammar.Bad},
		{" []", 0, grammar.Bad},
		{"(a)", 0, grammar.Bad},
		{"'a'", 0, grammar.Bad},
		{"[f(a=1]", 6, grammar.Bad},
		{"[}", 1, grammar.Bad},
		{"[I don't know]", 6, grammar.Bad},
		{`[5"]`, 2, grammar.Bad},
		{`[été"]`, 6, grammar.Bad},
		{strings.Repeat("[", 129) + strings.Repeat("]", 129), 258, grammar.Done},
		{strings.Repeat("[", 130), 129, grammar.Limit},
	} {
		at, st := checkList(t, c.in, 1)
		require.Equal(t, c.st, st, c.in)
		require.Equal(t, c.at, at, c.in)
	}
	var s codec.ListScanner
	for range 2 {
		n, st := s.Scan([]byte("[a]]"))
		require.Equal(t, 3, n)
		require.Equal(t, grammar.Done, st)
		s.Reset()
		_, _ = s.Scan([]byte("[a'"))
		s.Reset()
	}
}

func FuzzListScanner(f *testing.F) {
	f.Add(`[f(a='it\'s ]'), g(b=[1, {"k": ')'}])]`, uint64(1))
	f.Fuzz(func(t *testing.T, text string, seed uint64) { checkList(t, text, seed) })
}

func BenchmarkListScanner(b *testing.B) {
	text := []byte(`[put(path="x", content="` + strings.Repeat(`if a < b { return x[i] } // next line\n`, 540) + `")]`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		var s codec.ListScanner
		for i := 0; i < len(text); i += 4 {
			s.Scan(text[i:min(i+4, len(text))])
		}
	}
}
