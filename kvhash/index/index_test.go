// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// stored returns the event for the blocks of path from skip on; see the model for paths. The engine hash of a block is its sequence
// hash plus variant.
func stored(path string, skip int, variant uint64) *kvevent.Event {
	h := modelHashes(path)
	for i := range h {
		h[i] += variant
	}
	ev := &kvevent.Event{Kind: kvevent.Stored, BlockHashes: h[skip:], TokenIDs: modelTokens(path[skip:]), LoRA: modelLoRA(path)}
	if skip > 0 {
		ev.Parent, ev.HasParent = h[skip-1], true
	}
	return ev
}

// removed returns the event that removes the last n blocks of path.
func removed(path string, n int, variant uint64) *kvevent.Event {
	ev := stored(path, len(path)-n, variant)
	return &kvevent.Event{Kind: kvevent.Removed, BlockHashes: ev.BlockHashes}
}

func on(tier kvevent.Tier, ev *kvevent.Event) *kvevent.Event {
	ev.Tier = tier
	return ev
}

// depths returns worker:depth of a lookup.
func depths(x *index.Index, path string) string {
	var s []string
	for _, m := range x.AppendMatches(nil, modelHashes(path)) {
		s = append(s, fmt.Sprintf("%d:%d", m.Worker, m.Depth))
	}
	return strings.Join(s, " ")
}

func fleet(n int) *index.Index {
	x := index.NewAll(modelBlock, nil)
	for i := range n {
		x.AddWorker(index.Key{Instance: "e", DPRank: uint32(i)})
	}
	return x
}

func TestSemantics(t *testing.T) {
	type step struct {
		worker index.WorkerID
		ev     *kvevent.Event
		want   index.Result
	}
	clear := &kvevent.Event{Kind: kvevent.Cleared}
	tests := []struct {
		name  string
		steps []step
		look  map[string]string // path -> worker:depth
	}{
		{
			name:  "prefixes of two workers",
			steps: []step{{0, stored("abab", 0, 0), index.Result{Stored: 4}}, {1, stored("abb", 0, 0), index.Result{Stored: 3}}},
			look:  map[string]string{"abab": "0:4 1:2", "abb": "0:2 1:3", "a": "0:1 1:1", "b": "", "": "", "ababbbbb": "0:4 1:2", "bbab": ""},
		},
		{
			name:  "stored again",
			steps: []step{{0, stored("ab", 0, 0), index.Result{Stored: 2}}, {0, stored("abb", 0, 0), index.Result{Known: 2, Stored: 1}}, {0, removed("ab", 1, 0), index.Result{Removed: 1}}},
			look:  map[string]string{"abb": "0:1"},
		},
		{
			name: "two engine hashes for one block",
			steps: []step{
				{0, stored("ab", 0, 0), index.Result{Stored: 2}},
				{0, stored("ab", 0, 7), index.Result{Stored: 2}},
				{0, removed("ab", 1, 0), index.Result{Removed: 1}},
			},
			look: map[string]string{"ab": "0:2"},
		},
		{
			name: "a hole hides what follows",
			steps: []step{
				{0, stored("abab", 0, 0), index.Result{Stored: 4}},
				{0, removed("ab", 1, 0), index.Result{Removed: 1}},
			},
			look: map[string]string{"abab": "0:1"},
		},
		{
			name: "filled again it shows",
			steps: []step{
				{0, stored("abab", 0, 0), index.Result{Stored: 4}},
				{0, removed("ab", 1, 0), index.Result{Removed: 1}},
				{0, stored("ab", 1, 0), index.Result{Stored: 1}},
			},
			look: map[string]string{"abab": "0:4"},
		},
		{
			name: "parent removed before child",
			steps: []step{
				{0, stored("a", 0, 0), index.Result{Stored: 1}},
				{0, stored("ab", 1, 0), index.Result{Stored: 1}},
				{0, removed("a", 1, 0), index.Result{Removed: 1}},
				{0, removed("ab", 1, 0), index.Result{Removed: 1}},
				{0, removed("ab", 1, 0), index.Result{Ignored: 1}},
			},
			look: map[string]string{"ab": ""},
		},
		{
			name: "orphans wait for their parent, in a chain",
			steps: []step{
				{0, stored("abab", 3, 0), index.Result{Pending: 1}},
				{0, stored("ab", 1, 0), index.Result{Pending: 1}},
				{0, stored("aba", 2, 0), index.Result{Pending: 1}},
				{0, stored("a", 0, 0), index.Result{Stored: 4}},
			},
			look: map[string]string{"abab": "0:4"},
		},
		{
			name: "an orphan removed while it waits leaves a hole",
			steps: []step{
				{0, stored("abab", 1, 0), index.Result{Pending: 3}},
				{0, removed("aba", 1, 0), index.Result{Removed: 1}},
				{0, stored("a", 0, 0), index.Result{Stored: 3}},
			},
			look: map[string]string{"abab": "0:2"},
		},
		{
			name:  "its own parent",
			steps: []step{{0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{5}, Parent: 5, HasParent: true, TokenIDs: []uint32{1, 2}}, index.Result{Ignored: 1}}},
		},
		{
			name: "clear touches one rank",
			steps: []step{
				{0, stored("ab", 0, 0), index.Result{Stored: 2}}, {1, stored("ab", 0, 0), index.Result{Stored: 2}}, {0, clear, index.Result{}},
			},
			look: map[string]string{"ab": "1:2"},
		},
		{
			name:  "adapters share nothing",
			steps: []step{{0, stored("ab", 0, 0), index.Result{Stored: 2}}, {1, stored("AB", 0, 0), index.Result{Stored: 2}}},
			look:  map[string]string{"ab": "0:2", "AB": "1:2"},
		},
		{
			name: "a copy in another tier is named by hash alone",
			steps: []step{
				{0, stored("ab", 0, 0), index.Result{Stored: 2}},
				{0, on(kvevent.Host, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: modelHashes("ab")}), index.Result{Stored: 2}},
				{0, removed("ab", 2, 0), index.Result{Removed: 2}},
			},
			look: map[string]string{"ab": "0:2"},
		},
		{
			name:  "partial blocks are no blocks",
			steps: []step{{0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1, 2}, TokenIDs: []uint32{9, 9, 9}}, index.Result{Stored: 1, Ignored: 1}}},
		},
		{
			name:  "too few tokens for its blocks",
			steps: []step{{0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1, 2, 3, 4}, TokenIDs: []uint32{97, 97 * 7, 97, 97 * 7}}, index.Result{Ignored: 4}}},
			look:  map[string]string{"a": ""},
		},
		{
			name:  "too many tokens for its blocks",
			steps: []step{{0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, TokenIDs: []uint32{97, 97 * 7, 97, 97 * 7}}, index.Result{Ignored: 1}}},
			look:  map[string]string{"a": ""},
		},
		{
			name: "namespaces share nothing",
			steps: []step{
				{0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, TokenIDs: []uint32{97, 97 * 7}}, index.Result{Stored: 1}},
				{1, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, TokenIDs: []uint32{97, 97 * 7}, Namespace: "tenant"}, index.Result{Stored: 1}},
			},
			look: map[string]string{"a": "0:1"},
		},
		{
			name: "an orphan parked again is whole again",
			steps: []step{
				{0, stored("abab", 1, 0), index.Result{Pending: 3}},
				{0, removed("aba", 1, 0), index.Result{Removed: 1}},
				{0, stored("abab", 1, 0), index.Result{Pending: 3}},
				{0, stored("a", 0, 0), index.Result{Stored: 4}},
			},
			look: map[string]string{"abab": "0:4"},
		},
		{
			name: "orphans that wait for each other",
			steps: []step{
				{0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{5}, Parent: 6, HasParent: true, TokenIDs: modelTokens("a")}, index.Result{Pending: 1}},
				{0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{6}, Parent: 5, HasParent: true, TokenIDs: modelTokens("b")}, index.Result{Pending: 1}},
				{0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{5}, TokenIDs: modelTokens("a")}, index.Result{Stored: 3}},
			},
			look: map[string]string{"abaa": "0:3"},
		},
		{
			name: "an engine hash at two places: the last one is the parent, a removal is of both",
			steps: []step{
				{0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{5}, TokenIDs: modelTokens("a")}, index.Result{Stored: 1}},
				{0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{5}, TokenIDs: modelTokens("b")}, index.Result{Stored: 1}},
				{0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{6}, TokenIDs: modelTokens("a"), Parent: 5, HasParent: true}, index.Result{Stored: 1}},
				{1, stored("a", 0, 0), index.Result{Stored: 1}},
				{0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{9}, TokenIDs: modelTokens("a")}, index.Result{Stored: 1}},
				{0, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{5}}, index.Result{Removed: 2}},
			},
			look: map[string]string{"aa": "0:1 1:1", "ba": ""},
		},
		{
			name: "an engine hash twice in one event",
			steps: []step{
				{0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{5, 5, 5}, TokenIDs: modelTokens("aba")}, index.Result{Stored: 3}},
				{0, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{5, 5}}, index.Result{Removed: 3, Ignored: 1}},
			},
			look: map[string]string{"aba": ""},
		},
		{
			name: "a removal from one tier leaves the other",
			steps: []step{
				{0, stored("aba", 0, 0), index.Result{Stored: 3}},
				{0, on(kvevent.Disk, stored("aba", 1, 0)), index.Result{Stored: 2}},
				{0, removed("aba", 2, 0), index.Result{Removed: 2}},
				{0, removed("aba", 2, 0), index.Result{Ignored: 2}},
				{0, on(kvevent.Disk, removed("aba", 1, 0)), index.Result{Removed: 1}},
			},
			look: map[string]string{"aba": "0:2"},
		},
		{
			name: "a branch within a run, and its end",
			steps: []step{
				{0, stored("abababab", 0, 0), index.Result{Stored: 8}},
				{1, stored("ababb", 0, 0), index.Result{Stored: 5}},
				{0, stored("ababbb", 4, 0), index.Result{Stored: 2}},
				{1, removed("ababb", 2, 0), index.Result{Removed: 2}},
				{0, removed("ababbb", 1, 0), index.Result{Removed: 1}},
			},
			look: map[string]string{"abababab": "0:8 1:3", "ababbb": "0:5 1:3", "ababa": "0:5 1:3"},
		},
		{
			name: "the last block of a run, and the one after it",
			steps: []step{
				{0, stored("aba", 0, 0), index.Result{Stored: 3}},
				{0, stored("abab", 3, 0), index.Result{Stored: 1}},
				{1, stored("aba", 0, 0), index.Result{Stored: 3}},
				{0, removed("aba", 1, 0), index.Result{Removed: 1}},
			},
			look: map[string]string{"abab": "0:2 1:3", "ab": "0:2 1:2", "aba": "0:2 1:3"},
		},
		{
			name: "hashes in place of tokens",
			steps: []step{
				{0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1, 2, 3}, LocalHashes: modelLocal("ab")}, index.Result{Stored: 2, Ignored: 1}},
				{1, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, LocalHashes: modelLocal("ab")}, index.Result{Stored: 1}},
			},
			look: map[string]string{"ab": "0:2 1:1"},
		},
		{
			name:  "a copy of a block that no worker stored",
			steps: []step{{0, on(kvevent.Host, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1, 2}}), index.Result{Ignored: 2}}},
		},
		{
			name:  "no blocks",
			steps: []step{{0, &kvevent.Event{Kind: kvevent.Stored}, index.Result{}}, {0, &kvevent.Event{Kind: kvevent.Removed}, index.Result{}}},
		},
		{
			name:  "unknown kind",
			steps: []step{{0, &kvevent.Event{Kind: 77, BlockHashes: []uint64{1, 2}}, index.Result{Ignored: 2}}},
		},
		{
			name:  "unknown worker",
			steps: []step{{99, stored("ab", 0, 0), index.Result{Ignored: 2}}},
		},
		{
			name: "unknown tier",
			steps: []step{
				{0, on(99, stored("ab", 0, 0)), index.Result{Ignored: 2}}, {0, on(99, removed("ab", 1, 0)), index.Result{Ignored: 1}},
				{0, on(99, &kvevent.Event{Kind: kvevent.Cleared}), index.Result{}},
			},
		},
		{
			name: "only the first group with full attention counts",
			steps: []step{
				{0, &kvevent.Event{Kind: kvevent.Stored, Group: 1, Attention: kvevent.SlidingWindow, BlockHashes: []uint64{1}, TokenIDs: []uint32{1, 1}}, index.Result{Ignored: 1}},
				{0, &kvevent.Event{Kind: kvevent.Stored, Group: 2, BlockHashes: []uint64{1}, TokenIDs: []uint32{97, 97 * 7}}, index.Result{Stored: 1}},
				{0, &kvevent.Event{Kind: kvevent.Removed, Group: 1, BlockHashes: []uint64{1}}, index.Result{Ignored: 1}},
			},
			look: map[string]string{"a": "0:1"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := fleet(2)
			for i, s := range tt.steps {
				if d := cmp.Diff(s.want, x.Add(s.worker, s.ev)); d != "" {
					t.Errorf("step %d (-want +got):\n%s", i, d)
				}
				require.NoError(t, x.Check())
			}
			for path, want := range tt.look {
				require.Equal(t, want, depths(x, path), path)
			}
			x.Clear(0)
			x.RemoveWorker(1)
			require.NoError(t, x.Check())
			require.Zero(t, x.Len())
		})
	}
}

func TestTiersAndPredictions(t *testing.T) {
	x, now := fleet(1), time.Unix(100, 0)
	x.Add(0, stored("a", 0, 0))
	x.Add(0, on(kvevent.Host, stored("ab", 0, 0)))
	x.Add(0, on(kvevent.Disk, stored("aba", 2, 0)))
	x.Predict(0, modelHashes("abab"), 0, now.Add(time.Second))
	want := []index.Match{{Depth: 4, Tiers: [4]int32{1, 1, 1, 0}, Predicted: 1, State: index.Exact}}
	if d := cmp.Diff(want, x.AppendMatches(nil, modelHashes("abab"))); d != "" {
		t.Errorf("before (-want +got):\n%s", d)
	}
	x.Expire(now)
	require.Equal(t, "0:4", depths(x, "abab"))
	x.Expire(now.Add(time.Second))
	require.Equal(t, "0:3", depths(x, "abab"))
	x.Add(0, &kvevent.Event{Kind: kvevent.Cleared, Tier: kvevent.Host})
	require.Equal(t, "0:1", depths(x, "abab"))

	// A confirmed prediction does not expire.
	x.Predict(0, modelHashes("bb"), 0, now.Add(2*time.Second))
	x.Add(0, stored("b", 0, 0))
	x.Expire(now.Add(time.Hour))
	require.Equal(t, "0:1", depths(x, "bb"))
	require.NoError(t, x.Check())

	// Beyond what 64 bits of nanoseconds hold, and from before the first block.
	far := time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)
	x.Predict(0, modelHashes("bab"), -1, far)
	x.Expire(time.Date(2399, 1, 1, 0, 0, 0, 0, time.UTC))
	require.Equal(t, "0:3", depths(x, "bab"))
	x.Expire(far)
	require.Equal(t, "0:1", depths(x, "bab"))
}

// Predictions of unknown and of removed workers.
func TestStalePredictions(t *testing.T) {
	x := fleet(2)
	store := x.AddStore(index.Key{Instance: "lmcache"}, kvevent.Remote)
	x.Attach(1, store)
	h, until := modelHashes("abab"), time.Unix(10, 0)
	for _, p := range []index.Prediction{
		x.Predict(99, h, 0, until), x.Predict(0, nil, 0, until), x.Predict(0, h, 4, until), x.Predict(store, h, 0, until), {},
	} {
		require.Zero(t, p)
		x.Unpredict(p)
	}
	require.Zero(t, x.Len())

	cleared := x.Predict(0, h, 0, until)
	x.Clear(0)
	removed := x.Predict(0, h, 0, until)
	x.RemoveWorker(0)
	require.Zero(t, x.AddWorker(index.Key{Instance: "another"}), "with its number")
	now := x.Predict(0, h[:2], 0, until)
	for _, p := range []index.Prediction{cleared, removed} {
		x.Unpredict(p)
		require.Equal(t, "0:2", depths(x, "abab"))
	}
	x.Unpredict(now)
	x.Unpredict(now)
	require.Zero(t, x.Len())
	x.Predict(0, h, 0, until)
	x.RemoveWorker(0)
	x.Unpredict(now)
	x.Expire(until)
	require.NoError(t, x.Check())
}

// Hashes that are not a chain may name a block again while it is being stored.
func TestRepeatedHashes(t *testing.T) {
	for n := 1; n < 6; n++ {
		x := fleet(2)
		h := blocks(0, n)
		x.Predict(0, h[:1], 0, time.Unix(1, 0))
		again := slices.Concat(h, h, h)
		x.Predict(1, again, 0, time.Unix(1, 0))
		require.NoError(t, x.CheckInvalidChains())
		x.Add(0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: blocks(99, len(again)), SequenceHashes: again})
		require.NoError(t, x.CheckInvalidChains())
		x.Clear(0)
		x.Expire(time.Unix(1, 0))
		require.NoError(t, x.CheckInvalidChains())
		require.Zero(t, x.Len())
	}
}

func TestTrust(t *testing.T) {
	x := index.NewAll(modelBlock, &index.AllOptions{MaxPending: 2})
	id := x.AddWorker(index.Key{Instance: "e"})
	require.Equal(t, id, x.AddWorker(index.Key{Instance: "e"}))
	state := func() string {
		s, ok := x.Info(id)
		require.True(t, ok)
		require.Equal(t, []index.Info{s}, x.AppendInfos(nil))
		return s.State.String() + " " + s.Why
	}
	require.Equal(t, "unknown no events yet", state())
	x.Add(id, stored("a", 0, 0))
	require.Equal(t, "exact ", state())
	x.Add(id, stored("bab", 2, 0))
	require.Equal(t, "degraded stored blocks whose parent is unknown", state())
	x.Add(id, stored("ba", 0, 0))
	require.Equal(t, "exact ", state())
	x.Add(id, stored("bbaaa", 2, 0)) // more than may be parked
	require.Equal(t, "degraded stored blocks that could not be placed", state())
	m := x.AppendMatches(nil, modelHashes("a"))
	require.Equal(t, index.Degraded, m[0].State)
	require.Equal(t, "degraded stored blocks that could not be placed", state())
	x.Add(id, &kvevent.Event{Kind: kvevent.Cleared})
	require.Equal(t, "exact ", state())
	x.Add(id, &kvevent.Event{Kind: kvevent.Stored, BlockSize: 63, BlockHashes: []uint64{1}, TokenIDs: make([]uint32, 63)})
	require.Equal(t, "degraded stored blocks of another size", state())
	x.Clear(id)
	require.Equal(t, "exact ", state())
	x.Add(id, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, TokenIDs: make([]uint32, 64)}) // the size shows
	require.Equal(t, "degraded stored blocks of another size", state())
	x.Clear(id)
	x.SetState(id, index.Degraded, "batches were lost")
	require.Equal(t, "degraded batches were lost", state())
	x.SetState(id, index.Exact, "")
	require.Equal(t, "exact ", state())
	x.RemoveWorker(id)
	_, ok := x.Info(id)
	require.False(t, ok)
	_, ok = x.Lookup(index.Key{Instance: "e"})
	require.False(t, ok)
}

// The reason names the batches that were unreadable or lost.
func TestStreamLosses(t *testing.T) {
	x := fleet(1)
	f := x.NewStream(0, nil)
	why := func() string {
		s, _ := x.Info(0)
		return s.State.String() + " " + s.Why
	}
	f.Add(kvevent.Batch{Seq: 0, Damaged: true})
	require.Equal(t, "degraded batch 0 was lost or unreadable", why())
	f.Add(kvevent.Batch{Seq: 5})
	f.Skip()
	require.Equal(t, "degraded some of the batches 0 to 4 were lost or unreadable", why())
}

func TestFeed(t *testing.T) {
	x := fleet(1)
	f := x.NewStream(0, nil)
	batch := func(seq uint64, ev *kvevent.Event) kvevent.Batch {
		return kvevent.Batch{Seq: seq, Events: []kvevent.Event{*ev}}
	}
	look := func() string {
		s, _ := x.Info(0)
		n, from := f.Need()
		return fmt.Sprintf("%s %s {%v %v}", depths(x, "abab"), s.State, n, from)
	}
	f.Add(batch(0, stored("a", 0, 0)))
	require.Equal(t, "0:1 exact {0 0}", look())
	f.Add(batch(4, stored("abab", 3, 0)))
	require.Equal(t, "0:1 degraded {1 1}", look())
	f.FinishReplay()
	require.Equal(t, "0:1 degraded {2 1}", look())
	f.Skip()
	require.Equal(t, "0:1 degraded {0 0}", look(), "the last block is an orphan")
	f.Add(batch(7, stored("ababb", 4, 0)))
	f.Replace(6, []kvevent.Event{*stored("abab", 0, 0)})
	require.Equal(t, "0:4 exact {0 0}", look())
	require.Equal(t, "0:5", depths(x, "ababb"), "the held batch went on top")
	f.Add(batch(0, stored("b", 0, 0)))
	require.Equal(t, " exact {0 0}", look(), "the engine was restarted")
	require.Equal(t, "0:1", depths(x, "b"))
	x.RemoveWorker(0)
	f.Add(batch(1, stored("ab", 0, 0)))
	f.Replace(2, nil)
	require.Zero(t, x.Len())
}

// Workers beyond one word of bits, and beyond what a lookup keeps on its stack.
func TestManyWorkers(t *testing.T) {
	x := fleet(3)
	x.Add(1, stored("aaa", 0, 0))
	n, want := 5000, "1:3 64:1 1000:2 2000:3 3000:4 4000:1"
	if testing.Short() {
		n, want = 1500, "1:3 64:1 1000:2"
	}
	for i := 3; i < n; i++ {
		id := x.AddWorker(index.Key{Instance: "e", DPRank: uint32(i)})
		if i%1000 == 0 || i == 64 {
			x.Add(id, stored("aaaa"[:1+i/1000%4], 0, 0))
		}
	}
	require.Equal(t, want, depths(x, "aaaa"))
	for i := range n {
		x.RemoveWorker(index.WorkerID(i))
	}
	require.NoError(t, x.Check())
	require.Zero(t, x.Len())
	require.Equal(t, index.WorkerID(0), x.AddWorker(index.Key{Instance: "new"}))
}

func TestKeys(t *testing.T) {
	require.Equal(t, "a", index.Key{Instance: "a"}.String())
	require.Equal(t, "a/3", index.Key{Instance: "a", DPRank: 3}.String())
	require.Panics(t, func() { index.NewAll(0, nil) })
}

// TestFeedReset clears the cache of an engine that does not report it.
func TestFeedReset(t *testing.T) {
	x := index.NewAll(1, nil)
	a := x.AddWorker(index.Key{Instance: "a"})
	f := x.NewStream(a, nil)
	stored := func(h uint64) []kvevent.Event {
		return []kvevent.Event{{Kind: kvevent.Stored, BlockHashes: []uint64{h}, TokenIDs: []uint32{uint32(h)}}}
	}
	f.Add(kvevent.Batch{Seq: 0, Events: stored(1)})
	f.Add(kvevent.Batch{Seq: 1, Events: stored(2)})
	f.Reset("")
	s, _ := x.Info(a)
	require.Zero(t, s.Blocks)
	require.Equal(t, index.Unknown, s.State)
	f.Add(kvevent.Batch{Seq: 0, Events: stored(3)})
	s, _ = x.Info(a)
	require.EqualValues(t, 1, s.Blocks)
	require.Equal(t, index.Exact, s.State)
}
