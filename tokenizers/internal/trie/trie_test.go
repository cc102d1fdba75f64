// SPDX-License-Identifier: Apache-2.0

package trie

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

func table(tb testing.TB, tokens map[string]uint32) *vocab.Table {
	tb.Helper()
	var b vocab.Builder
	for tok, id := range tokens {
		if err := b.Add(id, []byte(tok), true); err != nil {
			tb.Fatal(err)
		}
	}
	v, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// Random tries against a map, over few letters and over all bytes.
func TestRandom(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		letters, most := 256, 3
		if seed%2 == 0 {
			letters, most = 2, 12
		}
		word := func() string {
			w := make([]byte, 1+r.IntN(most))
			for k := range w {
				w[k] = byte(r.IntN(letters))
			}
			return string(w)
		}
		tokens := map[string]uint32{}
		for range r.IntN(2000) {
			if w := word(); tokens[w] == 0 {
				tokens[w] = uint32(len(tokens) + 1)
			}
		}
		x, err := New(table(t, tokens))
		if err != nil {
			t.Fatal(err)
		}
		for tok, id := range tokens {
			n, ok := x.Walk(x.Root(), tok)
			if got, end := n.ID(); !ok || !end || got != id {
				t.Fatalf("seed %d: %q is %d %t %t, want %d", seed, tok, got, ok, end, id)
			}
		}
		for range 500 {
			s := word() + word()
			var wantID uint32
			wantSize := 0
			for k := 1; k <= len(s); k++ {
				if id, ok := tokens[s[:k]]; ok {
					wantID, wantSize = id, k
				}
			}
			if id, size := x.Longest(x.Root(), s); id != wantID || size != wantSize {
				t.Fatalf("seed %d: longest of %q is %d with %d bytes, want %d with %d", seed, s, id, size, wantID, wantSize)
			}
		}
	}
}

func TestEmpty(t *testing.T) {
	x, err := New(table(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	for b := range 256 {
		if _, ok := x.Step(x.Root(), byte(b)); ok {
			t.Errorf("a step along %#x", b)
		}
	}
	if n, ok := x.Walk(x.Root(), ""); !ok || n != x.Root() {
		t.Error("no walk along nothing")
	}
}

// Room is found without much waste, also for one long token and for all pairs of bytes.
func TestRoom(t *testing.T) {
	pairs := map[string]uint32{}
	for k := range uint32(1 << 16) {
		pairs[string([]byte{byte(k >> 8), byte(k)})] = k
	}
	long := map[string]uint32{strings.Repeat("a", 1<<18): 0, strings.Repeat("a", 1<<17) + "b": 1}
	for name, tokens := range map[string]map[string]uint32{"pairs": pairs, "long": long} {
		x, err := New(table(t, tokens))
		if err != nil {
			t.Fatal(err)
		}
		nodes := 0
		for _, u := range x.units {
			if u != 0 {
				nodes++
			}
		}
		if len(x.units) > nodes*3/2+1024 {
			t.Errorf("%s: %d units for %d nodes", name, len(x.units), nodes)
		}
	}
}
