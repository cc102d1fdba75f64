// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// explained has every part of a line.
func explained() *index.Index {
	x := index.NewAll(modelBlock, nil)
	for i := range uint32(4) {
		x.AddWorker(index.Key{Instance: "e", DPRank: i})
	}
	x.Attach(3, x.AddStore(index.Key{Instance: "store"}, kvevent.Remote))
	store := func(id index.WorkerID, tier kvevent.Tier, from int, path string) {
		ev := kvevent.Event{Kind: kvevent.Stored, Tier: tier, BlockHashes: modelHashes(path)[from:], TokenIDs: modelTokens(path[from:])}
		if ev.HasParent = from > 0; ev.HasParent {
			ev.Parent = modelHashes(path)[from-1]
		}
		x.Add(id, &ev)
	}
	store(0, kvevent.Device, 0, "abcdef")
	store(0, kvevent.Host, 0, "ab")
	store(1, kvevent.Device, 0, "abcd")
	store(4, kvevent.Remote, 0, "abc")
	store(2, kvevent.Device, 3, "xyzq") // an orphan
	x.Predict(2, modelHashes("abcdef"), 0, time.Unix(9, 0))
	return x
}

func ExampleIndex_AppendExplanation() {
	x := explained()
	os.Stdout.Write(x.AppendExplanation(nil, modelHashes("abcdefgh")))
	// Output:
	// 6 of 8 blocks known, then no worker holds the next block
	// [0,2) device e e/1; host e; remote e/3; predicted e/2
	// [2,3) device e e/1; remote e/3; predicted e/2
	// [3,4) device e e/1; predicted e/2; left e/3
	// [4,6) device e; predicted e/2; left e/1
}

func ExampleIndex_AppendDump() {
	os.Stdout.Write(explained().AppendDump(nil, 0))
	// Output:
	// 5 workers, 6 blocks of 2 tokens, scheme dynamo
	// worker 0: e, 6 blocks, exact
	// worker 1: e/1, 4 blocks, exact
	// worker 2: e/2, 6 blocks, degraded (stored blocks whose parent is unknown)
	// worker 3: e/3, 0 blocks, unknown (no events yet)
	// worker 4: store, a store, remote, read by 3, 3 blocks, exact
	// beginning, or after what is not known
	//   [0,2) 02bf0c42155063cb device: 0-1 host: 0 remote: 4 predicted: 2
	//   [2,3) 467deffbb5a39746 device: 0-1 remote: 4 predicted: 2
	//   [3,4) 8b7fdfe871fd2927 device: 0-1 predicted: 2
	//   [4,6) 558558a66097c250 device: 0 predicted: 2
	// orphans of worker 2: 1 blocks, 0 of them removed, device, from engine hash f8777a59b00e1d87, after b9b25f992ee3eeac
}

func TestExplain(t *testing.T) {
	x := explained()
	e := x.Explain(modelHashes("abcdefgh"))
	require.Equal(t, index.NotKnown, e.End)
	require.Equal(t, index.Parted, x.Explain(modelHashes("abcdex")).End)
	require.Equal(t, index.EndOfPrompt, x.Explain(modelHashes("abc")).End)
	require.Equal(t, index.NotKnown, x.Explain(modelHashes("zz")).End)
	require.Empty(t, x.Explain(nil).Way)

	// A hole.
	h := modelHashes("abcdef")
	for id := range index.WorkerID(3) {
		x.Add(id, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: h[4:5]})
	}
	x.Expire(time.Unix(10, 0))
	e = x.Explain(h)
	require.Equal(t, 4, e.Known)
	require.Equal(t, 5, e.Again)
	require.Contains(t, e.String(), "4 of 6 blocks known, then no worker holds the next block; known again from block 5 on\n")
}

// TestExplainAgrees compares with lookups.
func TestExplainAgrees(t *testing.T) {
	for seed := range uint64(100) {
		h := newPast(seed)
		x := h.index(int(seed), &pastOptions)
		for range 20 {
			p := modelHashes(h.path(12))
			e := x.Explain(p)
			depth := map[index.WorkerID]int32{}
			for i, leg := range e.Way {
				if i == 0 {
					for _, ids := range append(leg.Tiers[:], leg.Predicted) {
						for _, id := range ids {
							depth[id] = int32(e.Known)
						}
					}
				}
				for _, id := range leg.Left {
					depth[id] = int32(leg.From)
				}
			}
			for id, d := range depth { // of hybrid models: what ends with enough blocks of all groups
				need, row, served := x.NeedOf(id), int32(0), int32(0)
				for _, leg := range e.Way {
					to := min(int32(leg.To), d)
					if row += to - int32(leg.From); !slices.Contains(append(leg.Grouped, leg.Predicted...), id) {
						row = 0
					}
					if row >= min(need, to) && to > int32(leg.From) {
						served = to
					}
				}
				if depth[id] = served; served == 0 {
					delete(depth, id)
				}
			}
			got := map[index.WorkerID]int32{}
			for _, m := range x.AppendMatches(nil, p) {
				got[m.Worker] = m.Depth
			}
			require.Equal(t, got, depth, "%v", e)
		}
		dump := x.AppendDump([]byte("x"), 0)
		require.Equal(t, dump[1:], x.AppendDump(nil, 0))
		require.LessOrEqual(t, len(x.AppendDump(nil, 100)), 300)
	}
}
