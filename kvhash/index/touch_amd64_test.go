// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// What the assembly prefetches are the groups where a search begins and those where it continues, whatever the table's size.
func TestTouch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	names := names{mixer: mixer(rnd.Uint64())}
	hashes := make([]uint64, 100)
	require.Zero(t, names.touch(hashes)+names.touchNext(hashes), "an empty table")
	for n := range 5000 {
		names.add(rnd.Uint64(), locationAt(1, 1))
		if n%7 != 0 {
			continue
		}
		list, first, next := hashes[:rnd.IntN(len(hashes)+1)], uint64(0), uint64(0)
		for i := range list {
			list[i] = rnd.Uint64()
			m := names.mix(list[i])
			groups := names.dir[m>>names.shift].groups
			if i == touchLen {
				break
			}
			g := &groups[home(m, len(groups))]
			first += uint64(uintptr(unsafe.Pointer(g)))
			if len(list) > 1 && (g.meta&nMask == groupLen || g.meta >= passed) {
				next += uint64(unsafe.Sizeof(*g))
			}
		}
		require.Equal(t, first, names.touch(list), "%d names, %d hashes", n+1, len(list))
		require.Equal(t, next, names.touchNext(list), "%d names, %d hashes", n+1, len(list))
	}
}
