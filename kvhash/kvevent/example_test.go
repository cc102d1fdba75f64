// SPDX-License-Identifier: Apache-2.0

package kvevent_test

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// follow keeps a feed up to date from the frames of one rank of vLLM: those of its PUB socket, and the answers of its replay socket. It
// returns when live is closed.
func follow(feed *index.Feed, live <-chan [][]byte, ask func(from []byte) (answer <-chan [][]byte)) {
	d := kvevent.NewDecoder(kvevent.VLLM, nil)
	var batches []kvevent.Batch
	var answer <-chan [][]byte // nil while no replay runs
	for live != nil || answer != nil {
		select {
		case frames, ok := <-live:
			if !ok {
				live = nil
			} else if batches, _ = d.DecodeFrames(batches[:0], frames); len(batches) > 0 { // what could not be read lowers trust
				feed.Push(batches[0])
			}
		case frames, ok := <-answer: // closed if it is refused or too slow
			batches, _ = d.DecodeFrames(batches[:0], frames)
			if !ok || len(batches) > 0 && batches[0].Seq == kvevent.EndOfReplay {
				answer = nil
				feed.ReplayDone()
			} else if len(batches) > 0 {
				feed.Replay(batches[0])
			}
		}
		switch n := feed.Need(); {
		case n.Kind == kvevent.ReplayFrom && answer == nil:
			answer = ask(binary.BigEndian.AppendUint64(nil, n.Seq))
		case n.Kind == kvevent.Snapshot:
			feed.GiveUp() // or feed.Restore, where a sidecar has followed the engine all the time
		}
	}
}

// A program that follows vLLM: what came over the sockets comes through channels here.
func Example() {
	x := index.New(4, nil)
	worker := x.AddWorker(index.Key{Instance: "engine"})

	// [time, [[type, hashes, parent, tokens, block size]]]
	message := func(seq uint64, hash, parent string) [][]byte {
		payload := "\x92\xcb\x41\xda\x00\x00\x00\x00\x00\x00\x91\x95\xabBlockStored\x91" + hash + parent + "\x94\x0a\x14\x1e\x28\x04"
		return [][]byte{[]byte("kv-events"), binary.BigEndian.AppendUint64(nil, seq), []byte(payload)}
	}
	live := make(chan [][]byte, 10)
	live <- message(0, "\x01", "\xc0")
	live <- message(2, "\x03", "\x02") // number 1 did not arrive
	close(live)
	ask := func(from []byte) <-chan [][]byte {
		answer := make(chan [][]byte, 10)
		answer <- message(1, "\x02", "\x01")
		answer <- message(2, "\x03", "\x02")
		answer <- [][]byte{nil, binary.BigEndian.AppendUint64(nil, kvevent.EndOfReplay), nil}
		fmt.Println("asked from", binary.BigEndian.Uint64(from))
		return answer
	}
	follow(x.Feed(worker, &kvevent.IngestOptions{Copies: true}), live, ask) // vLLM tells of every copy of a block

	s, _ := x.State(worker)
	fmt.Println(s.Blocks, "blocks,", s.Trust)
	// Output:
	// asked from 1
	// 3 blocks, exact
}

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
