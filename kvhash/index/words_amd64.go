// SPDX-License-Identifier: Apache-2.0

//go:build amd64 && !race

package index

import (
	"sync/atomic"
	"unsafe"
)

// set64 and set32 store a word that only the writer changes and that lookups load. An atomic store is an exchange on amd64, which waits
// for all loads and stores before it, so that cache misses of one event would not overlap. The writer needs less: its stores must become
// visible whole and in order, which the processor ensures for plain ones. Compilers keep their order with respect to
// atomic operations, and the store of a state, after which lookups see a change, comes after everything that it leads to.

func set64(w *atomic.Uint64, v uint64) { *(*uint64)(unsafe.Pointer(w)) = v }

func set32(w *atomic.Uint32, v uint32) { *(*uint32)(unsafe.Pointer(w)) = v }
