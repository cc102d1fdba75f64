// SPDX-License-Identifier: Apache-2.0

//go:build weftcount

package index

import "sync/atomic"

// work counts what lookups do, and lets tests in between their steps and the writer's, in builds with the tag weftcount.
type work struct {
	edges  atomic.Int64 // runs looked at
	probes atomic.Int64 // hashes of blocks compared
	last   atomic.Int64 // length of the last run, in blocks

	looks, steps func() // called where a lookup looks, and where the writer changed what it sees; nil for nothing
}

func (w *work) edge(length uint32) {
	w.look()
	w.edges.Add(1)
	w.last.Store(int64(length))
}

func (w *work) probe() {
	w.look()
	w.probes.Add(1)
}

func (w *work) look() {
	if w.looks != nil {
		w.looks()
	}
}

// step records that the writer has changed something that lookups see.
func (w *work) step() {
	if w.steps != nil {
		w.steps()
	}
}
