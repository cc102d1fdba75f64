// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/internal/seal"
)

// TestPieces shows that a seal does not depend on how the text was cut, and does on the text.
func TestPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s seal.Seal
		var text []byte
		for range rapid.IntRange(0, 40).Draw(t, "pieces") {
			p := rapid.SliceOfN(rapid.Byte(), 0, 90).Draw(t, "piece")
			s.Add(p)
			text = append(text, p...)
		}
		if got, want := string(s.Append(nil)), string(seal.Append(nil, text)); got != want {
			t.Fatalf("%s, whole %s", got, want)
		}
		if s.Len() != uint64(len(text)) {
			t.Fatal(s.Len())
		}
		if len(text) > 0 {
			k := rapid.IntRange(0, len(text)-1).Draw(t, "flip")
			before := string(seal.Append(nil, text))
			text[k] ^= 1
			if string(seal.Append(nil, text)) == before {
				t.Fatal("a changed byte keeps the seal")
			}
		}
	})
	require.Equal(t, "weft2.0.0", string(seal.Append(nil, nil)))
}
