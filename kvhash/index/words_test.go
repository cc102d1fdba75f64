// SPDX-License-Identifier: Apache-2.0

package index

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Exactly the words of the source are stored; those around them remain.
func TestSetWords(t *testing.T) {
	src := []uint64{1, 2, 3, 1<<63 | 4, 5}
	for n := range len(src) + 1 {
		dst := make([]atomic.Uint64, n+2)
		dst[0].Store(8)
		dst[n+1].Store(9)
		setWords(dst[1:n+1], src[:n])
		got := make([]uint64, len(dst))
		for i := range dst {
			got[i] = dst[i].Load()
		}
		require.Equal(t, append(append([]uint64{8}, src[:n]...), 9), got)
	}
	require.Panics(t, func() { setWords(make([]atomic.Uint64, 1), src[:2]) })
}
