// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// need returns what a stream waits for, from the first missing batch.
func need(f *index.Stream) index.Need {
	n, _ := f.Need()
	return n
}

func from(f *index.Stream) uint64 {
	_, from := f.Need()
	return from
}

func requireNeed(t require.TestingT, want index.Need, seq uint64, f *index.Stream) {
	n, from := f.Need()
	require.Equal(t, want, n)
	require.Equal(t, seq, from)
}

// fed returns batch number seq of an engine that stores a different block in each batch.
func fed(seq uint64, at int64) kvevent.Batch {
	h := 1000*uint64(at) + seq
	return kvevent.Batch{Seq: seq, Time: time.Unix(at, 0), Events: []kvevent.Event{{
		Kind: kvevent.Stored, BlockHashes: []uint64{h}, SequenceHashes: []uint64{h}}}}
}

func state(t *testing.T, x *index.Index, id index.WorkerID) (blocks int, trust index.State) {
	t.Helper()
	s, ok := x.Info(id)
	require.True(t, ok)
	return s.Blocks, s.State
}

// A new Stream, as after a lost connection, continues where the previous one ended.
func TestStreamReplacement(t *testing.T) {
	x := index.NewAll(4, nil)
	id := x.AddWorker(index.Key{Instance: "e"})
	old := x.NewStream(id, nil)
	old.Add(fed(0, 1))
	old.Add(fed(1, 1))

	f := x.NewStream(id, nil)
	requireNeed(t, index.None, 0, f)
	f.Add(fed(3, 1))
	requireNeed(t, index.Replay, 2, f)
	f.AddReplay(fed(2, 1))
	f.FinishReplay()
	blocks, trust := state(t, x, id)
	require.Equal(t, 4, blocks)
	require.Equal(t, index.Exact, trust)

	// Batches added to the previous Stream have no effect.
	old.Add(fed(0, 9))
	old.Skip()
	old.Reset("")
	old.Replace(7, nil)
	require.NoError(t, old.Restore(x.AppendWorker(nil, id)))
	blocks, trust = state(t, x, id)
	require.Equal(t, 4, blocks)
	require.Equal(t, index.Exact, trust)

	// The engine is another one after the next connection.
	f = x.NewStream(id, nil)
	f.Add(fed(0, 5))
	blocks, trust = state(t, x, id)
	require.Equal(t, 1, blocks)
	require.Equal(t, index.Exact, trust)
}

// The ID of a removed worker may be reused; the Stream of the removed worker then has no effect.
func TestStreamOfRemovedWorker(t *testing.T) {
	x := index.NewAll(4, nil)
	id := x.AddWorker(index.Key{Instance: "a"})
	f := x.NewStream(id, nil)
	f.Add(fed(0, 1))
	x.RemoveWorker(id)
	require.Equal(t, id, x.AddWorker(index.Key{Instance: "b"}))
	f.Add(fed(1, 1))
	f.Add(fed(3, 1))
	f.Replace(3, fed(3, 1).Events)
	blocks, trust := state(t, x, id)
	require.Zero(t, blocks)
	require.Equal(t, index.Unknown, trust)
}

// Blocks without a known position in the stream are absent when the stream begins.
func TestStreamUnknownPositions(t *testing.T) {
	for _, loaded := range []bool{false, true} {
		x := index.NewAll(4, &index.AllOptions{Journal: 1 << 16})
		id := x.AddWorker(index.Key{Instance: "e"})
		x.Add(id, &fed(5, 1).Events[0])
		if loaded {
			var err error
			x, err = index.LoadAll(x.AppendSnapshot(nil), &index.AllOptions{Journal: 1 << 16})
			require.NoError(t, err)
		}
		y, err := index.LoadAll(x.AppendSnapshot(nil), nil)
		require.NoError(t, err)

		f := x.NewStream(id, nil)
		f.Add(fed(1, 2))
		blocks, trust := state(t, x, id)
		require.Equal(t, 1, blocks, "better than nothing")
		require.Equal(t, index.Degraded, trust)
		f.AddReplay(fed(0, 2))
		blocks, trust = state(t, x, id)
		require.Equal(t, 2, blocks)
		require.Equal(t, index.Exact, trust)

		delta, _, ok := x.AppendDelta(nil, y.Version())
		require.True(t, ok)
		require.NoError(t, y.AddDelta(delta))
		require.Equal(t, x.AppendSnapshot(nil), y.AppendSnapshot(nil))
	}
}

// One of two copies of a block is evicted: the blocks after it are still found, and more can be stored.
func TestStreamCopies(t *testing.T) {
	for _, count := range []bool{false, true} {
		x := fleet(1)
		f := x.NewStream(0, &index.StreamOptions{Copies: count})
		first, rest := *stored("ab", 0, 0), *stored("abba", 2, 0)
		gone := *removed("ab", 1, 0)
		f.Add(kvevent.Batch{Seq: 0, Events: []kvevent.Event{first, rest, first, gone, *stored("abb", 2, 0)}})
		want := "0:4"
		if !count {
			want = "0:1"
		}
		require.Equal(t, want, depths(x, "abba"))
	}
}

// A reason outside the stream degrades the worker until it is withdrawn; blocks and batches are not affected.
func TestSuspect(t *testing.T) {
	x := index.NewAll(4, nil)
	id := x.AddWorker(index.Key{Instance: "e"})
	f := x.NewStream(id, nil)
	check := func(blocks int, state index.State, why string) {
		t.Helper()
		w, _ := x.Worker(id)
		require.Equal(t, index.Worker{ID: id, Key: index.Key{Instance: "e"}, State: state, Why: why, Blocks: blocks}, w)
	}
	f.Suspect("not connected")
	check(0, index.Unknown, "not connected")
	f.Suspect("")
	check(0, index.Unknown, "no events yet")
	f.Add(fed(0, 1))
	check(1, index.Exact, "")
	f.Suspect("connection lost")
	check(1, index.Degraded, "connection lost")
	f.Add(fed(1, 1))
	check(2, index.Degraded, "connection lost")
	require.Equal(t, index.Degraded, x.AppendMatches(nil, []uint64{1000})[0].State)
	f.Suspect("")
	check(2, index.Exact, "")
	f.Add(fed(3, 1))
	f.Suspect("connection lost")
	check(2, index.Degraded, "connection lost")
	f.Suspect("")
	check(2, index.Degraded, "batch 2 is missing")
	f.Reset("restarted")
	f.Suspect("connection lost")
	check(0, index.Unknown, "connection lost")
}

// After Reset, a replay does not bring back what the engine had before, which may have been another one. After Forget, it does.
func TestForget(t *testing.T) {
	for _, forget := range []bool{false, true} {
		x := index.NewAll(4, nil)
		id := x.AddWorker(index.Key{Instance: "e"})
		f := x.NewStream(id, nil)
		f.Add(fed(0, 1), fed(1, 2))
		end, want := (*index.Stream).Reset, 0
		if forget {
			end, want = (*index.Stream).Forget, 2
		}
		end(f, "doubtful")
		w, _ := x.Worker(id)
		require.Equal(t, []any{0, index.Unknown, "doubtful"}, []any{w.Blocks, w.State, w.Why})
		f.AddReplay(fed(0, 1))
		f.AddReplay(fed(1, 2))
		f.FinishReplay()
		blocks, _ := state(t, x, id)
		require.Equal(t, want, blocks)
	}
}
