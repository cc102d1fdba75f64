// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Few names that come and go, against a map. In a table of two groups each soon has names that passed it, and a hash that is not there
// must be given up all the same.
func TestNames(t *testing.T) {
	for most := range 40 {
		rnd := rand.New(rand.NewPCG(uint64(most), 1))
		want := make(map[uint64]location)
		names := names{mixer: mixer(rnd.Uint64())}
		for range 2000 {
			h := rnd.Uint64N(uint64(2*most) + 2)
			switch p, ok := want[h]; {
			case names.get(h) != p:
				t.Fatalf("%d: %x, want %x", h, names.get(h), p)
			case ok:
				names.remove(names.find(h), names.mix(h))
				delete(want, h)
			case len(want) < most:
				want[h] = locationAt(uint32(h)+1, 1)
				names.add(h, want[h])
			}
			require.Len(t, want, names.n)
		}
	}
}

// A table that grows over many pages and becomes empty again, against a map.
func TestNamesPages(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	want := make(map[uint64]location)
	var list []uint64
	names := names{mixer: mixer(rnd.Uint64())}
	check := func() {
		t.Helper()
		n, room, deep, entries := 0, 0, 0, 0
		for i := 0; i < len(names.dir); {
			p := names.dir[i]
			span := 1 << (64 - names.shift - p.depth)
			for k := range span {
				require.Same(t, &p.groups[0], &names.dir[i+k].groups[0], "a page is in consecutive places")
				require.Equal(t, p.depth, names.dir[i+k].depth)
			}
			if span == 1 {
				deep++
			}
			in := 0
			eachName(p.groups, func(h uint64, at location) bool {
				require.Equal(t, want[h], at)
				in++
				return true
			})
			require.EqualValues(t, p.n, in)
			n, room, entries, i = n+1, room+len(p.groups), entries+in, i+span
		}
		require.Len(t, want, entries)
		require.Equal(t, []int{len(want), room, deep}, []int{names.n, names.room, names.deep})
		require.LessOrEqual(t, n, max(1, len(want)/25)+2, "pages of %d names", len(want))
	}
	sizes, every := []int{50, 30_000, 10_000, 40_000, 100, 0}, 1000
	if testing.Short() {
		sizes, every = []int{50, 6_000, 2_000, 8_000, 100, 0}, 4000
	}
	for _, most := range sizes {
		for step := 0; len(want) != most; step++ {
			if len(want) < most {
				h := rnd.Uint64()
				list, want[h] = append(list, h), locationAt(rnd.Uint32N(maxSlots), uint8(1+rnd.IntN(15)))
				names.add(h, want[h])
			} else {
				k := rnd.IntN(len(list))
				h := list[k]
				require.Equal(t, want[h], names.get(h))
				list[k] = list[len(list)-1]
				list = list[:len(list)-1]
				delete(want, h)
				names.remove(names.find(h), names.mix(h))
			}
			if step%every == 0 {
				check()
			}
		}
		check()
		require.Zero(t, names.get(rnd.Uint64()))
	}
	require.LessOrEqual(t, names.room, minShrink)
}

// Names that come and go in large numbers make pages grow and shrink, but with few allocations, whatever the secret that
// spreads them. There are none for a worker whose names fit into the groups that it keeps.
func TestNamesAllocs(t *testing.T) {
	for _, c := range []struct{ stay, come, per int }{
		{256, 100, 0}, // two pages of at most 224 names
		{256, 128, 0},
		{300, 300, 150},
		{3000, 300, 0},
		{3000, 3000, 30_000},
	} {
		changes, allocs := 0, 0
		for secret := range uint64(300) {
			rnd := rand.New(rand.NewPCG(secret, 5))
			names := names{mixer: mixer(rnd.Uint64())}
			for range c.stay {
				names.add(rnd.Uint64(), locationAt(1, 1))
			}
			come := make([]uint64, c.come)
			for i := range come {
				come[i] = rnd.Uint64()
			}
			allocs += int(testing.AllocsPerRun(2, func() {
				for _, h := range come {
					names.add(h, locationAt(1, 1))
				}
				for _, h := range come {
					names.remove(names.find(h), names.mix(h))
				}
			}))
			changes += 2 * c.come
		}
		t.Logf("%d names and %d more: %d allocations in %d changes", c.stay, c.come, allocs, changes)
		require.LessOrEqual(t, allocs*c.per, changes)
		require.False(t, c.per == 0 && allocs > 0)
	}
}
