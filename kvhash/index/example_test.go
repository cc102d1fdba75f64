// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

func ExampleIndex_Add() {
	x := index.New(4, nil)
	a := x.AddWorker(index.Key{Instance: "engine-a"})

	// The engine names its blocks as it likes; the index hashes their tokens.
	x.Add(a, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{77, 78}, TokenIDs: []uint32{0, 1, 2, 3, 4, 5, 6, 7}})

	prompt := kvhash.NewChain(4, kvhash.Scheme{})
	prompt.Append(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	for _, m := range x.AppendMatches(nil, prompt.Blocks()) {
		fmt.Println("worker", m.Worker, "holds", m.Depth, "of", len(prompt.Blocks()), "blocks,", m.State)
	}

	r := x.Add(a, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{77}})
	fmt.Println(r.Removed, "block removed,", len(x.AppendMatches(nil, prompt.Blocks())), "workers hold the first one")
	// Output:
	// worker 0 holds 2 of 3 blocks, exact
	// 1 block removed, 0 workers hold the first one
}

// All engines are vLLM with PYTHONHASHSEED=0 and --prefix-caching-hash-algo sha256_cbor: the router hashes as they do, and the
// hashes in their events are the keys of the index.
func ExampleOptions() {
	vllm, err := kvhash.Lookup("vllm_sha256_cbor", &kvhash.Options{Seed: "0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	x := index.New(4, &index.Options{Scheme: vllm})
	a := x.AddWorker(index.Key{Instance: "engine-a"})
	x.Add(a, &kvevent.Event{
		Kind: kvevent.Stored, TokenIDs: []uint32{0, 1, 2, 3, 4, 5, 6, 7},
		BlockHashes: []uint64{10703402261835016479, 15234836411599629619}, // as the engine sent them
	})

	prompt := []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	for _, m := range x.AppendMatches(nil, vllm.AppendBlocks(nil, prompt, 4, nil)) {
		fmt.Println("worker", m.Worker, "holds", m.Depth, "blocks")
	}
	fmt.Println(len(x.AppendMatches(nil, vllm.With("", "tenant-a").AppendBlocks(nil, prompt, 4, nil))), "workers for another cache salt")
	// Output:
	// worker 0 holds 2 blocks
	// 0 workers for another cache salt
}

// A batch is lost: what follows is held until a replay brings it.
func ExampleStream() {
	x := index.New(2, nil)
	a := x.AddWorker(index.Key{Instance: "engine-a"})
	stream := x.NewStream(a, nil)
	report := func() {
		w, _ := x.Worker(a)
		fmt.Printf("%d blocks, %v %q\n", w.Blocks, w.State, w.Why)
	}

	first := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, TokenIDs: []uint32{10, 11}}
	second := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{2}, Parent: 1, HasParent: true, TokenIDs: []uint32{12, 13}}
	third := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{3}, Parent: 2, HasParent: true, TokenIDs: []uint32{14, 15}}

	stream.Add(kvevent.Batch{Seq: 0, Events: []kvevent.Event{first}})
	report()
	stream.Add(kvevent.Batch{Seq: 2, Events: []kvevent.Event{third}}) // batch 1 did not arrive
	report()
	if need, from := stream.Need(); need == index.Replay {
		stream.AddReplay(kvevent.Batch{Seq: from, Events: []kvevent.Event{second}}) // requested from the engine
		stream.FinishReplay()
	}
	report()
	// Output:
	// 1 blocks, exact ""
	// 1 blocks, degraded "batch 1 is missing"
	// 3 blocks, exact ""
}

// A process next to an engine passes its events on to other routers, in order and in the compact form.
func ExampleStreamOptions_onBatch() {
	x := index.New(2, nil)
	var out []byte
	stream := x.NewStream(x.AddWorker(index.Key{Instance: "engine-a"}), &index.StreamOptions{
		OnBatch: func(b *kvevent.Batch) { out = kvevent.AppendBatch(out, b) },
	})
	stream.Add(kvevent.Batch{Seq: 0, Events: []kvevent.Event{{Kind: kvevent.Stored, BlockHashes: []uint64{1}, TokenIDs: []uint32{10, 11}}}})
	stream.Add(kvevent.Batch{Seq: 2, Events: []kvevent.Event{{Kind: kvevent.Removed, BlockHashes: []uint64{1}}}}) // too early
	stream.Skip()

	batches, err := kvevent.NewDecoder(kvevent.Compact, nil).Append(nil, out)
	for _, b := range batches {
		fmt.Println(b.Seq, b.Events[0].Kind, err)
	}
	// Output:
	// 0 stored <nil>
	// 2 removed <nil>
}

// An engine without replays sent its whole state, after batch 7.
func ExampleStream_Replace() {
	x := index.New(2, &index.Options{MaxBlocks: 1 << 20, MaxPending: 1 << 10})
	a := x.AddWorker(index.Key{Instance: "engine-a"})
	stream := x.NewStream(a, &index.StreamOptions{First: 1, MaxHeldBytes: 1 << 20})
	stream.Add(kvevent.Batch{Seq: 9}) // the first batches were missed
	stream.FinishReplay()             // and cannot be replayed
	if need, _ := stream.Need(); need == index.Snapshot {
		stream.Replace(7, []kvevent.Event{{Kind: kvevent.Stored, BlockHashes: []uint64{1}, TokenIDs: []uint32{10, 11}}})
	}
	need, from := stream.Need()
	w, _ := x.Worker(a)
	fmt.Println(w.Blocks, "block,", w.State, need == index.Replay, from)

	stream.AddReplay(kvevent.Batch{Seq: 8})
	stream.FinishReplay()
	need, _ = stream.Need()
	w, _ = x.Worker(a)
	fmt.Println(w.Blocks, "block,", w.State, need == index.None)
	// Output:
	// 1 block, degraded true 8
	// 1 block, exact true
}

func ExampleIndex_Stats() {
	x := index.New(2, nil)
	for _, name := range []string{"engine-a", "engine-b"} {
		id := x.AddWorker(index.Key{Instance: name})
		r := x.Add(id, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1, 2}, TokenIDs: []uint32{10, 11, 12}})
		fmt.Println(name, r.Stored, "stored,", r.Pending, "pending,", r.Ignored, "incomplete")
	}
	s := x.Stats()
	fmt.Println(s.Blocks, "block,", s.Residencies, "residencies")
	id, ok := x.Lookup(index.Key{Instance: "engine-b"})
	fmt.Println(id, ok)
	// Output:
	// engine-a 1 stored, 0 pending, 1 incomplete
	// engine-b 1 stored, 0 pending, 1 incomplete
	// 1 block, 2 residencies
	// 1 true
}

func ExampleIndex_AppendBest() {
	x := index.New(1, nil)
	hashes := kvhash.Scheme{}.AppendBlocks(nil, []uint32{1, 2, 3, 4}, 1, nil)
	for i, n := range []int{1, 4, 2, 4} {
		id := x.AddWorker(index.Key{Instance: "engine", DPRank: uint32(i)})
		x.Add(id, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: hashes[:n], SequenceHashes: hashes[:n]})
	}
	for _, m := range x.AppendBest(nil, hashes, 3) {
		fmt.Println("worker", m.Worker, "holds", m.Depth)
	}
	// Output:
	// worker 1 holds 4
	// worker 3 holds 4
	// worker 2 holds 2
}
