// SPDX-License-Identifier: Apache-2.0

package kvevent_test

import (
	"fmt"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// A batch is lost: what follows is held until a replay brings it.
func ExampleIngest() {
	var in kvevent.Ingest
	var ready []kvevent.Batch
	for _, seq := range []uint64{0, 1, 3} {
		ready = in.Push(ready, kvevent.Batch{Seq: seq})
	}
	fmt.Println(len(ready), "ready,", in.Need().Kind == kvevent.ReplayFrom, in.Need().Seq)
	ready = in.Replay(ready, kvevent.Batch{Seq: 2})
	in.ReplayDone()
	fmt.Println(len(ready), "ready, last", ready[3].Seq)
	// Output:
	// 2 ready, true 2
	// 4 ready, last 3
}

// A message of vLLM: three frames, of which the last is msgpack.
func ExampleDecoder() {
	d := kvevent.NewDecoder(kvevent.VLLM, nil)
	payload := "\x93\xcb\x40\x8f\x40\x00\x00\x00\x00\x00\x91\x95\xabBlockStored\x91\x01\xc0\x94\x0a\x14\x1e\x28\x04\x00"
	frames := [][]byte{[]byte("kv-events"), {0, 0, 0, 0, 0, 0, 0, 5}, []byte(payload)}

	batches, err := d.DecodeFrames(nil, frames)
	for _, b := range batches {
		for _, e := range b.Events {
			fmt.Println(b.Seq, e.Kind, e.BlockHashes, e.TokenIDs, err)
		}
	}
	// Output:
	// 5 stored [1] [10 20 30 40] <nil>
}

// Another router gets the names of the blocks only.
func ExampleAppendBatch() {
	seq := []uint64{9143094415614847814, 9510318385840434533, 16998148715716822651}
	b := kvevent.Batch{Seq: 6, Events: []kvevent.Event{{Kind: kvevent.Stored, Tier: kvevent.Device, BlockHashes: seq, SequenceHashes: seq}}}
	packed := kvevent.AppendBatch(nil, &b)

	batches, err := kvevent.NewDecoder(kvevent.Compact, nil).Decode(nil, packed)
	fmt.Println(len(packed), batches[0].Seq, batches[0].Events[0].SequenceHashes[2], err)
	// Output:
	// 33 6 16998148715716822651 <nil>
}
