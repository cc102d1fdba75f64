// SPDX-License-Identifier: Apache-2.0

package replica_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/index/replica"
	"github.com/weft-go/weft/kvhash/kvevent"
)

func stored(hash uint64, tokens ...uint32) []kvevent.Event {
	return []kvevent.Event{{Kind: kvevent.Stored, BlockHashes: []uint64{hash}, TokenIDs: tokens}}
}

func ExampleLoad() {
	// Before: a router that follows an engine.
	x := index.New(2, nil)
	stream := x.NewStream(x.AddWorker(index.Key{Instance: "engine-a"}), nil)
	stream.Add(kvevent.Batch{Seq: 0, Events: stored(1, 10, 11)})
	data := replica.AppendSnapshot(nil, x)

	// After: it starts again, and batch 1 was missed.
	x, err := replica.Load(data, 0, nil)
	if err != nil {
		fmt.Println(err) // begin with an empty index
	}
	for _, w := range x.AppendWorkers(nil) {
		stream := x.NewStream(w.ID, nil)
		stream.Add(kvevent.Batch{Seq: 2})
		_, from := stream.Need()
		fmt.Println(w.Key, w.Blocks, "blocks, needs", from)
	}
	// Output:
	// engine-a 1 blocks, needs 1
}

func ExampleRestore() {
	// A process next to the engine has received every batch from the beginning.
	sidecar := index.New(2, nil)
	engine := sidecar.NewStream(sidecar.AddWorker(index.Key{Instance: "engine-a"}), nil)
	for seq := range uint64(3) {
		engine.Add(kvevent.Batch{Seq: seq, Events: stored(seq, 10, uint32(seq))})
	}

	router := index.New(2, nil)
	id := router.AddWorker(index.Key{Instance: "engine-a"})
	stream := router.NewStream(id, nil)
	stream.Add(kvevent.Batch{Seq: 3}) // the first one it receives, and the engine has nothing to replay
	stream.FinishReplay()
	if need, _ := stream.Need(); need == index.Snapshot {
		if err := replica.Restore(stream, replica.AppendWorker(nil, sidecar, 0)); err != nil {
			stream.Skip()
		}
	}
	w, _ := router.Worker(id)
	fmt.Println(w.Blocks, "blocks,", w.State)
	// Output:
	// 3 blocks, exact
}

func ExampleAddDelta() {
	leader, follower := replica.New(2, 64<<20, nil), index.New(2, nil)
	id := leader.AddWorker(index.Key{Instance: "engine-a"})
	leader.Add(id, &stored(1, 10, 11)[0])

	delta, _, ok := replica.AppendDelta(nil, leader, replica.Current(follower)) // the follower sends its version
	if ok {
		ok = replica.AddDelta(follower, delta) == nil
	}
	if !ok { // too old
		follower, _ = replica.Load(replica.AppendSnapshot(nil, leader), 0, nil)
	}
	w, _ := follower.Worker(id)
	fmt.Println(w.Key, w.Blocks, replica.Current(follower) == replica.Current(leader))
	// Output:
	// engine-a 1 true
}

func ExampleAddStore() {
	x := index.New(2, nil)
	a := x.AddWorker(index.Key{Instance: "engine-a"})
	store := replica.AddStore(x, index.Key{Instance: "cache-server"}, kvevent.Remote)
	replica.Attach(x, a, store)
	x.Add(store, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{7}, LocalHashes: []uint64{7}})
	for _, m := range replica.AppendMatches(nil, x, []uint64{7}, []index.WorkerID{a}, 0) {
		fmt.Println("worker", m.Worker, "tiers", m.Tiers)
	}
	// Output:
	// worker 0 tiers [0 0 0 1]
}

func TestErrGap(t *testing.T) {
	leader, follower := replica.New(2, 1<<20, nil), index.New(2, nil)
	leader.AddWorker(index.Key{Instance: "engine-a"})
	delta, now, ok := replica.AppendDelta(nil, leader, replica.Version{})
	require.True(t, ok)
	require.Equal(t, replica.Current(leader), now)
	require.NoError(t, replica.AddDelta(follower, delta))
	require.True(t, errors.Is(replica.AddDelta(follower, delta), replica.ErrGap))
}

func TestDetach(t *testing.T) {
	x := index.New(2, nil)
	a := x.AddWorker(index.Key{Instance: "a"})
	store := replica.AddStore(x, index.Key{Instance: "s"}, kvevent.Host)
	replica.Attach(x, a, store)
	x.Add(store, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{7}, LocalHashes: []uint64{7}})
	require.Len(t, x.AppendMatches(nil, []uint64{7}), 1)
	require.Empty(t, replica.AppendMatches(nil, x, []uint64{7}, []index.WorkerID{}, 0))
	replica.Detach(x, a, store)
	require.Empty(t, x.AppendMatches(nil, []uint64{7}))
}
