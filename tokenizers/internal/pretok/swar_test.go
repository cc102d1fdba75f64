// SPDX-License-Identifier: Apache-2.0

package pretok

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestBetween(t *testing.T) {
	for b := range 256 {
		for _, other := range []uint64{0, 0x7F, 0x80, 0xFF} { // the value of the other bytes
			for at := 0; at < 64; at += 8 {
				x := other*ones&^(0xFF<<at) | uint64(b)<<at
				if got, want := between(x, 'a', 'z')>>(at+7)&1 == 1, b >= 'a' && b <= 'z'; got != want {
					t.Fatalf("byte %#02x at bit %d of %#016x: %t", b, at, x, got)
				}
			}
		}
	}
}

// Eight bytes at a time end where one character at a time does.
func TestRunsOfEight(t *testing.T) {
	parts := []string{"a", "z", "A", "Z", "m", "word", "WORDS", "eightlet", "`", "{", "@", "[", "0", " ", "\n", "'", "\x00", "\x7f", "é", "É", "ß", "ʰ", "中", "ー", "\u0301", "\u00A0", "²", "ǅ",
		"\xff", "\xc3", "\xe4\xb8", "🚀", "\U00010d50"}
	r := rand.New(rand.NewPCG(1, 8))
	for range 50000 {
		var b strings.Builder
		for range r.IntN(12) {
			if r.IntN(2) == 0 {
				b.WriteByte(byte('a' + r.IntN(26)))
			} else {
				b.WriteString(parts[r.IntN(len(parts))])
			}
		}
		s := b.String()
		i := r.IntN(len(s) + 1)
		for _, mask := range []uint8{letter, letter | mark} {
			if got, want := letters(s, i, mask), run(s, i, mask); got != want {
				t.Fatalf("letters of %q at %d with mask %#x end at %d, want %d", s, i, mask, got, want)
			}
		}
		if got, want := lowers(s, i, 0), run(s, i, lower|other|mark); got != want {
			t.Fatalf("lowers of %q at %d end at %d, want %d", s, i, got, want)
		}
	}
}
