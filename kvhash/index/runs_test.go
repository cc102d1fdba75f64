// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// A block that is removed and stored again leaves no trace: the run it was in is one again.
func TestGapsAreFilled(t *testing.T) {
	x := New(1, nil)
	id := x.AddWorker(Key{})
	h := make([]uint64, 100)
	for i := range h {
		h[i] = uint64(i) + 1
	}
	x.Add(id, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: h, LocalHashes: h})
	for i := 3; i < len(h); i += 10 {
		x.Add(id, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: h[i : i+1]})
		if i%20 == 3 { // at first only the block, without the link to the next one
			x.Add(id, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: h[i : i+1], LocalHashes: h[i : i+1], Parent: h[i-1], HasParent: true})
		}
		x.Add(id, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: h, LocalHashes: h})
		require.NoError(t, x.Check())
		require.EqualValues(t, 100, x.AppendMatches(nil, kvhash.AppendSequence(nil, h))[0].Depth)
		require.Equal(t, 1, x.tree.live)
	}
}

// Prompts that part keep two runs apart, also when the block before was away for a while and came back in the same slot.
func TestForksAreMerged(t *testing.T) {
	x := New(1, nil)
	id := x.AddWorker(Key{})
	a := make([]uint64, 100)
	for i := range a {
		a[i] = uint64(i) + 1
	}
	b := append(append([]uint64(nil), a[:50]...), 201, 202, 203)
	store := func(p []uint64) {
		x.Add(id, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: p, LocalHashes: p})
	}
	store(a)
	store(b)
	require.Equal(t, 3, x.tree.live)
	x.Add(id, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: a[49:50]})
	store(a)
	store(b)
	require.NoError(t, x.Check())
	require.Equal(t, 3, x.tree.live)
	x.Add(id, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: b[50:]})
	require.Equal(t, 1, x.tree.live)
}

// Random histories of few prompts: the runs are not many more than there have to be.
func TestRunsAreFew(t *testing.T) {
	var runs, least int
	seeds := uint64(150)
	switch {
	case testing.Short():
		seeds = 60
	case os.Getenv("WEFT_TEST") == "long":
		seeds = 300
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 3))
		x := New(1, nil)
		for i := range uint32(3) {
			x.AddWorker(Key{DPRank: i})
		}
		first := make([]uint64, 60)
		for i := range first {
			first[i] = rnd.Uint64()
		}
		var prompts [][]uint64
		for range 5 {
			p := append([]uint64(nil), first[:rnd.IntN(60)]...)
			for len(p) < 60 {
				p = append(p, rnd.Uint64())
			}
			prompts = append(prompts, p)
		}
		for range 300 {
			p := prompts[rnd.IntN(5)]
			names := kvhash.AppendSequence(nil, p)
			from := rnd.IntN(60)
			to := from + 1 + rnd.IntN(60-from)
			id := WorkerID(rnd.IntN(3))
			switch rnd.IntN(4) {
			case 0:
				x.Add(id, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: names[:to], LocalHashes: p[:to]})
			case 1:
				x.Add(id, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: names[from:]})
			case 2:
				x.Add(id, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: names[from:to]})
			default:
				ev := &kvevent.Event{Kind: kvevent.Stored, BlockHashes: names[from:to], LocalHashes: p[from:to]}
				if from > 0 {
					ev.Parent, ev.HasParent = names[from-1], true
				}
				x.Add(id, ev)
			}
		}
		require.NoError(t, x.Check())
		runs += x.tree.live
		least += fewest(x, prompts)
	}
	t.Logf("%d runs, %d at least", runs, least)
	require.LessOrEqual(t, runs, least+least/6)
}

// fewest returns how many runs there are if each is as long as can be: up to where the residents differ, or prompts part, or one ends.
func fewest(x *Index, prompts [][]uint64) (n int) {
	t := &x.tree
	sets := make(map[uint64]uint32)
	t.each(func(_ uint32, r *run, st state) {
		for i := range st.length() {
			sets[t.slots.seq.at(r.start.Load()+i).Load()] = st.set()
		}
	})
	follow := make(map[uint64]map[uint64]bool)
	for _, p := range prompts {
		h := kvhash.AppendSequence(nil, p)
		for i := range h[1:] {
			if sets[h[i]] != 0 && sets[h[i+1]] != 0 {
				if follow[h[i]] == nil {
					follow[h[i]] = make(map[uint64]bool)
				}
				follow[h[i]][h[i+1]] = true
			}
		}
	}
	n = len(sets)
	for prev, next := range follow {
		for h := range next {
			if len(next) == 1 && sets[h] == sets[prev] {
				n--
			}
		}
	}
	return n
}
