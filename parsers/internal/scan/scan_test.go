// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"math/rand/v2"
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

func TestFindAgainstNaive(t *testing.T) {
	for _, markers := range [][]string{
		{"<a>", "</a>", "<ab>"}, {"ab", "abc", "abcd"}, {"<|x|>", "<|xy|>", ""}, {"]<]m[>[", "<t>"}, {"aab"}, {"◁think▷"},
	} {
		s := New(markers...)
		r := rand.New(rand.NewPCG(1, uint64(len(markers))))
		alphabet := strings.Join(markers, "") + "z"
		for range 5000 {
			var b strings.Builder
			for range r.IntN(20) {
				b.WriteByte(alphabet[r.IntN(len(alphabet))])
			}
			text := b.String()
			wantM, wantEnd := naive(text, markers)
			var node Node
			m, end := s.Find([]byte(text), 0, &node, true)
			require.Equal(t, wantM, m, "%q in %q", markers, text)
			if m >= 0 {
				require.Equal(t, wantEnd, end, "%q in %q", markers, text)
			}
			// Byte by byte, with the window growing.
			node, m, end = 0, -1, 0
			for i := 0; i <= len(text) && m < 0; i++ {
				m, end = s.Find([]byte(text[:i]), end, &node, i == len(text))
			}
			require.Equal(t, wantM, m, "%q in %q, byte by byte", markers, text)
			if m >= 0 {
				require.Equal(t, wantEnd, end)
			}
		}
	}
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
