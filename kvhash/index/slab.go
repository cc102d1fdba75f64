// SPDX-License-Identifier: Apache-2.0

package index

import "sync/atomic"

// slab is a growing array in chunks that never move, so that readers may access it while the writer appends. T must not
// contain pointers, so that the garbage collector does not scan the chunks. There is one writer; readers use peek, and
// all data in T that both access is atomic.
type slab[T any] struct {
	dir  atomic.Pointer[[]*[chunkLen]T]
	shot *slabShot[T] // for the writer: a copy in the making, or nil
}

// apart separates data that lookups read from the cache lines that the writer changes with every event. It has two
// cache lines, for processors that fetch lines in pairs.
type apart [128]byte

const (
	chunkBits = 11
	chunkLen  = 1 << chunkBits
	chunkMask = chunkLen - 1
)

// at returns element i, which must exist. For the writer.
func (s *slab[T]) at(i uint32) *T {
	return &(*s.dir.Load())[i>>chunkBits][i&chunkMask]
}

// peek returns element i, or nil if it was freed: a reader may hold an old number.
func (s *slab[T]) peek(i uint32) *T {
	d := s.dir.Load()
	if d == nil || int(i>>chunkBits) >= len(*d) {
		return nil
	}
	return &(*d)[i>>chunkBits][i&chunkMask]
}

// resize keeps or adds chunks so that elements below n exist. New ones are zero.
func (s *slab[T]) resize(n uint32) {
	var old []*[chunkLen]T
	if d := s.dir.Load(); d != nil {
		old = *d
	}
	chunks := int((uint64(n) + chunkMask) >> chunkBits)
	if chunks == len(old) {
		return
	}
	dir := old
	if chunks < len(old) {
		s.drop(chunks)
		dir = append([]*[chunkLen]T(nil), old[:chunks]...) // release the rest
	}
	for len(dir) < chunks {
		dir = append(dir, new([chunkLen]T)) // beyond the length of every directory that a reader may have
	}
	s.dir.Store(&dir)
}

// chunks returns the number of chunks.
func (s *slab[T]) chunks() int {
	if d := s.dir.Load(); d != nil {
		return len(*d)
	}
	return 0
}
