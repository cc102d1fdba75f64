// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/router/zmq"
)

// The index follows the cache of an engine that was started with
//
//	vllm serve MODEL --kv-events-config '{"enable_kv_cache_events": true, "publisher": "zmq",
//	  "endpoint": "tcp://*:5557", "replay_endpoint": "tcp://*:5657"}'
func Example() {
	events, replay := startEngine() // such as tcp://gpu1:5557 and tcp://gpu1:5657

	x := index.New(4, nil) // the engine's block size
	id := x.AddWorker(index.Key{Instance: "gpu1"})
	stream := x.NewStream(id, &index.StreamOptions{Copies: true})
	sub, err := zmq.Subscribe(events, stream, zmq.Replay(replay), zmq.Logger(slog.Default()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sub.Close()

	prompt := []uint32{10, 11, 12, 13, 20, 21, 22, 23, 30, 31} // the token IDs of a request
	for range time.Tick(10 * time.Millisecond) {
		w, _ := x.Worker(id)
		if w.State != index.Exact {
			continue // w.Why has the reason, such as a refused connection
		}
		_, m := x.Best(kvhash.Scheme{}.AppendBlocks(nil, prompt, x.BlockSize(), nil))
		fmt.Printf("%v holds %d blocks, and %d of %d tokens of the prompt\n", w.Key, w.Blocks, int(m.Depth)*x.BlockSize(), len(prompt))
		return
	}
	// Output:
	// gpu1 holds 2 blocks, and 8 of 10 tokens of the prompt
}

// Four data-parallel ranks of one engine are four workers. Rank n listens on the ports of rank 0 plus n.
func ExampleRank() {
	x := index.New(16, nil)
	for n := range 4 {
		id := x.AddWorker(index.Key{Instance: "gpu1", DPRank: uint32(n)})
		events, err := zmq.Subscribe("tcp://127.0.0.1:5557", x.NewStream(id, &index.StreamOptions{Copies: true}),
			zmq.Replay("tcp://127.0.0.1:5657"), zmq.Rank(n))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer events.Close()
	}
	for _, w := range x.AppendWorkers(nil) {
		fmt.Println(w.Key, w.State)
	}
	// Output:
	// gpu1 unknown
	// gpu1/1 unknown
	// gpu1/2 unknown
	// gpu1/3 unknown
}

// Engines that come and go connect to one address of the router. Each has a topic of its own.
func ExampleSubscribeFunc() {
	x := index.New(16, nil)
	streams := map[index.Key]*index.Stream{}
	route := func(topic string, b *kvevent.Batch) *index.Stream {
		key := index.Key{Instance: topic, DPRank: b.DPRank}
		if streams[key] == nil {
			streams[key] = x.NewStream(x.AddWorker(key), &index.StreamOptions{Copies: true})
		}
		return streams[key]
	}
	events, err := zmq.SubscribeFunc("@tcp://127.0.0.1:0", route, zmq.Topic("kv@"), zmq.Format(kvevent.VLLM))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer events.Close()
	fmt.Println(events.Addr().Network())
	// Output:
	// tcp
}

// startEngine starts an engine that holds two blocks, and returns its addresses.
func startEngine() (events, replay string) {
	slog.SetLogLoggerLevel(slog.LevelError) // quiet
	e := newEngine(exampleTB{}, local, local)
	e.store(10, 0)
	e.store(20, 10)
	return e.addr(), e.replayAddr()
}

// exampleTB implements the methods of testing.TB that an engine calls. The engine runs until the process ends.
type exampleTB struct{ testing.TB }

func (exampleTB) Cleanup(func())        {}
func (exampleTB) Helper()               {}
func (exampleTB) Errorf(string, ...any) {}
func (exampleTB) FailNow()              { panic("the engine of the example failed") }
