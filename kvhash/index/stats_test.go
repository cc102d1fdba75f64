// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

func TestStats(t *testing.T) {
	x := index.NewAll(modelBlock, nil)
	x.AddWorker(index.Key{Instance: "a"})
	x.AddWorker(index.Key{Instance: "b"})
	x.AddStore(index.Key{Instance: "s"}, kvevent.Remote)
	for id := range index.WorkerID(2) {
		x.Add(id, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1, 2, 3}, TokenIDs: modelTokens("abc")})
	}
	x.Add(1, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{4}, Parent: 3, HasParent: true, TokenIDs: modelTokens("d")})
	x.Add(1, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, TokenIDs: modelTokens("x")})
	x.Add(0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{7, 8}, Parent: 99, HasParent: true, TokenIDs: modelTokens("ef")})
	x.Predict(0, modelHashes("abcd"), 0, time.Unix(9, 0))
	s := x.Measure()
	require.Positive(t, s.Bytes)
	s.Bytes = 0
	require.Equal(t, index.Measures{
		Workers: 3, Blocks: 5, Residencies: 9, Runs: 3, Sets: 3, Orphans: 2, Predictions: 1,
	}, s)
}

// TestStatsBaseline fills an index randomly and empties it: it then equals a new one, except for a chunk of each
// structure.
func TestStatsBaseline(t *testing.T) {
	const chunks = 2048 * (8 + 4 + 8 + 36 + 8 + 8)
	for seed := range uint64(sample(2, 4, 8)) {
		h := newPast(seed)
		x := index.NewAll(modelBlock, &pastOptions)
		h.join(x)
		empty := x.Measure()
		for range 3 {
			for i := range 40 {
				tokens := randomTokens(seed<<8+uint64(i), modelBlock*500)
				hashes := kvhash.Scheme{}.AppendBlocks(nil, tokens, modelBlock, nil)
				x.Add(index.WorkerID(i%2), &kvevent.Event{Kind: kvevent.Stored, TokenIDs: tokens, BlockHashes: hashes})
				x.Predict(1, hashes, i, time.Unix(int64(i), 0))
				ev := h.event(1)
				x.Add(1, &ev)
			}
			require.Greater(t, x.Measure().Bytes, empty.Bytes+20000*8)
			x.Expire(time.Unix(1000, 0))
			for id := range index.WorkerID(4) {
				x.Clear(id)
			}
			s := x.Measure()
			require.Less(t, s.Bytes, empty.Bytes+chunks)
			s.Bytes, empty.Bytes = 0, min(empty.Bytes, s.Bytes)
			require.Equal(t, index.Measures{Workers: 4}, s)
		}
	}
}

// TestStatsBytes compares with the heap.
func TestStatsBytes(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	x := index.NewAll(modelBlock, nil)
	for i := range uint32(8) {
		id := x.AddWorker(index.Key{Instance: "e", DPRank: i})
		for k := range uint64(sample(20, 60, 60)) {
			tokens := append(randomTokens(k, modelBlock*500), randomTokens(k<<8+uint64(i), modelBlock*500)...)
			hashes := kvhash.Scheme{}.AppendBlocks(nil, tokens, modelBlock, nil)
			x.Add(id, &kvevent.Event{Kind: kvevent.Stored, TokenIDs: tokens, BlockHashes: hashes})
		}
	}
	data := x.AppendSnapshot(nil)
	size := heap() - before - int64(cap(data))
	require.InDelta(t, size, x.Measure().Bytes, 0.15*float64(size))
	before = heap()
	y, err := index.LoadAll(data, nil)
	require.NoError(t, err)
	size = heap() - before
	require.InDelta(t, size, y.Measure().Bytes, 0.15*float64(size))
	runtime.KeepAlive(data)
	runtime.KeepAlive(x)
}
