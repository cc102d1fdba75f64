// SPDX-License-Identifier: Apache-2.0

package pretok

import (
	"math/rand/v2"
	"testing"
)

// WithoutVectors runs f as on a processor without the instructions of classify, if this one has them.
func WithoutVectors(f func()) {
	if was := vectors; was {
		vectors = false
		defer func() { vectors = was }()
		f()
	}
}

// TestClassify compares classify with the table, for each byte at each position and for random bytes.
func TestClassify(t *testing.T) {
	if !vectors {
		t.Skip("the processor has no AVX2")
	}
	r := rand.New(rand.NewPCG(3, 9))
	for _, of := range rules {
		x := NewScanner(of.f)
		same := func(s string) {
			t.Helper()
			var got, want [8]uint64
			x.setsAt(&got, s, 0, window)
			WithoutVectors(func() { x.setsAt(&want, s, 0, window) })
			if want[inControl] = got[inControl]; got != want {
				t.Fatalf("rule %#x, %q: got %x, want %x", x.rule, s, got, want)
			}
		}
		var b [window]byte
		for c := range 256 {
			for k := range b {
				clear(b[:])
				b[k] = byte(c)
				same(string(b[:]))
			}
			for k := range b {
				b[k] = byte(r.Uint32())
			}
			same(string(b[:]))
		}
	}
}
