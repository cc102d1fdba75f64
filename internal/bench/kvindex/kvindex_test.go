// SPDX-License-Identifier: Apache-2.0

package kvindex

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/kvbench/kvw"
	"github.com/weft-go/weft/internal/bench/remote"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// history makes a workload of random operations: prompts that branch, stores of whatever a worker does not hold yet,
// removals of blocks in the middle, which hide the blocks after them, and stores that fill such holes. Without holes,
// only ends are removed, the last block first.
func history(t testing.TB, seed uint64, workers, ops int, holes bool) *kvw.Workload {
	t.Helper()
	w, err := kvw.Read(written(seed, workers, ops, holes))
	require.NoError(t, err)
	return w
}

// written is the file of a history.
func written(seed uint64, workers, ops int, holes bool) []byte {
	rnd := rand.New(rand.NewPCG(seed, 0))
	parent := []int{-1}      // by id
	children := [][]int{nil} // by id
	out := kvw.Writer{Header: kvw.Header{Name: "random", BlockSize: 16, Workers: workers}}
	held := make([]map[int]bool, workers)
	for i := range held {
		held[i] = map[int]bool{}
	}
	prompt := func() (ids []uint32) {
		id := 0
		if rnd.IntN(20) == 0 { // another beginning
			parent, children = append(parent, -1), append(children, nil)
			id = len(parent) - 1
		}
		for n := 1 + rnd.IntN(40); ; n-- {
			ids = append(ids, uint32(id))
			if n == 0 {
				return ids
			}
			if c := children[id]; len(c) > 0 && rnd.IntN(8) > 0 {
				id = c[rnd.IntN(len(c))]
				continue
			}
			parent, children = append(parent, id), append(children, nil)
			children[id] = append(children[id], len(parent)-1)
			id = len(parent) - 1
		}
	}
	for range ops {
		ids := prompt()
		out.Query(ids...)
		w := rnd.IntN(workers)
		for a := 0; a < len(ids); {
			if held[w][int(ids[a])] {
				a++
				continue
			}
			b := a
			for ; b < len(ids) && !held[w][int(ids[b])] && b-a < 7; b++ {
				held[w][int(ids[b])] = true
			}
			out.Store(w, parent[ids[a]], ids[a:b]...)
			a = b
		}
		if rnd.IntN(2) == 0 {
			var gone []uint32
			for i := len(parent) - 1; i >= 0; i-- { // children have higher ids
				end := !slices.ContainsFunc(children[i], func(c int) bool { return held[w][c] })
				if held[w][i] && (holes && rnd.IntN(10) == 0 || !holes && end && rnd.IntN(2) == 0) {
					delete(held[w], i)
					gone = append(gone, uint32(i))
				}
			}
			if holes {
				rnd.Shuffle(len(gone), func(i, j int) { gone[i], gone[j] = gone[j], gone[i] })
			}
			if len(gone) > 0 {
				out.Remove(w, gone...)
			}
		}
	}
	return out.Bytes()
}

// All peers return the same results after every operation.
func TestPeersAgree(t *testing.T) {
	for _, c := range []struct{ workers, ops int }{{1, 100}, {3, 300}, {16, 300}, {64, 200}, {65, 200}, {200, 300}} {
		w := history(t, uint64(c.workers), c.workers, c.ops, true)
		var peers []Peer
		for _, m := range Makers() {
			peers = append(peers, m.New(w.BlockSize, w.Workers))
		}
		found := int64(0)
		for i := range w.Ops {
			op := &w.Ops[i]
			if op.Kind != kvw.Query {
				for j, p := range peers {
					require.Equal(t, op.Blocks, p.Apply(int(op.Worker), &op.Event), "%s, operation %d", Makers()[j].Name, i)
				}
				continue
			}
			var want []Hit
			for j, p := range peers {
				sum := p.Match(w.AppendSeq(nil, op), w.AppendLocal(nil, op))
				hits := p.AppendHits(nil)
				slices.SortFunc(hits, func(a, b Hit) int { return a.Worker - b.Worker })
				if j == 0 {
					want = hits
				}
				require.Equal(t, want, hits, "%s, operation %d", Makers()[j].Name, i)
				for _, h := range hits {
					sum -= int64(h.Depth)
					found += int64(h.Depth)
				}
				require.Zero(t, sum)
			}
		}
		require.NotZero(t, found)
		for _, p := range peers {
			require.Equal(t, peers[0].Residencies(), p.Residencies())
		}
	}
}

// When all is removed, in any order, nothing is left of the tree.
func TestTreeEmpty(t *testing.T) {
	w := history(t, 7, 70, 300, true)
	for _, lean := range []bool{false, true} {
		x := NewTree(w.Workers, lean)
		for i := range w.Ops {
			if op := &w.Ops[i]; op.Kind != kvw.Query {
				x.Apply(int(op.Worker), &op.Event)
			}
		}
		require.NotZero(t, x.Residencies())
		for worker, held := range x.workers {
			for h := range held {
				x.Apply(worker, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{h}})
			}
		}
		require.Zero(t, x.Residencies())
		require.Nil(t, x.root.only)
		require.Nil(t, x.root.children)
	}
}

// A store after an absent block, and the removal of an absent block, change nothing.
func TestTreeUnknown(t *testing.T) {
	x := NewTree(1, false)
	require.Zero(t, x.Apply(0, &kvevent.Event{Kind: kvevent.Stored, HasParent: true, Parent: 5, BlockHashes: []uint64{6}, LocalHashes: []uint64{6}}))
	require.Zero(t, x.Apply(0, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{6}}))
	require.Zero(t, x.Match([]uint64{6}, []uint64{6}))
	require.Zero(t, x.Match(nil, nil))
}

func TestCompare(t *testing.T) {
	w := history(t, 9, 5, 100, true)
	c, err := Compare(w, Makers(), 2, true)
	require.NoError(t, err)
	require.Len(t, c.Costs, 5)
	for _, cost := range c.Costs {
		require.Empty(t, cost.Wrong)
		require.Equal(t, w.Queries, cost.Asked)
		require.Equal(t, c.Costs[0].Residencies, cost.Residencies)
		require.Greater(t, cost.NSPerEventBlock, 0.0)
		require.Greater(t, cost.BytesPerResidency, 0.0)
		require.Greater(t, cost.BlockOpsPerS, 0.0)
	}
	require.Zero(t, c.Cost("weft").AllocsPerQuery)
	require.Greater(t, c.Cost("tree").EventRatio, 0.0)
	require.NotEmpty(t, c.Goals())
	require.False(t, c.Known)
}

// Dynamo's indexes give the same results.
func TestDynamo(t *testing.T) {
	if os.Getenv("WEFT_DYNAMO") == "" {
		t.Skip("WEFT_DYNAMO is not set: building Dynamo's crate takes minutes")
	}
	d, err := remote.StartDynamo()
	require.NoError(t, err)
	defer d.Close()
	require.ErrorContains(t, d.Load("absent.kvw"), "No such file")
	_, err = d.Events(remote.Radix)
	require.ErrorContains(t, err, "no workload is loaded")

	w := history(t, 9, 5, 1000, false)
	file := filepath.Join(t.TempDir(), "random.kvw")
	require.NoError(t, os.WriteFile(file, written(9, 5, 1000, false), 0o644))
	require.NoError(t, d.Load(file))
	makers := append(Makers()[:1:1], Maker{Name: remote.Radix, Remote: d}, Maker{Name: remote.CRTC, Remote: d})
	c, err := Compare(w, makers, 2, true)
	require.NoError(t, err)
	for _, cost := range c.Costs {
		require.Empty(t, cost.Wrong)
		require.Equal(t, w.Queries, cost.Asked)
		require.Greater(t, cost.NSPerEventBlock, 0.0)
	}
	c, err = Compare(history(t, 10, 5, 1000, false), makers, 1, true) // d has another one
	require.NoError(t, err)
	require.NotEmpty(t, c.Costs[1].Wrong)
}

// liar is right for its first n queries.
type liar struct {
	Peer
	n int
}

func (l *liar) Match(seq, local []uint64) int64 {
	sum := l.Peer.Match(seq, local)
	if l.n--; l.n < 0 {
		sum++
	}
	return sum
}

// A peer with a wrong result has no time; a wrong reference is an error.
func TestWrong(t *testing.T) {
	w := history(t, 9, 5, 100, true)
	makers := Makers()
	lie := func(block, workers int) Peer { return &liar{NewWeft(block, workers), 50} }
	c, err := Compare(w, []Maker{makers[0], {Name: "weft", New: lie}}, 2, false)
	require.NoError(t, err)
	require.Contains(t, c.Costs[1].Wrong, "query 50")
	require.Zero(t, c.Costs[1].USPerQuery)
	require.Zero(t, c.Cost("lean").EventRatio)
	require.Nil(t, c.Cost("weft"))
	require.False(t, c.Goals()[0].Met)

	w.Name = Names[0]
	_, err = Compare(w, makers, 1, false)
	require.ErrorContains(t, err, "should be 2301659")
}

func TestConcurrent(t *testing.T) {
	w := history(t, 11, 8, 400, false)
	b, readers, err := Concurrent(w, 2, 20*time.Millisecond)
	require.NoError(t, err)
	for _, v := range []float64{b.Alone, b.Beside, b.Control, b.Ratio, b.ControlRatio, b.OwnRatio, b.EventsPerS, b.NSPerEventBlock, b.BlockOpsPerS} {
		require.Greater(t, v, 0.0)
	}
	require.Len(t, readers, 4)
	for _, r := range readers {
		require.Greater(t, r.PerS, 0.0)
		require.Greater(t, r.PerCPUS, 0.0)
	}
}

// The second half and what takes it back leave the index as it was.
func TestHalf(t *testing.T) {
	w := history(t, 13, 8, 400, false)
	h, err := newHalf(w)
	require.NoError(t, err)
	x, err := h.index()
	require.NoError(t, err)
	depths := func() (all []int32) {
		for _, q := range h.queries {
			for _, m := range x.AppendMatches(nil, q) {
				all = append(all, int32(m.Worker), m.Depth)
			}
		}
		return all
	}
	first := depths()
	wr := &writer{x: x, h: h}
	wr.to(len(h.rest))
	second := depths()
	require.NotEqual(t, first, second)
	wr.to(0)
	require.Equal(t, first, depths())
	wr.to(len(h.rest))
	require.Equal(t, second, depths())
	require.Zero(t, wr.wrong)
}

func TestSize(t *testing.T) {
	_, ok := Size(100, 16)
	require.False(t, ok)
	s, ok := Size(10000, 16)
	require.True(t, ok)
	require.InDelta(t, 10000, s.Residencies, sessionBlocks)
	for _, v := range []float64{s.NSPerBlockFilled, s.NSPerEventBlock, s.USPerQuery, s.BytesPerResidency, s.MB} {
		require.Greater(t, v, 0.0)
	}
}

// The checksum of a shared workload is the published one.
func TestShared(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared")
	}
	data, err := os.ReadFile(filepath.Join(dir, "kv", "workloads", "agent_n16_bs64.kvw"))
	if err != nil {
		t.Skip("no workloads: set WEFT_SHARED")
	}
	w, err := kvw.Read(data)
	require.NoError(t, err)
	c, err := Compare(w, Makers()[:3], 1, false)
	require.NoError(t, err)
	require.True(t, c.Known)
	require.Empty(t, c.Costs[2].Wrong)
}
