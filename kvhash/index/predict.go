// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"
)

// predictions holds the blocks that are expected on workers. Each worker has its own predictions, so that changes of
// one do not affect the others; all share one queue of deadlines.
type predictions struct {
	queue deadlines // a block may be in several; the latest deadline applies
	last  uint64    // serial number of the last one
}

// expects holds the predictions of one worker.
//
// Invariants: a bit in planePredicted is set exactly while until has the slot; the queue of the index holds exactly what is in all.
type expects struct {
	until map[uint32]deadline    // by slot
	all   map[uint64]*prediction // by serial number
}

// deadline is the time until which a block is expected, and its prediction.
type deadline struct {
	until  time.Time
	serial uint64
}

// Prediction identifies the blocks that a call to [Index.Predict] added, so that they can be withdrawn. The zero
// Prediction is empty.
type Prediction struct {
	serial uint64
	worker WorkerID
}

type prediction struct {
	Prediction
	until  time.Time
	blocks []segment // fresh: not expected before
	at     int       // in the queue
}

// deadlines is a heap of predictions, the one that ends first on top. See [container/heap].
type deadlines []*prediction

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].until.Before(d[j].until) }
func (d deadlines) Swap(i, j int)      { d[i], d[j], d[i].at, d[j].at = d[j], d[i], j, i }
func (d *deadlines) Push(p any) {
	p.(*prediction).at = len(*d)
	*d = append(*d, p.(*prediction))
}
func (d *deadlines) Pop() any {
	last := (*d)[len(*d)-1]
	(*d)[len(*d)-1] = nil
	*d = (*d)[:len(*d)-1]
	return last
}

// Predict records that the worker is expected to hold the blocks of a prompt on its device soon, because the prompt was
// sent to it. hashes are the prompt's sequence hashes; the first from blocks are not predicted. Lookups report
// predicted blocks until an event of the worker confirms them or [Index.Expire] is called with the time until or later.
// Blocks that are already resident are not predicted. If no blocks remain, or id is not a worker, Predict does nothing
// and returns the zero Prediction. For lookups it is one step. O(len(hashes)).
func (x *Index) Predict(id WorkerID, hashes []uint64, from int, until time.Time) Prediction {
	x.lock()
	defer x.mu.Unlock()
	w := x.worker(id)
	if from = max(from, 0); w == nil || w.store != 0 || from >= len(hashes) {
		return Prediction{}
	}
	if w.expects.until == nil {
		w.expects = expects{make(map[uint32]deadline), make(map[uint64]*prediction)}
	}
	x.locate(x.tree.seek(hashes[:from]), hashes[from:], nil)
	x.pred.last++
	p := prediction{Prediction: Prediction{x.pred.last, id}, until: until}
	for _, s := range slices.Backward(x.segs) {
		x.expect(id, w, s, &p)
	}
	x.tree.hang(x.segs)
	if len(p.blocks) == 0 {
		return Prediction{}
	}
	heap.Push(&x.pred.queue, &p)
	w.expects.all[p.serial] = &p
	x.wake(nanos(until))
	x.publish(id, w)
	return p.Prediction
}

// expect predicts the blocks of a segment and adds those that are not resident to p.
func (x *Index) expect(id WorkerID, w *worker, s segment, p *prediction) {
	t := &x.tree
	from, to := s.slot, s.slot+uint32(s.n)
	if s.fresh {
		t.fill(s.prev, from, to, t.sets.edit(0, id, 1<<planePredicted, 0))
		w.held += s.n
		w.expects.extend(from, to, true, p)
		return
	}
	for to > from {
		n := t.slots.run(to - 1)
		at := max(from, t.runs.at(n).start.Load())
		set := t.state(n).set()
		if held := t.sets.held(set, id); !held || t.sets.has(set, id, planePredicted) {
			if !held {
				t.repaint(n, at, to, t.sets.edit(set, id, 1<<planePredicted, 0))
				w.held += int(to - at)
			}
			w.expects.extend(at, to, !held, p)
		}
		to = at
	}
}

// extend moves the deadlines of the blocks in slots [from,to) to that of p, unless they are later. fresh reports that
// the blocks had no predictions.
func (e *expects) extend(from, to uint32, fresh bool, p *prediction) {
	late := false
	for i := from; i < to; i++ {
		if fresh || p.until.After(e.until[i].until) {
			e.until[i] = deadline{p.until, p.serial}
			late = true
		}
	}
	if late {
		p.blocks = append(p.blocks, segment{slot: from, n: int(to - from), fresh: fresh})
	}
}

// seek returns the slot of the last block of a prompt with the given hashes, or 0 if it is absent.
func (t *tree) seek(hashes []uint64) (slot uint32) {
	for _, h := range hashes {
		slot = t.find(slot, h)
	}
	return slot
}

// Unpredict withdraws a prediction, because the worker will not compute the prompt. Blocks that were predicted before,
// or that another prediction with a later deadline includes, remain predicted. If the prediction has expired, or its
// worker was cleared or removed, Unpredict does nothing. O(blocks predicted).
func (x *Index) Unpredict(p Prediction) {
	x.lock()
	defer x.mu.Unlock()
	w := x.worker(p.worker)
	if w == nil || w.expects.all[p.serial] == nil {
		return
	}
	q := w.expects.all[p.serial]
	x.end(w, q, func(s segment) bool { return s.fresh })
	q.blocks = slices.DeleteFunc(q.blocks, func(s segment) bool { return s.fresh }) // the others end with it
	x.tree.reset()
	x.publish(p.worker, w)
}

// end ends the selected segments of a prediction, except for blocks that another prediction expects longer.
func (x *Index) end(w *worker, p *prediction, chosen func(segment) bool) {
	for _, s := range slices.Backward(p.blocks) { // the shallowest first
		if !chosen(s) {
			continue
		}
		from, to := s.slot, s.slot+uint32(s.n)
		for i := from; i < to; i++ {
			// Another one may expect it longer, or the slot has another block by now.
			if w.expects.until[i].serial != p.serial {
				x.unpredict(p.worker, w, from, i)
				from = i + 1
			}
		}
		x.unpredict(p.worker, w, from, to)
	}
}

func allBlocks(segment) bool { return true }

// Expire removes predictions whose deadline is at or before the given time, and blocks that have been pending for
// longer than [Options].PendingTTL. Call it regularly, for example once a second, with times of the clock that
// determines the deadlines of Predict. If there is nothing to remove, it takes no lock and returns at once. For
// pending blocks, times are clamped to the range of time.Time.UnixNano.
func (x *Index) Expire(at time.Time) {
	now := nanos(at)
	for {
		if old := x.clock.Load(); now <= old || x.clock.CompareAndSwap(old, now) {
			break
		}
	}
	if now < x.due.Load() {
		return
	}
	x.lock()
	defer x.mu.Unlock()
	x.due.Store(math.MaxInt64)
	ttl := int64(cmp.Or(x.opt.PendingTTL, 30*time.Second))
	for id, w := range x.workers {
		if w == nil || w.orphans.blocks == 0 || ttl < 0 || x.follows {
			continue
		}
		if n := w.orphans.expire(now, ttl); n > 0 {
			w.unknown = true
			x.publish(WorkerID(id), w)
			if x.journal != nil {
				x.noteExpired(WorkerID(id), n)
			}
		}
		x.wakeForOrphans(w)
	}
	for len(x.pred.queue) > 0 {
		p := x.pred.queue[0]
		if p.until.After(at) {
			x.wake(nanos(p.until))
			break
		}
		heap.Pop(&x.pred.queue)
		w := x.workers[p.worker]
		x.end(w, p, allBlocks)
		if delete(w.expects.all, p.serial); len(w.expects.all) == 0 {
			w.expects = expects{} // maps do not shrink
		}
		x.tree.reset()
		x.publish(p.worker, w)
	}
	if len(x.pred.queue) == 0 {
		x.pred.queue = nil
	}
}

// nanos returns t in ns since 1970, clamped to 64 bits.
func nanos(t time.Time) int64 {
	switch s := t.Unix(); {
	case s >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	case s <= math.MinInt64/int64(time.Second):
		return math.MinInt64 + 1
	}
	return t.UnixNano()
}

// wake makes Expire look for expired entries at time t, in ns, at the latest.
func (x *Index) wake(t int64) {
	if t < x.due.Load() {
		x.due.Store(t)
	}
}

// wakeForOrphans makes Expire look for orphans when the oldest one of the worker expires.
func (x *Index) wakeForOrphans(w *worker) {
	if ttl := int64(cmp.Or(x.opt.PendingTTL, 30*time.Second)); ttl >= 0 && w.orphans.oldest != nil {
		if w.orphans.oldest.since == math.MinInt64 { // parked before the first call to Expire
			ttl = 0
		}
		x.wake(w.orphans.oldest.since + ttl)
	}
}

// confirm removes the predictions of the blocks in slots [from,to), which an event has stored.
func (e *expects) confirm(from, to uint32) {
	for i := from; i < to; i++ {
		delete(e.until, i)
	}
}

// unpredict removes the predictions of the blocks in slots [from,to), all of which are predicted.
func (x *Index) unpredict(id WorkerID, w *worker, from, to uint32) {
	t := &x.tree
	w.expects.confirm(from, to)
	for from < to {
		n := t.slots.run(from)
		st := t.state(n)
		end := min(to, t.runs.at(n).start.Load()+st.length())
		w.held -= int(end - from) // predicted blocks are in no tier
		t.repaint(n, from, end, t.sets.edit(st.set(), id, 0, 1<<planePredicted))
		from = end
	}
}

// unpredictAll removes all predictions of the worker.
func (x *Index) unpredictAll(w *worker) {
	for _, p := range w.expects.all {
		x.end(w, p, allBlocks)
	}
	x.forget(w)
}

// forget removes the worker's predictions, which no longer have blocks.
func (x *Index) forget(w *worker) {
	for _, p := range w.expects.all {
		heap.Remove(&x.pred.queue, p.at)
	}
	w.expects = expects{}
}
