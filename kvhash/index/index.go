// SPDX-License-Identifier: Apache-2.0

package index

import (
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// This file is structured as follows: it defines the types of the API, and adds and removes workers. apply.go applies
// events, insert.go stores blocks in the tree, trash.go empties workers, orphans.go keeps those whose parent is unknown,
// predict.go adds predictions, match.go implements lookups, stream.go applies an engine's batches, state.go describes workers,
// explain.go and stats.go make reports. shot.go, snapshot.go and journal.go copy the state to another index; wire.go has the
// encoding of both, and hooks.go exports them to package replica. The tree is in runs.go, its blocks in slots.go, their
// residents in sets.go, and the first blocks of runs in heads.go. The names of blocks, that is the engines' hashes of them, are
// in naming.go: common.go has the names that workers share, and names.go the other names of one worker. Data that
// lookups read is atomic; everything else is guarded by Index.mu, which no lookup locks.

// Key identifies a worker.
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

// WorkerID identifies a worker within an index. IDs are dense, from 0, and IDs of removed workers are reused: stop a
// worker's event source before removing it.
type WorkerID uint32

// Options configure an [Index].
type Options struct {
	// Scheme is the hashing scheme of blocks without a LoRA adapter or a namespace. Callers of AppendMatches hash their
	// prompts with the same scheme, to which they add the adapter and the namespace of the request.
	//
	// With the zero Scheme, Dynamo's, engines may differ, because the index hashes the tokens in events. With any other
	// scheme the keys are the hashes that the engines send: all engines must then have the same settings (see package
	// kvhash) and the block size of the index.
	Scheme kvhash.Scheme
	// MaxBlocks limits the number of distinct blocks; 0 means 1,073,741,822, which is also the maximum. If an event
	// exceeds the limit, its remaining blocks are dropped and the worker is Degraded.
	MaxBlocks int
	// MaxPending limits the number of blocks with an unknown parent that are kept for each worker; 0 means 65,536. If
	// there are more, the oldest are dropped.
	MaxPending int
	// PendingTTL limits how long blocks with an unknown parent are kept, measured by the times passed to
	// [Index.Expire]; 0 means 30 s, a negative value means no limit.
	PendingTTL time.Duration
}

// Index records which worker has which blocks, for one model at one block size. Use [New] to make one. It is safe for
// concurrent use by multiple goroutines. Lookups ([Index.AppendMatches], [Index.Worker], [Index.AppendWorkers],
// [Index.Lookup]) take no locks and never wait for updates. Updates are serialized; the caller must apply each worker's
// events in order.
type Index struct {
	block int
	after int // tokens after a block that its hash covers
	opt   Options

	tree   tree
	states slab[atomic.Uint32]    // by lane: its worker and the worker's State
	roster atomic.Pointer[roster] // replaced, never changed

	_       apart
	keys    sync.Map      // byKey, for lookups
	blocks  atomic.Uint64 // distinct blocks
	retries atomic.Uint64 // lookups that were retried
	starved atomic.Int32  // lookups that have failed too often
	clock   atomic.Int64  // the latest time given to Expire, in ns since 1970
	due     atomic.Int64  // time at which Expire has something to do, in ns since 1970

	shooting sync.Mutex   // held while a snapshot is taken; first of all locks
	gate     sync.RWMutex // streams read it between two batches; after Stream.mu, before mu
	next     sync.Mutex   // held by one that waits for mu
	mu       sync.Mutex
	workers  []*worker // by WorkerID; nil if absent
	lanes    []bool    // whether each is in use
	trash    []*trash  // lanes whose blocks are being removed
	garbage  atomic.Bool
	byKey    map[Key]WorkerID
	journal  *journal // nil if changes are not recorded
	follows  bool     // the last change came from the leader, in a delta or a snapshot
	cuts     int      // events cut because the index was full
	pred     predictions
	locals   []uint64
	seqs     []uint64
	names    []uint64
	fresh    []bool
	segs     []segment
	spans    []span
	staged   staged
	loading  []uint32 // sets by slot, while a snapshot is loaded
	touched  uint64   // the results of names.touch, which the compiler would remove otherwise
}

// roster lists the workers for lookups.
type roster struct {
	workers []*worker // by WorkerID; nil if absent
	lanes   []lane    // by WorkerID
	moved   bool      // some worker has a lane with another number
	hybrid  bool      // some worker has several cache groups
	live    []uint64  // lanes of workers that lookups report, one bit each
	width   int       // words of a set that can hold a worker
	stores  []store
	// clearing identifies a worker and a plane that is being emptied. Lookups ignore its bits. It may be nil.
	clearing *clearing
}

type clearing struct {
	lane  lane
	plane int
}

// store describes a shared tier for lookups.
type store struct {
	id      WorkerID
	lane    lane
	tier    kvevent.Tier
	members []uint64 // lanes of workers that read from it, one bit each
}

// New returns an empty index for blocks of the given size in tokens. nil options mean the defaults. It panics if block is not
// positive.
func New(block int, o *Options) *Index { return newWithJournal(block, o, 0) }

// newWithJournal is New for an index that keeps journalBytes bytes of changes for its followers, see
// [Index.appendDelta].
func newWithJournal(block int, o *Options, journalBytes int) *Index {
	if block <= 0 {
		panic("index: block size must be positive")
	}
	x := &Index{block: block, byKey: make(map[Key]WorkerID)}
	if o != nil {
		x.opt = *o
	}
	x.after = x.opt.Scheme.Window(block) - block
	if x.opt.MaxBlocks <= 0 || x.opt.MaxBlocks > maxSlots-1 {
		x.opt.MaxBlocks = maxSlots - 1
	}
	if journalBytes > 0 {
		x.journal = &journal{max: journalBytes}
	}
	if x.opt.PendingTTL > 1e6*time.Hour {
		x.opt.PendingTTL = -1 // times are in 64 bits of nanoseconds
	}
	// The secret only determines the bucket of a hash, so that clients cannot choose tokens that all share one.
	x.tree.init(maphash.Bytes(maphash.MakeSeed(), nil))
	x.roster.Store(&roster{})
	x.clock.Store(math.MinInt64)
	x.due.Store(math.MaxInt64)
	return x
}

// BlockSize returns the number of tokens in a block.
func (x *Index) BlockSize() int { return x.block }

// worker is the state of one rank, or of a store that several ranks read from.
type worker struct {
	// For the writer. Almost every event of the worker needs what is before names, so it is in few cache lines.
	recent     uint64 // the engine hash placed last, and where, if recentSlot is not 0
	recentSlot uint32
	ratio      int32 // number of index blocks in an engine block; 0 means unknown
	group      int32 // the group of full attention that counts, valid if grouped
	lane       lane
	store      kvevent.Tier // of a store; 0 for a rank
	grouped    bool
	received   bool                  // an event has been applied
	mayGrow    bool                  // ratio may turn out to be larger: each event so far stored one block
	ahead      bool                  // blocks were stored whose engine hash covers more following tokens than the scheme's hash
	plain      int                   // blocks that it has under their common names
	alike      int                   // how many more of its names were the common ones, lately, than were not
	groups     *groups               // the others, or nil
	pages      *pages                // nil unless the engine's blocks are smaller
	more       map[uint64]*locations // further positions of an engine hash that has several
	shot       *workerShot           // of a snapshot that does not have the worker yet, or nil
	held       int                   // blocks resident or predicted
	low        uint32                // its blocks are in slots from this one on; 0 if it has no block
	shown      atomic.Uint64         // held, as of the last event; for lookups
	orphans    orphans
	names      names // its own ones
	owned      owned

	// For lookups.
	status atomic.Pointer[status]
	need   atomic.Int32 // of groups; 0 if there are none

	// For the writer.
	key      Key
	extra    map[ref]uint32 // further engine hashes that name one block in one tier; absent means none
	expects  *expects       // nil if none
	fit      int            // blocks on the device; 0 if unknown
	unknown  bool           // blocks were stored whose position remained unknown
	refused  bool           // blocks of another size were stored
	paged    bool           // its blocks are gathered pages, which a snapshot does not have
	strange  bool           // blocks of a cache group were stored of which it is not known when the engine uses them
	full     bool           // blocks were refused because the index was full
	hasState bool           // state has been set by a stream
	state    State          // valid if told
	why      string

	stream   *Stream // the last one made, or nil
	position []byte  // the position of its stream, for the next Stream; nil if unknown
}

// ref is a block in one plane.
type ref struct {
	slot  uint32
	plane uint8
}

// count records n more engine hashes of a block in a plane than the first.
func (w *worker) count(slot uint32, plane int, n uint32) {
	if w.extra == nil {
		w.extra = make(map[ref]uint32)
	}
	w.extra[ref{slot, uint8(plane)}] += n
}

// reach notes that the worker is about to have a block in a slot.
func (w *worker) reach(slot uint32) {
	if w.low == 0 || slot < w.low {
		w.low = slot
	}
}

// resident returns the number of blocks that the worker holds in a tier.
func (w *worker) resident() int {
	if w.expects != nil {
		return w.held - w.expects.blocks
	}
	return w.held
}

// AddWorker returns the ID of the worker with the given key, and adds the worker if it is new. It panics beyond 16,384 workers.
func (x *Index) AddWorker(k Key) WorkerID { return x.addWorker(k, 0) }

// addStore adds a store; see AddStore of package replica.
func (x *Index) addStore(k Key, tier kvevent.Tier) WorkerID {
	if tier < kvevent.Device || tier > kvevent.NumTiers {
		panic("index: a store has a tier")
	}
	return x.addWorker(k, tier)
}

func (x *Index) addWorker(k Key, tier kvevent.Tier) WorkerID {
	x.lock()
	defer x.mu.Unlock()
	if id, ok := x.byKey[k]; ok {
		return id
	}
	id := x.enter(k, tier)
	if x.journal != nil {
		x.noteAdd(id, x.workers[id])
	}
	return id
}

// enter adds a worker or store that is new.
func (x *Index) enter(k Key, tier kvevent.Tier) WorkerID {
	i := slices.Index(x.workers, nil)
	if i < 0 {
		if i = len(x.workers); i == maxWorkers {
			panic("index: too many workers")
		}
		x.workers = append(x.workers, nil)
	}
	id := WorkerID(i)
	w := &worker{key: k, store: tier, lane: x.takeLane(id)}
	w.names.mixer = x.tree.heads.mixer
	x.workers[id] = w
	x.byKey[k] = id
	x.publish(id, w)
	x.enroll(func(r *roster) {
		r.workers = slices.Clone(x.workers)
		r.assign(id, w)
		if tier != 0 {
			r.stores = append(r.stores, store{id: id, lane: w.lane, tier: tier})
		}
		r.show(w, true)
	})
	x.keys.Store(k, id)
	return id
}

// attach records that the worker reads from the store or, if on is false, that it no longer does. It does nothing if
// either does not exist.
func (x *Index) attach(worker, store WorkerID, on bool) {
	x.lock()
	defer x.mu.Unlock()
	if x.join(worker, store, on) && x.journal != nil {
		x.noteAttach(worker, store, on)
	}
}

// join attaches or detaches a worker. It reports whether the worker and the store exist.
func (x *Index) join(worker, store WorkerID, on bool) bool {
	w, s := x.worker(worker), x.worker(store)
	if w == nil || s == nil || w.store != 0 || s.store == 0 {
		return false
	}
	x.enroll(func(r *roster) {
		for i := range r.stores {
			if r.stores[i].id == store {
				r.stores[i].join(w.lane, on)
			}
		}
	})
	return true
}

// join replaces the members with a copy that includes lane w if on is set, and excludes it otherwise.
func (s *store) join(w lane, on bool) { s.members = withBit(s.members, w, on) }

// withBit returns a copy of words in which the bit of a lane is on or off.
func withBit(words []uint64, l lane, on bool) []uint64 {
	m := make([]uint64, max(len(words), int(l>>6)+1))
	copy(m, words)
	m[l>>6] &^= 1 << (l & 63)
	if on {
		m[l>>6] |= 1 << (l & 63)
	}
	return m
}

// enroll publishes a copy of the roster that edit has changed. The copy has no clearing unless edit sets it. edit must
// not modify the slices, which belong to the old roster, except the stores.
func (x *Index) enroll(edit func(*roster)) {
	old := x.roster.Load()
	r := &roster{workers: old.workers, lanes: old.lanes, moved: old.moved, hybrid: old.hybrid, live: old.live, stores: slices.Clone(old.stores)}
	edit(r)
	r.width = len(r.live)
	x.roster.Store(r)
	x.tree.work.step()
	x.tree.epoch.Add(1)
	x.tree.work.step()
}

// assign records the lane of a worker.
func (r *roster) assign(id WorkerID, w *worker) {
	lanes := make([]lane, len(r.workers))
	copy(lanes, r.lanes)
	lanes[id] = w.lane
	r.lanes, r.moved = lanes, false
	for i, l := range lanes {
		r.moved = r.moved || r.workers[i] != nil && int(l) != i
	}
}

// show specifies whether lookups report a worker. Stores are not reported.
func (r *roster) show(w *worker, on bool) { r.live = withBit(r.live, w.lane, on && w.store == 0) }

// RemoveWorker removes the worker and all its blocks, in one step for lookups. The ID may be reused. O(runs of all workers), in
// parts of some 0.1 ms between which other updates continue.
func (x *Index) RemoveWorker(id WorkerID) {
	x.lock()
	if w := x.worker(id); w != nil {
		x.leave(id, w)
		if x.journal != nil {
			x.noteWorker(opRemove, id)
		}
	}
	x.mu.Unlock()
	x.tidy()
}

// leave removes a worker or store.
func (x *Index) leave(id WorkerID, w *worker) {
	w.touch()
	delete(x.byKey, w.key)
	x.keys.Delete(w.key)
	x.workers[id] = nil
	x.enroll(func(r *roster) {
		r.workers = slices.Clone(x.workers)
		r.stores = slices.DeleteFunc(r.stores, func(s store) bool { return s.id == id })
		r.retire(w.lane)
	})
	w.groups = nil
	x.showNeed(w)
	x.discard(w.lane, w)
	x.count()
}

// retire ends the use of a lane.
func (r *roster) retire(l lane) {
	r.live = withBit(r.live, l, false)
	for i := range r.stores {
		r.stores[i].join(l, false)
	}
}

func (x *Index) worker(id WorkerID) *worker {
	if int64(id) >= int64(len(x.workers)) {
		return nil
	}
	return x.workers[id]
}

// hide calls f, during which lookups do not report the worker, or the blocks of the store. f may call hide again.
func (x *Index) hide(w *worker, f func()) {
	r := x.roster.Load()
	if w.store == 0 {
		if r.live[w.lane>>6]>>(w.lane&63)&1 != 0 {
			x.enroll(func(r *roster) { r.show(w, false) })
			defer x.enroll(func(r *roster) { r.show(w, true) })
		}
	} else {
		i := slices.IndexFunc(r.stores, func(s store) bool { return s.lane == w.lane })
		if i >= 0 {
			hidden := r.stores[i]
			x.enroll(func(r *roster) { r.stores = slices.Delete(r.stores, i, i+1) })
			defer x.enroll(func(r *roster) {
				hidden.lane = w.lane // it may have been cleared
				r.stores = slices.Insert(r.stores, i, hidden)
			})
		}
	}
	f()
}
