// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestNodes reads documents with numbers of values around the size of pages.
func TestNodes(t *testing.T) {
	for _, n := range []int{0, 1, 14, 15, 16, 17, pageSize - 2, pageSize - 1, pageSize, pageSize + 1, 2*pageSize - 1, 2 * pageSize, 3 * pageSize} {
		body := "[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]"
		d, err := Scan([]byte(body), testLimits)
		if err != nil {
			t.Fatal(err)
		}
		if d.Values() != n+1 || d.Root().Len() != n || d.Root().End() != n+1 {
			t.Errorf("%d elements: %d values, %d elements that end at %d", n, d.Values(), d.Root().Len(), d.Root().End())
		}
		parts := d.Parts()
		for from := 1; from <= n; from += 7 {
			for to := from; to <= n; to += 13 {
				part := parts.Of(d.At(from), d.At(to))
				if want := body[2*from-1 : 2*to]; part.Values() != to-from+1 || string(part.Append(nil)) != want {
					t.Fatalf("%d to %d of %d: %d values in %s, want %s", from, to, n, part.Values(), part.Append(nil), want)
				}
			}
		}
	}
}

// TestSharedPages checks that the next request of a conversation takes over the pages of the values that both have, and
// that it changes none of them.
func TestSharedPages(t *testing.T) {
	conversation := func(n int, model string) []byte {
		b := fmt.Appendf(nil, `{"model":"%s","messages":[{"role":"system","content":"s"}`, model)
		for i := range n {
			b = fmt.Appendf(b, `,{"role":"user","content":[{"type":"text","text":"%04d"}]}`, i)
		}
		return append(b, `],"stream":true}`...)
	}
	const turns, more = 500, 3
	prev, err := Scan(conversation(turns, "m"), testLimits)
	if err != nil {
		t.Fatal(err)
	}
	before := slices.Clone(prev.list())
	for _, x := range []struct {
		name, model string
		turns       int
		shared      bool
	}{
		{"the same", "m", turns, true},
		{"more turns", "m", turns + more, true},
		{"fewer turns", "m", turns - more, true},
		{"another name", "x", turns + more, true},
		{"moved by a longer name", "long", turns + more, false},
	} {
		body := conversation(x.turns, x.model)
		next, _, err := ScanNext(prev, body, testLimits)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := Scan(body, testLimits); err != nil || !slices.Equal(next.list(), want.list()) {
			t.Fatalf("%s: the values differ from those of Scan (%v)", x.name, err)
		}
		own := 0
		for i, page := range next.pages {
			if i >= len(prev.pages) || &page[0] != &prev.pages[i][0] {
				own++
			}
		}
		if limit := 4; own > limit == x.shared {
			t.Errorf("%s: %d of %d pages are new", x.name, own, len(next.pages))
		}
		if !slices.Equal(prev.list(), before) {
			t.Fatalf("%s: the earlier document changed", x.name)
		}
	}
}
