// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A table that grows and shrinks, against a map, while entries are still in the table before it.
func TestHeads(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	var runs slab[run]
	runs.resize(100_001)
	var free []uint32
	for n := range uint32(100_000) {
		free = append(free, n+1)
	}
	h := heads{mixer: mixer(rnd.Uint64())}
	h.reset()
	want := make(map[uint64]uint32)
	var list []uint64
	both := 0
	for _, most := range []int{3000, 100, 60_000, 20, 1000, 40_000, 0} {
		for step := 0; len(list) != most; step++ {
			if len(list) < most {
				seq, n := rnd.Uint64(), free[len(free)-1]
				free = free[:len(free)-1]
				runs.at(n).head.Store(seq)
				require.Equal(t, 1, h.fresh(&runs, []uint64{seq}))
				h.add(&runs, seq, n)
				list, want[seq] = append(list, seq), n
			} else {
				k := rnd.IntN(len(list))
				seq := list[k]
				list[k] = list[len(list)-1]
				list = list[:len(list)-1]
				h.remove(seq, want[seq])
				n, _, _ := h.find(&runs, seq)
				require.Zero(t, n)
				free = append(free, want[seq])
				delete(want, seq)
			}
			if h.table.Load().old != nil {
				both++
			} else if step%97 != 0 {
				continue
			}
			require.Equal(t, len(want), h.entries)
			for range min(len(list), 3) {
				seq := list[rnd.IntN(len(list))]
				n, r, conflict := h.find(&runs, seq)
				require.Equal(t, []any{want[seq], false}, []any{n, conflict})
				require.Same(t, runs.at(n), r)
				require.Zero(t, h.fresh(&runs, []uint64{seq}))
			}
		}
		for seq, n := range want {
			m, _, _ := h.find(&runs, seq)
			require.Equal(t, n, m)
		}
	}
	require.Greater(t, both, 1000)
	require.LessOrEqual(t, h.used, len(h.table.Load().words)*5/8)
}

// A full table is replaced without copying more than a few entries at once.
func TestHeadsGrow(t *testing.T) {
	var runs slab[run]
	const most = 300_000
	runs.resize(most + 1)
	h := heads{mixer: 7}
	h.reset()
	for n := uint32(1); n <= most; n++ {
		before := h.moved
		seq := uint64(n) * 0x9E3779B97F4A7C15
		runs.at(n).head.Store(seq)
		if h.add(&runs, seq, n); h.moved > before && h.moved-before > 64 {
			t.Fatalf("%d words copied with entry %d", h.moved-before, n)
		}
	}
}
