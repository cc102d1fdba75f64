// SPDX-License-Identifier: Apache-2.0

package pretok_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/bytelevel"
	"github.com/weft-go/weft/tokenizers/internal/pretok"
	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

// Falcon's cuts of the text are the published steps: on the text before ByteLevel, on its spelling after it.
func TestFalcon(t *testing.T) {
	three, err := pretok.NewSplit("[0-9][0-9][0-9]", pretok.Isolated, false)
	if err != nil {
		t.Fatal(err)
	}
	alphabet := []rune("ab 0123456789\u00b2\u00b9\u00bd\u0672\u4e2d!-$+_' s\u20ac\u00a0\u201c\u3002\u00a7\U0001F600\u0301\n")
	r := rand.New(rand.NewPCG(1, 9))
	for range testsize.Pick(6000, 20_000, 60_000) {
		var b strings.Builder
		for range r.IntN(14) {
			b.WriteRune(alphabet[r.IntN(len(alphabet))])
		}
		s := b.String()
		var want []string
		for _, p := range (pretok.Punctuation{Behavior: pretok.Contiguous}).AppendPieces(nil, s) {
			want = append(want, pieces(pretok.GPT2, s[p.Start:p.End])...)
		}
		if got := pieces(pretok.FalconWords, s); !slices.Equal(got, want) {
			t.Fatalf("%q: got %q, want %q", s, got, want)
		}
		want = nil
		spelled := string(bytelevel.Encode(nil, []byte(s)))
		for _, p := range (pretok.Digits{}).AppendPieces(nil, spelled) {
			run := spelled[p.Start:p.End]
			for _, q := range three.AppendPieces(nil, run) {
				back, _ := bytelevel.Decode(nil, []byte(run[q.Start:q.End]))
				want = append(want, string(back))
			}
		}
		if got := pieces(pretok.SpelledDigits, s); !slices.Equal(got, want) {
			t.Fatalf("spelled %q: got %q, want %q", s, got, want)
		}
	}
}
