// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// From the frames of vLLM's sockets to the worker for a prompt: two ranks, of which one loses a message and asks for it again.
func Example() {
	x := index.New(2, nil)
	feeds := map[index.Key]*index.Feed{}
	d := kvevent.NewDecoder(kvevent.VLLM, nil)
	receive := func(push func(*index.Feed, kvevent.Batch), frames ...[]byte) {
		batches, _ := d.DecodeFrames(nil, frames) // what cannot be read lowers the worker's trust
		for _, b := range batches {
			k := index.Key{Instance: "engine", DPRank: b.DPRank}
			if feeds[k] == nil {
				feeds[k] = x.Feed(x.AddWorker(k), &kvevent.IngestOptions{Copies: true})
			}
			push(feeds[k], b)
		}
	}
	report := func(tokens ...uint32) {
		prompt := kvhash.NewChain(2, kvhash.Scheme{}.With("ad", "acme"))
		prompt.Append(tokens...)
		for _, m := range x.Match(nil, prompt.Blocks()) {
			fmt.Println("worker", m.Worker, "holds", m.Depth, "blocks,", m.Trust)
		}
	}
	number := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

	// [time, [[type, hashes, parent, tokens, block size, lora_id, medium, lora_name, extra_keys]], rank]: blocks of 4 tokens are two
	// of the index's. vLLM names the salt with the first block only. The other rank has the same tokens without a salt.
	root := []byte("\x93\xcb\x41\xda\x00\x00\x00\x00\x00\x00\x91\x99\xabBlockStored\x91\x01\xc0\x94\x0a\x0b\x0c\x0d\x04\xc0\xa3GPU\xa2ad\x91\x92\xa2ad\xa4acme\x00")
	child := []byte("\x93\xcb\x41\xda\x00\x00\x00\x40\x00\x00\x91\x99\xabBlockStored\x91\x02\x01\x94\x0e\x0f\x10\x11\x04\xc0\xa3GPU\xa2ad\x91\x91\xa2ad\x00")
	gone := []byte("\x93\xcb\x41\xda\x00\x00\x00\x80\x00\x00\x91\x93\xacBlockRemoved\x91\x09\xa3GPU\x00")
	other := []byte("\x93\xcb\x41\xda\x00\x00\x00\x00\x00\x00\x91\x98\xabBlockStored\x91\x01\xc0\x94\x0a\x0b\x0c\x0d\x04\xc0\xa3GPU\xa2ad\x01")
	prompt := []uint32{10, 11, 12, 13, 14, 15, 16, 17, 18}

	receive((*index.Feed).Push, nil, number(0), root)
	receive((*index.Feed).Push, nil, number(0), other)
	receive((*index.Feed).Push, nil, number(2), gone) // number 1 did not arrive
	report(prompt...)

	f := feeds[index.Key{Instance: "engine"}]
	if n := f.Need(); n.Kind == kvevent.ReplayFrom { // send number(n.Seq) to the engine's replay socket; it answers until EndOfReplay
		receive((*index.Feed).Replay, number(1), child)
		receive((*index.Feed).Replay, number(2), gone)
		f.ReplayDone()
	}
	report(prompt...)
	// Output:
	// worker 0 holds 2 blocks, degraded
	// worker 0 holds 4 blocks, exact
}

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
