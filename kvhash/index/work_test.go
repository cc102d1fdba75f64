// SPDX-License-Identifier: Apache-2.0

//go:build weftcount

package index_test

import (
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// checkWork fails if the last lookup compared more than one hash for each run on its way, and what a binary search takes in the last one.
func checkWork(t testing.TB, x *index.Index) (runs int64) {
	runs, hashes, last := x.Work()
	if hashes > runs+int64(bits.Len64(uint64(last))) {
		t.Fatalf("%d hashes compared in %d runs, the last of %d blocks", hashes, runs, last)
	}
	return runs
}

// TestWork: conversations that fork off each other, grow on one worker or on several, and are evicted from the end.
func TestWork(t *testing.T) {
	x := index.NewAll(1, nil)
	for i := range 8 {
		x.AddWorker(index.Key{Instance: "e", DPRank: uint32(i)})
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	type prompt struct {
		local []uint64
		on    index.WorkerID
		own   int // blocks at the end that it does not share
	}
	first := prompt{local: make([]uint64, 1500)}
	for i := range first.local {
		first.local[i] = rnd.Uint64()
	}
	prompts := []*prompt{&first}
	lookups, runs := 0, int64(0)
	for range 3000 {
		from := prompts[rnd.IntN(len(prompts))]
		keep := len(from.local)
		if rnd.IntN(3) == 0 {
			keep = rnd.IntN(keep) + 1
		}
		from.own = min(from.own, len(from.local)-keep)
		p := &prompt{local: append([]uint64(nil), from.local[:keep]...), on: from.on}
		if rnd.IntN(4) == 0 {
			p.on = index.WorkerID(rnd.IntN(8))
		}
		for p.own = range rnd.IntN(60) + 1 {
			p.local = append(p.local, rnd.Uint64())
		}
		prompts = append(prompts, p)
		seq := kvhash.AppendSequence(nil, p.local)
		x.Add(p.on, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: seq, LocalHashes: p.local})
		if q := prompts[rnd.IntN(len(prompts))]; rnd.IntN(3) == 0 && q.own > 0 {
			seq := kvhash.AppendSequence(nil, q.local)
			n := rnd.IntN(q.own) + 1
			x.Add(q.on, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: seq[len(seq)-n:]})
			q.local, q.own = q.local[:len(seq)-n], q.own-n
		}
		for range 5 {
			q := prompts[rnd.IntN(len(prompts))].local
			q = append(append([]uint64(nil), q[:rnd.IntN(len(q))]...), rnd.Uint64())
			x.Work()
			x.AppendMatches(nil, kvhash.AppendSequence(nil, q))
			runs += checkWork(t, x)
			lookups++
		}
	}
	t.Logf("%d lookups of %.1f runs, %d blocks", lookups, float64(runs)/float64(lookups), x.Len())
}

// TestWorkBest: the best of a thousand workers cost a Match each, however many others there are.
func TestWorkBest(t *testing.T) {
	const blocks, workers = 40, 1000
	x := index.NewAll(1, nil)
	rnd := rand.New(rand.NewPCG(1, 2))
	local := make([]uint64, blocks)
	for i := range local {
		local[i] = rnd.Uint64()
	}
	seq := kvhash.AppendSequence(nil, local)
	for i := range workers {
		n := 1 + i%blocks
		x.Add(x.AddWorker(index.Key{DPRank: uint32(i)}), &kvevent.Event{Kind: kvevent.Stored, BlockHashes: seq[:n], LocalHashes: local[:n]})
	}
	x.Opened()
	for _, n := range []int{1, 3, 24, 26, 600, 1000, 2000} {
		if got := x.AppendBest(nil, seq, n); len(got) != min(n, workers) || got[0].Depth != blocks || x.Opened() != int64(len(got)) {
			t.Fatalf("the best %d: %d matches, the first %+v", n, len(got), got[0])
		}
	}
}

// TestWorkOnWorkloads checks every lookup of the small workloads.
func TestWorkOnWorkloads(t *testing.T) {
	for _, name := range []string{"conv_n16_bs64", "agent_n16_bs64", "agent_n64_bs16"} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(shared(), "kv", "workloads", name+".kvw"))
			if err != nil {
				t.Skip("no workload: set WEFT_SHARED")
			}
			w := newWorkload(t, raw)
			var runs int64
			w.matched = func(x *index.Index) { runs += checkWork(t, x) }
			w.run(t)
			t.Logf("%d lookups of %.2f runs", w.queries, float64(runs)/float64(w.queries))
		})
	}
}

// TestWorkOfClear: clearing and removing a worker holds the lock for a bounded number of changes, whatever it holds.
func TestWorkOfClear(t *testing.T) {
	x := index.NewAll(1, nil)
	rnd := rand.New(rand.NewPCG(1, 2))
	until := time.Unix(1e9, 0)
	for i := range 3 {
		x.AddWorker(index.Key{DPRank: uint32(i)})
	}
	fill := func() {
		for range 3000 { // short prompts, so that most names are in a run of their own
			local := make([]uint64, 1+rnd.IntN(10))
			for i := range local {
				local[i] = rnd.Uint64()
			}
			seq := kvhash.AppendSequence(nil, local)
			for id := range index.WorkerID(3) {
				x.Add(id, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: seq, LocalHashes: local})
			}
			more := append(append([]uint64(nil), seq...), rnd.Uint64())
			x.Predict(1, more, 0, until)
			// The same engine hash for many blocks.
			x.Add(1, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{7}, LocalHashes: []uint64{rnd.Uint64()}})
		}
	}
	fill()
	x.MostWork()
	for name, f := range map[string]func(){
		"clear 0": func() { x.Clear(0) }, "clear 1": func() { x.Clear(1) }, "remove 1": func() { x.RemoveWorker(1) }, "remove 2": func() { x.RemoveWorker(2) },
	} {
		f()
		if n := x.MostWork(); n > 2500 {
			t.Errorf("%s: %d steps in one hold of the lock", name, n)
		}
		if err := x.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if x.RemoveWorker(0); x.Len() != 0 {
		t.Errorf("%d blocks left", x.Len())
	}
}

// TestWorkOfClearNew: clearing a worker with few blocks costs little, whatever others hold, so an engine that starts again and again does no
// harm.
func TestWorkOfClearNew(t *testing.T) {
	x := index.NewAll(1, nil)
	rnd := rand.New(rand.NewPCG(1, 2))
	old, fresh := x.AddWorker(index.Key{DPRank: 0}), x.AddWorker(index.Key{DPRank: 1})
	for range 2000 {
		h := []uint64{rnd.Uint64()}
		x.Add(old, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: h, LocalHashes: h})
	}
	for range 10 {
		h := []uint64{rnd.Uint64(), rnd.Uint64()}
		x.Add(fresh, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: h, LocalHashes: h})
		x.MostWork()
		x.Clear(fresh)
		if n := x.MostWork(); n == 0 || n > 100 {
			t.Fatalf("%d steps to clear two blocks", n)
		}
	}
}

// TestWorkOfSnapshot: a snapshot holds the lock for a bounded number of changes, whatever the index holds.
func TestWorkOfSnapshot(t *testing.T) {
	x := index.NewAll(1, nil)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 3 {
		x.AddWorker(index.Key{DPRank: uint32(i)})
	}
	for range 20000 {
		local := make([]uint64, 1+rnd.IntN(20))
		for i := range local {
			local[i] = rnd.Uint64()
		}
		x.Add(index.WorkerID(rnd.IntN(3)), &kvevent.Event{Kind: kvevent.Stored, BlockHashes: kvhash.AppendSequence(nil, local), LocalHashes: local})
	}
	x.MostWork()
	data := x.AppendSnapshot(nil)
	if n := x.MostWork(); n == 0 || n > 5000 {
		t.Errorf("%d steps in one hold of the lock for %d bytes", n, len(data))
	}
}
