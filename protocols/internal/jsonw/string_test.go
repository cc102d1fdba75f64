// SPDX-License-Identifier: Apache-2.0

package jsonw

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// simpleSkip is skipPlain, one byte at a time.
func simpleSkip(s string, i int, ascii uint64) int {
	for ; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf && ascii != 0 {
			break
		}
	}
	return i
}

func TestSkipPlainEqualsSimple(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const rare = "\"\\\x00\x1f\x7f\x80\xff!#[] \xa2\xdc"
	for range 20000 {
		b := make([]byte, rng.IntN(30))
		for i := range b {
			if b[i] = 'a' + byte(rng.IntN(26)); rng.IntN(12) == 0 {
				b[i] = rare[rng.IntN(len(rare))]
			}
		}
		s := string(b)
		for i := range len(s) + 1 {
			for _, ascii := range []uint64{0, highs} {
				if got, want := skipPlain(s, i, ascii), simpleSkip(s, i, ascii); got != want {
					t.Fatalf("%q from %d, ascii %x: got %d, want %d", s, i, ascii, got, want)
				}
			}
		}
	}
}

func TestFeedPlainEqualsFeed(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"{", "}", "[", `"`, `\`, "a", " ", "plain text", "é", "\n", ""}
	for range 5000 {
		var quick, slow Balance
		for range rng.IntN(20) {
			p := []byte(pieces[rng.IntN(len(pieces))] + pieces[rng.IntN(len(pieces))])
			quick.FeedPlain(p, IsPlain(p))
			slow.Feed(p)
			require.Equal(t, slow, quick)
		}
	}
}
