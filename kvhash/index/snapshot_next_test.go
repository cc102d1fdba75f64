// SPDX-License-Identifier: Apache-2.0

//go:build weftnext

package index_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// snapshotOf returns a snapshot of an index with one of everything: tiers, holes, orphans, predictions, a store, a free number.
func snapshotOf(t testing.TB, o *index.Options) []byte {
	x := index.New(modelBlock, o)
	for i := range uint32(4) {
		x.AddWorker(index.Key{Instance: "engine", DPRank: i})
	}
	x.Apply(0, stored("ababb", 0, 0))
	x.Apply(0, on(kvevent.Host, stored("ab", 0, 0)))
	x.Apply(0, stored("ababb", 0, 5)) // a second engine hash
	x.Apply(0, removed("aba", 1, 5))
	x.Apply(1, stored("abb", 0, 0))
	x.Apply(1, removed("ab", 1, 0))
	x.Apply(1, stored("bbab", 2, 0))
	x.Apply(3, &kvevent.Event{Kind: kvevent.Stored, Group: 2, BlockHashes: []uint64{1, 1}, TokenIDs: modelTokens("bb")})
	x.Predict(3, modelHashes("abab"), 0, time.Unix(100, 5))
	x.SetTrust(1, kvevent.Degraded, "batch 7 is missing")
	store := x.AddStore(index.Key{Instance: "store"}, kvevent.Remote)
	x.Apply(store, stored("abbb", 0, 0))
	x.Attach(1, store)
	x.RemoveWorker(2)
	require.NoError(t, x.Check())
	return x.AppendSnapshot(nil)
}

func TestSnapshot(t *testing.T) {
	o := &index.Options{MaxOrphans: 10}
	data := snapshotOf(t, o)
	x, err := index.Load(data, o)
	require.NoError(t, err)
	require.NoError(t, x.Check())
	require.Equal(t, data, x.AppendSnapshot(nil))
	require.Equal(t, append([]byte("before"), data...), x.AppendSnapshot([]byte("before")))
	require.Equal(t, modelBlock, x.BlockSize())
	id, ok := x.Worker(index.Key{Instance: "engine", DPRank: 3})
	require.True(t, ok)
	require.Equal(t, index.WorkerID(3), id)
	require.Equal(t, "0:5 1:2 3:4", depths(x, "ababb"))
	// It goes on where the other stopped.
	x.Expire(time.Unix(100, 4))
	require.Contains(t, depths(x, "abab"), "3:4")
	x.Expire(time.Unix(101, 0))
	require.NotContains(t, depths(x, "abab"), "3:")
	x.Apply(1, stored("bb", 0, 0))
	require.Contains(t, depths(x, "bbab"), "1:4")
	x.Apply(0, removed("ab", 1, 0))
	require.Contains(t, depths(x, "ababb"), "0:5", "the second engine hash holds it")
	for _, s := range x.AppendStates(nil) {
		x.RemoveWorker(s.Worker)
	}
	store, ok := x.Worker(index.Key{Instance: "store"})
	if ok {
		x.RemoveWorker(store)
	}
	require.Zero(t, x.Len())

	empty, err := index.Load(index.New(7, nil).AppendSnapshot(nil), nil)
	require.NoError(t, err)
	require.Zero(t, empty.Len())
	require.Equal(t, 7, empty.BlockSize())
}

// Two indexes that hold the same, but came to it in different ways, say the same; their snapshots need not be equal.
func TestSnapshotOfLong(t *testing.T) {
	x := fleet(70)
	rnd := rand.New(rand.NewPCG(4, 4))
	for range 300 {
		word := raceLong[:rnd.IntN(150)] + letters(rnd.Uint64N(9), "abc", 1+rnd.IntN(50))
		x.Apply(index.WorkerID(rnd.IntN(70)), runOf(word, 0))
	}
	data := x.AppendSnapshot(nil)
	y, err := index.Load(data, nil)
	require.NoError(t, err)
	require.Equal(t, data, y.AppendSnapshot(nil))
	require.Equal(t, x.AppendStates(nil), y.AppendStates(nil))
	require.Equal(t, x.Len(), y.Len())
	for n := range 200 {
		h := modelHashes(raceLong[:n] + "b")
		require.NoError(t, sameMatches(x.Match(nil, h), y.Match(nil, h)))
	}
}

func TestSnapshotDamaged(t *testing.T) {
	o := &index.Options{MaxOrphans: 10}
	data := snapshotOf(t, o)
	refused := func(data []byte, what string, at int) {
		t.Helper()
		x, err := index.Load(data, o)
		require.Error(t, err, "%s %d", what, at)
		require.Nil(t, x)
		_, ok := errors.AsType[*index.SnapshotError](err)
		require.True(t, ok, "%s %d: %v", what, at, err)
	}
	for n := range data {
		refused(data[:n], "cut at", n)
	}
	refused(append(data[:len(data):len(data)], 0), "a byte too many", len(data))
	for i := range data {
		for _, flip := range []byte{1, 0x80, 0xFF} {
			bad := append([]byte(nil), data...)
			bad[i] ^= flip
			refused(bad, "changed at", i)
		}
	}
}

// FuzzLoad loads arbitrary bytes. What loads must be sound.
func FuzzLoad(f *testing.F) {
	o := &index.Options{MaxOrphans: 10}
	f.Add(snapshotOf(f, o))
	f.Add(index.New(modelBlock, o).AppendSnapshot(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := index.Load(data, o)
		if err != nil {
			return
		}
		if err := x.Check(); err != nil {
			t.Fatal(err)
		}
		again := x.AppendSnapshot(nil)
		y, err := index.Load(again, o)
		if err != nil || string(y.AppendSnapshot(nil)) != string(again) {
			t.Fatal("a second form of one index", err)
		}
		x.Match(nil, modelHashes("abab"))
		for _, s := range x.AppendStates(nil) {
			x.Clear(s.Worker)
		}
	})
}
