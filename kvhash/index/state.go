// SPDX-License-Identifier: Apache-2.0

package index

import "github.com/weft-go/weft/kvhash/internal/sequence"

// State specifies how much is known about a worker's cache. Higher is better.
type State uint8

// The states.
const (
	// Unknown means that no events were received: the worker may hold anything.
	Unknown State = State(sequence.Unknown)
	// Degraded means that events were lost, are missing, or could not be applied: the index may be wrong in both directions.
	Degraded State = State(sequence.Degraded)
	// Exact means that every event was received, from the beginning or since the last snapshot.
	Exact State = State(sequence.Exact)
)

// String returns the state in lower case.
func (s State) String() string { return sequence.State(s).String() }

// Worker describes a worker.
type Worker struct {
	ID     WorkerID
	Key    Key
	State  State
	Why    string // why State is not Exact, "" if it is
	Blocks int    // resident or predicted
}

// Worker returns the state of the worker, and whether it exists.
func (x *Index) Worker(id WorkerID) (Worker, bool) {
	r := x.roster.Load()
	if int64(id) >= int64(len(r.workers)) || r.workers[id] == nil {
		return Worker{}, false
	}
	return r.workers[id].report(id), true
}

// AppendWorkers appends every worker to dst, in ascending order of IDs, and returns it. No allocation if dst has room.
func (x *Index) AppendWorkers(dst []Worker) []Worker {
	for i, w := range x.roster.Load().workers {
		if w != nil && w.store == 0 {
			dst = append(dst, w.report(WorkerID(i)))
		}
	}
	return dst
}

func (w *worker) report(id WorkerID) Worker {
	s := w.status.Load()
	return Worker{ID: id, Key: w.key, State: s.state, Why: s.why, Blocks: int(w.shown.Load())}
}

// Lookup returns the ID of the worker with the given key.
func (x *Index) Lookup(k Key) (id WorkerID, ok bool) {
	v, ok := x.keys.Load(k)
	if ok {
		id = v.(WorkerID)
	}
	return id, ok
}

// setState records how complete the events of a worker are. What the index itself detects can only lower the state.
func (x *Index) setState(id WorkerID, w *worker, s State, why string) {
	if x.journal != nil && (!w.hasState || w.state != s || w.why != why) {
		x.noteState(id, s, why)
	}
	w.touch()
	w.hasState, w.state, w.why = true, s, why
	x.publish(id, w)
}

// publish makes the state of a worker visible to lookups.
func (x *Index) publish(id WorkerID, w *worker) {
	t, why := w.currentState()
	if s := w.status.Load(); s == nil || s.state != t || s.why != why {
		w.status.Store(&status{t, why})
		x.states.at(uint32(w.lane)).Store(laneState(id, t))
		x.tree.work.step()
		x.tree.epoch.Add(1)
	}
	x.show(w)
}

// show makes the numbers of blocks of a worker and of the index visible to lookups.
func (x *Index) show(w *worker) {
	if n := uint64(w.held); w.shown.Load() != n {
		setWord(&w.shown, n)
	}
	x.count()
}

// count makes the numbers of blocks visible to lookups.
func (x *Index) count() {
	if n := uint64(x.tree.slots.live); x.blocks.Load() != n {
		setWord(&x.blocks, n)
	}
}

// currentState returns the worker's state.
func (w *worker) currentState() (State, string) {
	s, why := Exact, ""
	switch {
	case w.hasState:
		s, why = w.state, w.why
	case !w.received:
		s, why = Unknown, "no events yet"
	}
	if s <= Degraded {
		return s, why
	}
	switch {
	case w.refused:
		return Degraded, "stored blocks of another size"
	case w.strange:
		return Degraded, "stored blocks of a cache group whose use is unknown"
	case w.full:
		return Degraded, "stored blocks when the index was full"
	case w.orphans.blocks > 0:
		return Degraded, "stored blocks whose parent is unknown"
	case w.unknown:
		return Degraded, "stored blocks that could not be placed"
	case w.ahead:
		return Degraded, "stored blocks that depend on tokens after them, which the scheme ignores"
	}
	return s, ""
}

// laneState returns what lookups need to know about a lane: its worker and the worker's state.
func laneState(id WorkerID, s State) uint32 { return uint32(id)<<8 | uint32(s) }

// status is the part of a worker's state that lookups report.
type status struct {
	state State
	why   string
}
