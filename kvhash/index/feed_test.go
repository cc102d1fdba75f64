// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// fed is batch number seq of an engine that stores a block of its own in each.
func fed(seq uint64, at int64) kvevent.Batch {
	h := 1000*uint64(at) + seq
	return kvevent.Batch{Seq: seq, Time: time.Unix(at, 0), Events: []kvevent.Event{{
		Kind: kvevent.Stored, BlockHashes: []uint64{h}, SequenceHashes: []uint64{h}}}}
}

func state(t *testing.T, x *index.Index, id index.WorkerID) (blocks int, trust kvevent.Trust) {
	t.Helper()
	s, ok := x.State(id)
	require.True(t, ok)
	return s.Blocks, s.Trust
}

// A feed made anew, as after a connection was lost, goes on where the one before was.
func TestFeedAgain(t *testing.T) {
	x := index.New(4, nil)
	id := x.AddWorker(index.Key{Instance: "e"})
	old := x.Feed(id, nil)
	old.Push(fed(0, 1))
	old.Push(fed(1, 1))

	f := x.Feed(id, nil)
	require.Zero(t, f.Need())
	f.Push(fed(3, 1))
	require.Equal(t, kvevent.Need{Kind: kvevent.ReplayFrom, Seq: 2}, f.Need())
	f.Replay(fed(2, 1))
	f.ReplayDone()
	blocks, trust := state(t, x, id)
	require.Equal(t, 4, blocks)
	require.Equal(t, kvevent.Exact, trust)

	// What the feed before may still be told changes nothing.
	old.Push(fed(0, 9))
	old.GiveUp()
	old.Reset()
	old.Snapshot(7, nil)
	require.NoError(t, old.Restore(x.AppendWorker(nil, id)))
	blocks, trust = state(t, x, id)
	require.Equal(t, 4, blocks)
	require.Equal(t, kvevent.Exact, trust)

	// The engine is another one after the next connection.
	f = x.Feed(id, nil)
	f.Push(fed(0, 5))
	blocks, trust = state(t, x, id)
	require.Equal(t, 1, blocks)
	require.Equal(t, kvevent.Exact, trust)
}

// A worker's number may be given to another worker; the feed of the one before does not reach it.
func TestFeedOfAnother(t *testing.T) {
	x := index.New(4, nil)
	id := x.AddWorker(index.Key{Instance: "a"})
	f := x.Feed(id, nil)
	f.Push(fed(0, 1))
	x.RemoveWorker(id)
	require.Equal(t, id, x.AddWorker(index.Key{Instance: "b"}))
	f.Push(fed(1, 1))
	f.Push(fed(3, 1))
	f.Snapshot(3, fed(3, 1).Events)
	blocks, trust := state(t, x, id)
	require.Zero(t, blocks)
	require.Equal(t, kvevent.Unknown, trust)
}

// Blocks of which nothing says where in the stream they came from are not there when the stream begins.
func TestFeedOfBlocksWithoutPlace(t *testing.T) {
	for _, loaded := range []bool{false, true} {
		x := index.New(4, &index.Options{Journal: 1 << 16})
		id := x.AddWorker(index.Key{Instance: "e"})
		x.Apply(id, &fed(5, 1).Events[0])
		if loaded {
			var err error
			x, err = index.Load(x.AppendSnapshot(nil), &index.Options{Journal: 1 << 16})
			require.NoError(t, err)
		}
		y, err := index.Load(x.AppendSnapshot(nil), nil)
		require.NoError(t, err)

		f := x.Feed(id, nil)
		f.Push(fed(1, 2))
		blocks, trust := state(t, x, id)
		require.Equal(t, 1, blocks, "better than nothing")
		require.Equal(t, kvevent.Degraded, trust)
		f.Replay(fed(0, 2))
		blocks, trust = state(t, x, id)
		require.Equal(t, 2, blocks)
		require.Equal(t, kvevent.Exact, trust)

		delta, _, ok := x.AppendDelta(nil, y.Version())
		require.True(t, ok)
		require.NoError(t, y.ApplyDelta(delta))
		require.Equal(t, x.AppendSnapshot(nil), y.AppendSnapshot(nil))
	}
}

// Of a block in two copies one is evicted: what follows it is found still, and goes on to be stored.
func TestFeedCopies(t *testing.T) {
	for _, count := range []bool{false, true} {
		x := fleet(1)
		f := x.Feed(0, &kvevent.IngestOptions{Copies: count})
		first, rest := *stored("ab", 0, 0), *stored("abba", 2, 0)
		gone := *removed("ab", 1, 0)
		f.Push(kvevent.Batch{Seq: 0, Events: []kvevent.Event{first, rest, first, gone, *stored("abb", 2, 0)}})
		want := "0:4"
		if !count {
			want = "0:1"
		}
		require.Equal(t, want, depths(x, "abba"))
	}
}
