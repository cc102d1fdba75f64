// SPDX-License-Identifier: Apache-2.0

package index

import "unsafe"

// The sizes that the assembly knows. This does not compile if they differ.
const (
	_ = uint(unsafe.Sizeof(page{})-32) + uint(32-unsafe.Sizeof(page{})) + uint(unsafe.Offsetof(page{}.groups))
	_ = uint(unsafe.Sizeof(group{})-64) + uint(64-unsafe.Sizeof(group{}))
)

// touch prefetches the groups of many hashes, so that the cache misses overlap with each other and with other work. The result is
// the sum of their addresses.
func (t *names) touch(hashes []uint64) (sum uint64) {
	if len(t.dir) == 0 || len(hashes) == 0 {
		return 0
	}
	return prefetchGroups(&t.dir[0], uint64(t.shift), uint64(t.mixer), &hashes[0], len(hashes))
}

//go:noescape
func prefetchGroups(dir *page, shift, mixer uint64, hashes *uint64, n int) (sum uint64)
