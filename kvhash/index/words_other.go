// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 || race

package index

import "sync/atomic"

// setWords sets the words of dst to src, which has the same length. Lookups load them.
func setWords(dst []atomic.Uint64, src []uint64) {
	for i, v := range src {
		dst[i].Store(v)
	}
}

// setWord stores a word that lookups load.
func setWord(dst *atomic.Uint64, v uint64) { dst.Store(v) }

// setHalf stores a word of 32 bits that lookups load.
func setHalf(dst *atomic.Uint32, v uint32) { dst.Store(v) }
