// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Few names that come and go, against a map. In a table of two groups each soon has names that passed it, and a hash that is not there
// must be given up all the same.
func TestNames(t *testing.T) {
	for most := range 40 {
		rnd := rand.New(rand.NewPCG(uint64(most), 1))
		want := make(map[uint64]location)
		names := names{mixer: mixer(rnd.Uint64())}
		for range 2000 {
			h := rnd.Uint64N(uint64(2*most) + 2)
			switch p, ok := want[h]; {
			case names.get(h) != p:
				t.Fatalf("%d: %x, want %x", h, names.get(h), p)
			case ok:
				names.remove(h)
				delete(want, h)
			case len(want) < most:
				want[h] = locationAt(uint32(h)+1, 1)
				names.add(h, want[h])
			}
			require.Len(t, want, names.n)
		}
	}
}
