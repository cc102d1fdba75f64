// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"
	"hash/fnv"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// pageHash is the engine hash of the last page of a prompt.
func pageHash(prompt []uint32) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, prompt)
	return h.Sum64()
}

// pageEvent stores the pages [from,to) of a prompt.
func pageEvent(prompt []uint32, size, from, to int, tier kvevent.Tier) *kvevent.Event {
	e := &kvevent.Event{Kind: kvevent.Stored, Tier: tier, BlockSize: int32(size), TokenIDs: prompt[from*size : to*size]}
	for i := from; i < to; i++ {
		e.BlockHashes = append(e.BlockHashes, pageHash(prompt[:(i+1)*size]))
	}
	if from > 0 {
		e.Parent, e.HasParent = pageHash(prompt[:from*size]), true
	}
	return e
}

// TestPages applies random histories of pages that are smaller than the index's blocks, in and out of order, and
// compares lookups with a set of the pages that are present: a block is there if all its pages are in one tier.
func TestPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{1, 2, 3}).Draw(t, "page")
		per := rapid.IntRange(2, 4).Draw(t, "pages in a block")
		block := size * per
		x := index.New(block, nil)
		id := x.AddWorker(index.Key{Instance: "a"})
		held := [2]map[string]bool{{}, {}} // by tier, the prompts that end with the page
		tiers := []kvevent.Tier{kvevent.Device, kvevent.Host}
		draw := func() []uint32 {
			var prompt []uint32
			for range rapid.IntRange(1, 3*per+1).Draw(t, "length") {
				fork := rapid.SampledFrom([]uint32{1, 1, 1, 2}).Draw(t, "fork")
				for range size {
					prompt = append(prompt, fork)
				}
			}
			return prompt
		}
		depth := func(prompt []uint32) (n int32) {
			for ; (int(n)+1)*block <= len(prompt); n++ {
				there := false
				for _, in := range held {
					all := true
					for i := range per {
						all = all && in[fmt.Sprint(prompt[:int(n)*block+(i+1)*size])]
					}
					there = there || all
				}
				if !there {
					break
				}
			}
			return n
		}
		var prompts [][]uint32
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			prompt := draw()
			n := len(prompt) / size
			prompts = append(prompts, prompt)
			tier := rapid.IntRange(0, 1).Draw(t, "tier")
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1, 2: // some pages, whose parent may be unknown
				from := rapid.IntRange(0, n-1).Draw(t, "from")
				to := rapid.IntRange(from+1, n).Draw(t, "to")
				x.Add(id, pageEvent(prompt, size, from, to, tiers[tier]))
				for i := from; i < to; i++ {
					held[tier][fmt.Sprint(prompt[:(i+1)*size])] = true
				}
			case 3: // all pages of a prompt
				x.Add(id, pageEvent(prompt, size, 0, n, tiers[tier]))
				for i := range n {
					held[tier][fmt.Sprint(prompt[:(i+1)*size])] = true
				}
			case 4: // a page is removed
				e := &kvevent.Event{Kind: kvevent.Removed, Tier: tiers[tier]}
				for i := range n {
					if rapid.Bool().Draw(t, "removed") {
						e.BlockHashes = append(e.BlockHashes, pageHash(prompt[:(i+1)*size]))
						delete(held[tier], fmt.Sprint(prompt[:(i+1)*size]))
					}
				}
				if rapid.Bool().Draw(t, "backward") {
					slices.Reverse(e.BlockHashes)
				}
				x.Add(id, e)
			case 5: // a copy in the other tier, without tokens
				e := &kvevent.Event{Kind: kvevent.Stored, Tier: tiers[tier]}
				for i := range n {
					if key := fmt.Sprint(prompt[:(i+1)*size]); held[1-tier][key] {
						e.BlockHashes = append(e.BlockHashes, pageHash(prompt[:(i+1)*size]))
						held[tier][key] = true
					}
				}
				if len(e.BlockHashes) > 0 {
					x.Add(id, e)
				}
			case 6:
				e := &kvevent.Event{Kind: kvevent.Cleared, Tier: tiers[tier]}
				if rapid.Bool().Draw(t, "all") {
					e.Tier = kvevent.AnyTier
					held[1-tier] = map[string]bool{}
				}
				held[tier] = map[string]bool{}
				x.Add(id, e)
			}
			require.NoError(t, x.Check())
			for _, p := range prompts {
				_, m := x.Best(kvhash.Scheme{}.AppendBlocks(nil, p, block, nil))
				require.Equal(t, depth(p), m.Depth, "%v", p)
			}
			if w, _ := x.Worker(id); len(held[0])+len(held[1]) > 0 {
				require.NotEqual(t, index.Degraded, w.State, w.Why)
			}
		}
		for _, p := range prompts { // when every page is removed, nothing is left
			for i := range len(p) / size {
				for _, tier := range tiers {
					x.Add(id, &kvevent.Event{Kind: kvevent.Removed, Tier: tier, BlockHashes: []uint64{pageHash(p[:(i+1)*size])}})
				}
			}
		}
		require.Zero(t, x.Len())
		require.Zero(t, x.Pages(id))
	})
}

// An SGLang with pages of one token under an index of larger blocks: adapters and objects enter the hashes of blocks,
// and events that do not fit degrade the worker.
func TestPagesOfOneToken(t *testing.T) {
	x := index.New(4, nil)
	id := x.AddWorker(index.Key{Instance: "a"})
	prompt := []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9}
	stored := func(n int, set func(*kvevent.Event)) *kvevent.Event {
		e := pageEvent(prompt, 1, 0, n, kvevent.Device)
		for i := range e.BlockHashes {
			e.BlockHashes[i] += 7
		}
		if set != nil {
			set(e)
		}
		return e
	}
	depth := func(s kvhash.Scheme, extras *kvhash.Extras) int32 {
		_, m := x.Best(s.AppendBlocks(nil, prompt, 4, extras))
		return m.Depth
	}
	require.Equal(t, index.Result{Stored: 2}, x.Add(id, pageEvent(prompt, 1, 0, 9, kvevent.Device)))
	require.Equal(t, index.Result{Known: 0}, x.Add(id, pageEvent(prompt, 1, 0, 9, kvevent.Device)))
	require.EqualValues(t, 2, depth(kvhash.Scheme{}, nil))
	require.Equal(t, index.Result{Removed: 1}, x.Add(id, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{pageHash(prompt[:6])}}))
	require.EqualValues(t, 1, depth(kvhash.Scheme{}, nil))
	x.Add(id, &kvevent.Event{Kind: kvevent.Cleared})
	require.Zero(t, x.Pages(id))

	x.Add(id, stored(9, func(e *kvevent.Event) {
		e.LoRA, e.Namespace, e.Objects = "ad", "s", [][]uint64{nil, {5}, {5}, nil, nil, {9, 8}}
	}))
	require.Zero(t, depth(kvhash.Scheme{}, nil))
	require.EqualValues(t, 2, depth(kvhash.Scheme{}.With("ad", "s"), &kvhash.Extras{BlockObjects: [][]uint64{{5}, {8, 9}}}))
	w, _ := x.Worker(id)
	require.Equal(t, index.Exact, w.State)
	for _, e := range []*kvevent.Event{
		stored(8, func(e *kvevent.Event) { e.BlockSize = 2 }),
		stored(8, func(e *kvevent.Event) { e.TokenIDs = e.TokenIDs[:7] }),
	} {
		require.Equal(t, index.Result{Ignored: 8}, x.Add(id, e))
		w, _ = x.Worker(id)
		require.Equal(t, index.Degraded, w.State)
	}
	// Without room for pages whose position is unknown, some are dropped.
	x = index.New(4, &index.Options{MaxPending: 3})
	id = x.AddWorker(index.Key{Instance: "a"})
	x.Add(id, pageEvent(prompt, 1, 2, 9, kvevent.Device))
	w, _ = x.Worker(id)
	require.Equal(t, index.Degraded, w.State)
	require.LessOrEqual(t, x.Pages(id), 5)
}

// Blocks that are predicted before the first page arrives are not blocks whose pages are unknown.
func TestPagesAfterPrediction(t *testing.T) {
	x := index.NewAll(4, nil)
	id := x.AddWorker(index.Key{Instance: "a"})
	prompt := []uint32{1, 2, 3, 4, 5, 6, 7, 8}
	x.Predict(id, kvhash.Scheme{}.AppendBlocks(nil, prompt, 4, nil), 0, time.Unix(1, 0))
	require.Equal(t, index.Result{Stored: 2}, x.Add(id, pageEvent(prompt, 1, 0, 8, kvevent.Device)))
	w, _ := x.Worker(id)
	require.Equal(t, index.Exact, w.State, w.Why)
	// The blocks of a snapshot count.
	y, err := index.LoadAll(x.AppendSnapshot(nil), nil)
	require.NoError(t, err)
	y.Add(id, pageEvent(prompt, 1, 0, 8, kvevent.Device))
	w, _ = y.Worker(id)
	require.Equal(t, index.Degraded, w.State)
}

// A snapshot has the blocks of a worker but not its pages, so the worker is Degraded from the next event on. A follower does not
// need the pages.
func TestPagesAfterSnapshot(t *testing.T) {
	prompt := []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	page := func(i int) *kvevent.Event { return pageEvent(prompt, 1, i, i+1, kvevent.Device) } // SGLang sends an event for each
	chain := kvhash.Scheme{}.AppendBlocks(nil, prompt, 4, nil)
	depth := func(x *index.Index) int32 {
		_, m := x.Best(chain)
		return m.Depth
	}
	removed := &kvevent.Event{Kind: kvevent.Removed, Tier: kvevent.Device, BlockHashes: page(1).BlockHashes}
	for _, first := range []*kvevent.Event{page(8), removed} {
		x := index.NewAll(4, &index.AllOptions{Journal: 1 << 16})
		id := x.AddWorker(index.Key{Instance: "a"})
		follower, err := index.LoadAll(x.AppendSnapshot(nil), nil)
		require.NoError(t, err)
		for i := range 8 {
			x.Add(id, page(i))
		}
		y, err := index.LoadAll(x.AppendSnapshot(nil), nil)
		require.NoError(t, err)
		require.EqualValues(t, 2, depth(y))
		for _, ev := range []*kvevent.Event{first, page(9), page(10), page(11)} {
			x.Add(id, ev)
			y.Add(id, ev)
			w, _ := y.Worker(id)
			require.Equal(t, index.Degraded, w.State)
		}
		delta, _, ok := x.AppendDelta(nil, follower.Version())
		require.True(t, ok)
		require.NoError(t, follower.AddDelta(delta))
		for _, exact := range []*index.Index{x, follower} {
			w, _ := exact.Worker(id)
			require.Equal(t, index.Exact, w.State, w.Why)
			require.Equal(t, depth(x), depth(exact))
		}
		y.Add(id, &kvevent.Event{Kind: kvevent.Cleared})
		for i := range 4 {
			y.Add(id, page(i))
		}
		w, _ := y.Worker(id)
		require.Equal(t, index.Exact, w.State, w.Why)
		require.EqualValues(t, 1, depth(y))
	}
}
