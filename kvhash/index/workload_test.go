// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// The sum over all queries, in file order with events applied, of every worker's matched depth. Four other implementations agree
// on these numbers.
var checksums = map[string]int64{
	"conv_n16_bs64": 2301659, "conv_n64_bs64": 6962979, "conv_n16_bs16": 3092491, "conv_n64_bs16": 9155060,
	"agent_n16_bs64": 108441077, "agent_n64_bs64": 429273763, "agent_n16_bs16": 132140642, "agent_n64_bs16": 516321922,
}

func TestWorkloads(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("long, and one goroutine")
	}
	names := []string{"conv_n16_bs64", "agent_n16_bs64"}
	if exhaustive() {
		names = names[:0]
		for n := range checksums {
			names = append(names, n)
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(shared(), "kv", "workloads", name+".kvw"))
			if err != nil {
				t.Skip("no workload: set WEFT_SHARED")
			}
			sum, x := newWorkload(t, raw).run(t)
			require.Equal(t, checksums[name], sum)
			for i := range x.AppendInfos(nil) {
				x.RemoveWorker(index.WorkerID(i))
			}
			require.Zero(t, x.Len())
		})
	}
}

// BenchmarkWorkload measures the small workloads. Reading the file is part of the time, a few ns for each block.
func BenchmarkWorkload(b *testing.B) {
	for _, name := range []string{"conv_n16_bs64", "agent_n16_bs64", "agent_n64_bs16"} {
		b.Run(name, func(b *testing.B) {
			raw, err := os.ReadFile(filepath.Join(shared(), "kv", "workloads", name+".kvw"))
			if err != nil {
				b.Skip("no workload: set WEFT_SHARED")
			}
			w := newWorkload(b, raw)
			var total time.Duration
			var heap, held int
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				start := time.Now()
				_, x := w.run(b)
				total += time.Since(start)
				runtime.GC()
				runtime.ReadMemStats(&after)
				heap, held = int(after.HeapAlloc)-int(before.HeapAlloc), 0
				for _, s := range x.AppendInfos(nil) {
					held += s.Blocks
				}
			}
			b.ReportMetric(float64(w.queryTime.Nanoseconds())/1e3/float64(w.queries), "us/query")
			b.ReportMetric(float64((total-w.queryTime).Nanoseconds())/float64(w.blocks), "ns/event-block")
			b.ReportMetric(float64(heap)/float64(held), "B/residency")
		})
	}
}

func shared() string {
	if dir := os.Getenv("WEFT_SHARED"); dir != "" {
		return dir
	}
	return filepath.Join("..", "..", "..", "shared")
}

// workload plays a KVW1 file: one JSON line, then queries, stores and removals in order.
type workload struct {
	block, workers int
	ops            []byte
	parent         []int32 // by block id u: the id before it, -1 for none, -2 unknown
	seq            []uint64
	in             []byte
	queries        int // done
	queryTime      time.Duration
	blocks         int                // stored or removed
	matched        func(*index.Index) // after each query, if not nil
}

func newWorkload(t testing.TB, raw []byte) *workload {
	head, ops, ok := bytes.Cut(raw, []byte("\n"))
	require.True(t, ok)
	var h struct {
		BlockSize int `json:"block_size"`
		Workers   int
		MaxU      int `json:"max_u"`
	}
	require.NoError(t, json.Unmarshal(bytes.TrimPrefix(head, []byte("KVW1 ")), &h))
	w := &workload{block: h.BlockSize, workers: h.Workers, ops: ops, parent: make([]int32, h.MaxU+1), seq: make([]uint64, h.MaxU+1)}
	for i := range w.parent {
		w.parent[i] = -2
	}
	// First pass: learn the parent of each block.
	w.in = ops
	var list []int32
	for len(w.in) > 0 {
		switch w.kind() {
		case 0:
			list = w.list(list[:0])
			w.link(-1, list)
		case 1:
			w.uvarint()
			p := int32(w.uvarint()) - 1
			list = w.list(list[:0])
			w.link(p, list)
		case 2:
			w.uvarint()
			list = w.list(list[:0])
		}
	}
	for u := range w.seq {
		w.hash(int32(u))
	}
	return w
}

func (w *workload) link(p int32, list []int32) {
	for _, u := range list {
		if w.parent[u] == -2 {
			w.parent[u] = p
		}
		p = u
	}
}

// hash fills seq of u and of those before it.
func (w *workload) hash(u int32) {
	var up []int32
	for ; u >= 0 && w.seq[u] == 0; u = w.parent[u] {
		up = append(up, u)
	}
	for i := len(up) - 1; i >= 0; i-- {
		u := up[i]
		if p := w.parent[u]; p < 0 {
			w.seq[u] = local(u)
		} else {
			w.seq[u] = kvhash.Next(w.seq[p], local(u))
		}
	}
}

func local(u int32) uint64 {
	const g = 0x9E3779B97F4A7C15
	z := uint64(u)*g + g
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// run plays the operations and returns the sum of depths.
func (w *workload) run(t testing.TB) (sum int64, x *index.Index) {
	x = index.NewAll(w.block, nil)
	for i := range w.workers {
		x.AddWorker(index.Key{Instance: "engine", DPRank: uint32(i)})
	}
	var list []int32
	var matches []index.Match
	var ev kvevent.Event
	w.in = w.ops
	for len(w.in) > 0 {
		switch w.kind() {
		case 0:
			list = w.list(list[:0])
			ev.BlockHashes = w.hashes(ev.BlockHashes[:0], list)
			start := time.Now()
			matches = x.AppendMatches(matches[:0], ev.BlockHashes)
			w.queryTime += time.Since(start)
			w.queries++
			if w.matched != nil {
				w.matched(x)
			}
			for _, m := range matches {
				sum += int64(m.Depth)
			}
		case 1:
			id := index.WorkerID(w.uvarint())
			p := int32(w.uvarint()) - 1
			list = w.list(list[:0])
			ev.Kind, ev.HasParent = kvevent.Stored, p >= 0
			if p >= 0 {
				ev.Parent = w.seq[p]
			}
			ev.BlockHashes = w.hashes(ev.BlockHashes[:0], list)
			ev.LocalHashes = ev.LocalHashes[:0]
			for _, u := range list {
				ev.LocalHashes = append(ev.LocalHashes, local(u))
			}
			r := x.Add(id, &ev)
			if r.Pending+r.Ignored > 0 {
				t.Fatalf("%+v", r)
			}
			w.blocks += len(list)
		case 2:
			id := index.WorkerID(w.uvarint())
			list = w.list(list[:0])
			ev.Kind = kvevent.Removed
			ev.BlockHashes = w.hashes(ev.BlockHashes[:0], list)
			r := x.Add(id, &ev)
			if r.Removed != len(list) {
				t.Fatalf("%+v", r)
			}
			w.blocks += len(list)
		}
	}
	return sum, x
}

func (w *workload) hashes(dst []uint64, list []int32) []uint64 {
	for _, u := range list {
		dst = append(dst, w.seq[u])
	}
	return dst
}

func (w *workload) kind() byte {
	k := w.in[0]
	w.in = w.in[1:]
	return k
}

func (w *workload) uvarint() uint64 {
	v, n := binary.Uvarint(w.in)
	w.in = w.in[n:]
	return v
}

func (w *workload) list(dst []int32) []int32 {
	var last int64
	for range w.uvarint() {
		z := w.uvarint()
		id := last + (int64(z>>1) ^ -int64(z&1))
		n := w.uvarint()
		step := int64(1)
		if n&1 != 0 {
			step = -1
		}
		for range n >> 1 {
			dst = append(dst, int32(id))
			last = id
			id += step
		}
	}
	return dst
}
