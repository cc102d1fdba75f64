// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// follow keeps a stream up to date from the messages of one rank of vLLM: the messages of its PUB socket, and the
// replies of its replay socket. It returns when live is closed.
func follow(s *index.Stream, live <-chan [][]byte, request func(from []byte) (answer <-chan [][]byte)) {
	d := kvevent.NewDecoder(kvevent.VLLM, nil)
	var batches []kvevent.Batch
	var answer <-chan [][]byte // nil while no replay runs
	for live != nil || answer != nil {
		select {
		case frames, ok := <-live:
			if !ok {
				live = nil
			} else if batches, _ = d.AppendFrames(batches[:0], frames); len(batches) > 0 { // an unreadable one is marked as damaged
				s.Add(batches[0])
			}
		case frames, ok := <-answer: // closed if it is refused or too slow
			batches, _ = d.AppendFrames(batches[:0], frames)
			if !ok || len(batches) > 0 && batches[0].Seq == kvevent.EndOfReplay {
				answer = nil
				s.FinishReplay()
			} else if len(batches) > 0 {
				s.AddReplay(batches[0])
			}
		}
		switch need, from := s.Need(); {
		case need == index.Replay && answer == nil:
			answer = request(binary.BigEndian.AppendUint64(nil, from))
		case need == index.Snapshot:
			s.Skip() // vLLM has no snapshots
		}
	}
}

// A program that follows vLLM and requests what it lost: what came over the sockets comes through channels here.
func Example_replay() {
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
	request := func(from []byte) <-chan [][]byte {
		answer := make(chan [][]byte, 10)
		answer <- message(1, "\x02", "\x01")
		answer <- message(2, "\x03", "\x02")
		answer <- [][]byte{nil, binary.BigEndian.AppendUint64(nil, kvevent.EndOfReplay), nil}
		fmt.Println("requested from", binary.BigEndian.Uint64(from))
		return answer
	}
	follow(x.NewStream(worker, &index.StreamOptions{Copies: true}), live, request) // vLLM reports every copy of a block

	w, _ := x.Worker(worker)
	fmt.Println(w.Blocks, "blocks,", w.State)
	// Output:
	// requested from 1
	// 3 blocks, exact
}
