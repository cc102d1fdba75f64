// SPDX-License-Identifier: Apache-2.0

package index

import (
	"time"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/internal/sequence"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// This file exports to the tests the symbols that package replica exports to users, and symbols that only the tests
// need.

type (
	Version       = version
	SnapshotError = snapshotError
	Explanation   = explanation
	Leg           = leg
	Measures      = measures
)

const (
	EndOfPrompt = endOfPrompt
	NotKnown    = notKnown
	Parted      = parted
)

var (
	ErrForm       = errForm
	ErrVersion    = errVersion
	ErrScheme     = errScheme
	ErrFull       = errFull
	ErrNoPosition = errNoPosition
	ErrStore      = errStore
	ErrOrphans    = errOrphans
	ErrGap        = errGap
)

// AllOptions are Options and the size of the journal.
type AllOptions struct {
	Scheme     kvhash.Scheme
	MaxBlocks  int
	MaxPending int
	PendingTTL time.Duration
	Journal    int
}

func (o *AllOptions) split() (*Options, int) {
	if o == nil {
		return nil, 0
	}
	return &Options{o.Scheme, o.MaxBlocks, o.MaxPending, o.PendingTTL}, o.Journal
}

func NewAll(block int, o *AllOptions) *Index {
	options, journal := o.split()
	return newWithJournal(block, options, journal)
}

func LoadAll(data []byte, o *AllOptions) (*Index, error) {
	options, journal := o.split()
	return load(data, options, journal)
}

// Info describes a worker or a store.
type Info struct {
	Worker  WorkerID
	Key     Key
	State   State
	Why     string
	Blocks  int
	Orphans int
	Store   kvevent.Tier
}

func (x *Index) Info(id WorkerID) (Info, bool) {
	r := x.roster.Load()
	if int64(id) >= int64(len(r.workers)) || r.workers[id] == nil {
		return Info{}, false
	}
	return x.info(id, r.workers[id]), true
}

// info takes the lock after it read what lookups see.
func (x *Index) info(id WorkerID, w *worker) Info {
	r := w.report(id)
	x.mu.Lock()
	defer x.mu.Unlock()
	left := 0
	for o := w.orphans.oldest; o != nil; o = o.newer {
		left += o.left
	}
	return Info{id, r.Key, r.State, r.Why, r.Blocks, left, w.store}
}

func (x *Index) AppendInfos(dst []Info) []Info {
	for i, w := range x.roster.Load().workers {
		if w != nil {
			dst = append(dst, x.info(WorkerID(i), w))
		}
	}
	return dst
}

// Len returns the number of distinct blocks.
func (x *Index) Len() int { return int(x.blocks.Load()) }

// Query restricts a lookup.
type Query struct {
	Workers []WorkerID
	Stop    int
}

func (x *Index) Search(dst []Match, hashes []uint64, q *Query) []Match {
	if q == nil {
		q = new(Query)
	}
	return x.search(dst, hashes, &query{workers: q.Workers, stop: q.Stop})
}

// NeedOf returns the number of blocks before the end of a prefix that the cache groups of a worker must hold, 0 if there is only one.
func (x *Index) NeedOf(id WorkerID) int32 { return x.roster.Load().workers[id].need.Load() }

// Clear empties a worker.
func (x *Index) Clear(id WorkerID) { x.Add(id, &kvevent.Event{Kind: kvevent.Cleared}) }

// ClearOnly empties a worker without removing what it held from the sets; Sweep does that.
func (x *Index) ClearOnly(id WorkerID) {
	x.lock()
	defer x.mu.Unlock()
	x.add(id, &kvevent.Event{Kind: kvevent.Cleared})
}

// RemoveOnly is ClearOnly and the end of the worker.
func (x *Index) RemoveOnly(id WorkerID) {
	x.lock()
	defer x.mu.Unlock()
	x.leave(id, x.workers[id])
	if x.journal != nil {
		x.noteWorker(opRemove, id)
	}
}

// Picture takes a snapshot in the smallest steps.
type Picture struct{ s *shot }

// Shoot begins a snapshot of one worker, or of all if id is negative.
func (x *Index) Shoot(id int) *Picture {
	kind := byte(kindWorker)
	if id < 0 {
		kind, id = kindIndex, 0
	}
	s := x.shoot(kind, WorkerID(id))
	if s == nil {
		return nil
	}
	s.limit = 1
	return &Picture{s}
}

// Step copies a part.
func (p *Picture) Step() bool { return p.s.step() }

// Append takes the rest of the snapshot and appends it.
func (p *Picture) Append(dst []byte) []byte { return p.s.append(dst) }

// Garbage reports whether there is work for Sweep.
func (x *Index) Garbage() bool { return x.garbage.Load() }

// Sweep does some of the work that Clear leaves, and reports whether there is more.
func (x *Index) Sweep(limit int) bool {
	x.lock()
	defer x.mu.Unlock()
	x.sweep(limit)
	return x.garbage.Load()
}

// SetState sets the state of a worker as its stream does.
func (x *Index) SetState(id WorkerID, s State, why string) {
	x.lock()
	defer x.mu.Unlock()
	if w := x.worker(id); w != nil {
		x.setState(id, w, s, why)
	}
}

func (x *Index) Measure() Measures                           { return x.measure() }
func (x *Index) Explain(hashes []uint64) Explanation         { return x.explain(hashes) }
func (e explanation) String() string                         { return string(e.append(nil)) }
func (x *Index) AddStore(k Key, tier kvevent.Tier) WorkerID  { return x.addStore(k, tier) }
func (x *Index) Attach(worker, store WorkerID)               { x.attach(worker, store, true) }
func (x *Index) Detach(worker, store WorkerID)               { x.attach(worker, store, false) }
func (x *Index) Version() Version                            { return x.version() }
func (x *Index) AppendSnapshot(dst []byte) []byte            { return x.appendAll(dst) }
func (x *Index) AppendWorker(dst []byte, id WorkerID) []byte { return x.appendOne(dst, id) }
func (x *Index) AddDelta(data []byte) error                  { return x.addDelta(data) }
func (f *Stream) Restore(data []byte) error                  { return f.restore(data) }

func (x *Index) AppendDelta(dst []byte, since Version) ([]byte, Version, bool) {
	return x.appendDelta(dst, since)
}

// NewStreamOf is NewStream with options of the sequence.
func (x *Index) NewStreamOf(id WorkerID, o *sequence.Options) *Stream { return x.newStream(id, o, nil) }
