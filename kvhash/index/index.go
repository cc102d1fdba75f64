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

// This file is structured as follows: the types a caller names, then workers coming and going. apply.go says what an event does, place.go
// puts blocks into the tree, orphans.go parks those that cannot be placed, predict.go adds expectations, match.go reads, feed.go follows
// an engine's stream, snapshot.go and journal.go let the state travel (wire.go is their bytes), explain.go and stats.go are for people.
// Under them lies the tree: runs.go, with its blocks in slots.go, who holds them in sets.go, where runs begin in heads.go; names.go is each
// worker's own map. What a lookup touches is atomic; everything else below Index is guarded by Index.mu, which no lookup takes.

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
	// name the blocks of their prompts in the same way, with the adapter and the namespace of the request.
	//
	// The zero Scheme, Dynamo's, fits every fleet: the index hashes the tokens in events itself. With another scheme the names that the
	// engines give are taken for the hashes of that scheme, and nothing is hashed: all of them must then be set up alike (see package kvhash), and
	// have the index's block size.
	Base kvhash.Scheme
	// MaxOrphans is how many blocks without a known parent are parked for each worker; 0 means 65,536. Beyond it the oldest are
	// dropped.
	MaxOrphans int
	// OrphanTTL is how long blocks without a known parent are parked, by the times given to [Index.Expire]; 0 means 30 s, less means
	// without end.
	OrphanTTL time.Duration
	// MaxBlocks is how many distinct blocks the index holds at most; 0 means 268,435,454, which is also the most it can. Events that would
	// go beyond are cut there, and the worker's trust says so.
	MaxBlocks int
	// Journal is how many bytes of changes are kept for those who follow, see [Index.AppendDelta]; 0 means none, and costs nothing.
	Journal int
}

// Index holds which worker has which blocks, for one model at one block size. [New] makes one. Safe for concurrent use. Lookups ([Index.Match],
// [Index.Search], [Index.State], [Index.AppendStates], [Index.Worker]) take no lock and never wait for events; everything that changes
// the index takes turns. Events of one worker have to be applied in their order, so by one goroutine or one after another.
type Index struct {
	block int
	opt   Options

	tree   tree
	live   [maxWorkers / 64]atomic.Uint64 // workers that lookups report, one bit each
	trust  slab[atomic.Uint32]            // by WorkerID
	roster atomic.Pointer[roster]         // replaced, never changed

	_       apart
	keys    sync.Map      // byKey, for lookups
	blocks  atomic.Int64  // distinct blocks
	retries atomic.Uint64 // lookups that began again
	starved atomic.Int32  // lookups that began again too often
	clock   atomic.Int64  // the latest time given to Expire, in ns since 1970
	due     atomic.Int64  // when Expire has something to do

	mu      sync.Mutex
	workers []*worker // by WorkerID; nil where there is none
	byKey   map[Key]WorkerID
	journal *journal       // nil if changes are not noted
	follows bool           // the last change was the leader's, and came by ApplyDelta or in its snapshot
	cuts    int            // events cut because the index was full
	extra   map[ref]uint32 // further engine hashes of a worker that stand for one block in one tier; absent means none
	pred    predictions
	locals  []uint64
	seqs    []uint64
	names   []uint64
	fresh   []bool
	segs    []segment
	touched uint32 // see names.touch
}

// roster is the workers as lookups see them.
type roster struct {
	workers []*worker // by WorkerID; nil where there is none
	width   int       // words of a set that can hold a worker
	stores  []store
	// clearing is a worker and a plane that is being emptied: its bits do not count any more.
	clearing *clearing
}

type clearing struct {
	id    WorkerID
	plane int
}

// store is a shared tier as lookups see it.
type store struct {
	id      WorkerID
	tier    kvevent.Tier
	members []uint64 // workers that read from it, one bit each
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
	if x.opt.MaxBlocks <= 0 || x.opt.MaxBlocks > maxSlots-1 {
		x.opt.MaxBlocks = maxSlots - 1
	}
	if x.opt.Journal > 0 {
		x.journal = &journal{max: x.opt.Journal}
	}
	if x.opt.OrphanTTL > 1e6*time.Hour {
		x.opt.OrphanTTL = -1 // times are in 64 bits of nanoseconds
	}
	// The secret only says which bucket a hash goes to, so that nobody can choose tokens that all go to one.
	x.tree.init(maphash.Bytes(maphash.MakeSeed(), nil))
	x.roster.Store(&roster{})
	x.clock.Store(math.MinInt64)
	x.due.Store(math.MaxInt64)
	return x
}

// BlockSize returns the number of tokens in a block.
func (x *Index) BlockSize() int { return x.block }

// worker is what is known about one rank, or about a store that several ranks read from.
type worker struct {
	key   Key
	store kvevent.Tier // of a store; 0 for a rank

	// For lookups.
	status atomic.Pointer[status]
	shown  atomic.Int64 // held, as of the last event
	parked atomic.Int64

	// For the writer.
	names      names
	recent     uint64 // the engine hash placed last, and where, if recentSlot is not 0
	recentSlot uint32
	more       map[uint64]*places // further places of an engine hash that stands at several
	group      int32              // the group of full attention that counts, valid if grouped
	grouped    bool
	ratio      int32 // how many of our blocks an engine block is; 0 means not heard yet
	held       int   // blocks resident or predicted
	expects    expects
	orphans    orphans
	heard      bool          // an event was applied
	unknown    bool          // blocks were stored that could not be placed, ever
	refused    bool          // blocks of another size were stored
	full       bool          // blocks were refused because the index was full
	told       bool          // trust was set by the caller
	trust      kvevent.Trust // valid if told
	why        string

	feed     *Feed  // the last one made; nil if there is none
	position []byte // the place of its stream, for a feed that is to be made; nil if it is not known
}

// status is what lookups tell about a worker.
type status struct {
	trust kvevent.Trust
	why   string
}

// ref is a worker's hold on a block in one plane.
type ref struct {
	slot   uint32
	worker WorkerID
	plane  uint8
}

// AddWorker returns the number of the worker with the given key, and registers it if it is new. A store's key gives the store's
// number. It panics beyond 16,384 workers and stores.
func (x *Index) AddWorker(k Key) WorkerID { return x.addWorker(k, 0) }

// AddStore registers a store that several workers read from, such as a cache server. Its blocks count for each worker that is attached to it,
// in the given tier, whatever tier its events name. They come in events of its own, applied under the number returned, or in
// events of workers whose Owner is the store's instance, if its rank is 0; an Owner that is not registered means the worker's own. Stores
// share the numbers of workers, and lookups do not report them. If the key is registered already, AddStore returns its number and
// changes nothing. It panics if there is no such tier, and as [Index.AddWorker] does.
func (x *Index) AddStore(k Key, tier kvevent.Tier) WorkerID {
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
	id := x.add(k, tier)
	if x.journal != nil {
		x.noteAdd(id, x.workers[id])
	}
	return id
}

// add registers a worker or store that is new.
func (x *Index) add(k Key, tier kvevent.Tier) WorkerID {
	i := slices.Index(x.workers, nil)
	if i < 0 {
		if i = len(x.workers); i == maxWorkers {
			panic("index: too many workers")
		}
		x.workers = append(x.workers, nil)
		x.trust.resize(uint32(i + 1))
	}
	id := WorkerID(i)
	w := &worker{key: k, store: tier}
	w.names.mixer = x.tree.heads.mixer
	x.workers[id] = w
	x.byKey[k] = id
	x.publish(id, w)
	x.enroll(func(r *roster) {
		r.workers = slices.Clone(x.workers)
		if tier != 0 {
			r.stores = append(r.stores, store{id: id, tier: tier})
		}
	})
	x.keys.Store(k, id)
	if tier == 0 {
		x.show(id, true)
	}
	return id
}

// Attach says that the worker reads from the store. It does nothing if there are no such two.
func (x *Index) Attach(worker, store WorkerID) { x.attach(worker, store, true) }

// Detach undoes [Index.Attach].
func (x *Index) Detach(worker, store WorkerID) { x.attach(worker, store, false) }

func (x *Index) attach(worker, store WorkerID, on bool) {
	x.lock()
	defer x.mu.Unlock()
	if x.join(worker, store, on) && x.journal != nil {
		x.noteAttach(worker, store, on)
	}
}

// join attaches or detaches. It reports whether there are two such.
func (x *Index) join(worker, store WorkerID, on bool) bool {
	w, s := x.worker(worker), x.worker(store)
	if w == nil || s == nil || w.store != 0 || s.store == 0 {
		return false
	}
	x.enroll(func(r *roster) {
		for i := range r.stores {
			if r.stores[i].id == store {
				r.stores[i].join(worker, on)
			}
		}
	})
	return true
}

// join replaces the members by those with or without worker w.
func (s *store) join(w WorkerID, on bool) {
	m := make([]uint64, max(len(s.members), int(w>>6)+1))
	copy(m, s.members)
	m[w>>6] &^= 1 << (w & 63)
	if on {
		m[w>>6] |= 1 << (w & 63)
	}
	s.members = m
}

// enroll publishes a roster with what edit changes; nothing is being cleared but what edit says. edit may not write to the workers, which are
// the old roster's.
func (x *Index) enroll(edit func(*roster)) {
	old := x.roster.Load()
	r := &roster{workers: old.workers, stores: slices.Clone(old.stores)}
	edit(r)
	r.width = (len(r.workers) + 63) / 64
	x.roster.Store(r)
	x.tree.work.step()
	x.tree.epoch.Add(1)
	x.tree.work.step()
}

// show lets lookups report a worker, or not.
func (x *Index) show(id WorkerID, on bool) {
	word, bit := &x.live[id>>6], uint64(1)<<(id&63)
	if on {
		word.Store(word.Load() | bit)
	} else {
		word.Store(word.Load() &^ bit)
	}
	x.tree.work.step()
	x.tree.epoch.Add(1)
	x.tree.work.step()
}

// Worker returns the number of the worker or store with the given key.
func (x *Index) Worker(k Key) (id WorkerID, ok bool) {
	v, ok := x.keys.Load(k)
	if ok {
		id = v.(WorkerID)
	}
	return id, ok
}

// RemoveWorker forgets the worker, or the store, and everything it holds, in one step for lookups. Its number may be given to another
// worker. O(blocks it holds).
func (x *Index) RemoveWorker(id WorkerID) {
	x.lock()
	defer x.mu.Unlock()
	w := x.worker(id)
	if w == nil {
		return
	}
	x.leave(id, w)
	if x.journal != nil {
		x.noteWorker(opRemove, id)
	}
}

// leave removes a worker or store.
func (x *Index) leave(id WorkerID, w *worker) {
	x.clear(id, w)
	x.count()
	delete(x.byKey, w.key)
	x.keys.Delete(w.key)
	x.workers[id] = nil
	x.show(id, false)
	x.enroll(func(r *roster) {
		r.workers = slices.Clone(x.workers)
		r.stores = slices.DeleteFunc(r.stores, func(s store) bool { return s.id == id })
		for i := range r.stores {
			r.stores[i].join(id, false)
		}
	})
}

// Clear forgets what the worker holds, in all tiers, with its orphans and predictions, in one step for lookups. It says that the worker's
// cache is empty; trust set by [Index.SetTrust] stays. O(blocks it holds).
func (x *Index) Clear(id WorkerID) {
	x.lock()
	defer x.mu.Unlock()
	if w := x.worker(id); w != nil {
		x.clear(id, w)
		x.publish(id, w)
		if x.journal != nil {
			x.noteWorker(opClear, id)
		}
	}
}

// SetTrust sets how far the events of the worker can be believed, as [kvevent.Ingest.Trust] says. Without it, the index takes
// the events for complete from the first one on. What the index finds out itself can only lower it.
func (x *Index) SetTrust(id WorkerID, t kvevent.Trust, why string) {
	x.lock()
	defer x.mu.Unlock()
	if w := x.worker(id); w != nil {
		x.setTrust(id, w, t, why)
	}
}

func (x *Index) setTrust(id WorkerID, w *worker, t kvevent.Trust, why string) {
	if x.journal != nil && (!w.told || w.trust != t || w.why != why) {
		x.noteTrust(id, t, why)
	}
	w.told, w.trust, w.why = true, t, why
	x.publish(id, w)
}

// State is what the index knows about a worker as a whole.
type State struct {
	Worker  WorkerID
	Key     Key
	Trust   kvevent.Trust
	Why     string       // why Trust is not Exact, "" if it is
	Blocks  int          // resident or predicted
	Orphans int          // blocks parked
	Store   kvevent.Tier // of a store that workers share; AnyTier for a worker
}

// State returns what is known about the worker; false if there is none with this number.
func (x *Index) State(id WorkerID) (State, bool) {
	r := x.roster.Load()
	if int64(id) >= int64(len(r.workers)) || r.workers[id] == nil {
		return State{}, false
	}
	return r.workers[id].report(id), true
}

// AppendStates appends the state of every worker and store to dst, in ascending order of numbers, and returns it. No allocation if dst
// has room.
func (x *Index) AppendStates(dst []State) []State {
	for i, w := range x.roster.Load().workers {
		if w != nil {
			dst = append(dst, w.report(WorkerID(i)))
		}
	}
	return dst
}

func (w *worker) report(id WorkerID) State {
	s := w.status.Load()
	return State{
		Worker: id, Key: w.key, Trust: s.trust, Why: s.why, Blocks: int(w.shown.Load()), Orphans: int(w.parked.Load()), Store: w.store,
	}
}

// Len returns the number of distinct blocks that any worker holds.
func (x *Index) Len() int { return int(x.blocks.Load()) }

// publish tells lookups how far the worker is to be believed.
func (x *Index) publish(id WorkerID, w *worker) {
	t, why := w.judge()
	if s := w.status.Load(); s == nil || s.trust != t || s.why != why {
		w.status.Store(&status{t, why})
		x.trust.at(uint32(id)).Store(uint32(t))
		x.tree.work.step()
		x.tree.epoch.Add(1)
	}
	if n := int64(w.held); w.shown.Load() != n {
		w.shown.Store(n)
	}
	if n := int64(w.orphans.left); w.parked.Load() != n {
		w.parked.Store(n)
	}
	x.count()
}

// count tells lookups how many blocks there are.
func (x *Index) count() {
	if n := int64(x.tree.slots.live); x.blocks.Load() != n {
		x.blocks.Store(n)
	}
}

// judge returns the worker's trust.
func (w *worker) judge() (kvevent.Trust, string) {
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
	case w.full:
		return kvevent.Degraded, "stored blocks when the index was full"
	case w.orphans.blocks > 0:
		return kvevent.Degraded, "stored blocks whose parent is unknown"
	case w.unknown:
		return kvevent.Degraded, "stored blocks that could not be placed"
	}
	return t, ""
}

func (x *Index) worker(id WorkerID) *worker {
	if int64(id) >= int64(len(x.workers)) {
		return nil
	}
	return x.workers[id]
}

// hide runs f while lookups do not report the worker, nor what is in the store. Within f it may be called again.
func (x *Index) hide(id WorkerID, w *worker, f func()) {
	if w.store == 0 {
		if x.live[id>>6].Load()>>(id&63)&1 != 0 {
			x.show(id, false)
			defer x.show(id, true)
		}
	} else {
		stores := x.roster.Load().stores
		x.enroll(func(r *roster) { r.stores = slices.DeleteFunc(r.stores, func(s store) bool { return s.id == id }) })
		defer x.enroll(func(r *roster) { r.stores = stores })
	}
	f()
}

// clear takes the worker out of every run.
func (x *Index) clear(id WorkerID, w *worker) { x.hide(id, w, func() { x.clearHidden(id, w) }) }

func (x *Index) clearHidden(id WorkerID, w *worker) {
	for _, p := range w.names.all {
		x.strip(id, p)
	}
	for _, m := range w.more {
		for _, p := range m.list {
			x.strip(id, p)
		}
	}
	for slot := range w.expects.until {
		x.strip(id, place(slot))
	}
	x.forget(w)
	w.held = 0
	w.recentSlot = 0
	w.names = names{mixer: w.names.mixer}
	w.more = nil
	w.grouped, w.ratio = false, 0
	w.orphans = orphans{}
	w.unknown, w.refused, w.full = false, false, false
	x.tree.reset()
}

// strip takes the worker out of the whole run that has the slot of a place, unless that was done.
func (x *Index) strip(id WorkerID, p place) {
	t, slot := &x.tree, p.slot()
	for plane := uint8(0); len(x.extra) > 0 && plane < kvevent.NumTiers; plane++ {
		if p.tiers()>>plane&1 != 0 {
			delete(x.extra, ref{slot, id, plane})
		}
	}
	if !t.slots.isLive(slot) {
		return
	}
	n := t.slots.run(slot)
	if st := t.state(n); t.sets.held(st.set(), id) {
		from := t.runs.at(n).start.Load()
		t.repaint(n, from, from+st.length(), t.sets.edit(st.set(), id, 0, 1<<numPlanes-1))
	}
}
