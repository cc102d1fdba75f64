// SPDX-License-Identifier: Apache-2.0

package index

import "unsafe"

// The sizes that the assembly knows. This does not compile if they differ.
const (
	_ = uint(unsafe.Sizeof(page{})-32) + uint(32-unsafe.Sizeof(page{})) + uint(unsafe.Offsetof(page{}.groups))
	_ = uint(unsafe.Sizeof(group{})-64) + uint(64-unsafe.Sizeof(group{})) + uint(unsafe.Offsetof(group{}.meta)-60)
	_ = uint(touchLen-64) + uint(64-touchLen) + uint(nMask-7) + uint(groupLen-5) + uint(passed-1<<23) + uint(1<<23-passed)
)

// touched are the addresses of groups that were prefetched. They are valid until the table changes.
type touched struct {
	groups [touchLen]uintptr
	n      int
	sum    uint64
}

// touch prefetches the groups of up to touchLen hashes, so that the cache misses overlap with each other and with other work.
func (t *names) touch(hashes []uint64, to *touched) {
	to.n = 0
	if len(t.dir) == 0 || len(hashes) == 0 {
		return
	}
	to.n = min(len(hashes), touchLen)
	to.sum += prefetchGroups(&t.dir[0], uint64(t.shift), uint64(t.mixer), &hashes[0], to.n, &to.groups[0])
}

// next prefetches the group after each that is full or was passed.
func (t *touched) next() {
	if t.n > 1 { // to wait for a single group helps nobody
		t.sum += prefetchNext(&t.groups[0], t.n)
		t.n = 0
	}
}

//go:noescape
func prefetchGroups(dir *page, shift, mixer uint64, hashes *uint64, n int, groups *uintptr) (sum uint64)

//go:noescape
func prefetchNext(groups *uintptr, n int) (sum uint64)
