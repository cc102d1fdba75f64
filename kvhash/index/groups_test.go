// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// windowed returns the event that stores the last n blocks of path in group 1, which has a sliding window of 6 tokens: of a prefix it must
// hold the last 3 blocks.
func windowed(path string, n int) *kvevent.Event {
	ev := stored(path, len(path)-n, 0)
	return &kvevent.Event{Kind: kvevent.Stored, Attention: kvevent.SlidingWindow, Window: 6, Group: 1, BlockHashes: ev.BlockHashes}
}

func ofGroup(group int32, ev *kvevent.Event) *kvevent.Event {
	ev.Group = group
	return ev
}

// A hybrid model serves the deepest prefix that the group with full attention holds and that ends with enough blocks of the others.
func TestGroups(t *testing.T) {
	type events = []*kvevent.Event
	full := stored("abcabcabca", 0, 0)
	for _, tt := range []struct {
		name   string
		events events
		query  string
		want   int32
		why    string
	}{
		{"the window before the full group", events{windowed("abcabcabca", 3), full}, "abcabcabcab", 10, ""},
		{"and after it", events{full, windowed("abcabcabca", 3)}, "abcabcabca", 10, ""},
		{"a shorter prompt", events{full, windowed("abcabcabca", 3)}, "abcabcabc", 0, ""},
		{"too few blocks", events{full, windowed("abcabcabca", 2)}, "abcabcabca", 0, ""},
		{"all blocks of a short prefix", events{full, windowed("ab", 2)}, "abcabcabca", 2, ""},
		{"none at all of a group without blocks", events{full, windowed("zz", 2)}, "abcabcabca", 0, ""},
		{"several prefixes", events{full, windowed("abca", 3), windowed("abcabcab", 3)}, "abcabcabca", 8, ""},
		{"a gap in the window", events{full, windowed("abca", 3), windowed("abcabc", 1), windowed("abcabcabc", 1)}, "abcabcabca", 4, ""},
		{"blocks removed from the window", events{full, windowed("abcabcabca", 10), ofGroup(1, removed("abcabcabca", 2, 0))}, "abcabcabca", 8, ""},
		{"blocks removed from the full group", events{full, windowed("abcabcabca", 10), removed("abcabcabca", 4, 0)}, "abcabcabca", 6, ""},
		{"and stored again", events{full, windowed("abcabcabca", 3), removed("abcabcabca", 10, 0), full}, "abcabcabca", 10, ""},
		{"another tier remains", events{full, on(kvevent.Host, stored("abcabcabca", 0, 0)), windowed("abcabcabca", 3), removed("abcabcabca", 10, 0)}, "abcabcabca", 10, ""},
		{"two groups", events{full, windowed("abcabcabca", 4), ofGroup(2, windowed("abcabcabc", 4))}, "abcabcabca", 9, ""},
		{"a second group comes later", events{full, windowed("abcabcabca", 4), ofGroup(2, windowed("ab", 2)), ofGroup(2, windowed("abcabcabca", 4))}, "abcabcabca", 10, ""},
		{"cleared", events{full, windowed("abcabcabca", 3), {Kind: kvevent.Cleared}, full}, "abcabcabca", 10, ""},
		{"cleared on the device", events{on(kvevent.Host, stored("abcabcabca", 0, 0)), windowed("abcabcabca", 3), {Kind: kvevent.Cleared, Tier: kvevent.Device}}, "abcabcabca", 0, ""},
		{"another adapter", events{stored("ABCABC", 0, 0), windowed("ABCABC", 3)}, "ABCABC", 6, ""},
		{"a second full group", events{full, windowed("abcabcabca", 3), ofGroup(2, stored("xx", 0, 0))}, "abcabcabca", 10, ""},

		{"a window of unknown length", events{full, func() *kvevent.Event { e := windowed("ab", 2); e.Window = 0; return e }()}, "abcabcabca", 10, strangeGroup},
		{"windows of two lengths", events{full, windowed("abcabcabca", 4), func() *kvevent.Event { e := windowed("abcabcabca", 4); e.Window, e.Group = 8, 2; return e }()},
			"abcabcabca", 10, strangeGroup},
		{"the state of a recurrent layer", events{full, func() *kvevent.Event { e := windowed("ab", 2); e.Attention = kvevent.StateSpace; return e }()}, "abcabcabca", 10, strangeGroup},
		{"a slower tier", events{full, on(kvevent.Host, windowed("abcabcabca", 3))}, "abcabcabca", 10, strangeGroup},
		{"in a store", events{full, func() *kvevent.Event { e := windowed("ab", 2); e.Owner = "s"; return e }()}, "abcabcabca", 10, strangeGroup},
		{"blocks of another size", events{func() *kvevent.Event { e := windowed("ab", 2); e.BlockSize = 4; return e }(), full}, "abcabcabca", 10, strangeGroup},
		{"the group of full attention", events{full, ofGroup(0, windowed("ab", 2))}, "abcabcabca", 10, strangeGroup},
		{"before it", events{ofGroup(0, windowed("abc", 3)), full, removed("abcabcabca", 2, 0)}, "abcabcabca", 8, strangeGroup},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := index.AllOptions{Journal: 1 << 20}
			x, follower := index.NewAll(modelBlock, &o), index.NewAll(modelBlock, &o)
			ids := []index.WorkerID{x.AddWorker(index.Key{Instance: "a"}), x.AddWorker(index.Key{Instance: "b"})}
			x.Add(ids[1], stored("abc", 0, 0)) // a worker without groups shares a run
			for _, ev := range tt.events {
				x.Add(ids[0], ev)
				require.NoError(t, x.Check())
			}
			delta, _, ok := x.AppendDelta(nil, index.Version{})
			require.True(t, ok)
			require.NoError(t, follower.AddDelta(delta))
			loaded, err := index.LoadAll(x.AppendSnapshot(nil), &o)
			require.NoError(t, err)
			other := index.NewAll(modelBlock, nil)
			other.AddWorker(index.Key{Instance: "a"})
			other.Add(other.AddWorker(index.Key{Instance: "b"}), stored("abc", 0, 0))
			x.NewStream(0, nil)
			position := index.NewAll(modelBlock, nil)
			f := position.NewStream(position.AddWorker(index.Key{Instance: "a"}), nil)
			f.Add(kvevent.Batch{Events: cloned(tt.events)})
			require.NoError(t, other.NewStream(0, nil).Restore(position.AppendWorker(nil, 0)))
			for i, y := range []*index.Index{x, follower, loaded, other} {
				require.NoError(t, y.Check(), i)
				got := int32(0)
				want := map[index.WorkerID]int32{}
				for _, m := range y.AppendMatches(nil, modelHashes(tt.query)) {
					if want[m.Worker] = m.Depth; m.Worker == 0 {
						got = m.Depth
						require.Equal(t, m.Depth, m.Predicted+m.Tiers[0]+m.Tiers[1]+m.Tiers[2]+m.Tiers[3])
					}
				}
				require.Equal(t, tt.want, got, i)
				require.EqualValues(t, len(commonPrefix(tt.query, "abc")), want[1])
				w, _ := y.Worker(0)
				require.Equal(t, tt.why, w.Why, i)
				best, m := y.Best(modelHashes(tt.query))
				require.Equal(t, max(want[0], want[1]), m.Depth, "%v", best)
			}
			x.RemoveWorker(0)
			require.NoError(t, x.Check())
			require.Equal(t, 3, x.Len())
		})
	}
}

const strangeGroup = "stored blocks of a cache group whose use is unknown"

func cloned(events []*kvevent.Event) (list []kvevent.Event) {
	for _, ev := range events {
		list = append(list, *ev)
	}
	return list
}

func commonPrefix(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// Predicted blocks are expected in all groups, and what was predicted is confirmed by the events of both.
func TestGroupsPredicted(t *testing.T) {
	x := fleet(1)
	x.Add(0, windowed("abcabc", 3))
	x.Add(0, stored("abcabc", 0, 0))
	x.Predict(0, modelHashes("abcabcab"), 0, time.Unix(100, 0))
	require.Equal(t, "0:8", depths(x, "abcabcab"))
	require.Equal(t, "0:7", depths(x, "abcabca"))
	x.Add(0, stored("abcabcab", 6, 0))
	require.Equal(t, "0:6", depths(x, "abcabcab"))
	x.Add(0, windowed("abcabcab", 2))
	require.Equal(t, "0:8", depths(x, "abcabcab"))
	require.NoError(t, x.Check())
}

// The blocks of an engine with larger blocks count as often as they have blocks of the index, also where two of them share some.
func TestGroupsOfLargerBlocks(t *testing.T) {
	x := fleet(1)
	put := func(path string, skip int) []uint64 {
		ev := stored(path, skip, 0)
		h := engineHashes(path, 1)
		ev.BlockSize, ev.BlockHashes, ev.HasParent = 2*modelBlock, nil, false
		for i := 1; i < len(path); i += 2 {
			ev.BlockHashes = append(ev.BlockHashes, h[i])
		}
		x.Add(0, ev)
		require.NoError(t, x.Check())
		return ev.BlockHashes
	}
	window := func(kind kvevent.Kind, hashes ...uint64) {
		x.Add(0, &kvevent.Event{Kind: kind, Attention: kvevent.SlidingWindow, Window: 6, Group: 1, BlockSize: 2 * modelBlock, BlockHashes: hashes})
		require.NoError(t, x.Check())
	}
	a := put("abcabc", 0) // a window of 6 tokens needs 2 blocks of 4
	window(kvevent.Stored, a...)
	require.Equal(t, "0:6", depths(x, "abcabc"))
	require.Equal(t, "0:4", depths(x, "abca"))
	b := put("abcabb", 0)
	require.Equal(t, "0:6", depths(x, "abcabc"))
	require.Equal(t, "0:5", depths(x, "abcabb"))
	window(kvevent.Stored, b[2])
	require.Equal(t, "0:6", depths(x, "abcabb"))
	window(kvevent.Removed, a[2])
	require.Equal(t, "0:6", depths(x, "abcabb"))
	require.Equal(t, "0:5", depths(x, "abcabc"))
	x.Add(0, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: b[2:]})
	require.NoError(t, x.Check())
	require.Equal(t, "0:4", depths(x, "abcabc"))
}

// Lookups do not allocate for hybrid models, and the best workers are those that serve most.
func TestGroupsBest(t *testing.T) {
	x := fleet(70)
	for id := range index.WorkerID(70) {
		x.Add(id, windowed("abcabcabca"[:3+id%5], 3))
		x.Add(id, stored("abcabcabca", 0, 0))
	}
	var ids []index.WorkerID
	dst := make([]index.Match, 0, 70)
	hashes := modelHashes("abcabcabca")
	for _, m := range x.AppendBest(dst, hashes, 3) {
		require.EqualValues(t, 7, m.Depth)
		ids = append(ids, m.Worker)
	}
	require.Equal(t, []index.WorkerID{4, 9, 14}, ids)
	if !raceEnabled {
		require.Zero(t, testing.AllocsPerRun(100, func() { dst = x.AppendMatches(dst[:0], hashes) }))
		full, window, gone := stored("abcabcabca", 0, 0), windowed("abcabcabca", 4), ofGroup(1, removed("abcabcabca", 4, 0))
		require.Zero(t, testing.AllocsPerRun(100, func() {
			x.Add(1, window)
			x.Add(1, full)
			x.Add(1, gone)
		}))
	}
	require.Len(t, dst[:70], 70)
}

// TestGroupOfBothKinds checks which group counts if an engine uses one with a sliding window and then with full attention: an
// event that is ignored changes nothing, and after a valid one the index knows no other groups.
func TestGroupOfBothKinds(t *testing.T) {
	window := kvevent.Event{Kind: kvevent.Stored, Attention: kvevent.SlidingWindow, Window: 2, BlockHashes: []uint64{1}, LocalHashes: []uint64{1}, Group: 3}
	ignored := kvevent.Event{Kind: kvevent.Stored, Tier: kvevent.NumTiers + 1, BlockHashes: []uint64{1}, LocalHashes: []uint64{1}, Group: 3}
	full := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, LocalHashes: []uint64{1}}
	for _, group := range []int32{3, 4} {
		full.Group = group
		x := index.New(1, nil)
		id := x.AddWorker(index.Key{})
		require.Equal(t, 1, x.Add(id, &window).Stored)
		require.Equal(t, 1, x.Add(id, &ignored).Ignored)
		require.Equal(t, 1, x.Add(id, &full).Stored)
		require.Len(t, x.AppendMatches(nil, []uint64{1}), 1)
		want := 1 // the block with the sliding window
		if group == 3 {
			want = 0 // only the block with full attention is known
		}
		require.Equal(t, want, x.Add(id, &kvevent.Event{Kind: kvevent.Removed, Attention: kvevent.SlidingWindow, BlockHashes: []uint64{1}, Group: 3}).Removed, group)
		data := x.AppendSnapshot(nil)
		y, err := index.LoadAll(data, nil)
		require.NoError(t, err)
		require.Equal(t, data, y.AppendSnapshot(nil))
	}
}
