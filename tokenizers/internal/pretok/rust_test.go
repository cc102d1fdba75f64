// SPDX-License-Identifier: Apache-2.0

package pretok_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/pretok"
	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

// What tiktoken 0.14 cuts with pat_str, where a vocabulary of all parts of the text makes each match one token.
func TestCompileRust(t *testing.T) {
	for _, c := range []struct{ expr, text, want string }{
		{`\p{N}{1,3}+|\D`, "Jan 2024", "J|a|n| |202|4"},
		{`\p{N}{2}+|.`, "12345", "12|34|5"},
		{`a{2,}+a|a`, "aaa", "a|a|a"},
		{`a{1,2}?`, "aaa", "a|a|a"},
		{`\s++$|\s`, "a  \n b\n\n", " | |\n| |\n\n"},
		{`$|^a|\n`, "a\na", "a|\n"},
		{`\w+`, "a_1é\u0301\u200d²ʰ", "a_1é\u0301\u200d|ʰ"},
		{`[^\W_]+`, "a_b", "a|b"},
		{`\xe9|\u{4e2d}|\x{62}`, "éb中c", "é|b|中"},
		{`(?s:.)|x`, "\nx", "\n|x"},
		{`\pL+|\PL`, "ab1", "ab|1"},
		{`(?P<word>\p{Lu}\p{Ll}*)`, "AbCd", "Ab|Cd"},
		{`a(?i)b|c|d`, "abaBCcdD", "ab|aB|C|c|d|D"},
		{`(?i:k)`, "kK\u212a", "k|K|\u212a"},
		{`[a-z&&[^b]]+`, "abc", "a|c"},
		{`(?>a+)b|a`, "aab", "aab"},
		{`(?<!a)b`, "abb", "b"},
		{`[]a]+`, "a]b", "a]"},
	} {
		p, err := pretok.CompileRust(c.expr)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		x := pretok.Split{Pattern: p, Behavior: pretok.Removed, Invert: true}
		var got []string
		for _, piece := range x.AppendPieces(nil, c.text) {
			got = append(got, c.text[piece.Start:piece.End])
		}
		if want := strings.Split(c.want, "|"); !slices.Equal(got, want) {
			t.Errorf("%s on %q: got %q, want %q", c.expr, c.text, got, want)
		}
	}
}

func TestCompileRustRefuses(t *testing.T) {
	for _, c := range []struct {
		expr, reason string
		offset       int
	}{
		{`a\b`, `\b`, 1},
		{`\h`, `\h`, 0},
		{`[\h]`, `\h`, 1},
		{`\0`, `\0`, 0},
		{`\<a`, `an escaped "<"`, 0},
		{`\`, "a backslash at the end", 0},
		{`(?m:^a)`, "the group option 'm'", 0},
		{`(?:a(?i)b)b`, "options for the rest of a group", 4},
		{`(?x) a`, "the group option 'x'", 0},
		{`a{,3}`, "a { that does not begin {n}, {n,} or {n,m}", 1},
		{`a{3,1}`, "a { that does not begin {n}, {n,} or {n,m}", 1},
		{`a{x`, "a { that does not begin {n}, {n,} or {n,m}", 1},
		{`a+++`, "a quantifier after a quantifier", 3},
		{`(?:a|)+`, "a repeat of what may be empty", 0},
		{`[--b]`, "-- in a class", 1},
		{`[[:alpha:]]`, "[: in a class", 1},
		{`\p{Punct}`, `the property "Punct"`, 0},
		{`\p{^L}`, `the property "^L"`, 0},
		{`(?i)\P{Lu}`, "(?i) on this set", 4},
		{`(?i)[^a]`, "(?i) on this set", 4},
		{`\x4`, `\x without two hexadecimal digits`, 0},
		{`\u{110000}`, "the code point 110000", 0},
	} {
		_, err := pretok.CompileRust(c.expr)
		e, ok := errors.AsType[*pretok.Error](err)
		if !ok || e.Reason != c.reason || e.Offset != c.offset {
			t.Errorf("%s: got %v, want %q at %d", c.expr, err, c.reason, c.offset)
		}
	}
}

// tiktoken's expressions with a scanner: scanner and matcher agree.
func TestRustScanners(t *testing.T) {
	sources := []string{
		`'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s`,
		published["cl100k poss"], published["cl100k 1st"], published["cl100k"], published["gpt2"], published["gpt2 short"],
		published["qwen2"], published["qwen3.5"], published["o200k"], published["tekken"], published["kimi"],
	}
	for _, expr := range sources {
		f, ok := pretok.LookupRust(expr)
		p, err := pretok.CompileRust(expr)
		if !ok || err != nil {
			t.Fatalf("%s: %t, %v", expr, ok, err)
		}
		r := rand.New(rand.NewPCG(5, 6))
		for range testsize.Pick(150, 1000, 1000) {
			sameCuts(t, expr, f, &pretok.Split{Pattern: p, Behavior: pretok.Removed, Invert: true}, randomText(r))
		}
	}
	for _, expr := range []string{published["clip"], published["ds digits"]} {
		if _, ok := pretok.LookupRust(expr); ok {
			t.Errorf("%s does not match all text, but has a scanner", expr)
		}
	}
}

// Any expression of the dialect is compiled or refused, and what is compiled returns pieces in order.
func FuzzCompileRust(f *testing.F) {
	for _, expr := range []string{`(?i:a|b)*+c{2,3}?`, `[a-z&&[^\d]]\pL`, `(?<=^|\s)x(?!\S)`, `\xe4\u{4e2d}\x{4e2d}`, `a(?i)b|c$`, `\p{N}{1,3}+|\w+`} {
		f.Add(expr, "ab c1\n中 x")
	}
	f.Fuzz(func(t *testing.T, expr, s string) {
		if len(expr) > 200 || len(s) > 500 {
			return
		}
		p, err := pretok.CompileRust(expr)
		if err != nil {
			if e, ok := errors.AsType[*pretok.Error](err); !ok || e.Offset < 0 || e.Offset > len(expr) || e.Reason == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		at := 0
		x := pretok.Split{Pattern: p, Behavior: pretok.Removed, Invert: true}
		for _, piece := range x.AppendPieces(nil, s) {
			if piece.Start < at || piece.End <= piece.Start || piece.End > len(s) {
				t.Fatalf("%q on %q: %v after %d", expr, s, piece, at)
			}
			at = piece.End
		}
	})
}
