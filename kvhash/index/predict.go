// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"sort"
	"time"
)

// predictions counts the predictions of all workers. Each worker has its own, so that changes of one do not affect the others.
type predictions struct {
	spans int      // of all workers
	last  uint64   // serial number of the last one
	free  [][]span // lists of pages, for reuse
}

// maxFree limits the number of lists that are kept for reuse, and maxFreeSpans the capacity of each.
const (
	maxFree      = 256
	maxFreeSpans = 8
)

// expects holds the predictions of one worker. A block that several include belongs to the last one.
//
// Invariants: a bit in planePredicted is set exactly while a span has the slot; queue and all have exactly the predictions
// to which blocks belong, and order has these and perhaps some that have ended.
type expects struct {
	queue  deadlines
	order  []*prediction          // the oldest first
	pages  map[uint32][]span      // by slot>>pageBits; ascending; adjacent spans belong to different predictions
	blocks int                    // in all spans
	all    map[uint64]*prediction // by serial number
}

// span is a range of slots in one page whose blocks belong to one prediction.
type span struct {
	from, to uint32
	of       *prediction
}

// pageBits is the logarithm of the number of slots in a page. It bounds the cost of a change to one span.
const pageBits = 10

// Prediction identifies the blocks that a call to [Index.Predict] added, so that they can be withdrawn. The zero
// Prediction is empty.
type Prediction struct {
	serial uint64
	worker WorkerID
}

type prediction struct {
	Prediction
	until  time.Time
	parts  []part  // the deepest first; some of their blocks may no longer belong to it
	own    [2]part // of parts, usually all: some that other workers hold, and fresh ones
	blocks int     // that belong to it
	at     int     // in the queue
}

// part is a range of slots.
type part struct {
	from, to uint32
	fresh    bool // not expected before
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
// predicted blocks until an event of the worker confirms them or [Index.Expire] is called with the time until or later. A block
// that was predicted before gets the new time. Blocks that are already resident are not predicted, and those beyond the worker's
// capacity replace older ones; see [Index.SetCapacity]. If no blocks remain, or id is not a worker, Predict does nothing
// and returns the zero Prediction. For lookups it is one step. O(blocks that no worker holds + runs of the others with
// the same residents).
func (x *Index) Predict(id WorkerID, hashes []uint64, from int, until time.Time) Prediction {
	x.lock()
	defer x.mu.Unlock()
	w := x.worker(id)
	if from = max(from, 0); w == nil || w.store != 0 || from >= len(hashes) {
		return Prediction{}
	}
	hashes = hashes[:from+min(len(hashes)-from, w.capacity())]
	x.locate(nil, x.tree.seek(hashes[:from]), hashes[from:], nil, nil, true)
	x.pred.last++
	p := &prediction{Prediction: Prediction{x.pred.last, id}, until: until}
	p.parts = p.own[:0]
	for _, s := range slices.Backward(x.segs) {
		x.expect(w, s, p)
	}
	x.tree.hang(x.segs)
	if p.blocks == 0 {
		return Prediction{}
	}
	e := w.expects
	heap.Push(&e.queue, p)
	e.all[p.serial] = p
	if len(e.order) > 2*len(e.all) {
		e.order = slices.DeleteFunc(e.order, (*prediction).ended)
	}
	e.order = append(e.order, p)
	x.wake(nanos(until))
	x.shrink(w, expireAtOnce)
	x.publish(id, w)
	return p.Prediction
}

// ended reports whether no blocks belong to the prediction any more.
func (p *prediction) ended() bool { return p.blocks == 0 }

// SetCapacity sets the number of blocks that fit on the worker's device, which is the largest number that is predicted on
// it. If more are predicted, the oldest predictions are removed, as an engine evicts what was used least recently. 0 or less
// means that the number is unknown; then at most 131,072 blocks are predicted. If id is not a worker, SetCapacity does
// nothing. Like [Index.Expire], it and Predict remove the predictions of about 128 runs of blocks at once, and Expire removes the
// rest.
func (x *Index) SetCapacity(id WorkerID, blocks int) {
	x.lock()
	defer x.mu.Unlock()
	w := x.worker(id)
	if w == nil || w.store != 0 {
		return
	}
	w.fit = max(blocks, 0)
	x.shrink(w, expireAtOnce)
	x.publish(id, w)
}

// unknownCapacity is the number of blocks that are predicted at most on a worker whose capacity is unknown.
const unknownCapacity = 1 << 17

// capacity returns the largest number of blocks that are predicted on the worker.
func (w *worker) capacity() int { return cmp.Or(w.fit, unknownCapacity) }

// shrink removes the oldest predictions of the worker until no more blocks are predicted than its capacity, or it has changed
// about limit runs. Then it makes Expire continue. It returns their number.
func (x *Index) shrink(w *worker, limit int) (work int) {
	for e := w.expects; e != nil && e.blocks > w.capacity(); e = w.expects {
		if work >= limit {
			x.wake(x.clock.Load())
			break
		}
		if oldest := e.order[0]; !oldest.ended() {
			work += x.end(w, oldest, false, limit-work)
			x.tree.reset()
		} else {
			e.order[0], e.order = nil, e.order[1:]
		}
	}
	return work
}

// expect predicts the blocks of a segment and adds those that are not resident to p.
func (x *Index) expect(w *worker, s segment, p *prediction) {
	t := &x.tree
	from, to := s.slot, s.slot+uint32(s.n)
	w.reach(from)
	if s.fresh {
		t.fill(s.prev, from, to, t.sets.edit(0, w.lane, 1<<planePredicted, 0))
		w.held += s.n
		x.extend(w, part{from, to, true}, p)
		return
	}
	for to > from {
		n := t.slots.run(to - 1)
		at := max(from, t.runs.at(n).start.Load())
		set := t.state(n).set()
		if held := t.sets.held(set, w.lane); !held || t.sets.has(set, w.lane, planePredicted) {
			if !held {
				t.repaint(n, at, to, t.sets.edit(set, w.lane, 1<<planePredicted, 0))
				w.held += int(to - at)
			}
			x.extend(w, part{at, to, !held}, p)
		}
		to = at
	}
}

// extend adds the blocks in a part to p.
func (x *Index) extend(w *worker, s part, p *prediction) {
	before := p.blocks
	if x.assign(w, s.from, s.to, p); p.blocks == before {
		return
	}
	if last := len(p.parts) - 1; last >= 0 && p.parts[last].from == s.to && p.parts[last].fresh == s.fresh {
		p.parts[last].from = s.from
	} else {
		p.parts = append(p.parts, s)
	}
}

// assign makes the blocks in slots [from,to) belong to p, or to no prediction if p is nil. A prediction ends with its last block.
func (x *Index) assign(w *worker, from, to uint32, p *prediction) {
	e := w.expects
	if p != nil && e == nil {
		e = &expects{pages: make(map[uint32][]span), all: make(map[uint64]*prediction)}
		w.expects = e
	}
	for from < to && e != nil {
		page := from >> pageBits
		end := min(to, (page+1)<<pageBits)
		list := e.pages[page]
		i, _ := slices.BinarySearchFunc(list, from, func(s span, from uint32) int { return cmp.Compare(s.to, from) })
		j := i
		out := x.spans[:0]
		at := from
		for ; j < len(list) && list[j].from <= end; j++ { // the first and the last may only touch the range
			s := list[j]
			out = addSpan(out, s.from, min(s.to, from), s.of)
			if a, b := max(s.from, from), min(s.to, end); a < b {
				out = addSpan(out, at, a, x.move(e, a-at, nil, p))
				out = addSpan(out, a, b, x.move(e, b-a, s.of, p))
				at = b
			}
			if s.to > end {
				out = addSpan(out, at, end, x.move(e, end-at, nil, p))
				out = addSpan(out, max(s.from, end), s.to, s.of)
				at = end
			}
		}
		out = addSpan(out, at, end, x.move(e, end-at, nil, p))
		x.spans = out
		x.pred.spans += len(out) - (j - i)
		if n := len(x.pred.free); n > 0 && list == nil && len(out) > 0 {
			list, x.pred.free = x.pred.free[n-1], x.pred.free[:n-1]
		}
		if list = slices.Replace(list, i, j, out...); len(list) > 0 {
			e.pages[page] = list
		} else {
			delete(e.pages, page)
			if c := cap(list); c > 0 && c <= maxFreeSpans && len(x.pred.free) < maxFree {
				x.pred.free = append(x.pred.free, list)
			}
		}
		from = end
	}
	if e != nil && e.blocks == 0 {
		w.expects = nil // maps do not shrink
	}
}

// move records that n blocks which belong to old, or to no prediction, were assigned to p. It returns the one that they
// belong to now.
func (x *Index) move(e *expects, n uint32, old, p *prediction) *prediction {
	if n == 0 || old == p {
		return old
	}
	if old == nil {
		e.blocks += int(n)
	} else if old.blocks -= int(n); old.blocks == 0 {
		heap.Remove(&e.queue, old.at)
		delete(e.all, old.serial)
	}
	if p == nil {
		e.blocks -= int(n)
	} else {
		p.blocks += int(n)
	}
	return p
}

// addSpan adds a span to the end of list, unless it is empty.
func addSpan(list []span, from, to uint32, of *prediction) []span {
	if from >= to || of == nil {
		return list
	}
	if last := len(list) - 1; last >= 0 && list[last].to == from && list[last].of == of {
		list[last].to = to
		return list
	}
	return append(list, span{from, to, of})
}

// next returns the first range of slots in [from,to), and in the page of from, whose blocks belong to p. If there is
// none, the range is empty and at the end.
func (e *expects) next(from, to uint32, p *prediction) (uint32, uint32) {
	page := from >> pageBits
	to = min(to, (page+1)<<pageBits)
	list := e.pages[page]
	i, _ := slices.BinarySearchFunc(list, from+1, func(s span, from uint32) int { return cmp.Compare(s.to, from) })
	for ; i < len(list) && list[i].from < to; i++ {
		if s := list[i]; s.of == p {
			return max(s.from, from), min(s.to, to)
		}
	}
	return to, to
}

// seek returns the slot of the last block of a prompt with the given hashes, or 0 if it is absent.
func (t *tree) seek(hashes []uint64) (slot uint32) {
	for i := 0; i < len(hashes); i++ {
		if slot = t.find(slot, hashes[i]); slot != 0 {
			n := t.along(slot, hashes[i+1:])
			slot += uint32(n)
			i += n
		}
	}
	return slot
}

// following returns how many blocks in the slots after slot, which holds a block, follow it and have the given hashes. chained
// specifies that the hashes are known to be a chain: then it compares few of them.
func (t *tree) following(slot uint32, hashes []uint64, chained bool) (n int) {
	if !chained {
		return t.slots.equal(slot+1, hashes)
	}
	for {
		n += t.along(slot+uint32(n), hashes[n:])
		if n == len(hashes) || t.slots.equal(slot+uint32(n)+1, hashes[n:n+1]) == 0 {
			return n
		}
		n++
	}
}

// along returns how many blocks after the one in slot, which holds a block, have the given hashes, which are a chain. It
// looks only at the rest of the slot's run, and compares a number of hashes that is logarithmic in its length.
func (t *tree) along(slot uint32, hashes []uint64) int {
	n := t.slots.run(slot)
	rest := min(int(t.runs.at(n).start.Load()+t.state(n).length()-1-slot), len(hashes))
	if rest == 0 || t.slots.seq.at(slot+uint32(rest)).Load() == hashes[rest-1] {
		return rest
	}
	return sort.Search(rest, func(i int) bool { return t.slots.seq.at(slot+1+uint32(i)).Load() != hashes[i] })
}

// Unpredict withdraws a prediction, because the worker will not compute the prompt. Blocks that were predicted before,
// or that a later prediction includes, remain predicted. If the prediction has expired, or its
// worker was cleared or removed, Unpredict does nothing. O(blocks predicted).
func (x *Index) Unpredict(p Prediction) {
	x.lock()
	defer x.mu.Unlock()
	w := x.worker(p.worker)
	if w == nil || w.expects == nil || w.expects.all[p.serial] == nil {
		return
	}
	q := w.expects.all[p.serial]
	x.end(w, q, true, math.MaxInt)
	q.parts = slices.DeleteFunc(q.parts, func(s part) bool { return s.fresh }) // the others end with it
	x.tree.reset()
	x.publish(p.worker, w)
}

// end removes a prediction, or only its fresh parts, from the blocks that belong to it, the shallowest first. It stops
// when it has changed about limit runs, and returns their number.
func (x *Index) end(w *worker, p *prediction, onlyFresh bool, limit int) (work int) {
	for i := len(p.parts) - 1; i >= 0; i-- {
		s := &p.parts[i]
		for s.from < s.to && p.blocks > 0 && (s.fresh || !onlyFresh) {
			if work >= limit {
				p.parts = p.parts[:i+1] // with a limit, all parts end
				return work
			}
			from, to := w.expects.next(s.from, s.to, p)
			work += max(1, x.unpredict(w, from, to))
			s.from = to
		}
	}
	return work
}

// Expire removes predictions whose deadline is at or before the given time or that exceed a worker's capacity, and blocks
// that have been pending for longer than [Options].PendingTTL. Call it regularly, for example before each lookup, with times of the clock that
// determines the deadlines of Predict. If there is nothing to remove, it takes no lock and returns at once. To bound
// the time for which updates wait, a call removes the predictions of about 128 runs of blocks, or as many pending ones, and
// reports whether there is more to remove: a caller that calls it only once a second repeats it until there is not. For
// pending blocks, times are clamped to the range of time.Time.UnixNano.
func (x *Index) Expire(at time.Time) (more bool) {
	now := nanos(at)
	for {
		if old := x.clock.Load(); now <= old || x.clock.CompareAndSwap(old, now) {
			break
		}
	}
	if now < x.due.Load() {
		return false
	}
	x.lockPart()
	defer x.mu.Unlock()
	x.due.Store(math.MaxInt64)
	limit := expireAtOnce
	ttl := int64(cmp.Or(x.opt.PendingTTL, 30*time.Second))
	for id, w := range x.workers {
		if w == nil || w.orphans.blocks == 0 || ttl < 0 || x.follows {
			continue
		}
		w.touch()
		before := w.orphans.blocks
		if n := w.orphans.expire(now, ttl, limit); n > 0 {
			w.unknown = true
			x.publish(WorkerID(id), w)
			if x.journal != nil {
				x.noteExpired(WorkerID(id), n)
			}
		}
		limit -= before - w.orphans.blocks
		x.wakeForOrphans(w)
	}
	for id, w := range x.workers {
		if w != nil && w.expects != nil && w.expects.blocks > w.capacity() {
			limit -= x.shrink(w, limit)
			x.publish(WorkerID(id), w)
		}
		for w != nil && w.expects != nil {
			p := w.expects.queue[0]
			if p.until.After(at) || limit <= 0 {
				x.wake(nanos(p.until))
				break
			}
			limit -= x.end(w, p, false, limit)
			x.tree.reset()
			x.publish(WorkerID(id), w)
		}
	}
	return x.due.Load() <= now
}

// expireAtOnce limits the runs and the pending blocks that a call to Expire changes.
const expireAtOnce = 128

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

// unpredict removes the predictions of the blocks in slots [from,to), all of which are predicted. It returns the number
// of runs that have changed.
func (x *Index) unpredict(w *worker, from, to uint32) (work int) {
	t := &x.tree
	x.assign(w, from, to, nil)
	for from < to {
		n := t.slots.run(from)
		st := t.state(n)
		end := min(to, t.runs.at(n).start.Load()+st.length())
		w.held -= int(end - from) // predicted blocks are in no tier
		t.repaint(n, from, end, t.sets.edit(st.set(), w.lane, 0, 1<<planePredicted))
		from = end
		work++
	}
	return work
}

// unpredictAll removes all predictions of the worker.
func (x *Index) unpredictAll(w *worker) {
	e := w.expects
	if e == nil {
		return
	}
	for page := range e.pages {
		for list := e.pages[page]; len(list) > 0; list = e.pages[page] {
			last := list[len(list)-1]
			x.unpredict(w, last.from, last.to)
		}
	}
}
