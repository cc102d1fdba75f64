// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math/bits"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// Match says how much of a prompt one worker holds.
//
// Depth == Predicted + sum of Tiers.
type Match struct {
	Worker WorkerID
	// Depth is the number of leading blocks that are resident or predicted, at least 1.
	Depth int32
	// Tiers splits these blocks by the fastest tier that holds each; tier t has the index t-1.
	Tiers [kvevent.NumTiers]int32
	// Predicted is the number of these blocks that no tier holds yet.
	Predicted int32
	// Trust says how far this can be believed, and Why gives the reason if it is not Exact.
	Trust kvevent.Trust
	Why   string
}

// inline is how many words of 64 workers a lookup keeps on its stack.
const inline = 64

// Match appends to dst one Match for each worker that holds the first block of a prompt or expects it, in ascending order of
// numbers, and returns it. hashes are the prompt's sequence hashes, first block first, as [kvhash.Chain.Blocks] gives them.
// It stops at the first block that no worker has in a row.
//
// Safe for concurrent use with everything. O(depth of the deepest worker); no allocation if dst has room and there are at most 4,096
// workers.
func (x *Index) Match(dst []Match, hashes []uint64) []Match {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if len(hashes) == 0 {
		return dst
	}
	n := x.nodes.find(hashes[0])
	if n == noNode {
		return dst
	}
	var first, active [inline]uint64
	var rank [inline]int32
	s := search{first: first[:], active: active[:], rank: rank[:]}
	if w := x.nodes.words; w > inline {
		s.first, s.active, s.rank = make([]uint64, w), make([]uint64, w), make([]int32, w)
	}
	base := len(dst)
	dst = s.open(dst, x, n)
	found := dst[base:]
	depth := int32(0)
	for s.step(found, &x.nodes, n, depth) {
		if depth++; int(depth) == len(hashes) {
			break
		}
		if n = x.nodes.after(n, hashes[depth]); n == noNode {
			break
		}
	}
	s.close(found, depth)
	return dst
}

// search is one lookup on its way down. A worker's entry among those found is at its rank among the bits of first. The entries are
// passed beside it: were they a field, the compiler would move the whole search to the heap.
type search struct {
	first  []uint64 // workers that hold the first block
	active []uint64 // those that hold all blocks so far
	rank   []int32  // number of workers in the words before
}

// open adds an entry for each worker that holds the first block.
func (s *search) open(dst []Match, x *Index, n uint32) []Match {
	base := len(dst)
	words := x.nodes.plane(n, planeAny)
	s.first, s.active = s.first[:len(words)], s.active[:len(words)]
	for i, word := range words {
		s.first[i], s.active[i], s.rank[i] = word, word, int32(len(dst)-base)
		for ; word != 0; word &= word - 1 {
			id := WorkerID(i*64 + bits.TrailingZeros64(word))
			t, why := x.workers[id].state()
			dst = append(dst, Match{Worker: id, Trust: t, Why: why})
		}
	}
	return dst
}

// entry returns the entry of the worker of one bit.
func (s *search) entry(found []Match, i int, bit int) *Match {
	return &found[s.rank[i]+int32(bits.OnesCount64(s.first[i]&(1<<bit-1)))]
}

// step visits block number depth. It reports whether any worker has all blocks up to this one.
func (s *search) step(found []Match, ns *nodes, n uint32, depth int32) bool {
	held, device := ns.plane(n, planeAny), ns.plane(n, int(kvevent.Device))
	var left uint64
	for i, a := range s.active {
		if a == 0 {
			continue
		}
		for dead := a &^ held[i]; dead != 0; dead &= dead - 1 {
			s.entry(found, i, bits.TrailingZeros64(dead)).end(depth)
		}
		a &= held[i]
		s.active[i] = a
		left |= a
		for slow := a &^ device[i]; slow != 0; slow &= slow - 1 {
			b := bits.TrailingZeros64(slow)
			m := s.entry(found, i, b)
			m.Predicted++
			for t := kvevent.Host; t <= kvevent.NumTiers; t++ {
				if ns.plane(n, int(t))[i]>>b&1 != 0 {
					m.Predicted--
					m.Tiers[t-1]++
					break
				}
			}
		}
	}
	return left != 0
}

// close ends the search for the workers that are left after depth blocks.
func (s *search) close(found []Match, depth int32) {
	for i, a := range s.active {
		for ; a != 0; a &= a - 1 {
			s.entry(found, i, bits.TrailingZeros64(a)).end(depth)
		}
	}
}

// end sets the depth. What is in no slower tier and not predicted is on the device.
func (m *Match) end(depth int32) {
	m.Depth = depth
	m.Tiers[kvevent.Device-1] = depth - m.Predicted
	for t := kvevent.Host; t <= kvevent.NumTiers; t++ {
		m.Tiers[kvevent.Device-1] -= m.Tiers[t-1]
	}
}
