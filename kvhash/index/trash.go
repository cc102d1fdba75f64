// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math"
	"slices"
)

// This file empties workers. A worker that is cleared continues with another lane and without a block, which is one store of the
// roster. What it held, its trash, is removed from the sets afterwards, a bounded number of runs at a time, by the call that
// cleared it; the lock is free in between. That call visits the runs of all workers, from the first slot that the worker used, until no block
// has the lane. The trash is invisible: lookups do not report its lane, and a lane is used again only when no set has it.

// trash is the data of a cleared worker.
type trash struct {
	lane    lane
	held    int    // blocks that have the lane
	next    uint32 // the slots before have not
	expects *expects
}

// sweepAtOnce limits the work of one hold of the lock: each run costs 1, each that changes runCost, and each block that is freed 1.
const (
	sweepAtOnce = 1024
	runCost     = 16
)

// takeLane returns a lane that no set has: that with the number of the worker, if possible.
func (x *Index) takeLane(id WorkerID) lane {
	l := int(id)
	if l < len(x.lanes) && x.lanes[l] {
		if l = slices.Index(x.lanes, false); l < 0 {
			l = len(x.lanes)
		}
	}
	if l == maxLanes { // a thousand workers were cleared at once
		x.sweep(math.MaxInt)
		return x.takeLane(id)
	}
	for len(x.lanes) <= l {
		x.lanes = append(x.lanes, false)
	}
	x.states.resize(uint32(len(x.lanes)))
	x.lanes[l] = true
	return lane(l)
}

// clear removes all blocks of a worker and what is known of its engine's hashes. For lookups it is one step.
func (x *Index) clear(id WorkerID, w *worker) {
	w.touch()
	if w.held > 0 {
		old := w.lane
		w.lane = x.takeLane(id)
		x.relocate(id, w, old)
		x.discard(old, w)
	}
	x.forget(w)
}

// forget makes a worker that holds nothing as if it were new.
func (x *Index) forget(w *worker) {
	w.held, w.low = 0, 0
	w.pages = nil
	w.recentSlot = 0
	w.names, w.owned, w.plain, w.alike = names{mixer: w.names.mixer}, owned{}, 0, 0
	w.more, w.extra, w.expects = nil, nil, nil
	w.grouped, w.ratio, w.mayGrow, w.paged = false, 0, false, false
	w.groups = nil
	x.showNeed(w)
	w.orphans = orphans{}
	w.unknown, w.refused, w.strange, w.full, w.ahead = false, false, false, false, false
	x.tree.reset()
}

// relocate makes lookups report a worker by its lane instead of by its old one, which has the worker's blocks, if any.
func (x *Index) relocate(id WorkerID, w *worker, old lane) {
	s, _ := w.currentState()
	if p := w.status.Load(); p != nil {
		s = p.state // publish replaces it if it changes
	}
	x.states.at(uint32(w.lane)).Store(laneState(id, s))
	x.enroll(func(r *roster) {
		shown := r.live[old>>6]>>(old&63)&1 != 0
		for i := range r.stores {
			switch s := &r.stores[i]; {
			case s.lane == old:
				s.lane = w.lane
			case int(old>>6) < len(s.members) && s.members[old>>6]>>(old&63)&1 != 0:
				s.join(w.lane, true)
			}
		}
		r.retire(old)
		r.show(w, shown)
		r.assign(id, w)
	})
}

// discard makes trash of what a worker held in a lane, which is no longer reported.
func (x *Index) discard(l lane, w *worker) {
	x.trash = append(x.trash, &trash{l, w.held, w.low, w.expects})
	x.garbage.Store(true)
}

// tidy removes all trash, a part at a time.
func (x *Index) tidy() {
	for x.garbage.Load() {
		x.lockPart()
		x.sweep(sweepAtOnce)
		x.mu.Unlock()
	}
}

// sweep removes trash until it has done about the given amount of work.
func (x *Index) sweep(limit int) {
	for len(x.trash) > 0 && limit > 0 {
		t := x.trash[0]
		if limit = x.strip(t, limit); limit <= 0 {
			break
		}
		x.trash = slices.Delete(x.trash, 0, 1)
		x.lanes[t.lane] = false
		x.goHome()
	}
	for n := len(x.lanes); n > 0 && !x.lanes[n-1]; n-- {
		x.lanes = x.lanes[:n-1]
	}
	if words := (len(x.lanes) + 63) / 64; words < x.roster.Load().width {
		x.enroll(func(r *roster) { r.live = r.live[:words:words] })
	}
	x.count()
	x.tree.reset()
	x.garbage.Store(len(x.trash) > 0)
}

// goHome gives workers that hold nothing the lanes with their own numbers again, which keeps lookups cheap.
func (x *Index) goHome() {
	if !x.roster.Load().moved {
		return
	}
	for id, w := range x.workers {
		if w != nil && w.held == 0 && int(w.lane) != id && (id >= len(x.lanes) || !x.lanes[id]) {
			old := w.lane
			w.lane = x.takeLane(WorkerID(id))
			x.relocate(WorkerID(id), w, old)
			x.lanes[old] = false
		}
	}
}

// strip removes the lane of trash from the sets, and returns the rest of the limit, which is not positive if it may not be done.
func (x *Index) strip(t *trash, limit int) int {
	s := &x.tree.slots
	for t.held > 0 {
		if limit <= 0 {
			return 0
		}
		if x.tree.end(t.next) == 0 { // freed since the last part
			for range 16 {
				if t.next++; x.tree.end(t.next) != 0 {
					break
				}
			}
			limit--
			continue
		}
		n := s.run(t.next)
		next := s.firstLive(x.tree.runs.at(n).start.Load() + x.tree.state(n).length())
		work := 1 + x.stripRun(t, n)
		x.tree.work.acts(work)
		limit -= work
		t.next = next
	}
	e := t.expects
	if e == nil {
		return limit
	}
	for page, list := range e.pages {
		x.pred.spans -= len(list)
		delete(e.pages, page)
		if limit--; limit <= 0 {
			return 0
		}
	}
	return limit
}

// stripRun removes the lane of trash from a run, if it has it, and returns what that cost.
func (x *Index) stripRun(d *trash, n uint32) int {
	t := &x.tree
	st := t.state(n)
	if !t.sets.held(st.set(), d.lane) {
		return 0
	}
	from, set := t.runs.at(n).start.Load(), t.sets.edit(st.set(), d.lane, 0, 1<<numPlanes-1)
	d.held -= int(st.length())
	t.repaint(n, from, from+st.length(), set)
	if set == 0 {
		return runCost + int(st.length()) // names are removed
	}
	return runCost
}
