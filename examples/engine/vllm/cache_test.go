// SPDX-License-Identifier: Apache-2.0

package vllm

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// checkInvariants checks the invariants in the comment on cache.
func checkInvariants(t require.TestingT, c *cache) {
	require.LessOrEqual(t, len(c.blocks), c.capacity)
	position := map[uint64]int{}
	for n := c.free.next; n != &c.free; n = n.next {
		position[n.hash] = len(position)
		require.Zero(t, n.refs)
		require.Same(t, n, c.blocks[n.hash])
	}
	require.Equal(t, len(position), c.freeLen)
	for hash, n := range c.blocks {
		require.Equal(t, hash, n.hash)
		at, free := position[hash]
		require.Equal(t, n.refs == 0, free)
		if n.root {
			continue
		}
		p := c.blocks[n.parent]
		require.NotNil(t, p, "the parent of a cached block is gone")
		if parentAt, parentFree := position[p.hash]; free && parentFree {
			require.Less(t, at, parentAt, "a parent would be evicted before its child")
		} else if !free {
			require.False(t, parentFree, "a pinned block has an unpinned parent")
		}
	}
}

// TestCacheRandom runs random sequences through the cache and rebuilds its content from its changes.
func TestCacheRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCache(2, rapid.IntRange(1, 12).Draw(t, "capacity"))
		mirror := map[uint64]bool{}
		apply := func() {
			for _, ch := range c.take() {
				if !ch.removed {
					require.Len(t, ch.tokens, 2*len(ch.hashes))
					require.True(t, ch.root || mirror[ch.parent], "stored after an unknown parent")
				}
				for _, h := range ch.hashes {
					require.Equal(t, ch.removed, mirror[h], "stored twice or removed unstored")
					mirror[h] = !ch.removed
					if ch.removed {
						delete(mirror, h)
					}
				}
			}
			want := map[uint64]bool{}
			for h := range c.blocks {
				want[h] = true
			}
			if d := cmp.Diff(want, mirror); d != "" {
				t.Fatalf("the changes do not add up (-cache +mirror):\n%s", d)
			}
			checkInvariants(t, c)
		}
		type running struct {
			l   *lease
			seq []uint32
		}
		var open []running
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch op := rapid.IntRange(0, 2).Draw(t, "op"); {
			case op == 0 && len(open) < 4:
				seq := rapid.SliceOfN(rapid.Uint32Range(0, 1), 0, 12).Draw(t, "seq")
				l := c.acquire(scope{}, seq)
				require.True(t, len(seq) == 0 || l.cached() < len(seq), "one token must be left to compute")
				l.store(seq)
				open = append(open, running{l, seq})
			case op == 1 && len(open) > 0:
				r := &open[rapid.IntRange(0, len(open)-1).Draw(t, "which")]
				r.seq = append(r.seq, rapid.Uint32Range(0, 1).Draw(t, "token"))
				r.l.store(r.seq)
			case op == 2 && len(open) > 0:
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				open[i].l.release()
				open = slices.Delete(open, i, i+1)
			}
			apply()
		}
		for _, r := range open {
			r.l.release()
		}
		apply()
		require.Equal(t, len(c.blocks), c.freeLen)
	})
}

func TestCacheHitsAndEviction(t *testing.T) {
	seq := func(first, n uint32) (s []uint32) {
		for i := range n {
			s = append(s, first+i)
		}
		return s
	}
	c := newCache(4, 4)
	run := func(s []uint32) int {
		l := c.acquire(scope{}, s)
		defer l.release()
		n := l.cached()
		l.store(s)
		return n
	}
	require.Equal(t, 0, run(seq(0, 10)), "cold")
	require.Equal(t, 8, run(seq(0, 10)), "two full blocks")
	require.Equal(t, 4, run(seq(0, 8)), "the last token is always computed")
	require.Equal(t, 0, run(seq(100, 8)), "another prefix")
	require.Equal(t, 8, run(seq(0, 10)), "both fit")
	require.Equal(t, 0, run(seq(200, 4)), "evicts the tail of the least recently used prefix")
	require.Equal(t, 4, run(seq(100, 9)), "whose head is still there")
	require.Zero(t, c.acquire(scope{salt: "salt"}, seq(100, 9)).cached(), "but not under another salt")
	require.Zero(t, c.acquire(scope{adapter: "salt"}, seq(100, 9)).cached(), "or adapter")
	require.Len(t, c.blocks, 4)

	pinned := c.acquire(scope{}, seq(300, 17))
	pinned.store(seq(300, 17))
	require.Equal(t, 16, pinned.cached())
	require.Equal(t, 0, run(seq(400, 8)), "no room next to a pinned sequence")
	require.Equal(t, 0, run(seq(400, 8)), "so nothing was kept")
	pinned.release()
	run(seq(400, 8))
	require.Equal(t, 8, run(seq(400, 9)))
}

func TestSnapshotHasParentsFirst(t *testing.T) {
	c := newCache(1, 100)
	for _, s := range [][]uint32{{1, 2, 3, 4}, {1, 2, 9, 9}, {5, 6}} {
		l := c.acquire(scope{}, s)
		l.store(s)
		l.release()
	}
	seen := map[uint64]bool{}
	for _, ch := range c.snapshot() {
		require.True(t, ch.root || seen[ch.parent])
		seen[ch.hashes[0]] = true
	}
	require.Len(t, seen, 8)
}
