// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package index

// touch loads the groups of up to touchLen hashes, so that the cache misses overlap. In a loop of find they would not, because each
// decides a branch. The result only prevents the compiler from removing the loads.
func (t *names) touch(hashes []uint64) (sum uint64) {
	if len(t.dir) == 0 {
		return 0
	}
	for _, h := range hashes[:min(len(hashes), touchLen)] {
		m := t.mix(h)
		groups := t.dir[m>>t.shift].groups
		sum += uint64(groups[home(m, len(groups))].meta)
	}
	return sum
}

// touchNext does nothing here.
func (t *names) touchNext([]uint64) uint64 { return 0 }

// touch loads the groups of up to touchLen common names, for the same reason.
func (c *common) touch(hashes []uint64) (sum uint64) {
	if len(c.dir) == 0 {
		return 0
	}
	for _, h := range hashes[:min(len(hashes), touchLen)] {
		m := c.mix(h)
		sum += c.dir[m>>c.shift].body[groupOf(tagOf(m))][0]
	}
	return sum
}
