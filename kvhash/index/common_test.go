// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// newCommon returns common names for blocks in the slots below n.
func newCommon(secret uint64, n uint32) *common {
	c := &common{mixer: mixer(secret)}
	c.of.resize(n)
	return c
}

// inGroup returns a random name that belongs in a group.
func inGroup(c *common, group uint64, rnd *rand.Rand) uint64 {
	for {
		if h := rnd.Uint64(); groupOf(tagOf(c.mix(h))) == int(group) {
			return h
		}
	}
}

// Common names that come and go, against a map. The table grows over many leaves and becomes empty again.
func TestCommon(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	const slots = 60_000
	c := newCommon(rnd.Uint64(), slots)
	want := make(map[uint64]uint32)
	var list []uint64
	free := rnd.Perm(slots - 1)
	sizes := []int{50, 30_000, 10_000, 50_000, 100, 0}
	if testing.Short() {
		sizes = []int{50, 6_000, 2_000, 8_000, 100, 0}
	}
	for _, most := range sizes {
		for len(want) != most {
			if len(want) < most {
				h, slot := rnd.Uint64(), uint32(free[0]+1)
				free = free[1:]
				require.True(t, c.place(h, slot))
				list, want[h] = append(list, h), slot
			} else {
				k := rnd.IntN(len(list))
				h := list[k]
				slot := c.find(h)
				require.Equal(t, want[h], slot)
				require.False(t, c.enter(h, slot+1), "another block has the name")
				list[k] = list[len(list)-1]
				list = list[:len(list)-1]
				delete(want, h)
				free = append(free, int(slot-1))
				c.forget(slot, slot+1)
				require.Zero(t, c.find(h))
			}
		}
		require.NoError(t, c.check(slots, func(slot uint32) bool { return true }))
		require.Equal(t, len(want), c.n)
		require.LessOrEqual(t, c.many, max(1, len(want)/32)+1, "leaves of %d names", len(want))
		for h, slot := range want {
			require.Equal(t, slot, c.find(h))
		}
		require.Zero(t, c.find(rnd.Uint64()))
	}
	require.Len(t, c.dir, 1)
	require.Zero(t, c.find(0))
	require.False(t, c.place(0, 1), "0 is no name")
}

// Most names belong in few groups, so that they are moved far, also past the end of the leaf.
func TestCommonFullGroups(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 6))
		c := newCommon(rnd.Uint64(), 1000)
		home := leafGroups - 1 - rnd.Uint64N(3)
		var list []uint64
		used := make(map[uint64]uint32)
		next := uint32(1)
		for range 2000 {
			if n := len(list); n < 60 && rnd.IntN(5) < 3 && next < 1000 {
				h := inGroup(c, (home+rnd.Uint64N(2))%leafGroups, rnd)
				require.True(t, c.place(h, next))
				list, used[h] = append(list, h), next
				next++
			} else if n > 0 {
				k := rnd.IntN(n)
				slot := used[list[k]]
				c.forget(slot, slot+1)
				delete(used, list[k])
				list[k] = list[n-1]
				list = list[:n-1]
			}
			for h, slot := range used {
				if c.find(h) != slot {
					t.Fatalf("seed %d: name %x of slot %d is not found", seed, h, slot)
				}
			}
		}
		require.NoError(t, c.check(1000, func(uint32) bool { return true }))
	}
}

// The functions without branches against loops.
func TestCommonBucket(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 9))
	for range 2000 {
		var g bucket
		n := rnd.IntN(groupWords + 1)
		tags := []uint64{0, tagMask, rnd.Uint64() & tagMask, 1 << 63, 1 << slotBits}
		for j := range n {
			g[j] = tags[rnd.IntN(len(tags))] | 1 + rnd.Uint64N(maxSlots)
		}
		require.Equal(t, n, g.count())
		for _, tag := range tags {
			want := uint64(0)
			for j, e := range g {
				if e&tagMask == tag {
					want |= 1 << j
				}
			}
			require.Equal(t, want, g.match(tag))
		}
		for j := range n {
			require.Equal(t, g[j]&maxSlots, g[g.index(g[j])]&maxSlots)
		}
	}
}

// Names that come and go in large numbers seldom allocate, and none do within two leaves.
func TestCommonAllocs(t *testing.T) {
	for _, most := range []struct{ stay, come, allocs int }{{100, 200, 0}, {3000, 300, 1}, {30_000, 3000, 8}} {
		rnd := rand.New(rand.NewPCG(5, 5))
		c := newCommon(rnd.Uint64(), 40_000)
		for i := range most.stay {
			c.place(rnd.Uint64(), uint32(i+1))
		}
		come := make([]uint64, most.come)
		for i := range come {
			come[i] = rnd.Uint64()
		}
		allocs := testing.AllocsPerRun(20, func() {
			for i, h := range come {
				c.place(h, uint32(most.stay+i+1))
			}
			c.forget(uint32(most.stay+1), uint32(most.stay+most.come+1))
		})
		require.LessOrEqual(t, int(allocs), most.allocs, "%d names and %d more", most.stay, most.come)
	}
}

// The slots that a worker owns, against a map.
func TestOwned(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 7))
	var o owned
	want := make(map[uint32]bool)
	for range 20_000 {
		slot := rnd.Uint32N(200) << (ownedBits - 2)
		switch rnd.IntN(3) {
		case 0:
			o.add(slot)
			want[slot] = true
		case 1:
			to := slot + rnd.Uint32N(3<<ownedBits)
			n := 0
			for s := range want {
				if slot <= s && s < to {
					delete(want, s)
					n++
				}
			}
			require.Equal(t, n, o.remove(slot, to))
		default:
			require.Equal(t, want[slot], o.has(slot))
		}
		require.Len(t, want, o.count())
	}
	o.remove(0, 1<<20)
	require.Empty(t, o.pages)
}
