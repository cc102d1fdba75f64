// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// stats returns what must be as before when everything is gone again.
func stats(x *index.Index) any {
	s := x.Measure()
	s.Bytes, s.Retries = 0, 0
	return s
}

// chainGiven now and then names the blocks of an event by their chained hashes.
func chainGiven(t *rapid.T, h *history, ev *kvevent.Event, word string, skip int) {
	// Chains are trusted, so they must be valid. Blocks after an image have other names, which the chain of the letters must not get:
	// one name would stand for two blocks.
	if h.each > 1 || ev.HasParent && !h.plain || ev.Objects != nil || rapid.IntRange(0, 3).Draw(t, "chained") > 0 {
		return
	}
	ev.TokenIDs, ev.LocalHashes, ev.LoRA, ev.Namespace = nil, nil, "", ""
	ev.SequenceHashes = modelHashes(word)[skip:]
}

// setAnyHashes passes hashes that are not a chain.
func setAnyHashes(ev *kvevent.Event, next func() byte) {
	if next()&1 == 0 {
		return
	}
	ev.TokenIDs, ev.LocalHashes, ev.Objects = nil, nil, nil
	for range len(ev.BlockHashes) + int(next()&1) {
		ev.SequenceHashes = append(ev.SequenceHashes, uint64(next()&15))
	}
}

// moreOps adds the restart of a router: the index is replaced by one loaded from a snapshot.
func moreOps(h *history, ops map[string]func(*rapid.T)) {
	ops["restart"] = func(t *rapid.T) {
		if len(h.feeds) > 0 {
			t.Skip("the model does not know where streams go on")
		}
		data := h.x.AppendSnapshot(nil)
		x, err := index.LoadAll(data, &h.m.opt)
		require.NoError(t, err)
		require.Equal(t, data, x.AppendSnapshot(nil), "snapshot of the loaded index")
		h.x, h.predicted = x, nil
		for _, w := range h.m.workers {
			if w != nil {
				clear(w.pred) // they were the other router's
			}
		}
	}
}

// searchToo asks for a part of the workers, and stops early.
func searchToo(t *rapid.T, h *history, hashes []uint64, path []int32) {
	full := h.m.match(path)
	rnd := rand.New(rand.NewPCG(uint64(h.steps), uint64(len(path))))
	q := &index.Query{Workers: []index.WorkerID{}, Stop: rnd.IntN(4)}
	for id := range index.WorkerID(len(h.m.workers) + 2) {
		if rnd.IntN(2) == 0 {
			q.Workers = append(q.Workers, id)
		}
	}
	some := slices.DeleteFunc(slices.Clone(full), func(m index.Match) bool { return !slices.Contains(q.Workers, m.Worker) })
	if rnd.IntN(3) == 0 {
		q.Workers, some = nil, full
	}
	h.got = h.x.Search(h.got[:0], hashes, q)
	if q.Stop == 0 {
		if err := sameMatches(some, h.got); err != nil {
			t.Fatalf("search %+v: %v", q, err)
		}
		return
	}
	if err := sameBounds(some, h.got, q.Stop); err != nil {
		t.Fatalf("search %+v: %v", q, err)
	}
}

// sameBounds checks the result of a search that stopped as soon as at most stop workers were left.
func sameBounds(want, got []index.Match, stop int) error {
	if len(want) != len(got) {
		return errors.New("other workers")
	}
	depths := make([]int32, len(want))
	for i := range want {
		depths[i] = want[i].Depth
	}
	slices.Sort(depths)
	slices.Reverse(depths)
	least := int32(1) // the search continues while more than stop workers are left
	if len(depths) > stop {
		least = depths[stop]
	}
	left := 0
	for i, g := range got {
		w := want[i]
		if resultOf(&g) == resultOf(&w) {
			continue
		}
		left++
		sum := g.Predicted
		for _, d := range g.Tiers {
			sum += d
		}
		if g.Worker != w.Worker || g.State != w.State || g.Depth < least || g.Depth > w.Depth || sum != g.Depth {
			return fmt.Errorf("entry %d is no lower bound, or below %d:\nmodel %+v\nindex %+v", i, least, w, g)
		}
	}
	if left > stop {
		return fmt.Errorf("%d workers have lower bounds", left)
	}
	return nil
}

// readToo checks searches that run concurrently with writers.
func readToo(r *reader, q, i int) error {
	hashes := r.scripts[0].queries[q]
	r.begin()
	if i%2 == 0 {
		r.dst = r.x.Search(r.dst[:0], hashes, nil)
		r.end()
		return r.check(q)
	}
	if i%4 == 1 {
		n := 1 + i/4%3
		r.dst = r.x.AppendBest(r.dst[:0], hashes, n)
		r.end()
		return r.checkBest(q, n)
	}
	s := r.scripts[i%len(r.scripts)]
	id := s.workers[i%len(s.workers)]
	r.dst = r.x.Search(r.dst[:0], hashes, &index.Query{Workers: []index.WorkerID{id}})
	r.end()
	if len(r.dst) > 1 || len(r.dst) == 1 && r.dst[0].Worker != id {
		return fmt.Errorf("query %d: searched for worker %d: %+v", q, id, r.dst)
	}
	got := answer{}
	if len(r.dst) == 1 {
		got = resultOf(&r.dst[0])
		got.trust, got.worker = 0, 0
	}
	if at := i % len(r.scripts); !s.find(id, r.lo[at], r.hi[at], func(t *truth) bool { return t.answers[q] == got }) && !s.copying(id, q, r.lo[at], r.hi[at], got) {
		return fmt.Errorf("query %d, worker %d: searched %+v was never true in steps %d to %d", q, id, got, r.lo[at], r.hi[at])
	}
	return nil
}

// checkBest compares each of the n best matches of query q with the truth.
func (r *reader) checkBest(q, n int) error {
	if len(r.dst) > n {
		return fmt.Errorf("query %d: the best %d are %+v", q, n, r.dst)
	}
	for i := range r.dst {
		m := &r.dst[i]
		if i > 0 && (m.Depth > r.dst[i-1].Depth || m.Depth == r.dst[i-1].Depth && m.Worker <= r.dst[i-1].Worker) {
			return fmt.Errorf("query %d: the best are not in order: %+v", q, r.dst)
		}
		at := slices.IndexFunc(r.scripts, func(s *script) bool { _, ok := s.after[0][m.Worker]; return ok })
		got := resultOf(m)
		got.trust, got.worker = 0, 0
		if s := r.scripts[at]; !s.find(m.Worker, r.lo[at], r.hi[at], func(t *truth) bool { return t.answers[q] == got }) &&
			!s.copying(m.Worker, q, r.lo[at], r.hi[at], got) {
			return fmt.Errorf("query %d: among the best, %+v was never true in steps %d to %d", q, *m, r.lo[at], r.hi[at])
		}
	}
	return nil
}

func TestSequenceHashes(t *testing.T) {
	x := fleet(2)
	seqs := modelHashes("abab")
	apply := func(id index.WorkerID, want index.Result, ev *kvevent.Event) {
		t.Helper()
		ev.Kind = cmpKind(ev.Kind)
		require.Equal(t, want, x.Add(id, ev))
		require.NoError(t, x.Check())
	}
	apply(0, index.Result{Stored: 2}, &kvevent.Event{BlockHashes: []uint64{1, 2}, SequenceHashes: seqs[:2]})
	require.Equal(t, "0:2", depths(x, "abab"))
	// They wait for their parent, as others do.
	apply(0, index.Result{Pending: 1}, &kvevent.Event{BlockHashes: []uint64{4}, Parent: 3, HasParent: true, SequenceHashes: seqs[3:]})
	apply(0, index.Result{Stored: 2}, &kvevent.Event{BlockHashes: []uint64{3}, Parent: 2, HasParent: true, SequenceHashes: seqs[2:3]})
	require.Equal(t, "0:4", depths(x, "abab"))
	// They are mixed with workers that send tokens, before and after.
	apply(1, index.Result{Stored: 4}, stored("abab", 0, 0))
	require.Equal(t, "0:4 1:4", depths(x, "abab"))
	require.Equal(t, 4, x.Len())
	// Their engine hashes are parents for tokens.
	apply(0, index.Result{Stored: 1}, &kvevent.Event{BlockHashes: []uint64{5}, Parent: 4, HasParent: true, TokenIDs: modelTokens("b")})
	require.Equal(t, "0:5 1:4", depths(x, "ababb"))
	// Fewer hashes than blocks.
	apply(0, index.Result{Stored: 1, Ignored: 1}, &kvevent.Event{BlockHashes: []uint64{81, 82}, SequenceHashes: modelHashes("b")})
	apply(0, index.Result{Removed: 5}, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{1, 2, 3, 4, 5}})
	require.Equal(t, "1:4", depths(x, "ababb"))
	x.RemoveWorker(0)
	x.RemoveWorker(1)
	require.Zero(t, x.Len())
}

// cmpKind makes a store of an event without kind.
func cmpKind(k kvevent.Kind) kvevent.Kind {
	if k == 0 {
		return kvevent.Stored
	}
	return k
}

// Engine blocks that are three of ours.
func TestBlocksOfTheEngine(t *testing.T) {
	x := fleet(2)
	const size = 3 * modelBlock
	word := "abaabbbab"
	x.Add(0, &kvevent.Event{Kind: kvevent.Stored, BlockSize: size, BlockHashes: []uint64{1, 2}, TokenIDs: modelTokens(word[:6])})
	require.Equal(t, "0:6", depths(x, word))
	x.Add(0, &kvevent.Event{Kind: kvevent.Stored, BlockSize: size, BlockHashes: []uint64{3}, Parent: 2, HasParent: true, TokenIDs: modelTokens(word[6:])})
	require.Equal(t, "0:9", depths(x, word))
	require.Equal(t, 9, x.Len())
	s, _ := x.Info(0)
	require.Equal(t, 9, s.Blocks)
	require.Equal(t, index.Exact, s.State)
	x.Add(1, stored(word, 0, 0)) // one of ours each
	require.Equal(t, "0:9 1:9", depths(x, word))
	require.Equal(t, 9, x.Len())
	x.Add(0, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{2}})
	require.Equal(t, "0:3 1:9", depths(x, word))
	require.NoError(t, x.Check())
	x.Add(0, &kvevent.Event{Kind: kvevent.Stored, BlockSize: size, BlockHashes: []uint64{2}, Parent: 1, HasParent: true, TokenIDs: modelTokens(word[3:6])})
	require.Equal(t, "0:9 1:9", depths(x, word))
	// A copy in another tier is of all three.
	x.Add(0, &kvevent.Event{Kind: kvevent.Stored, Tier: kvevent.Host, BlockHashes: []uint64{3}})
	x.Add(0, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{3}})
	m := x.AppendMatches(nil, modelHashes(word))
	require.Equal(t, [4]int32{6, 3}, m[0].Tiers)
	// A partial engine block does not count, even if it contains whole index blocks.
	x.Add(0, &kvevent.Event{Kind: kvevent.Stored, BlockSize: size, BlockHashes: []uint64{9, 10}, TokenIDs: modelTokens("bbbbb")})
	require.Equal(t, "0:3", depths(x, "bbbbb"))
	// An orphan.
	x.Clear(0)
	x.Add(0, &kvevent.Event{Kind: kvevent.Stored, BlockSize: size, BlockHashes: []uint64{2}, Parent: 1, HasParent: true, TokenIDs: modelTokens(word[3:6])})
	x.Add(0, &kvevent.Event{Kind: kvevent.Stored, BlockSize: size, BlockHashes: []uint64{1}, TokenIDs: modelTokens(word[:3])})
	require.Equal(t, "0:6 1:9", depths(x, word))
	// Sizes that are not a multiple, and too many tokens.
	for _, ev := range []kvevent.Event{
		{Kind: kvevent.Stored, BlockSize: 3, BlockHashes: []uint64{4}, TokenIDs: make([]uint32, 3)},
		{Kind: kvevent.Stored, BlockSize: size, BlockHashes: []uint64{4}, TokenIDs: make([]uint32, 2*size)},
		{Kind: kvevent.Stored, BlockSize: 1 << 30, BlockHashes: []uint64{4, 5}, TokenIDs: make([]uint32, size)},
		{Kind: kvevent.Stored, BlockSize: -size, BlockHashes: []uint64{4}, TokenIDs: make([]uint32, size)},
	} {
		x.Clear(0)
		require.Zero(t, x.Add(0, &ev).Stored)
		s, _ := x.Info(0)
		require.Equal(t, index.Degraded, s.State)
	}
	x.Add(1, &kvevent.Event{Kind: kvevent.Cleared})
	x.Clear(0)
	require.Zero(t, x.Len())
	require.NoError(t, x.Check())
}
