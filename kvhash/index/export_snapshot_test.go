// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"maps"
	"slices"

	"github.com/zeebo/xxh3"
)

// Held returns what a worker holds, one line for each position of an engine hash and each sequence of orphans, in a
// fixed order.
func (x *Index) Held(id WorkerID) (lines []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.workers[id]
	places := make(map[uint64]int)
	x.eachName(w, func(h uint64, p location) {
		lines = append(lines, fmt.Sprintf("%x %d %x %b", h, places[h], x.tree.slots.seq.at(p.slot()).Load(), p.tiers()))
		places[h]++
	})
	for r, n := range w.extra {
		lines = append(lines, fmt.Sprintf("extra %x %d %d", x.tree.slots.seq.at(r.slot).Load(), r.plane, n))
	}
	slices.Sort(lines)
	for o := w.orphans.oldest; o != nil; o = o.newer {
		lines = append(lines, fmt.Sprintf("%x %x %x %v %d %d", o.parent, o.hashes, o.chain, o.gone, o.plane, o.left))
	}
	for _, h := range slices.Sorted(maps.Keys(w.more)) {
		lines = append(lines, fmt.Sprintf("more %x", h))
	}
	if g := w.groups; g != nil {
		lines = append(lines, fmt.Sprint("groups ", g.ids, g.need, g.ratio))
		for _, h := range slices.Sorted(maps.Keys(g.held)) {
			lines = append(lines, fmt.Sprintf("%x %b %v", h, g.held[h].in, g.held[h].slot > 0))
		}
	}
	return append(lines, fmt.Sprint(w.flags()))
}

// Records returns the records of the journal.
func (x *Index) Records() (list [][]byte) {
	at := 0
	for _, m := range x.journal.marks {
		list = append(list, x.journal.buf[at:m.end])
		at = m.end
	}
	return list
}

// Delta returns a delta of the given records for an empty index, valid except for their content.
func (x *Index) Delta(records [][]byte) []byte {
	to := version{}
	for _, r := range records {
		to = version{to.Count + 1, xxh3.HashSeed(r, to.Sum)}
	}
	b := appendHeader(nil, kindDelta, fingerprint(x.block, x.opt.Scheme))
	b = appendUint(appendVersion(appendVersion(b, version{}), to), uint64(x.maxOrphans()))
	b = appendUint(b, uint64(len(records)))
	for _, r := range records {
		b = appendString(b, r)
	}
	return appendChecksum(append(b, 0), 0)
}
