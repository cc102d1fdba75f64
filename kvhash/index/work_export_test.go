// SPDX-License-Identifier: Apache-2.0

//go:build weftcount

package index

import "github.com/weft-go/weft/kvhash/kvevent"

// Work returns what lookups did since the last call: runs looked at, hashes compared, and the length of the run looked at last.
func (x *Index) Work() (runs, hashes, last int64) {
	w := &x.tree.work
	return w.edges.Swap(0), w.probes.Swap(0), w.last.Load()
}

// Opened returns the number of workers that lookups wrote a Match for since the last call.
func (x *Index) Opened() int64 { return x.tree.work.opened.Swap(0) }

// MostWork returns the most work of one hold of the lock since the last call.
func (x *Index) MostWork() int {
	x.lock()
	defer x.mu.Unlock()
	most := x.tree.work.most
	x.tree.work.most = 0
	return most
}

// OnLook has f called where a lookup looks, and OnStep where the writer changed what lookups see.
func (x *Index) OnLook(f func()) { x.tree.work.looks = f }

// OnStep is described with OnLook.
func (x *Index) OnStep(f func()) { x.tree.work.steps = f }

// TryApply is Apply, unless a lookup asks changes to wait.
func (x *Index) TryApply(id WorkerID, ev *kvevent.Event) bool {
	if x.starved.Load() > 0 {
		return false
	}
	x.Add(id, ev)
	return true
}

// Starve returns the number of lookups that were retried too often.
func (x *Index) Starve(n int32) { x.starved.Store(n) }
