// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFinder(t *testing.T) {
	const n = 2 * manySearches
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"\u006b%d":%d`, i, i)
	}
	doc, err := Scan([]byte("{"+b.String()[1:]+"}"), Limits{Bytes: 1 << 20, Depth: 4, Values: 1 << 10})
	require.NoError(t, err)
	f := NewFinder(doc.Root())
	for i := range n {
		require.Equal(t, i > manySearches, f.index != nil, "a map only after many searches")
		require.Equal(t, strconv.Itoa(i), f.Get("k"+strconv.Itoa(i)).RawStr())
	}
	require.False(t, f.Get("none").Exists())

	for _, v := range []Value{{}, doc.Root().Get("k1")} {
		f := NewFinder(v)
		for range n {
			require.False(t, f.Get("k1").Exists())
		}
	}
	list, err := Scan([]byte(`[1,2]`), Limits{Bytes: 10, Depth: 4, Values: 10})
	require.NoError(t, err)
	f = NewFinder(list.Root())
	for range n {
		require.False(t, f.Get("").Exists())
	}
}

// TestSpaced compares Spaced with a reference on texts of all lengths around a word.
func TestSpaced(t *testing.T) {
	reference := func(s string) bool {
		in := false
		for i := 0; i < len(s); i++ {
			switch c := s[i]; {
			case c == '"':
				in = !in
			case c == '\\' && in:
				i++
			case c <= ' ' && !in:
				return true
			}
		}
		return false
	}
	parts := []string{`"`, `\"`, `\\`, "a", " ", "abcdefgh", `{"k":"v"}`, "\u00e9", `\`}
	r := rand.New(rand.NewPCG(1, 1))
	rounds := 100000
	if testing.Short() {
		rounds = 10000
	}
	for range rounds {
		s := ""
		for range r.IntN(12) {
			s += parts[r.IntN(len(parts))]
		}
		if got := Spaced(s); got != reference(s) || Spaced([]byte(s)) != got {
			t.Fatalf("%q: %t", s, got)
		}
	}
}
