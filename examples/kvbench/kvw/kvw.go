// SPDX-License-Identifier: Apache-2.0

package kvw

import (
	"fmt"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// Header is the first line of a file. Its counts must match the file; the other fields are informational.
type Header struct {
	Name      string `json:"name"`
	BlockSize int    `json:"block_size"` // tokens
	Workers   int    `json:"workers"`

	Ops          int `json:"ops"`
	Queries      int `json:"queries"`
	QueryBlocks  int `json:"query_blocks"`
	StoreEvents  int `json:"store_events"`
	StoreBlocks  int `json:"store_blocks"`
	RemoveEvents int `json:"remove_events"`
	RemoveBlocks int `json:"remove_blocks"`
	MaxU         int `json:"max_u"` // the largest block id

	UniqueBlocks int    `json:"unique_blocks"`
	HitBlocks    int    `json:"hit_blocks"` // leading blocks of the queries that the worker of the request held
	Capacity     int    `json:"capacity_blocks_per_worker"`
	Seed         uint64 `json:"seed"`
}

// Events returns the number of events.
func (h *Header) Events() int { return h.StoreEvents + h.RemoveEvents }

// EventBlocks returns the number of blocks that the events store and remove.
func (h *Header) EventBlocks() int { return h.StoreBlocks + h.RemoveBlocks }

// Kind is the kind of an operation.
type Kind uint8

// The kinds of operations.
const (
	Query Kind = iota
	Store
	Remove
)

// Op is one operation.
type Op struct {
	Kind   Kind
	Worker uint32 // of Store and Remove, less than Header.Workers
	Blocks int    // in the list
	// Event is a Store or a Remove as an index receives it: engine hashes, and for Store parent and local hashes. Its
	// slices belong to the workload; the caller must not modify them.
	Event kvevent.Event

	runs []run
}

// run is a sequence of consecutive block ids, ascending from first, or descending if n is negative.
type run struct{ first, n int32 }

// Workload is a decoded file. It is safe for concurrent use by multiple goroutines.
type Workload struct {
	Header
	Ops []Op

	// By block id. parent is the id of the previous block, or one of:
	parent     []int32
	seq, local []uint64
}

const (
	noParent  = -1 // the first block of a prompt
	notListed = -2 // in no operation so far
)

// AppendIDs appends the ids of the blocks of op to dst and returns it.
func (w *Workload) AppendIDs(dst []uint32, op *Op) []uint32 {
	for _, r := range op.runs {
		step := int32(1)
		if r.n < 0 {
			step = -1
		}
		for id := r.first; id != r.first+r.n; id += step {
			dst = append(dst, uint32(id))
		}
	}
	return dst
}

// AppendSeq appends the sequence hashes of the blocks of op, the input of a lookup, to dst and returns it. It costs
// little more than a copy.
func (w *Workload) AppendSeq(dst []uint64, op *Op) []uint64 { return appendRuns(dst, w.seq, op.runs) }

// AppendLocal appends the local hashes of the blocks of op to dst and returns it.
func (w *Workload) AppendLocal(dst []uint64, op *Op) []uint64 {
	return appendRuns(dst, w.local, op.runs)
}

func appendRuns(dst, table []uint64, runs []run) []uint64 {
	for _, r := range runs {
		if r.n >= 0 {
			dst = append(dst, table[r.first:r.first+r.n]...)
			continue
		}
		for id := r.first; id > r.first+r.n; id-- {
			dst = append(dst, table[id])
		}
	}
	return dst
}

// Seq returns the sequence hash of a block.
func (w *Workload) Seq(id uint32) uint64 { return w.seq[id] }

// Parent returns the previous block of a block, or false if the block begins a prompt.
func (w *Workload) Parent(id uint32) (uint32, bool) {
	p := w.parent[id]
	return uint32(max(p, 0)), p >= 0
}

// Undo returns operations that revert the events of ops, the last one first: stored blocks are removed, and removed
// blocks are stored again. A block that was removed after the one before it is stored before that one: an index has to
// park it until then. Undo fails if ops is ambiguous, because a block is stored that was present or one is removed that
// was absent; held reports whether a worker holds a block before ops.
func (w *Workload) Undo(ops []Op, held func(worker, id uint32) bool) ([]Op, error) {
	has := make(map[[2]uint32]bool) // what ops changed so far
	var ids []uint32
	for i := range ops {
		op := &ops[i]
		if op.Kind == Query {
			continue
		}
		ids = w.AppendIDs(ids[:0], op)
		for _, id := range ids {
			k := [2]uint32{op.Worker, id}
			now, ok := has[k]
			if !ok {
				now = held(op.Worker, id)
			}
			if now == (op.Kind == Store) {
				return nil, fmt.Errorf("kvw: undo: operation %d of %d has no effect on block %d of worker %d", i, len(ops), id, op.Worker)
			}
			has[k] = op.Kind == Store
		}
	}
	var out []Op
	for i := len(ops) - 1; i >= 0; i-- {
		op := &ops[i]
		if op.Kind == Query {
			continue
		}
		ids = w.AppendIDs(ids[:0], op)
		for a, b := 0, len(ids)-1; a < b; a, b = a+1, b-1 {
			ids[a], ids[b] = ids[b], ids[a]
		}
		if op.Kind == Store {
			out = append(out, w.event(Remove, op.Worker, noParent, ids))
			continue
		}
		for a, b := 0, 0; a < len(ids); a = b {
			for b = a + 1; b < len(ids) && w.parent[ids[b]] == int32(ids[b-1]); b++ {
			}
			out = append(out, w.event(Store, op.Worker, w.parent[ids[a]], ids[a:b]))
		}
	}
	return out, nil
}

// event returns an operation for a list of blocks.
func (w *Workload) event(k Kind, worker uint32, parent int32, ids []uint32) Op {
	op := Op{Kind: k, Worker: worker, Blocks: len(ids), runs: make([]run, len(ids))}
	for i, id := range ids {
		op.runs[i] = run{int32(id), 1}
	}
	w.fill(&op, parent, make([]uint64, 0, 2*len(ids)))
	return op
}

// fill builds the event of op in room, which has space for two hashes per block, and returns the rest of room.
func (w *Workload) fill(op *Op, parent int32, room []uint64) []uint64 {
	cut := func(table []uint64) []uint64 {
		room = appendRuns(room, table, op.runs)
		n := len(room)
		part := room[:n:n]
		room = room[n:]
		return part
	}
	op.Event = kvevent.Event{Kind: kvevent.Removed, BlockHashes: cut(w.seq)}
	if op.Kind == Store {
		op.Event.Kind, op.Event.LocalHashes = kvevent.Stored, cut(w.local)
		if parent >= 0 {
			op.Event.HasParent, op.Event.Parent = true, w.seq[parent]
		}
	}
	return room
}

// setParent records that block id follows block p, or begins a prompt if p is noParent, and computes its hashes. It
// reports false if an earlier call recorded another parent.
func (w *Workload) setParent(id, p int32) bool {
	if w.parent[id] == notListed {
		w.parent[id] = p
		w.local[id] = local(uint64(id))
		if w.seq[id] = w.local[id]; p >= 0 {
			w.seq[id] = kvhash.Next(w.seq[p], w.local[id])
		}
	}
	return w.parent[id] == p
}

// local is splitmix64.
func local(id uint64) uint64 {
	const g = 0x9E3779B97F4A7C15
	z := id*g + g
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
