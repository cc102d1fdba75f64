// SPDX-License-Identifier: Apache-2.0

package jsonw

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// simpleSpecial is Special, one byte at a time.
func simpleSpecial(b []byte) (m Masks, blocks int, wide bool) {
	blocks = min(max(len(b)/BlockSize, 1), len(m.Special))
	for i := range blocks * BlockSize {
		if i >= len(b) || simpleSkip(string(b[i]), 0, 0) == 0 {
			m.Special[i/BlockSize] |= 1 << (i % BlockSize)
		}
		if i < len(b) && b[i] >= utf8.RuneSelf {
			m.Wide[i/BlockSize] |= 1 << (i % BlockSize)
			wide = true
		}
	}
	return m, blocks, wide
}

func TestSpecialEqualsSimple(t *testing.T) {
	check := func(b []byte) {
		t.Helper()
		want, blocks, wide := simpleSpecial(b)
		got := Masks{[4]uint64{^uint64(0), 1, 2, 3}, [4]uint64{^uint64(0), 1, 2, 3}}
		n, w := Special(&got, b)
		clear(got.Special[n:])
		clear(got.Wide[n:])
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

func TestValidWideEqualsUTF8(t *testing.T) {
	valid := func(b []byte) bool {
		var m Masks
		for base, done := 0, 0; base < len(b); base += BlockSize {
			Special(&m, b[base:])
			var ok bool
			if done, ok = ValidWide(b, base, m.Wide[0], done); !ok {
				return false
			}
		}
		return true
	}
	check := func(b []byte) {
		t.Helper()
		if got, want := valid(b), utf8.Valid(b); got != want {
			t.Fatalf("%q: got %v, want %v", b, got, want)
		}
	}
	edges := []byte{'a', 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF}
	rest := []byte{'a', 0x7F, 0x80, 0xBF, 0xC0}
	text := bytes.Repeat([]byte{'a'}, 2*BlockSize)
	for _, at := range []int{0, BlockSize - 3, BlockSize - 2, BlockSize - 1, BlockSize, 2*BlockSize - 4} {
		for _, c := range edges {
			for _, d := range edges {
				for _, e := range rest {
					for _, f := range rest {
						b := bytes.Clone(text)
						copy(b[at:], []byte{c, d, e, f})
						check(b)
						check(b[at : at+4])
						check(b[:at+3])
					}
				}
			}
		}
	}
	rng := rand.New(rand.NewPCG(3, 4))
	chars := []string{"a", "é", "→", "日", "🙂", "\u07FF", "\uFFFD", "\U0010FFFF", "\x80", "\xE6\x97", "\xED\xA0\x80"}
	for n := range 20000 {
		var b []byte
		for len(b) < n%300 {
			b = append(b, chars[rng.IntN(len(chars)-3*(n%2))]...)
		}
		check(b)
	}
}

func TestAppendPlainEqualsSimple(t *testing.T) {
	check := func(s []byte) {
		for _, dst := range [][]byte{[]byte("dst"), append(make([]byte, 0, 64), "dst"...)} {
			want := []byte("dst")
			whole := len(s) > 0 && utf8.Valid(s)
			if whole {
				want = AppendText(want, s)
			}
			plain := whole && simpleSkip(string(s), 0, highs) == len(s)
			if got, ok := AppendWhole(dst, s); ok != whole || !bytes.Equal(got, want) {
				t.Fatalf("%q: got %q, %v", s, got, ok)
			}
			if !plain {
				want = dst
			}
			if got, ok := AppendPlain(dst, s); ok != plain || !bytes.Equal(got, want) {
				t.Fatalf("%q: got %q, %v", s, got, ok)
			}
		}
	}
	check(nil)
	check([]byte("e\u0301 日本"))
	for n := 1; n < 40; n++ {
		s := []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP"[:n])
		check(s)
		for i, was := range s {
			for c := range 256 {
				s[i] = byte(c)
				check(s)
			}
			s[i] = was
		}
	}
}
