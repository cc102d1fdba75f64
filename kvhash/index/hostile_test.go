// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// Hashes come from outside. These tests have no clock: with work that grows as the square of n they run for a minute and more in their
// long form.

func hostile() int {
	switch {
	case raceEnabled:
		return 2_500
	case testing.Short():
		return 1_000
	case exhaustive():
		return 100_000
	}
	return 8_000
}

// collisions are ways to choose n numbers.
var collisions = map[string]func(i int) uint64{
	"low bits are equal":    func(i int) uint64 { return uint64(i)<<44 | 0xABCDEF },
	"high bits are equal":   func(i int) uint64 { return uint64(i) },
	"middle bits differ":    func(i int) uint64 { return 0xFFF<<52 | uint64(i)<<24 },
	"undo a multiplication": func(i int) uint64 { return uint64(i) << 40 * 0xF1DE83E19937733D }, // by 0x9E3779B97F4A7C15, the usual one
}

// Blocks of depth 0, whose sequence hash is the local hash that the publisher sends, and engine hashes.
func TestCollidingHashes(t *testing.T) {
	n := hostile()
	for name, hash := range collisions {
		t.Run(name, func(t *testing.T) {
			x := fleet(2)
			ev := &kvevent.Event{Kind: kvevent.Stored, BlockHashes: make([]uint64, 1), LocalHashes: make([]uint64, 1)}
			for i := range n {
				ev.BlockHashes[0], ev.LocalHashes[0] = hash(i), hash(i)
				x.Add(0, ev)
			}
			dst := x.AppendMatches(nil, []uint64{hash(n / 2), hash(n/2 + 1)})
			require.Len(t, dst, 1)
			for i := range n {
				if dst = x.AppendMatches(dst[:0], []uint64{hash(i)}); len(dst) != 1 {
					t.Fatalf("block %d: %+v", i, dst)
				}
			}
			// As engine hashes of one long chain, too.
			long := &kvevent.Event{Kind: kvevent.Stored, BlockHashes: make([]uint64, n), LocalHashes: make([]uint64, n)}
			for i := range n {
				long.BlockHashes[i], long.LocalHashes[i] = hash(i), hash(i)
			}
			x.Add(1, long)
			require.Equal(t, int32(n), x.AppendMatches(nil, kvhash.AppendSequence(nil, long.LocalHashes))[1].Depth)
			ev.Kind = kvevent.Removed
			for i := range n {
				ev.BlockHashes[0] = hash(i)
				x.Add(0, ev)
			}
			long.Kind = kvevent.Removed
			x.Add(1, long)
			require.Zero(t, x.Len())
		})
	}
}

// blocks returns n different numbers from start on, none of them 0.
func blocks(start uint64, n int) []uint64 {
	h := make([]uint64, n)
	for i := range h {
		h[i] = (start + uint64(i) + 1) * 0xD6E8FEB86659FD93
	}
	return h
}

func storedAt(parent uint64, h ...uint64) *kvevent.Event {
	return &kvevent.Event{Kind: kvevent.Stored, BlockHashes: h, LocalHashes: h, Parent: parent, HasParent: parent != 0}
}

// long returns an index with one chain of n blocks, and its hashes.
func long(t *testing.T, n int) (x *index.Index, h, seqs []uint64) {
	x = fleet(3)
	h = blocks(0, n)
	x.Add(0, storedAt(0, h...))
	return x, h, kvhash.AppendSequence(nil, h)
}

func remove(x *index.Index, id index.WorkerID, h ...uint64) index.Result {
	return x.Add(id, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: h})
}

func depthOf(x *index.Index, seqs []uint64) int {
	m := x.AppendMatches(nil, seqs)
	if len(m) == 0 {
		return 0
	}
	return int(m[0].Depth)
}

func TestHostileShapes(t *testing.T) {
	n := hostile() / 2
	empty := func(t *testing.T, x *index.Index) {
		t.Helper()
		for _, s := range x.AppendInfos(nil) {
			x.Clear(s.Worker)
		}
		require.Zero(t, x.Len())
	}
	one := func(h []uint64, i int) []uint64 { return h[i : i+1] }
	tests := map[string]func(t *testing.T){
		"block by block": func(t *testing.T) {
			x, h := fleet(1), blocks(0, n)
			parent := uint64(0)
			for i := range h {
				x.Add(0, storedAt(parent, one(h, i)...))
				parent = h[i]
			}
			require.Equal(t, n, depthOf(x, kvhash.AppendSequence(nil, h)))
			empty(t, x)
		},
		"removed from the front": func(t *testing.T) {
			x, h, seqs := long(t, n)
			for i := range h {
				require.Equal(t, 1, remove(x, 0, one(h, i)...).Removed)
			}
			require.Zero(t, depthOf(x, seqs))
			empty(t, x)
		},
		"removed from the end": func(t *testing.T) {
			x, h, seqs := long(t, n)
			for i := range n / 2 {
				remove(x, 0, one(h, n-1-i)...)
			}
			require.Equal(t, n-n/2, depthOf(x, seqs))
			empty(t, x)
		},
		"every second block removed and filled again": func(t *testing.T) {
			x, h, seqs := long(t, n)
			for i := 1; i < n; i += 2 {
				remove(x, 0, one(h, i)...)
			}
			require.Equal(t, 1, depthOf(x, seqs))
			for i := 1; i < n; i += 2 {
				x.Add(0, storedAt(h[i-1], one(h, i)...))
			}
			require.Equal(t, n, depthOf(x, seqs))
			empty(t, x)
		},
		"every second block of another worker": func(t *testing.T) {
			x, h, seqs := long(t, n)
			x.Add(1, storedAt(0, h...))
			for i := 1; i < n; i += 2 {
				remove(x, 1, one(h, i)...)
			}
			m := x.AppendMatches(nil, seqs)
			require.Len(t, m, 2)
			require.Equal(t, []int32{int32(n), 1}, []int32{m[0].Depth, m[1].Depth})
			remove(x, 0, h...)
			require.Equal(t, (n+1)/2, x.Len())
			empty(t, x)
		},
		"a branch at every block": func(t *testing.T) {
			x, h, seqs := long(t, n)
			b := blocks(1<<40, n)
			for i := range b {
				x.Add(1, storedAt(0, one(h, i)...)) // wrong on purpose: a root; h[i] is then known to worker 1
			}
			for i := range b {
				x.Add(0, storedAt(h[i], one(b, i)...))
			}
			require.Equal(t, n, depthOf(x, seqs))
			for i := range b {
				remove(x, 0, one(b, n-1-i)...)
			}
			require.Equal(t, n, depthOf(x, seqs))
			empty(t, x)
		},
		"branches of one block": func(t *testing.T) {
			x, h, _ := long(t, 10)
			b := blocks(1<<40, n)
			for i := range b {
				x.Add(0, storedAt(h[4], one(b, i)...))
			}
			seqs := kvhash.AppendSequence(nil, append(slices.Clone(h[:5]), b[n/2]))
			for range 1000 {
				require.Equal(t, 6, depthOf(x, seqs))
			}
			for i := range b {
				remove(x, 0, one(b, i)...)
			}
			require.Equal(t, 10, x.Len())
			empty(t, x)
		},
		"one engine hash at many places": func(t *testing.T) {
			x := fleet(1)
			b := blocks(1<<40, n)
			for i := range b {
				ev := storedAt(0, one(b, i)...)
				ev.BlockHashes = []uint64{7}
				x.Add(0, ev)
			}
			require.Equal(t, n, x.Len())
			require.Equal(t, n, remove(x, 0, 7).Removed)
			require.Zero(t, x.Len())
		},
		"one block under many engine hashes": func(t *testing.T) {
			x := fleet(1)
			b := blocks(1<<40, n)
			for i := range b {
				ev := storedAt(0, one(b, i)...)
				ev.LocalHashes = []uint64{7}
				x.Add(0, ev)
			}
			require.Equal(t, 1, x.Len())
			for i := range b {
				require.Equal(t, 1, x.Len())
				remove(x, 0, one(b, i)...)
			}
			require.Zero(t, x.Len())
		},
		"one engine hash all along": func(t *testing.T) {
			x := fleet(1)
			ev := storedAt(0, blocks(0, n)...)
			ev.BlockHashes = slices.Repeat([]uint64{7}, n)
			require.Equal(t, n, x.Add(0, ev).Stored)
			require.Equal(t, n, remove(x, 0, 7).Removed)
			require.Zero(t, x.Len())
		},
		"orphans of one parent": func(t *testing.T) {
			n := min(n, 1<<16)
			x := fleet(1)
			b := blocks(1<<40, n)
			for i := range b {
				x.Add(0, storedAt(5, one(b, i)...))
			}
			ev := storedAt(0, 5)
			require.Equal(t, n+1, x.Add(0, ev).Stored)
			require.Equal(t, n+1, x.Len())
			empty(t, x)
		},
		"orphans of one parent, dropped": func(t *testing.T) {
			n := 2 * n
			x := index.NewAll(modelBlock, &index.AllOptions{MaxPending: n / 2})
			x.AddWorker(index.Key{})
			b := blocks(1<<40, n)
			for i := range b {
				x.Add(0, storedAt(5, one(b, i)...))
			}
			require.Equal(t, n/2+1, x.Add(0, storedAt(0, 5)).Stored)
			empty(t, x)
		},
		"orphans of one name": func(t *testing.T) {
			n := min(n, 1<<16)
			x := fleet(1)
			b := blocks(1<<40, n)
			for i := range b {
				ev := storedAt(b[i], one(b, i)...)
				ev.BlockHashes = []uint64{7}
				x.Add(0, ev)
			}
			remove(x, 0, 7)
			s, _ := x.Info(0)
			require.Zero(t, s.Orphans)
			empty(t, x)
		},
		"a chain of orphans, last first": func(t *testing.T) {
			n := min(n, 1<<16)
			x, h := fleet(1), blocks(0, n)
			for i := n - 1; i > 0; i-- {
				require.Equal(t, 1, x.Add(0, storedAt(h[i-1], one(h, i)...)).Pending)
			}
			require.Equal(t, n, x.Add(0, storedAt(0, h[0])).Stored)
			require.Equal(t, n, depthOf(x, kvhash.AppendSequence(nil, h)))
			empty(t, x)
		},
		"orphans that wait for removed blocks of one": func(t *testing.T) {
			n := min(n, 1<<15-1)
			x, h, seqs := long(t, n)
			x.Clear(0)
			x.Add(1, storedAt(0, h...))
			require.Equal(t, n-1, x.Add(0, storedAt(h[0], h[1:]...)).Pending)
			require.Equal(t, n-2, remove(x, 0, h[1:n-1]...).Removed)
			other := blocks(1<<40, n)
			for i := 1; i < n-1; i++ {
				ev := storedAt(h[i], one(h, i+1)...)
				ev.BlockHashes = one(other, i)
				require.Equal(t, 1, x.Add(0, ev).Pending)
			}
			require.Equal(t, n, x.Add(0, storedAt(0, h[0])).Stored) // the last block under two names
			require.Equal(t, n, x.Len(), "each is the block that was there")
			require.NoError(t, x.Check())
			remove(x, 1, one(h, 1)...)
			require.Equal(t, 1, depthOf(x, seqs))
			x.Add(0, storedAt(h[0], one(h, 1)...))
			require.Equal(t, n, depthOf(x, seqs))
			empty(t, x)
		},
		"engine blocks of many of ours, unknown": func(t *testing.T) {
			x := fleet(1)
			ev := &kvevent.Event{Kind: kvevent.Stored, BlockSize: 1024 * modelBlock, BlockHashes: []uint64{1}, TokenIDs: make([]uint32, 1024*modelBlock)}
			require.Equal(t, 1024, x.Add(0, ev).Stored)
			n := sample(5000, 5000, 1<<13)
			h := blocks(0, n)
			require.Equal(t, n<<10, remove(x, 0, h...).Ignored)
			require.Equal(t, n<<10, x.Add(0, &kvevent.Event{Kind: kvevent.Stored, Tier: kvevent.Host, BlockHashes: h}).Ignored)
			require.Less(t, x.Measure().Bytes, int64(n<<10*8/4))
			require.Equal(t, 1024, remove(x, 0, 1).Removed)
			require.NoError(t, x.Check())
		},
		"orphans that wait for each other": func(t *testing.T) {
			n := min(n, 1<<16)
			x, h := fleet(1), blocks(0, n)
			for i := range h {
				require.Equal(t, 1, x.Add(0, storedAt(h[(i+1)%n], one(h, i)...)).Pending)
			}
			require.Equal(t, n+1, x.Add(0, storedAt(0, h[0])).Stored) // h[0] again at the end
			empty(t, x)
		},
		"predictions that end before all others": func(t *testing.T) {
			x := fleet(1)
			seqs := blocks(0, n)
			for i := range n {
				x.Predict(0, seqs[i:i+1], 0, time.Unix(int64(n-i), 0))
			}
			for range n { // each call is bounded
				x.Expire(time.Unix(int64(n/2), 0))
			}
			require.Equal(t, n-n/2, x.Len())
			for range n {
				x.Expire(time.Unix(int64(n), 0))
			}
			require.Zero(t, x.Len())
		},
		"restarts next to blocks with two names that another worker expects": func(t *testing.T) {
			x := fleet(2)
			seqs := blocks(0, n)
			for i := range n {
				x.Predict(0, seqs[i:i+1], 0, time.Unix(int64(i), 0))
				ev := storedAt(0, one(seqs, i)...)
				ev.LocalHashes = []uint64{7}
				x.Add(0, ev)
			}
			for i := range n {
				x.Predict(1, seqs[i:i+1], 0, time.Unix(0, 0))
				x.Add(1, storedAt(0, 7))
				x.Add(1, storedAt(0, 7, 8)) // two more names
				switch i % 3 {
				case 0:
					x.Clear(1)
				case 1:
					x.RemoveWorker(1)
					x.AddWorker(index.Key{Instance: "e", DPRank: 1})
				default:
					x.Add(1, &kvevent.Event{Kind: kvevent.Cleared, Tier: kvevent.Device})
				}
			}
			require.Equal(t, n, x.Measure().Predictions)
			require.NoError(t, x.Check())
			empty(t, x)
		},
		"a block that names its own beginning": func(t *testing.T) {
			// The first block's sequence hash is its local hash, which can be made equal to the hash of a block deep in
			// another prompt.
			deep := max(n/10, 120)
			x, h, seqs := long(t, deep)
			x.Add(1, storedAt(0, seqs[5:]...))
			x.Add(2, storedAt(0, append([]uint64{seqs[100]}, h[101:]...)...))
			m := x.AppendMatches(nil, seqs)
			require.NotEmpty(t, m)
			require.Equal(t, index.WorkerID(0), m[0].Worker)
			require.Equal(t, int32(deep), m[0].Depth)
			empty(t, x)
		},
		"long lookups that match nowhere": func(t *testing.T) {
			x, _, seqs := long(t, n)
			other := slices.Clone(seqs)
			slices.Reverse(other)
			x.AppendMatches(nil, other)
			x.AppendMatches(nil, slices.Repeat(seqs[:1], n))
			x.AppendMatches(nil, append(slices.Clone(seqs[:n/2]), seqs[:n/2]...))
			empty(t, x)
		},
		"every worker ends elsewhere": func(t *testing.T) {
			workers := min(1000, n/100)
			x, h := fleet(workers), blocks(0, 2*workers)
			ev := storedAt(0, h...)
			for i := range workers {
				ev.BlockHashes, ev.LocalHashes = h[:2*i+2], h[:2*i+2]
				x.Add(index.WorkerID(i), ev)
			}
			m := x.AppendMatches(nil, kvhash.AppendSequence(nil, h))
			require.Len(t, m, workers)
			for i := range m {
				require.Equal(t, int32(2*i+2), m[i].Depth)
			}
			empty(t, x)
		},
	}
	for name, f := range tests {
		t.Run(name, f)
	}
}
