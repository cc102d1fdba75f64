// SPDX-License-Identifier: Apache-2.0

package jsonw

import (
	"fmt"
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
			_, plain := AppendPlain(nil, p)
			quick.FeedPlain(p, plain)
			slow.Feed(p)
			require.Equal(t, slow, quick)
		}
	}
}

// simpleEscapes contains what stands for a character in a string.
var simpleEscapes = func() map[byte]string {
	m := map[byte]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}
	for c := range byte(0x20) {
		if m[c] == "" {
			m[c] = fmt.Sprintf(`\u%04x`, c)
		}
	}
	return m
}()

// simpleEscaped is appendEscaped, one character at a time.
func simpleEscaped(dst []byte, s string, ascii uint64) []byte {
	for i := 0; i < len(s); {
		n, ok := 1, true
		if s[i] >= utf8.RuneSelf && ascii != 0 {
			n, ok, _ = sequence(s, i)
		}
		switch c := s[i]; {
		case !ok:
			dst = append(dst, Replacement...)
		case c < 0x20 || c == '"' || c == '\\':
			dst = append(dst, simpleEscapes[c]...)
		default:
			dst = append(dst, s[i:i+n]...)
		}
		i += n
	}
	return dst
}

func TestAppendEscapedEqualsSimple(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "bc", "0123456", "01234567", "a text of twenty-four c.", "é", "漢", "😀", `"`, "\\", "\n", "\t", "\r", "\b", "\f", "\x00", "\x1f", "\x7f", "\xff", "\xe6\xbc", "\xf0\x9f", "\x80"}
	for round := range 20000 {
		s := ""
		for range rng.IntN(12) << (round % 4) {
			s += pieces[rng.IntN(len(pieces)-round%8)] // mostly without invalid UTF-8, which ends the fast way
		}
		for _, ascii := range []uint64{0, highs} {
			want := simpleEscaped([]byte("before"), s, ascii)
			for _, room := range []int{0, 3, 8, 11, len(want), len(want) + 20} {
				dst := append(make([]byte, 0, 6+room), "before"...)
				if got := appendEscaped(dst, s, ascii); string(got) != string(want) {
					t.Fatalf("%q, ascii %x, room %d: got %q, want %q", s, ascii, room, got, want)
				}
			}
		}
	}
}

// TestAppendEscapedWritesOnlyIntoItsRoom checks that nothing beyond the capacity of dst is written.
func TestAppendEscapedWritesOnlyIntoItsRoom(t *testing.T) {
	for room := range 40 {
		mem := make([]byte, 64)
		AppendText(mem[:0:room], "0123456\"89abcdef\n")
		require.Equal(t, make([]byte, 64-room), mem[room:])
	}
}
