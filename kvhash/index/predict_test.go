// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// plain is a simple model of one worker: what it holds, and until when which blocks are expected, by sequence hash.
type plain struct {
	held      map[uint64]bool
	predicted map[uint64]plainDeadline
	capacity  int
}

type plainDeadline struct {
	until, serial int
}

// evict removes the oldest predictions until no more blocks are predicted than fit.
func (p *plain) evict() {
	for len(p.predicted) > p.capacity {
		oldest := math.MaxInt
		for _, d := range p.predicted {
			oldest = min(oldest, d.serial)
		}
		maps.DeleteFunc(p.predicted, func(_ uint64, d plainDeadline) bool { return d.serial == oldest })
	}
}

func (p *plain) depth(hashes []uint64) (depth, predicted int) {
	for _, h := range hashes {
		_, is := p.predicted[h]
		if !is && !p.held[h] {
			break
		}
		if depth++; is {
			predicted++
		}
	}
	return depth, predicted
}

// TestPredictLongPrompts runs random histories of prompts with thousands of blocks, which fork off each other, and
// compares them with a simple model.
func TestPredictLongPrompts(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 17))
		x := index.New(1, nil)
		var model [2]plain
		for i := range model {
			x.AddWorker(index.Key{DPRank: uint32(i)})
			model[i] = plain{map[uint64]bool{}, map[uint64]plainDeadline{}, 1 << 17}
		}
		prompts := [][]uint64{kvhash.Scheme{}.AppendBlocks(nil, randomTokens(seed, 3000), 1, nil)}
		for range 4 {
			from := prompts[rnd.IntN(len(prompts))]
			locals := append([]uint64{}, from[:rnd.IntN(len(from))]...)
			for range rnd.IntN(1500) + 1 {
				h := rnd.Uint64()
				if len(locals) > 0 {
					h = kvhash.Next(locals[len(locals)-1], h)
				}
				locals = append(locals, h)
			}
			prompts = append(prompts, locals)
		}
		type made struct {
			index.Prediction
			worker, serial int
			fresh          []uint64
		}
		var list []made
		now := 0
		for step := range 200 {
			id := rnd.IntN(2)
			m := &model[id]
			p := prompts[rnd.IntN(len(prompts))]
			p = p[:rnd.IntN(len(p))+1]
			op := rnd.IntN(11)
			switch {
			case op < 4:
				from, until := rnd.IntN(len(p)+1)*rnd.IntN(2), now+1+rnd.IntN(6)
				n := made{x.Predict(index.WorkerID(id), p, from, time.Unix(int64(until), 0)), id, step + 1, nil}
				for _, h := range p[from:min(len(p), from+m.capacity)] {
					if m.held[h] {
						continue
					}
					if _, again := m.predicted[h]; !again {
						n.fresh = append(n.fresh, h)
					}
					m.predicted[h] = plainDeadline{until, n.serial}
				}
				list = append(list, n)
				m.evict()
			case op < 6 && len(list) > 0:
				n := list[rnd.IntN(len(list))]
				x.Unpredict(n.Prediction)
				for _, h := range n.fresh {
					if model[n.worker].predicted[h].serial == n.serial {
						delete(model[n.worker].predicted, h)
					}
				}
			case op < 7:
				from := rnd.IntN(len(p))
				ev := kvevent.Event{Kind: kvevent.Stored, BlockHashes: p[from:], SequenceHashes: p[from:]}
				if from > 0 && !m.held[p[from-1]] {
					continue
				}
				if from > 0 {
					ev.Parent, ev.HasParent = p[from-1], true
				}
				x.Add(index.WorkerID(id), &ev)
				for _, h := range p[from:] {
					m.held[h] = true
					delete(m.predicted, h)
				}
			case op < 8:
				from := rnd.IntN(len(p))
				x.Add(index.WorkerID(id), &kvevent.Event{Kind: kvevent.Removed, BlockHashes: p[from:]})
				for _, h := range p[from:] {
					delete(m.held, h)
				}
			case op == 10:
				blocks := []int{-1, 0, 1, 100, 1000, 4000}[rnd.IntN(6)]
				x.SetCapacity(index.WorkerID(id), blocks)
				if m.capacity = blocks; blocks <= 0 {
					m.capacity = 1 << 17
				}
				m.evict()
			case op < 9 || rnd.IntN(8) > 0:
				now += rnd.IntN(3)
				x.Expire(time.Unix(int64(now), 0))
				for i := range model {
					for h, d := range model[i].predicted {
						if d.until <= now {
							delete(model[i].predicted, h)
						}
					}
				}
			default:
				x.Add(index.WorkerID(id), &kvevent.Event{Kind: kvevent.Cleared, Tier: []kvevent.Tier{kvevent.AnyTier, kvevent.Device}[rnd.IntN(2)]})
				clear(m.held)
				clear(m.predicted)
			}
			for x.Expire(time.Unix(int64(now), 0)) { // what is left of predictions that do not fit
			}
			if err := x.Check(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			for i, p := range prompts {
				var want, got string
				for id := range model {
					if depth, predicted := model[id].depth(p); depth > 0 {
						want += fmt.Sprintf(" %d:%d-%d", id, depth, predicted)
					}
				}
				for _, m := range x.AppendMatches(nil, p) {
					got += fmt.Sprintf(" %d:%d-%d", m.Worker, m.Depth, m.Predicted)
				}
				if got != want {
					t.Fatalf("seed %d, step %d: prompt %d:%s, want%s", seed, step, i, got, want)
				}
			}
		}
	}
}

// A conversation whose prompt is sent again and again keeps one range of predicted blocks, not an entry per block or
// per request.
func TestPredictionsOfConversationStaySmall(t *testing.T) {
	x := index.NewAll(1, nil)
	x.AddWorker(index.Key{})
	hashes := kvhash.Scheme{}.AppendBlocks(nil, randomTokens(1, 8000), 1, nil)
	for i := range 400 {
		x.Predict(0, hashes[:4000+10*i], 0, time.Unix(int64(i), 0))
	}
	before := x.Measure().Bytes
	if x.Measure().Predictions != 7990 {
		t.Fatalf("%d blocks are predicted", x.Measure().Predictions)
	}
	x.RemoveWorker(0)
	x.AddWorker(index.Key{})
	x.Add(0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: hashes[:1], SequenceHashes: hashes[:1]})
	x.Predict(0, hashes[:7990], 1, time.Unix(1, 0))
	if once := x.Measure().Bytes; before > once+once/8 {
		t.Errorf("%d bytes after 400 predictions of a growing prompt, %d after one", before, once)
	}
}

// A capacity can be larger than any prompt.
func TestPredictWithHugeCapacity(t *testing.T) {
	x := index.New(1, nil)
	x.AddWorker(index.Key{})
	x.SetCapacity(0, math.MaxInt)
	hashes := kvhash.Scheme{}.AppendBlocks(nil, randomTokens(1, 10), 1, nil)
	x.Predict(0, hashes, 0, time.Unix(1, 0))
	x.Predict(0, hashes[:9], 8, time.Unix(2, 0))
	if n := x.Measure().Predictions; n != 10 {
		t.Errorf("%d blocks are predicted", n)
	}
}

// If too much is predicted, the oldest prompt goes first, even if it is expected for longer than later ones.
func TestOldestPromptIsEvicted(t *testing.T) {
	x := index.New(1, nil)
	x.AddWorker(index.Key{})
	x.SetCapacity(0, 100)
	old, last := blocks(0, 90), blocks(1000, 50)
	x.Predict(0, old, 0, time.Unix(400, 0))
	x.Predict(0, last, 0, time.Unix(300, 0))
	if got := x.AppendMatches(nil, last); len(got) != 1 || got[0].Depth != 50 {
		t.Errorf("the last prompt: %v", got)
	}
	if got := x.AppendMatches(nil, old); len(got) != 0 {
		t.Errorf("the first prompt: %v", got)
	}
}

// What does not fit is removed in parts, too: first by SetCapacity and Predict, the rest by Expire.
func TestEvictionIsBounded(t *testing.T) {
	n := sample(5_000, 20_000, 20_000)
	x := index.New(1, nil)
	x.AddWorker(index.Key{})
	hashes := blocks(0, n+1)
	for i := range n {
		x.Predict(0, hashes[i:i+1], 0, time.Unix(9, 0))
	}
	steps := 0
	for before, step := x.Len(), func() { x.SetCapacity(0, 1) }; before > 1; before, steps = x.Len(), steps+1 {
		step()
		if ended := before - x.Len(); ended < 1 || ended > 129 {
			t.Fatalf("step %d removed %d predictions of %d", steps, ended, before)
		}
		step = func() { x.Expire(time.Unix(1, 0)) }
	}
	if steps < n/129 {
		t.Errorf("%d steps", steps)
	}
	if got := x.AppendMatches(nil, hashes[n-1:n]); len(got) != 1 {
		t.Errorf("the last one: %v", got)
	}
	if x.Expire(time.Unix(1, 0)) {
		t.Error("there is more to remove")
	}
	if err := x.Check(); err != nil {
		t.Error(err)
	}
}

// A call to Expire ends a bounded number of predicted blocks that are not neighbors, and the following ones the rest.
func TestExpireIsBounded(t *testing.T) {
	n := sample(10_000, 50_000, 50_000)
	x := index.New(1, nil)
	x.AddWorker(index.Key{})
	hashes := blocks(0, n)
	for i := range n / 2 {
		x.Predict(0, hashes[i:i+1], 0, time.Unix(1, 0))
	}
	for i := n / 2; i < n; i++ {
		x.Predict(0, hashes[i:i+1], 0, time.Unix(9, 0))
	}
	calls := 0
	for before := x.Len(); ; calls++ {
		if more := x.Expire(time.Unix(1, 0)); more != (before > n/2+128) && before > n/2 {
			t.Fatalf("call %d: more %v, with %d predictions", calls, more, before)
		}
		ended := before - x.Len()
		if ended == 0 {
			break
		}
		if before -= ended; ended > 129 {
			t.Fatalf("call %d ended %d predictions", calls, ended)
		}
	}
	if calls < n/2/129 || calls > n/2/125 || x.Len() != n/2 {
		t.Errorf("%d predictions remain after %d calls, want %d", x.Len(), calls, n/2)
	}

	// One long prompt with gaps.
	x = index.New(1, nil)
	x.AddWorker(index.Key{})
	x.AddWorker(index.Key{DPRank: 1})
	chain := kvhash.Scheme{}.AppendBlocks(nil, randomTokens(1, n), 1, nil)
	x.Add(0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: chain, SequenceHashes: chain})
	x.Add(1, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: chain, SequenceHashes: chain})
	var gaps []uint64
	for i := 0; i < n; i += 2 {
		gaps = append(gaps, chain[i])
	}
	x.Add(0, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: gaps})
	x.Predict(0, chain, 0, time.Unix(1, 0))
	calls = 0
	for before := 0; ; calls++ {
		w, _ := x.Worker(0)
		if ended := before - w.Blocks; before > 0 && ended > 129 {
			t.Fatalf("call %d ended %d predictions", calls, ended)
		}
		if before = w.Blocks; before == n/2 {
			break
		}
		x.Expire(time.Unix(1, 0))
	}
	if calls < n/2/129 {
		t.Errorf("%d calls", calls)
	}
	if err := x.Check(); err != nil {
		t.Error(err)
	}
}

// BenchmarkPredict predicts a prompt of 100,000 tokens again, of which the worker holds all but the end, or nothing.
func BenchmarkPredict(b *testing.B) {
	const n = 6250
	for _, held := range []int{n - 15, 0} {
		b.Run(fmt.Sprint("held=", held), func(b *testing.B) {
			x := index.New(16, nil)
			x.AddWorker(index.Key{})
			chain := kvhash.Scheme{}.AppendBlocks(nil, randomTokens(1, 16*n), 16, nil)
			if held > 0 {
				x.Add(0, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: chain[:held], SequenceHashes: chain[:held]})
			}
			now := time.Unix(0, 0)
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Second)
				x.Expire(now)
				x.Predict(0, chain, held, now.Add(5*time.Second))
			}
		})
	}
}
