// SPDX-License-Identifier: Apache-2.0

package kvevent_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// A script is one word for each call: "5" pushes batch 5 from the live stream, "r5" one of a replay, "5@3" has time 3, "done" ends
// the replay, "snap5" is a snapshot up to batch 5, "give" gives up. The result lists what came out; "clear" is the clearing batch.
func TestIngest(t *testing.T) {
	tests := []struct {
		name, script, out string
		need              kvevent.Need
		trust             string
	}{
		{"nothing", "", "", kvevent.Need{}, "unknown no events yet"},
		{"in order", "0 1 2", "0 1 2", kvevent.Need{}, "exact "},
		{"duplicates", "0 1 1 1 2", "0 1 2", kvevent.Need{}, "exact "},
		{"gap", "0 1 4 5", "0 1", kvevent.Need{Kind: kvevent.ReplayFrom, Seq: 2}, "degraded batch 2 is missing"},
		{"gap filled", "0 1 4 5 r2 r3 done 6", "0 1 2 3 4 5 6", kvevent.Need{}, "exact "},
		{"replay overlaps", "0 1 4 5 r1 r2 r3 r4 r5 r6 done 6 7", "0 1 2 3 4 5 6 7", kvevent.Need{}, "exact "},
		{"live goes on during the replay", "0 3 r1 4 r2 5 done", "0 1 2 3 4 5", kvevent.Need{}, "exact "},
		{"two gaps", "0 2 4 r1", "0 1 2", kvevent.Need{Kind: kvevent.ReplayFrom, Seq: 3}, "degraded batch 3 is missing"},
		{"late start", "57", "", kvevent.Need{Kind: kvevent.ReplayFrom}, "degraded batch 0 is missing"},
		{"replay starts too late", "0 10 r8 r9 done", "0", kvevent.Need{Kind: kvevent.Snapshot, Seq: 1}, "degraded batch 1 is missing"},
		{"snapshot", "0 10 r8 r9 done snap7 11", "0 8 9 10 11", kvevent.Need{}, "exact "},
		{"snapshot beyond what is held", "0 10 done snap12 11 12 13", "0 13", kvevent.Need{}, "exact "},
		{"snapshot older than what is held", "0 10 done snap5", "0", kvevent.Need{Kind: kvevent.ReplayFrom, Seq: 6}, "degraded batch 6 is missing"},
		{"snapshot first", "snap5 6", "6", kvevent.Need{}, "exact "},
		{"given up", "0 5 6 done give 7", "0 5 6 7", kvevent.Need{}, "degraded batches were lost between 1 and 4"},
		{"given up, then cleared", "0 5 give 6! 7", "0 5 6 7", kvevent.Need{}, "exact "},
		{"given up twice", "0 5 give 9 give", "0 5 9", kvevent.Need{}, "degraded batches were lost between 1 and 8"},
		{"given up: cleared and lost again", "0 3! 6 give", "0 3 6", kvevent.Need{}, "degraded batches were lost between 4 and 5"},
		{"cleared after the losses", "0 3 5! 6", "0 5 6", kvevent.Need{}, "exact "},
		{"cleared in the gap, and a gap again", "0 3 done 5! 7", "0 5", kvevent.Need{Kind: kvevent.ReplayFrom, Seq: 6}, "degraded batch 6 is missing"},
		{"late replay after a clear", "0 3 5! r1 r2 r3 r4 done 6", "0 5 6", kvevent.Need{}, "exact "},
		{"replay of another life", "0@1 5@2 r1@7 r2@8 done", "0 clear", kvevent.Need{Kind: kvevent.ReplayFrom}, "degraded batch 0 is missing"},
		{"replay when the clock was set back", "0@2 1@5 5@4 r1@5 r2@6 r3@7 r4@8 done", "0 1 2 3 4 5", kvevent.Need{}, "exact "},
		{"replay of the same time", "0@2 5@2 r1@2 r2@2 r3@2 r4@2 done", "0 1 2 3 4 5", kvevent.Need{}, "exact "},
		{"reset", "0 1 2 reset 0 1", "0 1 2 clear 0 1", kvevent.Need{}, "exact "},
		{"snapshot ahead of the live stream", "0@1 3@4 done snap6 4@5 5@6 6@7 7@8", "0 7", kvevent.Need{}, "exact "},
		{"restart behind a snapshot ahead of the stream", "0@1 3@4 done snap6 4@5 2@9", "0 clear", kvevent.Need{Kind: kvevent.ReplayFrom}, "degraded batch 0 is missing"},
		{"restart before the stream reached the snapshot", "0@1 3@4 done snap6 0@9 1@9", "0 clear 0 1", kvevent.Need{}, "exact "},
		{"nothing to give up", "0 1 give done", "0 1", kvevent.Need{}, "exact "},
		{"restart", "0 1 2 0 1", "0 1 2 clear 0 1", kvevent.Need{}, "exact "},
		{"restart, first batches lost", "0@1 1@1 2@2 3@3 1@9", "0 1 2 3 clear", kvevent.Need{Kind: kvevent.ReplayFrom}, "degraded batch 0 is missing"},
		{"restart far back", "snap5000 5001 7", "5001 clear", kvevent.Need{Kind: kvevent.ReplayFrom}, "degraded batch 0 is missing"},
		{"restart in a gap", "0 5 0", "0 clear 0", kvevent.Need{}, "exact "},
		{"restart with one batch before", "0@1 0@1 0@2", "0 clear 0", kvevent.Need{}, "exact "},
		{"repetition of an old time is no restart", "0@1 1@2 2@3 1@2", "0 1 2", kvevent.Need{}, "exact "},
		{"too much held", "0 2 3 4 5 6 7 r1", "0 1", kvevent.Need{Kind: kvevent.ReplayFrom, Seq: 2}, "degraded batch 2 is missing"},
		{"too much held, all replayed", "0 2 3 4 5 6 7 r1 r2 r3 r4 done", "0 1 2 3 4 5 6 7", kvevent.Need{}, "exact "},
		{"end marker", "0 end 1", "0 1", kvevent.Need{}, "exact "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := kvevent.NewIngest(&kvevent.IngestOptions{MaxHeld: 4})
			var out []kvevent.Batch
			for word := range strings.FieldsSeq(tt.script) {
				var n uint64
				var at int64
				b := kvevent.Batch{}
				if w, ok := strings.CutSuffix(word, "!"); ok {
					word = w
					b.Events = []kvevent.Event{{Kind: kvevent.Cleared}}
				}
				scan := func(format string) bool {
					k, _ := fmt.Sscanf(word, format, &n, &at)
					b.Seq = n
					if k == 2 {
						b.Time = time.Unix(at, 0)
					}
					return k > 0
				}
				switch {
				case word == "done":
					in.ReplayDone()
				case word == "give":
					out = in.GiveUp(out)
				case word == "end":
					out = in.Push(out, kvevent.Batch{Seq: math.MaxUint64})
					out = in.Replay(out, kvevent.Batch{Seq: math.MaxUint64})
				case scan("snap%d"):
					out = in.Snapshot(out, n)
				case word == "reset":
					out = in.Reset(out)
				case scan("r%d@%d"):
					out = in.Replay(out, b)
				case scan("%d@%d"):
					out = in.Push(out, b)
				default:
					t.Fatal(word)
				}
			}
			var got []string
			for _, b := range out {
				if len(b.Events) == 1 && !strings.Contains(tt.script, "!") {
					require.Equal(t, kvevent.Event{Kind: kvevent.Cleared}, b.Events[0])
					got = append(got, "clear")
					continue
				}
				got = append(got, fmt.Sprint(b.Seq))
			}
			require.Equal(t, tt.out, strings.Join(got, " "))
			require.Equal(t, tt.need, in.Need())
			trust, why := in.Trust()
			require.Equal(t, tt.trust, trust.String()+" "+why)
		})
	}
}

// TestIngestLossy plays a stream with losses, replays and restarts against what the engine really did. Whatever is lost, what comes out
// between two clears is in order and without repetition, and when trust is Exact it is complete.
func TestIngestLossy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := kvevent.NewIngest(&kvevent.IngestOptions{MaxHeld: rapid.IntRange(1, 8).Draw(t, "held")})
		now := time.Unix(1, 0)
		var log []kvevent.Batch // of this life of the engine
		var out []kvevent.Batch
		var state []uint64 // what a consumer has applied since the last clear
		life := uint32(0)
		apply := func() {
			for _, b := range out {
				if len(b.Events) == 1 {
					state = state[:0]
					continue
				}
				if b.DPRank != life { // a held batch of an earlier life must not come out
					t.Fatalf("batch of life %d in life %d", b.DPRank, life)
				}
				if len(state) > 0 && b.Seq <= state[len(state)-1] {
					t.Fatalf("%d after %d", b.Seq, state[len(state)-1])
				}
				state = append(state, b.Seq)
			}
			out = out[:0]
		}
		heard := uint64(0) // beyond the highest batch that arrived
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				now = now.Add(time.Second)
				b := kvevent.Batch{Seq: uint64(len(log)), DPRank: life, Time: now}
				log = append(log, b)
				if rapid.IntRange(0, 3).Draw(t, "lost") > 0 {
					out = in.Push(out, b)
					heard = b.Seq + 1
				}
				apply()
			},
			"repeat": func(t *rapid.T) {
				if heard == 0 {
					t.Skip("nothing heard")
				}
				out = in.Push(out, log[heard-1])
				apply()
			},
			"replay": func(t *rapid.T) {
				n := in.Need()
				if n.Kind != kvevent.ReplayFrom {
					t.Skip("nothing missing")
				}
				from := max(int(n.Seq), len(log)-6) // the engine's buffer
				for i := from; i < len(log); i++ {
					out = in.Replay(out, log[i])
					heard = max(heard, uint64(i)+1)
				}
				in.ReplayDone()
				apply()
			},
			"recover": func(t *rapid.T) {
				if in.Need().Kind != kvevent.Snapshot {
					t.Skip("no snapshot needed")
				}
				if rapid.Bool().Draw(t, "possible") {
					seq := uint64(len(log) - 1)
					state = state[:0]
					for i := range seq + 1 {
						state = append(state, i)
					}
					out = in.Snapshot(out, seq)
					heard = max(heard, seq+1)
				} else {
					out = in.GiveUp(out)
				}
				apply()
			},
			"restart": func(t *rapid.T) {
				if heard == 0 {
					t.Skip("an engine that was not heard of")
				}
				life++
				log, heard = nil, 0
				now = now.Add(time.Minute)
				b := kvevent.Batch{Seq: 0, DPRank: life, Time: now}
				log = append(log, b)
				out = in.Push(out, b)
				heard = 1
				apply()
			},
			"": func(t *rapid.T) {
				trust, _ := in.Trust()
				if trust != kvevent.Exact {
					return
				}
				want := make([]uint64, 0, heard)
				for i := range heard {
					want = append(want, i)
				}
				if d := cmp.Diff(want, append([]uint64{}, state...)); d != "" {
					t.Fatalf("exact, but (-engine +consumer):\n%s", d)
				}
			},
		})
	})
}

func TestIngestCopiesWhatItHolds(t *testing.T) {
	in := kvevent.NewIngest(nil)
	ev := []kvevent.Event{{Kind: kvevent.Stored, BlockHashes: []uint64{1}, TokenIDs: []uint32{2}, Objects: [][]uint64{{3}}}}
	require.Empty(t, in.Push(nil, kvevent.Batch{Seq: 1, Events: ev}))
	ev[0].BlockHashes[0], ev[0].TokenIDs[0], ev[0].Objects[0][0] = 9, 9, 9
	out := in.Replay(nil, kvevent.Batch{Seq: 0})
	want := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, TokenIDs: []uint32{2}, Objects: [][]uint64{{3}}}
	require.Len(t, out, 2)
	if d := cmp.Diff(want, out[1].Events[0]); d != "" {
		t.Error(d)
	}
}

func TestIngestAllocs(t *testing.T) {
	in := kvevent.NewIngest(nil)
	out := make([]kvevent.Batch, 0, 1)
	seq := uint64(0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		out = in.Push(out[:0], kvevent.Batch{Seq: seq})
		seq++
	}))
	require.True(t, slices.ContainsFunc(out, func(b kvevent.Batch) bool { return b.Seq == seq-1 }))
}

func TestNames(t *testing.T) {
	require.Equal(t, "stored removed cleared kind(9)", fmt.Sprint(kvevent.Stored, " ", kvevent.Removed, " ", kvevent.Cleared, " ", kvevent.Kind(9)))
	require.Equal(t, "[ device host disk remote tier(9)]", fmt.Sprint([]kvevent.Tier{0, 1, 2, 3, 4, 9}))
	require.Equal(t, "[unknown degraded exact trust(9)]", fmt.Sprint([]kvevent.Trust{0, 1, 2, 9}))
	require.EqualValues(t, kvevent.NumTiers, kvevent.Remote)
}
