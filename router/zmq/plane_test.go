// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/router/zmq"
)

// A plane is a subscription to Dynamo's event plane, on which several workers publish.
type plane struct {
	*index.Index
	mu      sync.Mutex
	batches int // that were applied
}

func subscribePlane(t *testing.T, e *engine, blockSize int) *plane {
	p := &plane{Index: index.New(blockSize, nil)}
	streams := map[uint64]*index.Stream{}
	route := func(topic string, b *kvevent.Batch) *index.Stream {
		require.Equal(t, "kv-events", topic)
		if streams[b.Worker] == nil {
			id := p.AddWorker(index.Key{Instance: strconv.FormatUint(b.Worker, 10), DPRank: b.DPRank})
			streams[b.Worker] = p.NewStream(id, &index.StreamOptions{First: 1, OnBatch: func(*kvevent.Batch) {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.batches++
			}})
		}
		return streams[b.Worker]
	}
	s, err := zmq.SubscribeFunc(e.addr(), route, zmq.Fast, zmq.Format(kvevent.Dynamo), zmq.Topic("kv-events"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	e.subscribers(1)
	return p
}

// send sends a message as it is.
func (e *engine) send(frames ...[]byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.subs {
		c.Write(message(frames...))
	}
}

// msgpack encodes a string, a number, bytes, a list, or a map, which is a list of pairs.
func msgpack(v any) []byte {
	switch v := v.(type) {
	case string:
		return append([]byte{0xd9, byte(len(v))}, v...)
	case int:
		return binary.BigEndian.AppendUint64([]byte{0xcf}, uint64(v))
	case []byte:
		return append(binary.BigEndian.AppendUint16([]byte{0xc5}, uint16(len(v))), v...)
	case []any:
		b := []byte{0xdc, 0, byte(len(v))}
		for _, e := range v {
			b = append(b, msgpack(e)...)
		}
		return b
	case [][2]any:
		b := []byte{0xde, 0, byte(len(v))}
		for _, e := range v {
			b = append(append(b, msgpack(e[0])...), msgpack(e[1])...)
		}
		return b
	}
	return []byte{0xc0}
}

func TestEventPlane(t *testing.T) {
	e := newEngine(t, local, "")
	p := subscribePlane(t, e, 4)
	hash := int(kvhash.Scheme{}.AppendBlocks(nil, []uint32{1, 2, 3, 4}, 4, nil)[0]) // the first block's local hash is its sequence hash
	for worker := 1; worker <= 2; worker++ {
		block := [][2]any{{"block_hash", 70 + worker}, {"tokens_hash", hash}}
		stored := [][2]any{{"stored", [][2]any{{"parent_hash", nil}, {"blocks", []any{block}}}}}
		event := [][2]any{{"worker_id", worker}, {"storage_tier", "device"}, {"event", [][2]any{{"event_id", 1}, {"data", stored}, {"dp_rank", 0}}}}
		envelope := msgpack([][2]any{{"publisher_id", 9}, {"sequence", worker}, {"topic", "kv-events"}, {"payload", msgpack([]any{event})}})
		e.send([]byte("kv-events"), make([]byte, 8), binary.BigEndian.AppendUint64(nil, uint64(worker)),
			append(binary.BigEndian.AppendUint32([]byte{1}, uint32(len(envelope))), envelope...))
	}
	require.Eventually(t, func() bool {
		m := p.AppendMatches(nil, []uint64{uint64(hash)})
		return len(m) == 2 && m[0].Depth == 1 && m[0].State == index.Exact && m[1].State == index.Exact
	}, 5*time.Second, time.Millisecond)
}

// What Dynamo 1.6.1 published over its event plane gives the overlaps that its own router reported.
func TestLiveEventPlane(t *testing.T) {
	root := os.Getenv("WEFT_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	lines := func(name string) (out [][]byte) {
		in, err := os.Open(filepath.Join(root, "kv", "live", "dynamo-plane-b16", name))
		if err != nil {
			t.Skipf("no recordings: %v (set WEFT_SHARED)", err)
		}
		defer in.Close()
		s := bufio.NewScanner(in)
		s.Buffer(nil, 64<<20)
		for s.Scan() {
			out = append(out, append([]byte(nil), s.Bytes()...))
		}
		require.NoError(t, s.Err())
		return out
	}
	type query struct {
		Mark    int
		Tokens  []uint32
		Salt    string
		Overlap map[string]struct {
			Blocks int32 `json:"device_blocks"`
		}
	}
	queries := map[int][]query{}
	for _, line := range lines("truth.jsonl") {
		var q query
		require.NoError(t, json.Unmarshal(line, &q))
		queries[q.Mark] = append(queries[q.Mark], q)
	}
	e := newEngine(t, local, "")
	p := subscribePlane(t, e, 16)
	equal, batches := 0, 0
	count := kvevent.NewDecoder(kvevent.Dynamo, nil)
	for _, line := range lines("events.jsonl") {
		var rec struct {
			Frames []string
			Mark   *int
		}
		require.NoError(t, json.Unmarshal(line, &rec))
		if rec.Mark == nil {
			var frames [][]byte
			for _, s := range rec.Frames {
				b, err := hex.DecodeString(s)
				require.NoError(t, err)
				frames = append(frames, b)
			}
			got, err := count.AppendFrames(nil, frames)
			require.NoError(t, err)
			batches += len(got)
			e.send(frames...)
			continue
		}
		require.Eventually(t, func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.batches == batches
		}, 10*time.Second, time.Millisecond)
		for _, q := range queries[*rec.Mark] {
			got := map[string]int32{}
			for _, m := range p.AppendMatches(nil, kvhash.Scheme{}.With("", q.Salt).AppendBlocks(nil, q.Tokens, 16, nil)) {
				w, _ := p.Worker(m.Worker)
				got[w.Key.Instance] = m.Depth
				require.Equal(t, index.Exact, m.State)
			}
			for id, want := range q.Overlap {
				require.Equal(t, want.Blocks, got[id], fmt.Sprint(*rec.Mark, " ", id))
				delete(got, id)
			}
			require.Empty(t, got)
			equal++
		}
	}
	require.Equal(t, 200, equal)
}
