// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestSlots compares the allocator with a map of bytes: random ranges are taken, grown and given back from any end or from the middle.
func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tr tree
		tr.init(1)
		s := &tr.slots
		live := make(map[uint32]bool)
		var ranges [][2]uint32
		take := func(at, n uint32) {
			for i := at; i < at+n; i++ {
				if live[i] || i == 0 {
					t.Fatalf("slot %d was given out twice", i)
				}
				live[i] = true
				s.put(i, []uint64{uint64(i)}, i > at)
			}
		}
		size := rapid.SampledFrom([]int{3, 40, 900}).Draw(t, "size")
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				n := rapid.Uint32Range(1, uint32(size)).Draw(t, "n")
				at, got := s.alloc(n, min(max(n, 4), maxRoom))
				if got == 0 || got > n {
					t.Fatalf("%d of %d", got, n)
				}
				take(at, got)
				ranges = append(ranges, [2]uint32{at, at + got})
			},
			"grow": func(t *rapid.T) {
				if len(ranges) == 0 {
					t.Skip()
				}
				r := &ranges[rapid.IntRange(0, len(ranges)-1).Draw(t, "range")]
				got := s.grow(r[1]-1, rapid.Uint32Range(1, 20).Draw(t, "n"), r[1]-r[0])
				take(r[1], got)
				r[1] += got
			},
			"release": func(t *rapid.T) {
				if len(ranges) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(ranges)-1).Draw(t, "range")
				r := ranges[i]
				from := rapid.Uint32Range(r[0], r[1]-1).Draw(t, "from")
				to := rapid.Uint32Range(from+1, r[1]).Draw(t, "to")
				switch rapid.IntRange(0, 2).Draw(t, "to an end") {
				case 0:
					from = r[0]
				case 1:
					to = r[1]
				}
				ranges[i] = ranges[len(ranges)-1]
				ranges = ranges[:len(ranges)-1]
				for _, rest := range [][2]uint32{{r[0], from}, {to, r[1]}} {
					if rest[0] < rest[1] {
						ranges = append(ranges, rest)
					}
				}
				for i := from; i < to; i++ {
					delete(live, i)
				}
				s.live -= int(to - from)
				s.release(from, to)
			},
			"": func(t *rapid.T) {
				if err := s.check(func(i uint32) bool { return live[i] }); err != nil {
					t.Fatal(err)
				}
				if s.live != len(live) {
					t.Fatalf("%d blocks, counted %d", len(live), s.live)
				}
			},
		})
		for _, r := range ranges {
			s.live -= int(r[1] - r[0])
			s.release(r[0], r[1])
		}
		if s.end != 1 || s.free != [32]uint32{} {
			t.Fatalf("slots below %d are left, lists %v", s.end, s.free)
		}
	})
}

// Rounds of prompts of which all but one block goes, whereupon that one grows by another: the slots are never more than about twice the
// blocks that there were at most.
func TestSlotsBound(t *testing.T) {
	for _, front := range []bool{false, true} {
		var tr tree
		tr.init(1)
		s := &tr.slots
		fill := func(at, n uint32) {
			for i := range n {
				s.put(at+i, []uint64{1}, i > 0)
			}
		}
		peak := 0
		for range 20 {
			var ranges [][2]uint32
			for range 500 {
				for n := uint32(256); n > 0; { // perhaps in pieces
					at, got := s.alloc(n, min(max(n, 4), maxRoom))
					require.NotZero(t, got)
					fill(at, got)
					ranges = append(ranges, [2]uint32{at, at + got})
					n -= got
				}
			}
			peak = max(peak, s.live)
			require.LessOrEqual(t, int(s.end), 2*peak+6*chunkLen)
			for _, r := range ranges {
				one := r[0]
				if front {
					one = r[1] - 1
				}
				s.live -= int(r[1] - r[0] - 1)
				if r[0] < one {
					s.release(r[0], one)
				}
				if one+1 < r[1] {
					s.release(one+1, r[1])
				}
				fill(one+1, s.grow(one, 1, 1))
			}
		}
	}
}
