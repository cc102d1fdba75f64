// SPDX-License-Identifier: Apache-2.0

package index

import "unsafe"

// Stats holds the size of an index.
type Stats struct {
	Blocks      int   // distinct
	Residencies int   // pairs of worker and block, resident or predicted
	Bytes       int64 // approximate memory
}

// Stats returns the size of the index. Updates wait meanwhile. O(workers + pending blocks).
func (x *Index) Stats() Stats {
	s := x.measure()
	return Stats{s.Blocks, s.Residencies, s.Bytes}
}

// measures holds all statistics of an index.
type measures struct {
	Workers     int    // stores included
	Blocks      int    // distinct
	Residencies int    // pairs of worker and block, resident or predicted
	Runs        int    // sequences of blocks with the same residents
	Sets        int    // different sets of residents
	Orphans     int    // pending blocks
	Predictions int    // pairs of worker and block that are only predicted
	Bytes       int64  // memory of the above, by capacity; approximate for maps
	Retries     uint64 // lookups that started again because of an update
}

func (x *Index) measure() measures {
	x.lock()
	defer x.mu.Unlock()
	t := &x.tree
	s := measures{
		Blocks: t.slots.live, Runs: t.live, Sets: t.sets.n, Retries: x.retries.Load(),
		Bytes: int64(unsafe.Sizeof(*x)),
	}
	s.Bytes += t.slots.seq.bytes() + t.slots.owner.bytes() + t.slots.common.bytes() + t.runs.bytes() + t.sets.words.bytes() + x.states.bytes()
	for h := t.heads.table.Load(); h != nil; h = h.old {
		s.Bytes += sliceBytes(h.words)
	}
	s.Bytes += sliceBytes(t.sets.buckets)
	for _, w := range t.sets.scratch.words {
		s.Bytes += sliceBytes(w)
	}
	s.Bytes += sliceBytes(x.locals) + sliceBytes(x.seqs) + sliceBytes(x.names) + sliceBytes(x.fresh) + sliceBytes(x.segs)
	s.Bytes += mapBytes(x.byKey) + sliceBytes(x.workers)
	s.Bytes += int64(x.pred.spans)*int64(unsafe.Sizeof(span{}))*3/2 + sliceBytes(x.spans) + sliceBytes(x.pred.free)
	for _, l := range x.pred.free {
		s.Bytes += sliceBytes(l)
	}
	r := x.roster.Load()
	s.Bytes += sliceBytes(r.workers) + sliceBytes(r.stores) + 2*mapBytes(x.byKey)
	for i := range r.stores {
		s.Bytes += sliceBytes(r.stores[i].members)
	}
	if j := x.journal; j != nil {
		s.Bytes += sliceBytes(j.buf) + sliceBytes(j.marks)
	}
	for _, w := range x.workers {
		if w == nil {
			continue
		}
		s.Workers++
		s.Residencies += w.held
		s.Orphans += w.orphans.blocks
		s.Bytes += int64(unsafe.Sizeof(*w)) + w.names.bytes() + w.owned.bytes() + mapBytes(w.more) + int64(len(w.position))
		s.Bytes += mapBytes(w.extra)
		if w.groups != nil {
			s.Bytes += mapBytes(w.groups.held)
		}
		if w.expects != nil {
			s.Predictions += w.expects.blocks
			s.Bytes += mapBytes(w.expects.pages) + mapBytes(w.expects.all) + sliceBytes(w.expects.queue) + sliceBytes(w.expects.order)
			for _, p := range w.expects.queue {
				if s.Bytes += int64(unsafe.Sizeof(*p)); cap(p.parts) > len(p.own) {
					s.Bytes += sliceBytes(p.parts)
				}
			}
		}
		for _, m := range w.more {
			s.Bytes += int64(unsafe.Sizeof(*m)) + sliceBytes(m.list) + mapBytes(m.at)
		}
		s.Bytes += mapBytes(w.orphans.byParent) + mapBytes(w.orphans.byBlock)
		for o := w.orphans.oldest; o != nil; o = o.newer {
			s.Bytes += int64(unsafe.Sizeof(*o)) + sliceBytes(o.hashes) + sliceBytes(o.chain) + sliceBytes(o.gone) + sliceBytes(o.parking)
		}
	}
	return s
}

// bytes returns the memory of the common names.
func (c *common) bytes() int64 {
	return c.of.bytes() + sliceBytes(c.dir) + sliceBytes(c.spare) + int64(c.many+len(c.spare))*int64(unsafe.Sizeof(leafBody{}))
}

func (o *owned) bytes() int64 {
	return mapBytes(o.pages) + int64(len(o.pages))*int64(unsafe.Sizeof(ownedPage{}))
}

// bytes returns the memory of a table of names.
func (t *names) bytes() int64 {
	groups := t.room + len(t.spare)*pageLen
	return sliceBytes(t.dir) + sliceBytes(t.spare) + int64(groups)*int64(unsafe.Sizeof(group{}))
}

// bytes returns the memory of a slab.
func (s *slab[T]) bytes() int64 {
	var zero T
	return int64(s.chunks()) * (chunkLen*int64(unsafe.Sizeof(zero)) + 8)
}

func sliceBytes[T any](s []T) int64 {
	var zero T
	return int64(cap(s)) * int64(unsafe.Sizeof(zero))
}

// mapBytes returns the approximate memory of a map, whose tables are between 7/16 and 7/8 full.
func mapBytes[K comparable, V any](m map[K]V) int64 {
	var k K
	var v V
	return int64(len(m)) * int64(unsafe.Sizeof(k)+unsafe.Sizeof(v)+1) * 3 / 2
}
