// SPDX-License-Identifier: Apache-2.0

package kvindex

import (
	"fmt"

	"github.com/weft-go/weft/internal/bench/remote"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// Peer is an index. One goroutine at a time.
type Peer interface {
	// Apply applies a Stored or Removed event of a worker and returns how many blocks it changed. A store that follows a block the worker
	// does not hold is not looked at.
	Apply(worker int, ev *kvevent.Event) int
	// Match looks up a prompt, named by sequence and by local hashes, and returns the sum of the depths of all workers.
	Match(seq, local []uint64) int64
	// AppendHits appends what the last Match found, in any order.
	AppendHits(dst []Hit) []Hit
	// Residencies returns how many pairs of a worker and a block there are.
	Residencies() int
}

// Hit is the number of leading blocks of a prompt that a worker holds, at least 1.
type Hit struct {
	Worker int
	Depth  int32
}

// Maker makes a peer for a number of workers.
type Maker struct {
	Name string
	New  func(block, workers int) Peer
	// Remote plays whole workloads in another process, in place of New, with its index of that name.
	Remote *remote.Dynamo
}

// Makers returns all peers: the lean tree, the plain tree, weft, weft with different hashes for each worker, the naive
// model. The results of the first are the reference.
func Makers() []Maker {
	return []Maker{
		{Name: "lean", New: func(_, workers int) Peer { return NewTree(workers, true) }},
		{Name: "tree", New: func(_, workers int) Peer { return NewTree(workers, false) }},
		{Name: "weft", New: func(block, workers int) Peer { return NewWeft(block, workers) }},
		{Name: "own", New: func(block, workers int) Peer { return &Own{Weft: NewWeft(block, workers)} }},
		{Name: "naive", New: func(_, workers int) Peer { return NewNaive(workers) }},
	}
}

// Weft is weft's index.
type Weft struct {
	Index   *index.Index
	matches []index.Match
}

// NewWeft returns an empty one. Workers have the numbers from 0 in the index, too.
func NewWeft(block, workers int) *Weft {
	w := &Weft{Index: index.New(block, nil), matches: make([]index.Match, 0, workers)}
	for i := range workers {
		if id := w.Index.AddWorker(index.Key{Instance: "engine", DPRank: uint32(i)}); int(id) != i {
			panic(fmt.Sprintf("kvindex: worker %d has the number %d", i, id))
		}
	}
	return w
}

// Apply implements [Peer].
func (w *Weft) Apply(worker int, ev *kvevent.Event) int {
	r := w.Index.Add(index.WorkerID(worker), ev)
	return r.Stored + r.Removed
}

// Match implements [Peer].
func (w *Weft) Match(seq, _ []uint64) (sum int64) {
	w.matches = w.Index.AppendMatches(w.matches[:0], seq)
	for i := range w.matches {
		sum += int64(w.matches[i].Depth)
	}
	return sum
}

// AppendHits implements [Peer].
func (w *Weft) AppendHits(dst []Hit) []Hit {
	for i := range w.matches {
		dst = append(dst, Hit{int(w.matches[i].Worker), w.matches[i].Depth})
	}
	return dst
}

// Residencies implements [Peer].
func (w *Weft) Residencies() (n int) {
	for _, s := range w.Index.AppendWorkers(nil) {
		n += s.Blocks
	}
	return n
}

// Own is [Weft] for engines that each have different hashes for the same block, as vLLM does with a random PYTHONHASHSEED.
type Own struct {
	*Weft
	ev     kvevent.Event
	hashes []uint64
}

// Apply implements [Peer]. Changing the hashes takes about one nanosecond a block.
func (o *Own) Apply(worker int, ev *kvevent.Event) int {
	seed := uint64(worker+1) * 0x9E3779B97F4A7C15
	o.hashes = o.hashes[:0]
	for _, h := range ev.BlockHashes {
		o.hashes = append(o.hashes, h^seed)
	}
	o.ev = *ev
	o.ev.BlockHashes = o.hashes
	o.ev.Parent ^= seed
	return o.Weft.Apply(worker, &o.ev)
}

// Naive has a set of blocks for each worker. A lookup counts, worker by worker, until a block is missing.
type Naive struct {
	workers []map[uint64]struct{}
	hits    []Hit
}

// NewNaive returns an empty one.
func NewNaive(workers int) *Naive {
	n := &Naive{workers: make([]map[uint64]struct{}, workers), hits: make([]Hit, 0, workers)}
	for i := range n.workers {
		n.workers[i] = make(map[uint64]struct{})
	}
	return n
}

// Apply implements [Peer].
func (n *Naive) Apply(worker int, ev *kvevent.Event) int {
	set := n.workers[worker]
	before := len(set)
	switch ev.Kind {
	case kvevent.Stored:
		for _, h := range ev.BlockHashes {
			set[h] = struct{}{}
		}
	case kvevent.Removed:
		for _, h := range ev.BlockHashes {
			delete(set, h)
		}
	}
	return max(len(set)-before, before-len(set))
}

// Match implements [Peer].
func (n *Naive) Match(seq, _ []uint64) (sum int64) {
	n.hits = n.hits[:0]
	for i, set := range n.workers {
		depth := 0
		for _, h := range seq {
			if _, ok := set[h]; !ok {
				break
			}
			depth++
		}
		if depth > 0 {
			n.hits = append(n.hits, Hit{i, int32(depth)})
			sum += int64(depth)
		}
	}
	return sum
}

// AppendHits implements [Peer].
func (n *Naive) AppendHits(dst []Hit) []Hit { return append(dst, n.hits...) }

// Residencies implements [Peer].
func (n *Naive) Residencies() (sum int) {
	for _, set := range n.workers {
		sum += len(set)
	}
	return sum
}
