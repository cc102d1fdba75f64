// SPDX-License-Identifier: Apache-2.0

//go:build weftcount

package index

import "sync/atomic"

// work counts what lookups do, in builds with the tag weftcount.
type work struct {
	edges  atomic.Int64 // runs looked at
	probes atomic.Int64 // hashes of blocks compared
	last   atomic.Int64 // length of the last run, in blocks
}

func (w *work) edge(length uint32) {
	w.edges.Add(1)
	w.last.Store(int64(length))
}

func (w *work) probe() { w.probes.Add(1) }
