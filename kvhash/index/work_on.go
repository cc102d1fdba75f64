// SPDX-License-Identifier: Apache-2.0

//go:build weftcount

package index

import "sync/atomic"

// work counts the operations of lookups, and calls functions of tests between the steps of lookups and of the writer,
// in builds with the tag weftcount.
type work struct {
	edges  atomic.Int64 // runs looked at
	probes atomic.Int64 // hashes of blocks compared
	last   atomic.Int64 // length of the last run, in blocks
	opened atomic.Int64 // workers that lookups wrote a Match for

	done, most int // changes and names visited since the lock was taken, and the most of them in one hold before; for the writer

	looks, steps func() // called after each read of a lookup, and after each visible change by the writer; may be nil
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

// acts counts n names, blocks or runs that the writer visits.
func (w *work) acts(n int) { w.done += n }

// hold is called when the lock was taken.
func (w *work) hold() { w.most, w.done = max(w.most, w.done), 0 }

func (w *work) entry() { w.opened.Add(1) }

func (w *work) look() {
	if w.looks != nil {
		w.looks()
	}
}

// step calls the function of tests after the writer has made a change that lookups can see.
func (w *work) step() {
	w.done++
	if w.steps != nil {
		w.steps()
	}
}
