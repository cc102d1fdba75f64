// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/cache"
	"github.com/weft-go/weft/tokenizers/mini"
)

// TestAppendEncodeAfter encodes texts that grow, change and shrink after each other, and puts the ids together.
func TestAppendEncodeAfter(t *testing.T) {
	tok, err := tokenizers.Load(mini.FS(), nil)
	require.NoError(t, err)
	for name, size := range map[string]int64{"roomy": 1 << 20, "evicting": 4 << 10} {
		t.Run(name, func(t *testing.T) { encodeAfter(t, tok, size) })
	}
}

func encodeAfter(t *testing.T, tok *tokenizers.Tokenizer, size int64) {
	c, err := cache.New(tok, &cache.Options{Spacing: 64, MaxBytes: size})
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 1))
	var segs []tokenizers.Segment
	var ids []uint32
	var known []cache.Prefix
	most, skips, all := 0, 0, 0
	for range 300 {
		if n := len(segs); n > 0 && r.IntN(8) == 0 {
			segs = segs[:r.IntN(n)]
		}
		segs = append(segs[:len(segs):len(segs)], tokenizers.Segment{Text: "<|im_start|>user\n", Trusted: true},
			tokenizers.Segment{Text: strings.Repeat("some words of a message, ", r.IntN(20)), Trusted: r.IntN(2) == 0})
		more, cuts, skipped := c.AppendEncodeAfter([]uint32{7}, nil, known, "", segs)
		require.Equal(t, uint32(7), more[0])
		ids = append(ids[:skipped:skipped], more[1:]...)
		require.Equal(t, tok.AppendEncodeSegments(nil, segs), ids)
		known, most, skips = cuts, max(most, skipped), skips+skipped
		all += len(ids)
	}
	require.Greater(t, most, 500, "the known prefixes are used")
	require.Greater(t, skips, all*8/10, "even if they were evicted")
}
