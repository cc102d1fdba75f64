// SPDX-License-Identifier: Apache-2.0

package index

import (
	"strconv"
	"sync"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// This file is structured as follows: the types a caller names, then workers coming and going. apply.go places events,
// orphans.go parks those that cannot be placed, predict.go adds expectations, match.go reads. Everything below Index is guarded by
// Index.mu.

// Key is the identity of a worker.
type Key struct {
	Instance string // the engine's name, unique among the instances that serve the model
	DPRank   uint32 // data-parallel rank within it
}

// String returns instance/rank, or only the instance for rank 0.
func (k Key) String() string {
	if k.DPRank == 0 {
		return k.Instance
	}
	b, _ := k.AppendText(nil)
	return string(b)
}

// AppendText appends what [Key.String] returns. The error is nil.
func (k Key) AppendText(b []byte) ([]byte, error) {
	b = append(b, k.Instance...)
	if k.DPRank != 0 {
		b = strconv.AppendUint(append(b, '/'), uint64(k.DPRank), 10)
	}
	return b, nil
}

// WorkerID is the number the index gave a worker. Numbers are dense, from 0, and those of removed workers are used again: stop a
// worker's event source before removing it.
type WorkerID uint32

// Options configure an [Index].
type Options struct {
	// Base is how blocks are named when an event names no LoRA adapter and no namespace; it has neither itself. Callers of Match
	// name the blocks of their prompts in the same way.
	Base kvhash.Scheme
	// MaxOrphans is how many blocks without a known parent are parked for each worker; 0 means 65,536. Beyond it the oldest are
	// dropped.
	MaxOrphans int
}

// Index holds which worker has which blocks, for one model at one block size. Safe for concurrent use: lookups run beside each
// other, and events wait for them. Events of one worker have to be applied in their order, so by one goroutine or one after another.
type Index struct {
	block int
	opt   Options

	mu      sync.RWMutex
	nodes   nodes
	workers []worker // by WorkerID
	byKey   map[Key]WorkerID
	extra   map[ref]uint32 // further engine hashes of a worker that stand for one block in one tier; absent means none
	pred    predictions
	scratch []uint64
}

// New returns an empty index for blocks of the given size in tokens. nil options mean the defaults. It panics if block is not
// positive.
func New(block int, o *Options) *Index {
	if block <= 0 {
		panic("index: block size must be positive")
	}
	x := &Index{block: block, byKey: make(map[Key]WorkerID), extra: make(map[ref]uint32)}
	if o != nil {
		x.opt = *o
	}
	return x
}

// BlockSize returns the number of tokens in a block.
func (x *Index) BlockSize() int { return x.block }

// worker is what is known about one rank.
type worker struct {
	key   Key
	live  bool
	heard bool // an event was applied

	blocks map[uint64]place   // by engine hash
	more   map[uint64][]place // further places of an engine hash that stands at several
	held   int                // blocks resident or predicted

	group   int32 // the group of full attention that counts, valid if grouped
	grouped bool

	orphans orphans
	unknown bool          // blocks were stored that could not be placed, ever
	refused bool          // blocks of another size were stored
	told    bool          // trust was set by the caller
	trust   kvevent.Trust // valid if told
	why     string
}

// place is where an engine hash stands: a node and the tiers, one bit each, that hold it under this hash.
type place struct {
	node  uint32
	tiers uint8
}

// ref is a worker's hold on a block in one tier.
type ref struct {
	node   uint32
	worker WorkerID
	tier   kvevent.Tier
}

// AddWorker returns the number of the worker with the given key, and registers it if it is new.
func (x *Index) AddWorker(k Key) WorkerID {
	x.mu.Lock()
	defer x.mu.Unlock()
	if id, ok := x.byKey[k]; ok {
		return id
	}
	id := WorkerID(len(x.workers))
	for i := range x.workers {
		if !x.workers[i].live {
			id = WorkerID(i)
			break
		}
	}
	if int(id) == len(x.workers) {
		x.workers = append(x.workers, worker{})
		x.nodes.room(len(x.workers))
	}
	x.workers[id] = worker{key: k, live: true, blocks: make(map[uint64]place)}
	x.byKey[k] = id
	return id
}

// Worker returns the number of the worker with the given key.
func (x *Index) Worker(k Key) (id WorkerID, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	id, ok = x.byKey[k]
	return id, ok
}

// RemoveWorker forgets the worker and everything it holds. Its number may be given to another worker. O(blocks it holds).
func (x *Index) RemoveWorker(id WorkerID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.worker(id)
	if w == nil {
		return
	}
	x.clear(id, w)
	delete(x.byKey, w.key)
	*w = worker{}
}

// Clear forgets what the worker holds, in all tiers, with its orphans and predictions. It says that the worker's cache is empty,
// or is about to be replaced by a snapshot; trust set by [Index.SetTrust] stays.
func (x *Index) Clear(id WorkerID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if w := x.worker(id); w != nil {
		x.clear(id, w)
	}
}

// SetTrust sets how far the events of the worker can be believed, as [kvevent.Ingest.Trust] says. Without it, the index takes
// the events for complete from the first one on. What the index finds out itself can only lower it.
func (x *Index) SetTrust(id WorkerID, t kvevent.Trust, why string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if w := x.worker(id); w != nil {
		w.told, w.trust, w.why = true, t, why
	}
}

// State is what the index knows about a worker as a whole.
type State struct {
	Worker  WorkerID
	Key     Key
	Trust   kvevent.Trust
	Why     string // why Trust is not Exact, "" if it is
	Blocks  int    // resident or predicted
	Orphans int    // blocks parked
}

// State returns what is known about the worker; false if there is none with this number.
func (x *Index) State(id WorkerID) (State, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	w := x.worker(id)
	if w == nil {
		return State{}, false
	}
	return w.report(id), true
}

// AppendStates appends the state of every worker to dst, in ascending order of numbers, and returns it. No allocation if dst has room.
func (x *Index) AppendStates(dst []State) []State {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for i := range x.workers {
		if w := &x.workers[i]; w.live {
			dst = append(dst, w.report(WorkerID(i)))
		}
	}
	return dst
}

func (w *worker) report(id WorkerID) State {
	t, why := w.state()
	return State{Worker: id, Key: w.key, Trust: t, Why: why, Blocks: w.held, Orphans: w.orphans.blocks}
}

// Len returns the number of distinct blocks that any worker holds.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.nodes.bySeq)
}

// state returns the worker's trust. The reasons are constants or the caller's: a lookup returns them and must not allocate.
func (w *worker) state() (kvevent.Trust, string) {
	t, why := kvevent.Exact, ""
	switch {
	case w.told:
		t, why = w.trust, w.why
	case !w.heard:
		t, why = kvevent.Unknown, "no events yet"
	}
	if t <= kvevent.Degraded {
		return t, why
	}
	switch {
	case w.refused:
		return kvevent.Degraded, "stored blocks of another size"
	case w.orphans.blocks > 0:
		return kvevent.Degraded, "stored blocks whose parent is unknown"
	case w.unknown:
		return kvevent.Degraded, "stored blocks that could not be placed"
	}
	return t, ""
}

func (x *Index) worker(id WorkerID) *worker {
	if int64(id) >= int64(len(x.workers)) || !x.workers[id].live {
		return nil
	}
	return &x.workers[id]
}

func (x *Index) clear(id WorkerID, w *worker) {
	for h, p := range w.blocks {
		x.dropAll(id, w, p)
		for _, q := range w.more[h] {
			x.dropAll(id, w, q)
		}
	}
	x.unpredictAll(id, w)
	w.blocks = make(map[uint64]place)
	w.more = nil
	w.grouped = false
	w.orphans = orphans{}
	w.unknown, w.refused = false, false
}
