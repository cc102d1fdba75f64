// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// A full index holds fewer blocks than exist, reports this, and never reports more; removals make room again.
func TestFull(t *testing.T) {
	for seed := range uint64(sample(10, 40, 160)) {
		rnd := rand.New(rand.NewPCG(seed, 6))
		most := 1 + rnd.IntN(60)
		x := index.NewAll(modelBlock, &index.AllOptions{MaxBlocks: most, PendingTTL: -1})
		m := newModel(modelBlock, index.AllOptions{})
		for i := range uint32(2) {
			m.add(x.AddWorker(index.Key{DPRank: i}), index.Key{DPRank: i})
		}
		var words []string
		for range 4 {
			words = append(words, raceLong[:rnd.IntN(30)]+letters(rnd.Uint64(), "ab", 1+rnd.IntN(30)))
		}
		cut := make([]bool, 2)
		for range 100 {
			id, word := index.WorkerID(rnd.IntN(2)), words[rnd.IntN(4)]
			from := rnd.IntN(len(word))
			to := from + 1 + rnd.IntN(len(word)-from)
			switch rnd.IntN(6) {
			case 0, 1:
				ev := runOf(word[:to], from*rnd.IntN(2))
				r := x.Add(id, ev)
				m.apply(id, ev)
				cut[id] = cut[id] || r.Ignored > 0
			case 2, 3:
				ev := &kvevent.Event{Kind: kvevent.Removed, BlockHashes: engineHashes(word, 1)[from:to]}
				x.Add(id, ev)
				m.apply(id, ev)
			case 4:
				if seed%2 == 0 { // what was cut confirms no prediction
					continue
				}
				h, at := modelHashes(word), time.Unix(5, 0)
				x.Predict(id, h, from, at)
				m.worker(id).predict(m.path(h)[from:], at)
			default:
				if rnd.IntN(4) == 0 {
					x.Clear(id)
					m.worker(id).clear(kvevent.AnyTier)
					cut[id] = false
				}
			}
			require.NoError(t, x.Check())
			require.LessOrEqual(t, x.Len(), most)
			for _, s := range x.AppendInfos(nil) {
				if cut[s.Worker] {
					require.Equal(t, index.Degraded, s.State)
				}
			}
			for _, w := range words {
				for _, got := range x.AppendMatches(nil, modelHashes(w)) {
					want := m.worker(got.Worker).match(got.Worker, m.path(modelHashes(w)))
					if seed%2 == 0 && got.Depth > want.Depth {
						t.Fatalf("seed %d: %+v, model %+v", seed, got, want)
					}
				}
			}
		}
		for id := range index.WorkerID(2) {
			x.RemoveWorker(id)
		}
		require.NoError(t, x.Check())
		require.Zero(t, x.Len())
	}
}

// The blocks that a restored state replaces leave room for its own.
func TestRestoreIntoFull(t *testing.T) {
	x := index.NewAll(modelBlock, &index.AllOptions{MaxBlocks: 8})
	id := x.AddWorker(index.Key{})
	s := x.NewStream(id, nil)
	s.Add(kvevent.Batch{Events: []kvevent.Event{*stored("ab", 0, 0)}})
	state := x.AppendWorker(nil, id)
	s.Add(kvevent.Batch{Seq: 1, Events: []kvevent.Event{{Kind: kvevent.Cleared}, *stored("babababa", 0, 0)}})
	require.Equal(t, 8, x.Len())
	require.NoError(t, s.Restore(state))
	require.Equal(t, "0:2", depths(x, "ab"))
	w, _ := x.Worker(id)
	require.Equal(t, index.Worker{ID: id, Key: index.Key{}, State: index.Degraded, Why: "batch 1 is missing", Blocks: 2}, w)
}
