// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 || race

package index

import "sync/atomic"

// setWords sets the words of dst to src, which has the same length. No live run refers to them.
func setWords(dst []atomic.Uint64, src []uint64) {
	for i, v := range src {
		dst[i].Store(v)
	}
}

// setWord stores a word on which no lookup relies: a number to report, or the count of references to a set.
func setWord(dst *atomic.Uint64, v uint64) { dst.Store(v) }
