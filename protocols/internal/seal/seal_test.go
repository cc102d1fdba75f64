// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/internal/seal"
)

// TestSealIgnoresSplits checks that a seal depends on the text and not on how it was split.
func TestSealIgnoresSplits(t *testing.T) {
	of := func(text []byte) (s seal.Seal) {
		s.Add(text)
		return s
	}
	rapid.Check(t, func(t *rapid.T) {
		var s seal.Seal
		var text []byte
		for range rapid.IntRange(0, 40).Draw(t, "pieces") {
			p := rapid.SliceOfN(rapid.Byte(), 0, 90).Draw(t, "piece")
			s.Add(p)
			text = append(text, p...)
		}
		if whole := of(text); !s.Equal(&whole) {
			t.Fatal("seal depends on how the text is split")
		}
		if s.Len() != uint64(len(text)) {
			t.Fatal(s.Len())
		}
		if len(text) > 0 {
			k := rapid.IntRange(0, len(text)-1).Draw(t, "flip")
			text[k] ^= 1
			if other := of(text); s.Equal(&other) {
				t.Fatal("changed byte not detected")
			}
		}
	})
}
