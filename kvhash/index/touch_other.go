// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package index

// touched prevents the compiler from removing loads.
type touched struct{ sum uint64 }

// touch loads the groups of many hashes, so that the cache misses overlap. In a loop of find they would not, because each
// decides a branch.
func (t *names) touch(hashes []uint64, to *touched) {
	if len(t.dir) == 0 {
		return
	}
	for _, h := range hashes {
		m := t.mix(h)
		groups := t.dir[m>>t.shift].groups
		to.sum += uint64(groups[home(m, len(groups))].meta)
	}
}

// next does nothing here.
func (t *touched) next() {}
