// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

func TestAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	x := index.NewAll(16, nil)
	tokens := make([]uint32, 16*256)
	ev := &kvevent.Event{Kind: kvevent.Stored, TokenIDs: tokens, BlockHashes: kvhash.Scheme{}.AppendBlocks(nil, tokens, 16, nil)}
	half := &kvevent.Event{Kind: kvevent.Stored, TokenIDs: tokens[:16*128], BlockHashes: ev.BlockHashes[:128]}
	for i := range 100 { // more than one word of bits
		id := x.AddWorker(index.Key{Instance: "e", DPRank: uint32(i)})
		x.Add(id, []*kvevent.Event{ev, half}[i%2])
	}
	x.Add(3, removed("a", 1, 0))
	hole := &kvevent.Event{Kind: kvevent.Removed, BlockHashes: ev.BlockHashes[17:19]}
	x.Add(4, hole)
	x.Predict(5, ev.BlockHashes, 0, time.Unix(100, 0))
	dst := make([]index.Match, 0, 100)
	zero := func(what string, f func()) {
		t.Helper()
		f() // warm
		f()
		require.Zero(t, testing.AllocsPerRun(100, f), what)
	}
	zero("AppendMatches", func() { dst = x.AppendMatches(dst[:0], ev.BlockHashes) })
	require.Len(t, dst, 100)
	states := make([]index.Info, 0, 100)
	zero("AppendInfos", func() { states = x.AppendInfos(states[:0]) })
	zero("Info", func() { x.Info(3) })
	zero("Len", func() { x.Len() })
	zero("Expire", func() { x.Expire(time.Unix(0, 0)) })
	zero("Apply of known blocks", func() { x.Add(2, ev) })
	x.Add(2, &kvevent.Event{Kind: kvevent.Stored, Parent: 1, HasParent: true, BlockHashes: []uint64{2}, TokenIDs: tokens[:16]})
	zero("Add of known blocks with a pending one", func() { x.Add(2, ev) })
	zero("a copy to another tier, and back", func() {
		copied := kvevent.Event{Kind: kvevent.Stored, BlockHashes: ev.BlockHashes[100:200], Tier: kvevent.Host}
		x.Add(2, &copied)
		copied.Kind = kvevent.Removed
		x.Add(2, &copied)
	})
	zero("a hole and its refilling", func() {
		fill := kvevent.Event{Kind: kvevent.Stored, TokenIDs: tokens[:16*19], BlockHashes: ev.BlockHashes[:19]}
		x.Add(6, hole)
		x.Add(6, &fill)
	})
	zero("the end of a run removed and stored, which others hold", func() {
		end := kvevent.Event{Kind: kvevent.Removed, BlockHashes: ev.BlockHashes[60:]}
		x.Add(8, &end)
		x.Add(8, ev)
	})
	zero("all of it", func() {
		all := kvevent.Event{Kind: kvevent.Removed, BlockHashes: ev.BlockHashes}
		x.Add(8, &all)
		x.Add(8, ev)
	})
	zero("a prompt of its own", func() { // nodes come and go
		own := kvevent.Event{Kind: kvevent.Stored, TokenIDs: tokens[:16*40], BlockHashes: ev.BlockHashes[:40], Namespace: "own"}
		x.Add(9, &own)
		own.Kind = kvevent.Removed
		x.Add(9, &own)
	})
	// The worker's names stay in two pages of groups, whatever the index's secret. With twice as many more, one index in a hundred
	// would split a page that the removals shrink again; see TestNamesAllocs.
	branch := runOf(raceLong[:100], 0)
	branch.HasParent = true
	zero("branches that split a run", func() {
		for _, at := range []int{3, 77, 254, 255} {
			branch.Kind, branch.Parent = kvevent.Stored, ev.BlockHashes[at]
			x.Add(10, branch)
			branch.Kind = kvevent.Removed
			x.Add(10, branch)
		}
	})
	stream, b := x.NewStream(13, nil), kvevent.Batch{Events: []kvevent.Event{*half, *hole, *half}}
	zero("a batch", func() {
		stream.Add(b)
		b.Seq++
	})
}

// Best returns the deepest match of the lowest ID and, like AppendMatches, does not allocate in a small fleet.
func TestBest(t *testing.T) {
	x := index.New(1, nil)
	w, best := x.Best([]uint64{1})
	require.Zero(t, w)
	require.Zero(t, best)
	tokens := []uint32{1, 2, 3, 4, 5}
	hashes := kvhash.Scheme{}.AppendBlocks(nil, tokens, 1, nil)
	for i, n := range []int{2, 4, 4, 1} {
		id := x.AddWorker(index.Key{DPRank: uint32(i)})
		x.Add(id, &kvevent.Event{Kind: kvevent.Stored, TokenIDs: tokens[:n], BlockHashes: hashes[:n]})
	}
	w, best = x.Best(hashes)
	require.EqualValues(t, 1, w.Key.DPRank)
	require.EqualValues(t, 1, best.Worker)
	require.EqualValues(t, 4, best.Depth)
	w, best = x.Best([]uint64{1})
	require.Zero(t, w, "a prompt that no worker holds")
	require.Zero(t, best)
	ids := func(n int) (list []index.WorkerID) {
		for _, m := range x.AppendBest(nil, hashes, n) {
			list = append(list, m.Worker)
		}
		return list
	}
	require.Empty(t, ids(0))
	require.Empty(t, ids(-1))
	require.Equal(t, []index.WorkerID{1, 2}, ids(2))
	require.Equal(t, []index.WorkerID{1, 2, 0}, ids(3))
	require.Equal(t, []index.WorkerID{1, 2, 0, 3}, ids(9))
	if !raceEnabled {
		require.Zero(t, testing.AllocsPerRun(100, func() { x.Best(hashes) }))
		dst := make([]index.Match, 0, 3)
		require.Zero(t, testing.AllocsPerRun(100, func() { dst = x.AppendBest(dst[:0], hashes, 3) }))
	}
}
