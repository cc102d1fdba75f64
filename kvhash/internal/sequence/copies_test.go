// SPDX-License-Identifier: Apache-2.0

package sequence_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash/internal/sequence"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// held is the state of a consumer that applies each event by itself.
type held map[[3]uint64]bool

func heldKey(e *kvevent.Event, h uint64) [3]uint64 {
	return [3]uint64{uint64(max(e.Tier, kvevent.Device)), uint64(e.Group), h}
}

func (s held) apply(batches ...kvevent.Batch) {
	for _, b := range batches {
		for i := range b.Events {
			e := &b.Events[i]
			for _, h := range e.BlockHashes {
				if e.Kind == kvevent.Stored {
					s[heldKey(e, h)] = true
				} else {
					delete(s, heldKey(e, h))
				}
			}
			if e.Kind == kvevent.Cleared {
				for k := range s {
					if e.Tier == kvevent.AnyTier || k[0] == uint64(e.Tier) {
						delete(s, k)
					}
				}
			}
		}
	}
}

// TestTrackerCopies plays an engine that holds blocks in copies and reports each: a consumer holds the blocks with at
// least one copy.
func TestTrackerCopies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := sequence.New(&sequence.Options{Copies: true})
		engine, got := map[[3]uint64]int{}, held{}
		for seq := range uint64(rapid.IntRange(1, 60).Draw(t, "batches")) {
			b := kvevent.Batch{Seq: seq}
			for range rapid.IntRange(0, 3).Draw(t, "events") {
				e := kvevent.Event{Kind: kvevent.Stored, Tier: kvevent.Tier(rapid.IntRange(0, 2).Draw(t, "tier")), Group: int32(rapid.IntRange(0, 1).Draw(t, "group"))}
				what := rapid.IntRange(0, 19).Draw(t, "what")
				if what == 0 {
					e = kvevent.Event{Kind: kvevent.Cleared, Tier: e.Tier}
					for k := range engine {
						if e.Tier == kvevent.AnyTier || k[0] == uint64(e.Tier) {
							delete(engine, k)
						}
					}
					b.Events = append(b.Events, e)
					continue
				}
				if what > 9 {
					e.Kind = kvevent.Removed
					e.NoCopies = what > 17
				} else {
					e.Attention = kvevent.Attention(e.Group) // a removal has only the group
				}
				for range rapid.IntRange(1, 4).Draw(t, "blocks") {
					h := rapid.Uint64Range(1, 4).Draw(t, "hash")
					k := heldKey(&e, h)
					switch {
					case e.Kind == kvevent.Stored:
						engine[k]++
					case engine[k] == 0:
						continue
					case e.NoCopies:
						engine[k] = 0
					default:
						engine[k]--
					}
					e.BlockHashes = append(e.BlockHashes, h)
				}
				b.Events = append(b.Events, e)
			}
			before := b.Clone()
			out := in.Append(nil, b)
			require.Equal(t, before, b, "not changed")
			got.apply(out...)
			want := held{}
			for k, n := range engine {
				if n > 0 {
					want[k] = true
				}
			}
			require.Equal(t, want, got)
		}
	})
}

// Without the option, and of what is not known, the first Removed counts.
func TestTrackerCopiesUnknown(t *testing.T) {
	store := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}}
	gone := kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{1}}
	owned := func(e kvevent.Event) kvevent.Event { e.Owner = "store"; return e }
	batch := func(seq uint64, e ...kvevent.Event) kvevent.Batch { return kvevent.Batch{Seq: seq, Events: e} }
	for _, tt := range []struct {
		name string
		on   bool
		feed func(in *sequence.Tracker) []kvevent.Batch
		held int
	}{
		{"counted", true, func(in *sequence.Tracker) []kvevent.Batch { return in.Append(nil, batch(0, store, store, gone)) }, 1},
		{"last", true, func(in *sequence.Tracker) []kvevent.Batch { return in.Append(nil, batch(0, store, store, gone, gone)) }, 0},
		{"not counted", false, func(in *sequence.Tracker) []kvevent.Batch { return in.Append(nil, batch(0, store, store, gone)) }, 0},
		{"of a store", true, func(in *sequence.Tracker) []kvevent.Batch {
			return in.Append(nil, batch(0, owned(store), owned(store), owned(gone)))
		}, 0},
		{"held", true, func(in *sequence.Tracker) []kvevent.Batch {
			out := in.Append(nil, batch(1, gone))
			return in.AppendReplay(out, batch(0, store, store))
		}, 1},
		{"lost between", true, func(in *sequence.Tracker) []kvevent.Batch {
			out := in.Append(nil, batch(0, store, store))
			return in.Skip(in.Append(out, batch(2, gone)))
		}, 0},
		{"damaged", true, func(in *sequence.Tracker) []kvevent.Batch {
			bad := batch(0, store, store)
			bad.Damaged = true
			return in.Append(in.Append(nil, bad), batch(1, gone))
		}, 0},
		{"another life", true, func(in *sequence.Tracker) []kvevent.Batch {
			out := in.Reset(in.Append(nil, batch(0, store, store)), "")
			return in.Append(out, batch(0, store, gone))
		}, 0},
		{"snapshot", true, func(in *sequence.Tracker) []kvevent.Batch {
			out := in.Append(nil, batch(0, store, store))
			out = append(in.Replace(out, 0, store), batch(0, kvevent.Event{Kind: kvevent.Cleared}, store)) // the consumer's own
			return in.Append(out, batch(1, gone))
		}, 0},
		{"snapshot with copies", true, func(in *sequence.Tracker) []kvevent.Batch {
			out := append(in.Replace(nil, 0, store, store), batch(0, store))
			return in.Append(out, batch(1, gone))
		}, 1},
		{"restored", true, func(in *sequence.Tracker) []kvevent.Batch {
			out := in.Append(nil, batch(0, store, store))
			out, err := in.Restore(out, in.AppendPosition(nil))
			require.NoError(t, err)
			return in.Append(out, batch(1, gone))
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := held{}
			got.apply(tt.feed(sequence.New(&sequence.Options{Copies: tt.on}))...)
			require.Len(t, got, tt.held)
		})
	}
}

// What follows a block that is still there has its namespace.
func TestTrackerCopiesNamespace(t *testing.T) {
	in := sequence.New(&sequence.Options{Copies: true})
	root := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, Namespace: "tenant", RootNamespace: true}
	gone := kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{1}}
	next := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{2}, Parent: 1, HasParent: true, RootNamespace: true}
	out := in.Append(nil, kvevent.Batch{Events: []kvevent.Event{root, root, gone, next}})
	require.Equal(t, "tenant", out[0].Events[3].Namespace)
}

// BenchmarkCopies stores and removes a million blocks, eight an event; B/block is the memory of the Tracker per block.
func BenchmarkCopies(b *testing.B) {
	const blocks, each = 1_000_000, 8
	hashes := make([]uint64, blocks)
	for i := range hashes {
		hashes[i] = rand.Uint64()
	}
	for _, count := range []bool{false, true} {
		b.Run(map[bool]string{false: "off", true: "on"}[count], func(b *testing.B) {
			b.ReportAllocs()
			var kept uint64
			var out []kvevent.Batch
			for b.Loop() {
				b.StopTimer()
				before := heap()
				b.StartTimer()
				in := sequence.New(&sequence.Options{Copies: count})
				play := func(from uint64, kind kvevent.Kind) {
					for i := 0; i < blocks; i += each {
						ev := [1]kvevent.Event{{Kind: kind, BlockHashes: hashes[i : i+each]}}
						out = in.Append(out[:0], kvevent.Batch{Seq: from + uint64(i/each), Time: time.Unix(int64(i), 0), Events: ev[:]})
					}
				}
				play(0, kvevent.Stored)
				b.StopTimer()
				kept = max(heap(), before) - before
				b.StartTimer()
				play(blocks/each, kvevent.Removed)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*blocks), "ns/block")
			b.ReportMetric(float64(kept)/blocks, "B/block")
		})
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
