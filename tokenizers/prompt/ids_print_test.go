// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/tokenizers/prompt"
)

// TestAppendIDs compares the printed ids with those of strconv.
func TestAppendIDs(t *testing.T) {
	every := []uint32{}
	for n := uint32(0); n < 1_001_000; n++ {
		every = append(every, n)
	}
	r := rand.New(rand.NewPCG(1, 2))
	mixed := make([]uint32, 5000)
	for i := range mixed {
		mixed[i] = r.Uint32() >> r.UintN(32)
	}
	for _, ids := range [][]uint32{
		nil, {0}, {math.MaxUint32}, {999_999, 1_000_000, 7}, {math.MaxUint32, math.MaxUint32, 1_000_000, 0, 1<<32 - 2}, every, mixed,
	} {
		want := []byte(">")
		for _, id := range ids {
			want = append(strconv.AppendUint(want, uint64(id), 10), ',')
		}
		require.Equal(t, string(want), string(prompt.AppendIDs([]byte(">"), ids)))
		short := make([]byte, 1, len(want)+3) // room for the digits, but not for what is written beyond
		short[0] = '>'
		require.Equal(t, string(want), string(prompt.AppendIDs(short, ids)))
	}
}

func BenchmarkAppendIDs(b *testing.B) {
	ids := make([]uint32, 100_000)
	for i := range ids {
		ids[i] = uint32(i*7919) % 151_000
		if i*7919%10 < 3 { // digits and punctuation have low ids
			ids[i] %= 1000
		}
	}
	var dst []byte
	b.Run("table", func(b *testing.B) {
		for b.Loop() {
			dst = prompt.AppendIDs(dst[:0], ids)
		}
	})
	b.Run("strconv", func(b *testing.B) {
		for b.Loop() {
			dst = dst[:0]
			for _, id := range ids {
				dst = append(strconv.AppendUint(dst, uint64(id), 10), ',')
			}
		}
	})
}
