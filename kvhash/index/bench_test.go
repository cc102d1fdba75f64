// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

func randomTokens(seed uint64, n int) []uint32 {
	rnd := rand.New(rand.NewPCG(seed, 0))
	t := make([]uint32, n)
	for i := range t {
		t[i] = rnd.Uint32N(150000)
	}
	return t
}

// BenchmarkMatch looks up a prompt of which every worker holds a part.
func BenchmarkMatch(b *testing.B) {
	for _, blocks := range []int{16, 1024, 4096} {
		for _, workers := range []int{1, 16, 64, 1024} {
			for _, hit := range []float64{0, 0.5, 1} {
				b.Run(fmt.Sprintf("blocks=%d/workers=%d/hit=%v", blocks, workers, hit), func(b *testing.B) {
					x := index.NewAll(16, nil)
					tokens := randomTokens(1, 16*blocks)
					h := kvhash.Scheme{}.AppendBlocks(nil, tokens, 16, nil)
					n := int(hit * float64(blocks))
					for i := range workers {
						id := x.AddWorker(index.Key{Instance: "e", DPRank: uint32(i)})
						x.Add(id, &kvevent.Event{Kind: kvevent.Stored, TokenIDs: tokens[:16*n], BlockHashes: h[:n]})
					}
					dst := make([]index.Match, 0, workers)
					b.ReportAllocs()
					for b.Loop() {
						dst = x.AppendMatches(dst[:0], h)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(max(n, 1)), "ns/block")
				})
			}
		}
	}
}

// BenchmarkBest looks up the best workers of a prompt of 1,024 blocks, of which every worker holds a part.
func BenchmarkBest(b *testing.B) {
	for _, workers := range []int{16, 256, 1024, 4096} {
		x := index.NewAll(1, nil)
		tokens := randomTokens(1, 1024)
		h := kvhash.Scheme{}.AppendBlocks(nil, tokens, 1, nil)
		for i := range workers {
			n := 1024 - i%8*100
			id := x.AddWorker(index.Key{DPRank: uint32(i)})
			x.Add(id, &kvevent.Event{Kind: kvevent.Stored, TokenIDs: tokens[:n], BlockHashes: h[:n]})
		}
		for _, n := range []int{1, 8, workers} {
			b.Run(fmt.Sprintf("workers=%d/n=%d", workers, n), func(b *testing.B) {
				dst := make([]index.Match, 0, workers)
				b.ReportAllocs()
				for b.Loop() {
					if n == workers {
						dst = x.AppendMatches(dst[:0], h)
					} else {
						dst = x.AppendBest(dst[:0], h, n)
					}
				}
			})
		}
	}
}

// BenchmarkMatchDuringUpdates looks up a prompt of 1,024 runs, alone and while a writer changes the first of them without pause.
func BenchmarkMatchDuringUpdates(b *testing.B) {
	const blocks, workers = 2000, 1024
	for _, name := range []string{"alone", "updates"} {
		b.Run(name, func(b *testing.B) {
			x := index.NewAll(1, nil)
			tokens := randomTokens(1, blocks)
			h := kvhash.Scheme{}.AppendBlocks(nil, tokens, 1, nil)
			for i := range workers {
				n := blocks - i
				id := x.AddWorker(index.Key{DPRank: uint32(i)})
				x.Add(id, &kvevent.Event{Kind: kvevent.Stored, TokenIDs: tokens[:n], BlockHashes: h[:n]})
			}
			var stop atomic.Bool
			done := make(chan int)
			go func() {
				n := 0
				for ; name == "updates" && !stop.Load(); n += 2 {
					x.Add(0, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: h[:1]})
					x.Add(0, &kvevent.Event{Kind: kvevent.Stored, TokenIDs: tokens[:1], BlockHashes: h[:1]})
				}
				done <- n
			}()
			dst := make([]index.Match, 0, workers)
			var took []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				at := time.Now()
				dst = x.AppendMatches(dst[:0], h)
				took = append(took, time.Since(at))
			}
			stop.Store(true)
			changes := <-done
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "µs/median")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "µs/p99")
			b.ReportMetric(float64(changes)/b.Elapsed().Seconds(), "changes/s")
		})
	}
}

// BenchmarkApply stores and removes prompts of 4096 tokens that share their first half.
func BenchmarkApply(b *testing.B) {
	const blocks = 256
	x := index.NewAll(16, nil)
	id := x.AddWorker(index.Key{Instance: "e"})
	tokens := randomTokens(1, 16*blocks)
	var evs [64]kvevent.Event
	for i := range evs {
		own := append(tokens[:8*blocks:8*blocks], randomTokens(uint64(i)+2, 8*blocks)...)
		evs[i] = kvevent.Event{Kind: kvevent.Stored, TokenIDs: own, BlockHashes: kvhash.Scheme{}.AppendBlocks(nil, own, 16, nil)}
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		e := evs[i%len(evs)]
		x.Add(id, &e)
		e.Kind = kvevent.Removed
		x.Add(id, &e)
		i++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*blocks), "ns/block")
}
