// SPDX-License-Identifier: Apache-2.0

package jsonw

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// simpleSpecial is Special, one byte at a time.
func simpleSpecial(b []byte) (m Masks, blocks int, wide bool) {
	blocks = min(max(len(b)/BlockSize, 1), len(m))
	for i := range blocks * BlockSize {
		if i >= len(b) || simpleSkip(string(b[i]), 0, 0) == 0 {
			m[i/BlockSize] |= 1 << (i % BlockSize)
		}
		wide = wide || i < len(b) && b[i] >= utf8.RuneSelf
	}
	return m, blocks, wide
}

func TestSpecialEqualsSimple(t *testing.T) {
	check := func(b []byte) {
		t.Helper()
		want, blocks, wide := simpleSpecial(b)
		got := Masks{^uint64(0), 1, 2, 3, 4, 5, 6, 7}
		n, w := Special(&got, b)
		clear(got[n:])
		if n != blocks || w != wide || got != want {
			t.Fatalf("%q: got %x, %d blocks, wide %v; want %x, %d, %v", b, got, n, w, want, blocks, wide)
		}
	}
	for c := range 256 {
		for i := range 2 * BlockSize {
			b := make([]byte, 2*BlockSize)
			for k := range b {
				b[k] = 'a'
			}
			b[i] = byte(c)
			check(b)
			check(b[i : i+1])
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 12*BlockSize; n++ {
		b := make([]byte, n+1)
		for i := range b {
			b[i] = byte(rng.Uint32()) >> (n % 2) // with and without bytes that are not ASCII
		}
		check(b[1:]) // not aligned
		check(b[:n])
	}
}

func TestIsPlainEqualsSimple(t *testing.T) {
	require.False(t, IsPlain(nil))
	for n := 1; n < 40; n++ {
		b := make([]byte, n)
		for i := range b {
			b[i] = 'a'
		}
		require.True(t, IsPlain(b))
		for i := range b {
			for c := range 256 {
				b[i] = byte(c)
				if got, want := IsPlain(b), simpleSkip(string(b), 0, highs) == n; got != want {
					t.Fatalf("%q: got %v", b, got)
				}
			}
			b[i] = 'a'
		}
	}
}
