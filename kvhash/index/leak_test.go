// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// heap returns the bytes in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one finalized
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// steady calls f n times and requires that the heap after all of them is no more than after the first tenth.
func steady(t *testing.T, n int, f func(i int)) {
	t.Helper()
	var mark uint64
	for i := range n {
		if i == n/10 {
			mark = heap()
		}
		f(i)
	}
	end := heap()
	runtime.KeepAlive(f) // and so the index
	// 64 KiB are for the runtime's own.
	require.LessOrEqual(t, end, mark+mark/5+1<<16, "bytes in use")
}

// loops is the number of rounds of the memory tests: a million in the long form.
func loops() int {
	switch {
	case exhaustive():
		return 1_000_000
	case testing.Short() || raceEnabled:
		return 2_000
	}
	return 10_000
}

// A second worker's part of a run splits it, and its removal makes it one again.
func TestSplitsDoNotGrow(t *testing.T) {
	x := fleet(2)
	word := raceLong
	full := runOf(word, 0)
	x.Add(0, full)
	one := &kvevent.Event{Kind: kvevent.Stored}
	steady(t, loops(), func(i int) {
		n := 1 + i%len(word)
		*one = *full
		one.BlockHashes, one.LocalHashes = full.BlockHashes[:n], full.LocalHashes[:n]
		if r := x.Add(1, one); r.Stored != n {
			t.Fatalf("%+v", r)
		}
		one.Kind = kvevent.Removed
		if r := x.Add(1, one); r.Removed != n {
			t.Fatalf("%+v", r)
		}
	})
	require.Equal(t, len(word), x.Len())
	require.NoError(t, x.Check())
	x.Clear(0)
	require.Zero(t, x.Len())
}

// Branches begin at every block of a run and are removed again, with blocks that are never stored again.
func TestBranchesDoNotGrow(t *testing.T) {
	x := fleet(2)
	full := runOf(raceLong, 0)
	x.Add(0, full)
	ev := &kvevent.Event{Kind: kvevent.Stored, BlockHashes: make([]uint64, 3), LocalHashes: make([]uint64, 3), HasParent: true}
	rnd := rand.New(rand.NewPCG(1, 1))
	steady(t, loops(), func(i int) {
		ev.Kind, ev.Parent = kvevent.Stored, full.BlockHashes[i%200]
		for j := range ev.BlockHashes {
			ev.BlockHashes[j], ev.LocalHashes[j] = rnd.Uint64(), rnd.Uint64()
		}
		if r := x.Add(0, ev); r.Stored != 3 {
			t.Fatalf("%+v", r)
		}
		ev.Kind = kvevent.Removed
		if r := x.Add(0, ev); r.Removed != 3 {
			t.Fatalf("%+v", r)
		}
	})
	require.Equal(t, 200, x.Len())
}

// Prompts come and go through a cache of constant size, oldest first, as engines evict them: leaves before what they follow.
func TestEvictionDoesNotGrow(t *testing.T) {
	x := fleet(4)
	const kept = 16
	type prompt struct {
		id index.WorkerID
		ev *kvevent.Event
	}
	var ring [kept]prompt
	rnd := rand.New(rand.NewPCG(2, 1))
	steady(t, loops()/10, func(i int) {
		if old := ring[i%kept]; old.ev != nil {
			for j, k := 0, len(old.ev.BlockHashes)-1; j < k; j, k = j+1, k-1 {
				old.ev.BlockHashes[j], old.ev.BlockHashes[k] = old.ev.BlockHashes[k], old.ev.BlockHashes[j]
			}
			old.ev.Kind = kvevent.Removed
			x.Add(old.id, old.ev)
		}
		p := prompt{index.WorkerID(rnd.IntN(4)), runOf(letters(rnd.Uint64(), "abc", 20+rnd.IntN(40)), 0)}
		ring[i%kept] = p
		x.Add(p.id, p.ev)
	})
	require.NoError(t, x.Check())
}

// Orphans, predictions, removed workers and blocks that were never stored do not keep memory.
func TestChurnDoesNotGrow(t *testing.T) {
	word := raceLong[:60]
	tests := map[string]func(x *index.Index, i int){
		"orphans": func(x *index.Index, i int) {
			ev := runOf(word, 50)
			ev.Parent = uint64(i) // never comes
			x.Add(0, ev)
		},
		"predictions": func(x *index.Index, i int) {
			h := modelHashes(letters(uint64(i), "abcd", 20))
			x.Predict(0, h, 0, time.Unix(int64(i), 0))
			x.Expire(time.Unix(int64(i-5), 0))
		},
		"predictions that do not fit": func(x *index.Index, i int) {
			x.SetCapacity(0, 100)
			x.Predict(0, modelHashes(letters(uint64(i), "abcd", 20)), 0, time.Unix(int64(i), 0))
		},
		"predictions taken back": func(x *index.Index, i int) {
			h := modelHashes(letters(uint64(i), "abcd", 20))
			x.Unpredict(x.Predict(0, h, 0, time.Unix(int64(i), 0)))
			x.Expire(time.Unix(int64(i-5), 0))
		},
		"workers": func(x *index.Index, i int) {
			id := x.AddWorker(index.Key{Instance: fmt.Sprint(i)})
			x.Add(id, runOf(word, 0))
			x.RemoveWorker(id)
		},
		"engine hashes": func(x *index.Index, i int) {
			ev := stored("abab", 0, uint64(i)*977+1)
			x.Add(0, ev)
			ev.Kind = kvevent.Removed
			x.Add(0, ev)
		},
		"clear": func(x *index.Index, i int) {
			x.Add(0, runOf(word, 0))
			x.Add(0, &kvevent.Event{Kind: kvevent.Cleared, Tier: kvevent.Tier(i % 2)})
		},
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) {
			x := index.NewAll(modelBlock, &index.AllOptions{MaxPending: 100})
			for i := range 2 {
				x.AddWorker(index.Key{Instance: "e", DPRank: uint32(i)})
			}
			steady(t, loops()/5, func(i int) { f(x, i) })
			require.NoError(t, x.Check())
		})
	}
}

// Removing everything, in any order, leaves the memory of an empty index.
func TestRemoveAll(t *testing.T) {
	ways := map[string]func(x *index.Index, evs [][]*kvevent.Event){
		"removed": func(x *index.Index, evs [][]*kvevent.Event) {
			for id, list := range evs {
				for _, ev := range list {
					x.Add(index.WorkerID(id), &kvevent.Event{Kind: kvevent.Removed, Tier: ev.Tier, BlockHashes: ev.BlockHashes})
				}
			}
		},
		"cleared": func(x *index.Index, _ [][]*kvevent.Event) {
			for _, s := range x.AppendInfos(nil) {
				x.Add(s.Worker, &kvevent.Event{Kind: kvevent.Cleared})
			}
		},
		"tiers cleared": func(x *index.Index, _ [][]*kvevent.Event) {
			for tier := kvevent.Device; tier <= kvevent.NumTiers; tier++ {
				for _, s := range x.AppendInfos(nil) {
					x.Add(s.Worker, &kvevent.Event{Kind: kvevent.Cleared, Tier: tier})
				}
			}
		},
		"left": func(x *index.Index, _ [][]*kvevent.Event) {
			for _, s := range x.AppendInfos(nil) {
				x.RemoveWorker(s.Worker)
			}
		},
	}
	rounds := 10 * factor()
	for name, away := range ways {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(rounds) {
				rnd := rand.New(rand.NewPCG(seed, 5))
				x := fleet(3)
				empty := stats(x)
				evs := make([][]*kvevent.Event, 3)
				for range 60 {
					word := raceLong[:rnd.IntN(100)] + letters(rnd.Uint64N(4), "abc", 1+rnd.IntN(20))
					id := rnd.IntN(3)
					ev := on(kvevent.Tier(1+rnd.IntN(4)), runOf(word, rnd.IntN(len(word))))
					x.Add(index.WorkerID(id), ev)
					evs[id] = append(evs[id], ev)
				}
				for id, list := range evs { // the rest are orphans
					whole := runOf(raceLong[:100], 0)
					x.Add(index.WorkerID(id), whole)
					evs[id] = append(list, whole)
				}
				require.NotZero(t, x.Len())
				away(x, evs)
				require.NoError(t, x.Check())
				require.Zero(t, x.Len())
				for _, s := range x.AppendInfos(nil) {
					require.Zero(t, s.Blocks)
				}
				if name != "left" { // the IDs of removed workers are kept
					require.Equal(t, empty, stats(x))
				}
			}
		})
	}
}

// The memory of a large index is released when everything is removed.
func TestMemoryIsReleased(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("many blocks")
	}
	x := fleet(4)
	const prompts, blocks = 400, 250
	before := heap()
	ev := &kvevent.Event{BlockHashes: make([]uint64, blocks), LocalHashes: make([]uint64, blocks)}
	each := func(f func(id index.WorkerID)) {
		rnd := rand.New(rand.NewPCG(1, 9))
		for i := range prompts {
			for j := range blocks {
				ev.LocalHashes[j] = rnd.Uint64()
				ev.BlockHashes[j] = ev.LocalHashes[j]
			}
			f(index.WorkerID(i % 4))
		}
	}
	each(func(id index.WorkerID) {
		ev.Kind = kvevent.Stored
		x.Add(id, ev)
	})
	full := heap()
	each(func(id index.WorkerID) {
		ev.Kind = kvevent.Removed
		x.Add(id, ev)
	})
	require.Zero(t, x.Len())
	after := heap()
	runtime.KeepAlive(x)
	t.Logf("%d bytes for each of %d blocks; %d bytes are left of %d", (full-before)/(prompts*blocks), prompts*blocks, int64(after)-int64(before), full-before)
	require.Less(t, int64(after)-int64(before), int64(full-before)/10, "bytes left")
}
