// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Eight positions at a time find what one at a time does.
func TestIndexPair(t *testing.T) {
	const alphabet = " !\t\x00\xa0" // neighbours of the pair in bits and by one
	r := rand.New(rand.NewPCG(2, 8))
	for range 50000 {
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = alphabet[min(r.IntN(12), len(alphabet)-1)]
			if r.IntN(4) == 0 {
				b[i] = ' '
			}
		}
		s, i, pair := string(b), r.IntN(len(b)+1), []string{"  ", " \t", " !", " \xa0"}[r.IntN(4)]
		want := strings.Index(s[i:], pair)
		if want += i; want < i {
			want = len(s)
		}
		if got := indexPair(s, i, pair[0], pair[1]); got != want {
			t.Fatalf("%q in %q from %d at %d, want %d", pair, s, i, got, want)
		}
	}
}
