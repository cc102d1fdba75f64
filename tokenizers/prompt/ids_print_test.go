// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"github.com/weft-go/weft/internal/require"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// TestAppendIDs compares the printed ids with those of encoding/json.
func TestAppendIDs(t *testing.T) {
	ids := []uint32{}
	for n := uint32(0); n < 120_000; n++ {
		ids = append(ids, n)
	}
	for _, n := range []uint32{1_000_000, 10_000_000, 99_999_999, 100_000_000, 123_456_789, math.MaxUint32} {
		ids = append(ids, n-1, n, n/7)
	}
	want, err := json.Marshal(ids)
	require.NoError(t, err)
	require.Equal(t, ">"+string(want), string(prompt.AppendIDs([]byte(">"), ids)))
	for _, n := range []uint32{0, 9, 10, 999, 1000, 9999, 10_000, 99_999, math.MaxUint32} {
		want, err := json.Marshal([]uint32{n, 0, n})
		require.NoError(t, err)
		require.Equal(t, string(want), string(prompt.AppendIDs(nil, []uint32{n, 0, n})))
	}
	require.Equal(t, "[]", string(prompt.AppendIDs(nil, nil)))
}

func BenchmarkAppendIDs(b *testing.B) {
	ids := make([]uint32, 100_000)
	for i := range ids {
		ids[i] = uint32(i*7919) % 151_000
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
