// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

func ExampleIndex() {
	x := index.New(4, nil)
	a := x.AddWorker(index.Key{Instance: "engine-a"})

	// The engine names its blocks as it likes; the index goes by their tokens.
	x.Apply(a, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{77, 78}, TokenIDs: []uint32{0, 1, 2, 3, 4, 5, 6, 7}})

	prompt := kvhash.NewChain(4, kvhash.Scheme{})
	prompt.Append(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	for _, m := range x.Match(nil, prompt.Blocks()) {
		fmt.Println("worker", m.Worker, "holds", m.Depth, "of", len(prompt.Blocks()), "blocks,", m.Trust)
	}

	x.Apply(a, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{77}})
	fmt.Println(len(x.Match(nil, prompt.Blocks())), "workers after the first block is gone")
	// Output:
	// worker 0 holds 2 of 3 blocks, exact
	// 0 workers after the first block is gone
}

// All engines are vLLM with PYTHONHASHSEED=0 and --prefix-caching-hash-algo sha256_cbor: the router hashes as they do, and the
// index goes by the names in their events.
func ExampleOptions() {
	vllm, err := kvhash.ByName("vllm_sha256_cbor", &kvhash.Options{Seed: "0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	x := index.New(4, &index.Options{Base: vllm})
	a := x.AddWorker(index.Key{Instance: "engine-a"})
	x.Apply(a, &kvevent.Event{
		Kind: kvevent.Stored, TokenIDs: []uint32{0, 1, 2, 3, 4, 5, 6, 7},
		BlockHashes: []uint64{10703402261835016479, 15234836411599629619}, // as the engine sent them
	})

	prompt := []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	for _, m := range x.Match(nil, vllm.AppendBlocks(nil, prompt, 4)) {
		fmt.Println("worker", m.Worker, "holds", m.Depth, "blocks")
	}
	fmt.Println(len(x.Match(nil, vllm.With("", "tenant-a").AppendBlocks(nil, prompt, 4))), "workers for another cache salt")
	// Output:
	// worker 0 holds 2 blocks
	// 0 workers for another cache salt
}

func ExampleFeed() {
	x := index.New(2, nil)
	a := x.AddWorker(index.Key{Instance: "engine-a"})
	feed := x.Feed(a, nil)
	report := func() {
		s, _ := x.State(a)
		fmt.Println(s.Blocks, "blocks,", s.Trust)
	}

	first := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, TokenIDs: []uint32{10, 11}}
	second := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{2}, Parent: 1, HasParent: true, TokenIDs: []uint32{12, 13}}
	third := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{3}, Parent: 2, HasParent: true, TokenIDs: []uint32{14, 15}}

	feed.Push(kvevent.Batch{Seq: 0, Events: []kvevent.Event{first}})
	report()
	feed.Push(kvevent.Batch{Seq: 2, Events: []kvevent.Event{third}}) // batch 1 did not arrive
	report()
	if n := feed.Need(); n.Kind == kvevent.ReplayFrom {
		feed.Replay(kvevent.Batch{Seq: n.Seq, Events: []kvevent.Event{second}}) // asked from the engine
		feed.ReplayDone()
	}
	report()
	// Output:
	// 1 blocks, exact
	// 1 blocks, degraded
	// 3 blocks, exact
}
