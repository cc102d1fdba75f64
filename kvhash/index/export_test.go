// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// Check returns an error if an invariant of the index does not hold. It is slow.
func (x *Index) Check() error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	ns := &x.nodes
	if len(ns.bits) != len(ns.info)*numPlanes*ns.words {
		return fmt.Errorf("%d words for %d nodes", len(ns.bits), len(ns.info))
	}
	live := 0
	for i := range ns.info {
		n := uint32(i)
		var any bool
		for w := range ns.words {
			var union uint64
			for p := 1; p < numPlanes; p++ {
				union |= ns.plane(n, p)[w]
			}
			if union != ns.plane(n, planeAny)[w] {
				return fmt.Errorf("node %d: union of planes is %x, not %x", n, ns.plane(n, planeAny)[w], union)
			}
			any = any || union != 0
		}
		if any != ns.info[n].live {
			return fmt.Errorf("node %d: live %v, held %v", n, ns.info[n].live, any)
		}
		if !any {
			continue
		}
		live++
		if m, ok := ns.bySeq[ns.info[n].seq]; !ok || m != n {
			return fmt.Errorf("node %d is not found by its hash", n)
		}
	}
	if live != len(ns.bySeq) || live+len(ns.free) != len(ns.info) {
		return fmt.Errorf("%d live, %d free of %d nodes, %d by hash", live, len(ns.free), len(ns.info), len(ns.bySeq))
	}
	refs := make(map[ref]int)
	for id := range x.workers {
		w := &x.workers[id]
		count := func(p place) {
			for t := kvevent.Device; t <= kvevent.NumTiers; t++ {
				if p.tiers>>t&1 != 0 {
					refs[ref{p.node, WorkerID(id), t}]++
				}
			}
		}
		for _, p := range w.blocks {
			count(p)
		}
		for h, m := range w.more {
			if _, ok := w.blocks[h]; !ok || len(m) == 0 {
				return fmt.Errorf("worker %d: further places of an unknown hash", id)
			}
			for _, p := range m {
				count(p)
			}
		}
		held := 0
		for i := range ns.info {
			if w.live && ns.has(uint32(i), planeAny, WorkerID(id)) {
				held++
			}
		}
		if held != w.held {
			return fmt.Errorf("worker %d holds %d blocks, counted %d", id, held, w.held)
		}
		if err := w.orphans.check(); err != nil {
			return fmt.Errorf("worker %d: %w", id, err)
		}
	}
	for k, c := range refs {
		if !ns.has(k.node, int(k.tier), k.worker) {
			return fmt.Errorf("no bit for %v", k)
		}
		if int(x.extra[k]) != c-1 {
			return fmt.Errorf("%v: %d references, %d extra", k, c, x.extra[k])
		}
	}
	for k := range x.extra {
		if refs[k] < 2 {
			return fmt.Errorf("extra for %v with %d references", k, refs[k])
		}
	}
	bits := 0
	for i := range ns.info {
		for id := range x.workers {
			for t := kvevent.Device; t <= kvevent.NumTiers; t++ {
				if ns.has(uint32(i), int(t), WorkerID(id)) {
					bits++
				}
			}
			_, pred := x.pred.until[expected{uint32(i), WorkerID(id)}]
			if pred != ns.has(uint32(i), planePredicted, WorkerID(id)) {
				return fmt.Errorf("node %d worker %d: prediction %v", i, id, pred)
			}
		}
	}
	if bits != len(refs) {
		return fmt.Errorf("%d bits, %d references", bits, len(refs))
	}
	return nil
}

func (o *orphans) check() error {
	blocks, runs := 0, 0
	var last *orphan
	for n := o.oldest; n != nil; n = n.newer {
		if n.older != last {
			return fmt.Errorf("orphan list is broken")
		}
		last = n
		blocks += len(n.hashes)
		runs++
	}
	if last != o.newest || blocks != o.blocks {
		return fmt.Errorf("%d blocks of orphans, counted %d", blocks, o.blocks)
	}
	for _, l := range o.byParent {
		runs -= len(l)
	}
	if runs != 0 {
		return fmt.Errorf("%d runs of orphans not found by parent", runs)
	}
	return nil
}
