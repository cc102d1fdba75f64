// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/router"
	"github.com/weft-go/weft/router/policy"
)

// message is a message as received by a subscriber to vLLM's KV events: topic, sequence number, and the events as msgpack. This one stores two
// blocks of 4 tokens, 10 to 17.
var message = [][]byte{[]byte("kv-events"), {0, 0, 0, 0, 0, 0, 0, 0}, []byte("\x93\xcb\x41\xda\x00\x00\x00\x00\x00\x00" +
	"\x91\x95\xabBlockStored\x92\x01\x02\xc0\x98\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x04\x00")}

// Read the events of two engines, and place a prompt where it costs least.
func Example() {
	x := index.New(4, nil) // the engines' block size
	r := router.New(x, nil)
	streams := map[string]*index.Stream{}
	for _, name := range []string{"engine-a", "engine-b"} {
		id, err := r.AddWorker(index.Key{Instance: name}, policy.Both, nil)
		if err != nil {
			fmt.Println(err)
		}
		streams[name] = x.NewStream(id, &index.StreamOptions{Copies: true})
	}

	decoder := kvevent.NewDecoder(kvevent.VLLM, nil)
	batches, err := decoder.AppendFrames(nil, message)
	if err != nil {
		fmt.Println(err) // the batch is marked as damaged, and the worker will be Degraded
	}
	for _, b := range batches {
		streams["engine-b"].Add(b) // then look at Need, which reports lost messages
	}

	prompt := []uint32{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
	hashes := kvhash.Scheme{}.AppendBlocks(nil, prompt, 4, nil)
	t, err := r.Place(context.Background(), &router.Request{Hashes: hashes, Tokens: len(prompt)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Decision().Why())
	t.Finish(time.Now(), 8, 100) // when the response is complete: 8 tokens were cached, 100 generated
	// Output:
	// engine-b: 0.0 ms = new 0.0; 8 of 10 tokens cached (estimate, exact); next engine-a 0.1
}
