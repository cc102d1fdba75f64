// SPDX-License-Identifier: Apache-2.0

package index

import "unsafe"

// The sizes that the assembly knows. This does not compile if they differ.
const (
	_ = uint(unsafe.Sizeof(page{})-32) + uint(32-unsafe.Sizeof(page{})) + uint(unsafe.Offsetof(page{}.groups))
	_ = uint(unsafe.Sizeof(leaf{})-16) + uint(16-unsafe.Sizeof(leaf{})) + uint(unsafe.Offsetof(leaf{}.body)) + uint(unsafe.Sizeof(leafBody{})-4096) + uint(slotBits-30) + uint(30-slotBits)
	_ = uint(unsafe.Sizeof(group{})-64) + uint(64-unsafe.Sizeof(group{})) + uint(unsafe.Offsetof(group{}.meta)-60)
	_ = uint(touchLen-64) + uint(64-touchLen) + uint(nMask-7) + uint(groupLen-5) + uint(passed-1<<23) + uint(1<<23-passed)
)

// touch prefetches the groups of up to touchLen hashes, so that the cache misses overlap with each other and with other work. The result is the
// sum of the addresses of the groups.
func (t *names) touch(hashes []uint64) (sum uint64) {
	if len(t.dir) == 0 || len(hashes) == 0 {
		return 0
	}
	return prefetchGroups(&t.dir[0], uint64(t.shift), uint64(t.mixer), &hashes[0], min(len(hashes), touchLen))
}

// touchNext prefetches, for up to touchLen hashes whose groups were prefetched, the group after each that is full or was passed. The result is the
// sum of the distances to those.
func (t *names) touchNext(hashes []uint64) (sum uint64) {
	if len(t.dir) == 0 || len(hashes) < 2 { // waiting for a single group gains nothing
		return 0
	}
	return prefetchNext(&t.dir[0], uint64(t.shift), uint64(t.mixer), &hashes[0], min(len(hashes), touchLen))
}

//go:noescape
func prefetchGroups(dir *page, shift, mixer uint64, hashes *uint64, n int) (sum uint64)

//go:noescape
func prefetchNext(dir *page, shift, mixer uint64, hashes *uint64, n int) (sum uint64)

// touch prefetches the groups of up to touchLen names. The result is the sum of their addresses.
func (c *common) touch(hashes []uint64) (sum uint64) {
	if len(c.dir) == 0 || len(hashes) == 0 {
		return 0
	}
	return prefetchCommon(&c.dir[0], uint64(c.shift), uint64(c.mixer), &hashes[0], min(len(hashes), touchLen))
}

//go:noescape
func prefetchCommon(dir *leaf, shift, mixer uint64, hashes *uint64, n int) (sum uint64)
