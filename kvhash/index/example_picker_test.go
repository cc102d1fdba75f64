// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// message is a message as received by a subscriber to vLLM's KV events: topic, sequence number, and the events as
// msgpack. This one stores two blocks of 4 tokens, 10 to 17.
var message = [][]byte{[]byte("kv-events"), {0, 0, 0, 0, 0, 0, 0, 0}, []byte("\x93\xcb\x41\xda\x00\x00\x00\x00\x00\x00" +
	"\x91\x95\xabBlockStored\x92\x01\x02\xc0\x98\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x04\x00")}

// Read the events of two engines, and send a prompt to the one that holds most of it.
func Example() {
	x := index.New(4, nil) // the engines' block size
	streams := map[string]*index.Stream{}
	for _, name := range []string{"engine-a", "engine-b"} {
		streams[name] = x.NewStream(x.AddWorker(index.Key{Instance: name}), &index.StreamOptions{Copies: true})
	}

	decoder := kvevent.NewDecoder(kvevent.VLLM, nil)
	batches, err := decoder.AppendFrames(nil, message)
	if err != nil {
		fmt.Println(err) // the batch is marked as damaged, and the worker will be Degraded
	}
	streams["engine-b"].Add(batches...) // then look at Need, which reports lost messages

	prompt := []uint32{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
	worker, m := x.Best(kvhash.Scheme{}.AppendBlocks(nil, prompt, 4, nil)) // zero if none holds the first block: choose by load
	fmt.Printf("%v holds %d blocks (%v)\n", worker.Key, m.Depth, m.State)
	// Output:
	// engine-b holds 2 blocks (exact)
}
