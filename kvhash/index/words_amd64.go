// SPDX-License-Identifier: Apache-2.0

//go:build amd64 && !race

package index

import "sync/atomic"

// setWords sets the words of dst to src, which has the same length. No live run refers to them. Lookups that read an old state may still
// load them, and discard what they read.
//
// An atomic store is an exchange on amd64, which waits for all loads and stores before it, so that the cache misses of an event do not
// overlap. What lookups need is less: no word is torn, and the words are stored after the change of state that released
// them and before the change that makes them live. The assembly ensures that: on amd64, a store of an aligned word is indivisible, and
// stores become visible in program order. The compiler does not look into assembly, so it can neither drop, split nor merge these
// stores, nor move them across the atomic stores of states before and after the call. TestReaders and TestTogether compare
// lookups during such stores with the states of a model. With the race detector these stores are atomic, too.
func setWords(dst []atomic.Uint64, src []uint64) {
	if len(src) > 0 {
		moveWords(&dst[:len(src)][0], &src[0], len(src))
	}
}

// setWord stores a word on which no lookup relies: a number to report, or the count of references to a set. It becomes visible at the
// latest when the lock is released.
func setWord(dst *atomic.Uint64, v uint64) { moveWords(dst, &v, 1) }

//go:noescape
func moveWords(dst *atomic.Uint64, src *uint64, n int)
