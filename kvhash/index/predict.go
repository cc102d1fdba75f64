// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"
)

// predictions are blocks expected on a worker. Their bit in planePredicted is set exactly while until has them.
type predictions struct {
	until map[expected]deadline
	queue deadlines              // a block may be in several, the latest counts
	all   map[uint64]*prediction // by serial number
	last  uint64                 // serial number of the last one
}

// deadline is until when a block is expected, and the prediction that says so.
type deadline struct {
	until  time.Time
	serial uint64
}

type expected struct {
	slot   uint32
	worker WorkerID
}

// Prediction is what [Index.Predict] noted, for taking it back. The zero Prediction is none.
type Prediction struct{ serial uint64 }

type prediction struct {
	Prediction
	worker WorkerID
	until  time.Time
	blocks []segment // fresh: expected by nobody before
}

// deadlines is a heap of predictions, the one that ends first on top. See [container/heap].
type deadlines []*prediction

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].until.Before(d[j].until) }
func (d deadlines) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *deadlines) Push(p any)        { *d = append(*d, p.(*prediction)) }
func (d *deadlines) Pop() any {
	last := (*d)[len(*d)-1]
	(*d)[len(*d)-1] = nil
	*d = (*d)[:len(*d)-1]
	return last
}

// Predict notes that the worker will soon hold the blocks of a prompt on its device, because the prompt was sent there. hashes are the
// prompt's sequence hashes; of the first from blocks nothing is said. The others count in lookups until an event of the worker confirms
// them or [Index.Expire] is called with a time not before until. Blocks that are resident already stay as they are. To lookups it is
// one step. O(len(hashes)).
func (x *Index) Predict(id WorkerID, hashes []uint64, from int, until time.Time) Prediction {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.worker(id)
	if from = max(from, 0); w == nil || from >= len(hashes) {
		return Prediction{}
	}
	if x.pred.until == nil {
		x.pred.until = make(map[expected]deadline)
		x.pred.all = make(map[uint64]*prediction)
	}
	x.locate(x.tree.seek(hashes[:from]), hashes[from:], nil)
	x.pred.last++
	p := prediction{Prediction: Prediction{x.pred.last}, worker: id, until: until}
	for _, s := range slices.Backward(x.segs) {
		x.expect(id, w, s, &p)
	}
	x.tree.hang(x.segs)
	if len(p.blocks) == 0 {
		return Prediction{}
	}
	heap.Push(&x.pred.queue, &p)
	x.pred.all[p.serial] = &p
	x.wake(nanos(until))
	x.publish(id, w)
	return p.Prediction
}

// expect predicts the blocks of a segment, and adds to p those that are not resident.
func (x *Index) expect(id WorkerID, w *worker, s segment, p *prediction) {
	t := &x.tree
	from, to := s.slot, s.slot+uint32(s.n)
	if s.fresh {
		t.fill(s.prev, from, to, t.sets.edit(0, id, 1<<planePredicted, 0))
		w.held += s.n
		x.extend(id, from, to, true, p)
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
			x.extend(id, at, to, !held, p)
		}
		to = at
	}
}

// extend lets predictions of the blocks in slots [from,to) end with p, if they do not end later. fresh says that there were none.
func (x *Index) extend(id WorkerID, from, to uint32, fresh bool, p *prediction) {
	late := false
	for i := from; i < to; i++ {
		k := expected{i, id}
		if fresh || p.until.After(x.pred.until[k].until) {
			x.pred.until[k] = deadline{p.until, p.serial}
			late = true
		}
	}
	if late {
		p.blocks = append(p.blocks, segment{slot: from, n: int(to - from), fresh: fresh})
	}
}

// seek returns the slot of the last of the blocks with the given hashes from the beginning of a prompt, 0 if it is not there.
func (t *tree) seek(hashes []uint64) (slot uint32) {
	for _, h := range hashes {
		slot = t.find(slot, h)
	}
	return slot
}

// Unpredict takes back a prediction: its prompt will not be computed there after all. Blocks that were expected before, or that a later
// prompt expects beyond its end, stay. One that ended before changes nothing. O(blocks predicted).
func (x *Index) Unpredict(p Prediction) {
	x.mu.Lock()
	defer x.mu.Unlock()
	q := x.pred.all[p.serial]
	if q == nil {
		return
	}
	x.end(q, func(s segment) bool { return s.fresh })
	q.blocks = slices.DeleteFunc(q.blocks, func(s segment) bool { return s.fresh }) // the others end with it
}

// end ends those segments of a prediction that are chosen, but for blocks that another one expects longer.
func (x *Index) end(p *prediction, chosen func(segment) bool) {
	w := x.workers[p.worker]
	for _, s := range slices.Backward(p.blocks) { // the shallowest first
		if !chosen(s) {
			continue
		}
		from, to := s.slot, s.slot+uint32(s.n)
		for i := from; i < to; i++ {
			// Another one may expect it longer, or the slot has another block by now.
			if x.pred.until[expected{i, p.worker}].serial != p.serial {
				x.unpredict(p.worker, w, from, i)
				from = i + 1
			}
		}
		x.unpredict(p.worker, w, from, to)
	}
	x.tree.reset()
	x.publish(p.worker, w)
}

// Expire drops the predictions whose time has come, and orphans that waited too long. Call it now and then with the time that Predict
// goes by; it costs next to nothing, and takes no lock, when there is nothing to drop.
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
	x.mu.Lock()
	defer x.mu.Unlock()
	x.due.Store(math.MaxInt64)
	ttl := int64(cmp.Or(x.opt.OrphanTTL, 30*time.Second))
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
		delete(x.pred.all, p.serial)
		x.end(p, func(segment) bool { return true })
	}
}

// nanos returns t in ns since 1970, or the nearest that 64 bits hold.
func nanos(t time.Time) int64 {
	switch s := t.Unix(); {
	case s >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	case s <= math.MinInt64/int64(time.Second):
		return math.MinInt64 + 1
	}
	return t.UnixNano()
}

// wake lets Expire look at time t, in ns, at the latest.
func (x *Index) wake(t int64) {
	if t < x.due.Load() {
		x.due.Store(t)
	}
}

// wakeForOrphans lets Expire look when the oldest orphan of the worker has waited long enough.
func (x *Index) wakeForOrphans(w *worker) {
	if ttl := int64(cmp.Or(x.opt.OrphanTTL, 30*time.Second)); ttl >= 0 && w.orphans.oldest != nil {
		if w.orphans.oldest.since == math.MinInt64 { // parked before there was a clock
			ttl = 0
		}
		x.wake(w.orphans.oldest.since + ttl)
	}
}

// confirm turns predictions of the blocks in slots [from,to) into facts: an event said that they are there.
func (x *Index) confirm(id WorkerID, from, to uint32) {
	for i := from; i < to; i++ {
		delete(x.pred.until, expected{i, id})
	}
}

// unpredict drops the predictions of the blocks in slots [from,to), which have some.
func (x *Index) unpredict(id WorkerID, w *worker, from, to uint32) {
	t := &x.tree
	for i := from; i < to; i++ {
		delete(x.pred.until, expected{i, id})
	}
	for from < to {
		n := t.slots.run(from)
		st := t.state(n)
		end := min(to, t.runs.at(n).start.Load()+st.length())
		w.held -= int(end - from) // what is predicted is in no tier
		t.repaint(n, from, end, t.sets.edit(st.set(), id, 0, 1<<planePredicted))
		from = end
	}
}

func (x *Index) unpredictAll(id WorkerID, w *worker) {
	for k := range x.pred.until {
		if k.worker == id {
			x.unpredict(id, w, k.slot, k.slot+1)
		}
	}
	x.forget(id)
}

// forget drops the worker's predictions, which have no blocks any more.
func (x *Index) forget(id WorkerID) {
	for serial, p := range x.pred.all {
		if p.worker == id {
			delete(x.pred.all, serial)
		}
	}
	x.pred.queue = slices.DeleteFunc(x.pred.queue, func(p *prediction) bool { return p.worker == id })
	heap.Init(&x.pred.queue)
}
