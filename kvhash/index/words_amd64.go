// SPDX-License-Identifier: Apache-2.0

//go:build amd64 && !race

package index

import "sync/atomic"

// The functions of this file store words that lookups load without locks, as sync/atomic does, but without its exchanges.
//
// An atomic store is an exchange on amd64, which waits for all loads and stores before it, so that the cache misses of an event do not
// overlap. Lookups need less: that no word is torn, and that the words become visible in the order of the program, so that a lookup
// which loads the state of a run also loads what was stored before it. The assembly ensures that: on amd64, a store of an aligned word
// is indivisible, and stores become visible in program order. The compiler does not look into assembly, so it can neither drop, split nor
// merge these stores, nor move others across a call. An exchange would also keep later loads behind the store; the writer needs
// that nowhere, because it loads nothing that lookups store and on which the order depends. TestReaders and TestTogether compare lookups
// during such stores with the states of a model. With the race detector the stores are atomic.

// setWords sets the words of dst to src, which has the same length.
func setWords(dst []atomic.Uint64, src []uint64) {
	if len(src) > 0 {
		moveWords(&dst[:len(src)][0], &src[0], len(src))
	}
}

//go:noescape
func moveWords(dst *atomic.Uint64, src *uint64, n int)

// setWord stores a word.
//
//go:noescape
func setWord(dst *atomic.Uint64, v uint64)

// setHalf stores a word of 32 bits.
//
//go:noescape
func setHalf(dst *atomic.Uint32, v uint32)
