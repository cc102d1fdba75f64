// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"time"
)

// predictions are blocks expected on a worker. Their bit in planePredicted is set exactly while until has them.
type predictions struct {
	until map[expected]time.Time
	queue []prediction // ascending by until; a block may be in several, the latest counts
}

type expected struct {
	node   uint32
	worker WorkerID
}

type prediction struct {
	until  time.Time
	worker WorkerID
	nodes  []uint32
}

// Predict notes that the worker will soon hold the blocks with the given sequence hashes on its device, because a prompt with
// them was sent there. They count in lookups until an event of the worker confirms them or [Index.Expire] is called with a time not
// before until. Blocks that are resident already stay as they are. O(len(hashes)).
func (x *Index) Predict(id WorkerID, hashes []uint64, until time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.worker(id)
	if w == nil || len(hashes) == 0 {
		return
	}
	if x.pred.until == nil {
		x.pred.until = make(map[expected]time.Time)
	}
	p := prediction{until: until, worker: id}
	prev := noNode
	for _, h := range hashes {
		n := x.nodes.get(prev, h)
		prev = n
		k := expected{n, id}
		old, ok := x.pred.until[k]
		if !ok && x.nodes.has(n, planeAny, id) {
			continue // resident
		}
		if !ok {
			x.nodes.set(n, planePredicted, id, true)
			w.held++
		}
		if !ok || until.After(old) {
			x.pred.until[k] = until
			p.nodes = append(p.nodes, n)
		}
	}
	if len(p.nodes) == 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(x.pred.queue, until, func(q prediction, t time.Time) int {
		if q.until.After(t) {
			return 1
		}
		return -1
	})
	x.pred.queue = slices.Insert(x.pred.queue, i, p)
}

// Unpredict takes back predictions that end at until or before: the prompt with these blocks will not be computed there after all.
// Those that a later prompt extended beyond it stay. O(len(hashes)).
func (x *Index) Unpredict(id WorkerID, hashes []uint64, until time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.worker(id)
	if w == nil {
		return
	}
	for _, h := range hashes {
		n := x.nodes.find(h)
		if t, ok := x.pred.until[expected{n, id}]; ok && !t.After(until) {
			x.unpredict(id, w, n)
		}
	}
}

// Expire drops the predictions whose time has come. It costs next to nothing when there are none.
func (x *Index) Expire(now time.Time) {
	x.mu.RLock()
	due := len(x.pred.queue) > 0 && !x.pred.queue[0].until.After(now)
	x.mu.RUnlock()
	if !due {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	done := 0
	for _, p := range x.pred.queue {
		if p.until.After(now) {
			break
		}
		done++
		for _, n := range p.nodes {
			// The node may have been freed and used again since: then its own entry, if any, says when it ends.
			if t, ok := x.pred.until[expected{n, p.worker}]; ok && !t.After(now) {
				x.unpredict(p.worker, &x.workers[p.worker], n)
			}
		}
	}
	clear(x.pred.queue[:done])
	x.pred.queue = x.pred.queue[done:] // append moves the rest when the array is full, so this costs O(1) for each
}

// confirm turns a prediction into a fact: an event said that the block is there.
func (x *Index) confirm(id WorkerID, n uint32) {
	if len(x.pred.until) == 0 {
		return
	}
	k := expected{n, id}
	if _, ok := x.pred.until[k]; ok {
		delete(x.pred.until, k)
		x.nodes.set(n, planePredicted, id, false)
	}
}

func (x *Index) unpredict(id WorkerID, w *worker, n uint32) {
	k := expected{n, id}
	if _, ok := x.pred.until[k]; !ok {
		return
	}
	delete(x.pred.until, k)
	if x.nodes.set(n, planePredicted, id, false) {
		w.held--
		x.nodes.release(n)
	}
}

func (x *Index) unpredictAll(id WorkerID, w *worker) {
	for k := range x.pred.until {
		if k.worker == id {
			x.unpredict(id, w, k.node)
		}
	}
	x.pred.queue = slices.DeleteFunc(x.pred.queue, func(p prediction) bool { return p.worker == id })
}
