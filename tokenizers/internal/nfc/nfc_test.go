// SPDX-License-Identifier: Apache-2.0

package nfc

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// appendC appends s in form C to dst.
func appendC(dst []byte, s string, b *Buffer) []byte {
	for s != "" {
		n := Span(s)
		dst, s = append(dst, s[:n]...), s[n:]
		if s == "" {
			break
		}
		chars, n := b.Next(C, s)
		if n == 0 {
			dst, n = append(dst, s[0]), 1
		}
		for _, c := range chars {
			dst = utf8.AppendRune(dst, c.R)
		}
		s = s[n:]
	}
	return dst
}

func TestAppend(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"ascii", "plain text", "plain text"},
		{"composed", "\u00e9t\u00e9", "\u00e9t\u00e9"},
		{"joined", "e\u0301te\u0301", "\u00e9t\u00e9"},
		{"reordered", "a\u0301\u0323", "\u1ea1\u0301"},
		{"blocked", "a\u0327\u0327\u0301", "\u00e1\u0327\u0327"},
		{"hangul jamo", "\u1112\u1161\u11ab", "\ud55c"},
		{"hangul syllable and tail", "\ud558\u11ab", "\ud55c"},
		{"excluded from composition", "\u0958", "\u0915\u093c"},
		{"singleton", "\u212b", "\u00c5"},
		{"newer mark keeps its place", "a\u0898\u0323", "a\u0898\u0323"},
		{"invalid byte is a border", "e\xff\u0301", "e\xff\u0301"},
		{"cut sequence", "e\u0301\xe4\xb8", "\u00e9\xe4\xb8"},
		{"lone mark", "\u0301", "\u0301"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b Buffer
			if got := string(appendC(nil, c.in, &b)); got != c.want {
				t.Errorf("form C of %+q = %+q, want %+q", c.in, got, c.want)
			}
			if n := Span(c.want); c.want != "" && n > len(c.want) {
				t.Errorf("Span(%+q) = %d", c.want, n)
			}
		})
	}
}

// The output of the reference: every single character that it changes and every pair that it joins.
func TestReference(t *testing.T) {
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "tok", "_unicode", "hf_nfc.json"))
	if err != nil {
		t.Skip("no reference data: set WEFT_SHARED:", err)
	}
	var facts struct{ Single, Pairs map[string]string }
	if err := json.Unmarshal(raw, &facts); err != nil {
		t.Fatal(err)
	}
	var b Buffer
	for _, m := range []map[string]string{facts.Single, facts.Pairs} {
		for k, want := range m {
			var in strings.Builder
			for h := range strings.FieldsSeq(k) {
				n, err := strconv.ParseUint(h, 16, 32)
				if err != nil {
					t.Fatal(err)
				}
				in.WriteRune(rune(n))
			}
			if got := string(appendC(nil, in.String(), &b)); got != want {
				t.Errorf("form C of %+q = %+q, want %+q", in.String(), got, want)
			}
		}
	}
}

// A long run of marks in the wrong order must not cost quadratic time.
func TestLongRun(t *testing.T) {
	in := "a" + strings.Repeat("\u0301\u0323", 200_000)
	var b Buffer
	got := string(appendC(nil, in, &b))
	if !strings.HasPrefix(got, "\u1ea1\u0323") || len(got) != len(in) {
		t.Errorf("unexpected result of %d bytes starting %+q", len(got), got[:8])
	}
}

func FuzzAppend(f *testing.F) {
	f.Add("e\u0301\u0323 \u1112\u1161\u11ab\xff\u0958")
	f.Fuzz(func(t *testing.T, s string) {
		var b Buffer
		once := appendC(nil, s, &b)
		twice := appendC(nil, string(once), &b)
		if string(once) != string(twice) {
			t.Errorf("not stable: %+q then %+q", once, twice)
		}
		if n := Span(s); n == len(s) && string(once) != s {
			t.Errorf("Span of %+q is complete, but form C is %+q", s, once)
		}
	})
}

// The end does not depend on the alignment of a character.
func TestSpanPositions(t *testing.T) {
	for _, c := range []struct {
		tail string
		want int // of the tail; -1: the character before it is part of what may change
	}{{"", 0}, {"é", 2}, {"\xff", 1}, {"e\u0301", 0}, {"\u0301", -1}, {"中\u0301", 0}, {"\u0958", -1}} {
		for n := 1; n < 40; n++ {
			s := strings.Repeat("a", n)
			if got := Span(s + c.tail); got != n+c.want {
				t.Errorf("%d letters and %+q: %d, want %d", n, c.tail, got, n+c.want)
			}
			if got := Span(s + c.tail + s); c.tail == "" && got != 2*n {
				t.Errorf("%d letters: %d", 2*n, got)
			}
		}
	}
}
