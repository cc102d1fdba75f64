// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// naive finds the leftmost longest marker by looking everywhere.
func naive(text string, markers []string) (marker, end int) {
	for i := range len(text) {
		best := -1
		for m, s := range markers {
			if s != "" && strings.HasPrefix(text[i:], s) && (best < 0 || len(s) > len(markers[best])) {
				best = m
			}
		}
		if best >= 0 {
			return best, i + len(markers[best])
		}
	}
	return -1, len(text)
}

// check compares Find with naive on text: whole, byte by byte, and in two windows.
func check(t *testing.T, s *Set, markers []string, text string) {
	wantM, wantEnd := naive(text, markers)
	try := func(ends ...int) {
		var node Node
		m, end := -1, 0
		for i := 0; i < len(ends) && m < 0; i++ {
			m, end = s.Find([]byte(text[:ends[i]]), end, &node, ends[i] == len(text) && i == len(ends)-1)
		}
		require.Equal(t, wantM, m, "%q in %q, windows to %d", markers, text, ends)
		require.Equal(t, wantEnd, end, "%q in %q, windows to %d", markers, text, ends)
	}
	var all []int
	for i := range len(text) + 1 {
		all = append(all, i)
		try(i, len(text))
	}
	try(len(text))
	try(all...)
	try(append(all, len(text))...) // the end is passed later
}

func TestFindAgainstNaive(t *testing.T) {
	rounds := 1000
	if testing.Short() {
		rounds = 100
	}
	for _, markers := range [][]string{
		{"<a>", "</a>", "<ab>"}, {"ab", "abc", "abcd"}, {"ab", "abcd"}, {"a", "abcde"}, {"ab", "abcacb"},
		{"<|x|>", "<|xy|>", ""}, {"]<]m[>[", "<t>"}, {"aab"}, {"◁think▷"},
	} {
		s := New(markers...)
		r := rand.New(rand.NewPCG(1, uint64(len(markers))))
		alphabet := strings.Join(markers, "") + "z"
		for range rounds {
			var b strings.Builder
			for range r.IntN(20) {
				b.WriteByte(alphabet[r.IntN(len(alphabet))])
			}
			check(t, s, markers, b.String())
		}
	}
}

// TestFindRandomMarkers draws markers of few letters, so that they begin and overlap each other.
func TestFindRandomMarkers(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "aabbc"[r.IntN(5)]
		}
		return string(b)
	}
	begun := 0
	n := 3000
	if testing.Short() {
		n = 200
	}
	for range n {
		var markers []string
		for range 1 + r.IntN(4) {
			m := word(1 + r.IntN(6))
			if len(markers) > 0 && r.IntN(3) == 0 {
				m = markers[r.IntN(len(markers))] + m
			}
			inside := func(o string) bool { return strings.Contains(o[1:], m) || strings.Contains(m[1:], o) }
			if slices.ContainsFunc(markers, inside) {
				continue // not what New permits
			}
			if slices.ContainsFunc(markers, func(o string) bool { return o != m && strings.HasPrefix(m, o) }) {
				begun++
			}
			markers = append(markers, m)
		}
		s := New(markers...)
		for range 10 {
			text := word(r.IntN(14))
			if r.IntN(2) == 0 {
				m := markers[r.IntN(len(markers))]
				text = word(r.IntN(3)) + m[:r.IntN(len(m)+1)] + text
			}
			check(t, s, markers, text)
		}
	}
	require.Greater(t, begun, n/15)
}

// A marker that a longer one begins with is found when the window ended inside the longer one.
func TestFindInsideLonger(t *testing.T) {
	s := New("ab", "abcd")
	var node Node
	m, end := s.Find([]byte("abc"), 0, &node, false)
	require.Equal(t, -1, m)
	require.Equal(t, 3, end)
	require.Equal(t, 3, s.Held(node))
	m, end = s.Find([]byte("abcx"), end, &node, false)
	require.Equal(t, 0, m)
	require.Equal(t, 2, end)
	require.Zero(t, node)
}

func TestMatch(t *testing.T) {
	n := 0
	st, pos := Match([]byte("xab"), 1, "abc", &n)
	require.Equal(t, More, st)
	require.Equal(t, 3, pos)
	st, pos = Match([]byte("xabc"), pos, "abc", &n)
	require.Equal(t, Yes, st)
	require.Equal(t, 4, pos)
	n = 0
	st, _ = Match([]byte("ax"), 0, "abc", &n)
	require.Equal(t, No, st)
}
