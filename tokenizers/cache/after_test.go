// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/cache"
	"github.com/weft-go/weft/tokenizers/mini"
)

// TestAppendEncodeAfter encodes texts that grow, change and shrink after each other, and puts the ids together.
func TestAppendEncodeAfter(t *testing.T) {
	tok, err := tokenizers.Load(mini.FS(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int64{"roomy": 1 << 20, "evicting": 4 << 10} {
		t.Run(name, func(t *testing.T) { encodeAfter(t, tok, size) })
	}
}

func encodeAfter(t *testing.T, tok *tokenizers.Tokenizer, size int64) {
	c, err := cache.New(tok, &cache.Options{Spacing: 64, MaxBytes: size})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	var segs []tokenizers.Segment
	var ids []uint32
	var known []cache.Prefix
	last := ""
	most, skips, all := 0, 0, 0
	for range 300 {
		if n := len(segs); n > 0 && r.IntN(8) == 0 {
			segs = segs[:r.IntN(n)]
		}
		segs = append(segs[:len(segs):len(segs)], tokenizers.Segment{Text: "<|im_start|>user\n", Trusted: true},
			tokenizers.Segment{Text: strings.Repeat("some words of a message, ", r.IntN(20)), Trusted: r.IntN(2) == 0})
		text, same := joined(segs), 0
		if r.IntN(2) == 0 {
			for same < min(len(text), len(last)) && text[same] == last[same] {
				same++
			}
		}
		last = text
		whole := text
		if r.IntN(2) == 0 {
			whole = ""
		}
		more, cuts, skipped := c.AppendEncodeAfter([]uint32{7}, nil, known, same, "", whole, segs)
		ids = append(ids[:skipped:skipped], more[1:]...)
		if want := tok.AppendEncodeSegments(nil, segs); more[0] != 7 || !slices.Equal(ids, want) {
			t.Fatalf("got %d and %v, want 7 and %v", more[0], ids, want)
		}
		known, most, skips = cuts, max(most, skipped), skips+skipped
		all += len(ids)
	}
	if most <= 500 || skips <= all*8/10 {
		t.Errorf("at most %d and together %d of %d ids were known: prefixes are not used after they were evicted", most, skips, all)
	}
}
