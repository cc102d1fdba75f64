// SPDX-License-Identifier: Apache-2.0

//go:build weftcount

package index

import "sync/atomic"

// work counts what lookups do, in builds with the tag weftcount.
type work struct{ edges, probes atomic.Int64 }

func (w *work) edge()  { w.edges.Add(1) }
func (w *work) probe() { w.probes.Add(1) }
