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
		{"late replay of the life before", "0@1 5@2 0@9 r1@1 r2@2 done 1@10", "0 clear 0 1", kvevent.Need{}, "exact "},
		{"restart when the clock was set back", "0@8 1@9 0@2 2@4 r1@3 done", "0 1 clear 0 1 2", kvevent.Need{}, "exact "},
		{"replay of before a reset", "0@1 1@2 reset 2@3 r0@1 r1@2 done", "0 1 clear", kvevent.Need{Kind: kvevent.Snapshot}, "degraded batch 0 is missing"},
		{"cleared in a replay that did not help", "0 3 7 done r5! done", "0 5", kvevent.Need{Kind: kvevent.Snapshot, Seq: 6}, "degraded batch 6 is missing"},
		{"cleared in a replay after one that did not help", "0 3 7 done r5!", "0 5", kvevent.Need{Kind: kvevent.ReplayFrom, Seq: 6}, "degraded batch 6 is missing"},
		{"nothing to give up", "0 1 give done", "0 1", kvevent.Need{}, "exact "},
		{"restart", "0 1 2 0 1", "0 1 2 clear 0 1", kvevent.Need{}, "exact "},
		{"restart, first batches lost", "0@1 1@1 2@2 3@3 1@9", "0 1 2 3 clear", kvevent.Need{Kind: kvevent.ReplayFrom}, "degraded batch 0 is missing"},
		{"restart far back", "snap5000 5001 7", "5001 clear", kvevent.Need{Kind: kvevent.ReplayFrom}, "degraded batch 0 is missing"},
		{"restart while a replay runs", "0@1 5@2 2@9 r1@1 done", "0 clear", kvevent.Need{Kind: kvevent.ReplayFrom}, "degraded batch 0 is missing"},
		{"restart while a replay runs, and another replay", "0@1 5@2 2@9 r1@1 done r0@7 r1@8 done", "0 clear 0 1 2", kvevent.Need{}, "exact "},
		{"restart while a replay runs, and another that did not help", "0@1 5@2 2@9 done done", "0 clear", kvevent.Need{Kind: kvevent.Snapshot}, "degraded batch 0 is missing"},
		{"restart after a batch of no time", "0@1 1@2 2@3 3 1@9", "0 1 2 3 clear", kvevent.Need{Kind: kvevent.ReplayFrom}, "degraded batch 0 is missing"},
		{"a batch of no time comes again, with its time", "0@1 1@2 2 2@9 3@10", "0 1 2 3", kvevent.Need{}, "exact "},
		{"late replay of a life of which no time is known", "0 1 0@9 r1@2 done 1@10", "0 1 clear 0 1", kvevent.Need{}, "exact "},
		{"restart in a gap", "0 5 0", "0 clear 0", kvevent.Need{}, "exact "},
		{"repetition of the first batch", "0@1 1@2 0@1 2@3", "0 1 2", kvevent.Need{}, "exact "},
		{"late replay of the life before, of a batch not heard", "0@1 0@9 2@11 r1@3", "0 clear 0", kvevent.Need{Kind: kvevent.ReplayFrom, Seq: 1}, "degraded batch 1 is missing"},
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

// TestIngestLossy plays an engine that stores, removes and clears blocks against a stream with losses, damage, replays, late answers of
// an earlier life, restarts and snapshots. Whatever is lost, what comes out between two clears is in order and without repetition, and
// when trust is Exact the consumer has the blocks that the engine had after the last batch that was heard of.
func TestIngestLossy(t *testing.T) {
	exact := 0
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Uint64Range(0, 1).Draw(t, "first")
		in := kvevent.NewIngest(&kvevent.IngestOptions{MaxHeld: rapid.IntRange(1, 8).Draw(t, "held"),
			MaxHeldBytes: rapid.SampledFrom([]int{0, 1, 800}).Draw(t, "bytes"), First: first})
		now := time.Unix(1, 0)
		var log, dead []kvevent.Batch // of this life of the engine; what was heard of the one before
		var states []uint64           // after each of them: the blocks it has, one bit each
		var out []kvevent.Batch
		var state uint64 // what a consumer has
		last := int64(-1)
		life := 0
		heard := 0     // batches up to the highest that arrived, or that a snapshot holds
		came := 0      // batches up to the highest that arrived
		quiet := false // nothing was heard since the engine emptied its cache
		event := func(t *rapid.T, state uint64) (kvevent.Event, uint64) {
			h := rapid.Uint64Range(0, 5).Draw(t, "block")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				return kvevent.Event{Kind: kvevent.Cleared}, 0
			case 1, 2, 3:
				return kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{h}, Group: int32(life)}, state &^ (1 << h)
			}
			return kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{h}, Group: int32(life)}, state | 1<<h
		}
		publish := func(t *rapid.T, readable bool) kvevent.Batch {
			now = now.Add(time.Second)
			b := kvevent.Batch{Seq: first + uint64(len(log)), Time: now}
			var s uint64
			if len(states) > 0 {
				s = states[len(states)-1]
			}
			for range rapid.IntRange(0, 2).Draw(t, "events") {
				var e kvevent.Event
				e, s = event(t, s)
				if rapid.IntRange(0, 15).Draw(t, "damage") == 0 {
					b.Damaged = true
				} else {
					b.Events = append(b.Events, e)
				}
			}
			if !readable && rapid.IntRange(0, 15).Draw(t, "unreadable") == 0 {
				b = kvevent.Batch{Seq: b.Seq, Damaged: true} // not even its time
			}
			log, states = append(log, b), append(states, s)
			return b
		}
		apply := func() {
			for _, b := range out {
				reset := len(b.Events) == 1 && b.Events[0].Kind == kvevent.Cleared && b.Seq == 0
				if reset {
					last = -1
				}
				if !reset || first == 0 && last >= 0 {
					if int64(b.Seq) <= last {
						t.Fatalf("%d after %d", b.Seq, last)
					}
					last = int64(b.Seq)
				}
				for _, e := range b.Events {
					switch {
					case e.Kind == kvevent.Cleared:
						state = 0
						continue
					case int(e.Group) != life: // a held batch or a late one of an earlier life must not come out
						t.Fatalf("batch of life %d in life %d", e.Group, life)
					case e.Kind == kvevent.Stored:
						state |= 1 << e.BlockHashes[0]
					default:
						state &^= 1 << e.BlockHashes[0]
					}
				}
			}
			out = out[:0]
		}
		push := func(b kvevent.Batch) {
			out = in.Push(out, b)
			came = max(came, int(b.Seq-first)+1)
			heard, quiet = max(heard, came), false
			apply()
		}
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				if b := publish(t, came == 0); rapid.IntRange(0, 3).Draw(t, "lost") > 0 {
					push(b)
				}
			},
			"repeat": func(t *rapid.T) {
				if heard == 0 || quiet {
					t.Skip("nothing heard")
				}
				push(log[heard-1])
			},
			"replay": func(t *rapid.T) {
				n := in.Need()
				if n.Kind != kvevent.ReplayFrom {
					t.Skip("nothing missing")
				}
				from := max(int(n.Seq-first)-rapid.IntRange(0, 2).Draw(t, "overlap"), len(log)-6, 0) // the engine's buffer
				for _, b := range log[from:] {
					out = in.Replay(out, b)
					came = max(came, int(b.Seq-first)+1)
					heard = max(heard, came)
				}
				if rapid.IntRange(0, 4).Draw(t, "cut off") > 0 {
					in.ReplayDone()
				}
				apply()
			},
			"late replay": func(t *rapid.T) {
				for _, b := range dead {
					out = in.Replay(out, b)
				}
				dead = nil
				in.ReplayDone()
				apply()
			},
			"recover": func(t *rapid.T) {
				if in.Need().Kind != kvevent.Snapshot {
					t.Skip("no snapshot needed")
				}
				if rapid.IntRange(0, 2).Draw(t, "possible") > 0 {
					i := rapid.IntRange(0, len(log)-1).Draw(t, "snapshot")
					state, last = states[i], int64(first)+int64(i)
					out = in.Snapshot(out, first+uint64(i))
					heard = max(heard, i+1)
				} else {
					out = in.GiveUp(out)
				}
				apply()
			},
			"restart": func(t *rapid.T) {
				if came == 0 || log[came-1].Time.IsZero() {
					t.Skip("an engine that was not heard of")
				}
				silent := rapid.IntRange(0, min(came-1, 3)).Draw(t, "silent") // nobody hears; one that counts further is not noticed
				dead = slices.DeleteFunc(log[:came], func(b kvevent.Batch) bool { return b.Time.IsZero() })
				life++
				log, states, heard, came = nil, nil, 0, 0
				now = now.Add(time.Minute)
				for range silent {
					publish(t, false)
				}
				push(publish(t, true)) // without a time, nothing tells lives apart
			},
			"emptied without a word": func(t *rapid.T) {
				if came == 0 || came < len(log) || log[came-1].Time.IsZero() { // the time of what was heard last is all that tells what was before
					t.Skip("an engine that was not heard of")
				}
				states[len(states)-1], quiet = 0, true
				out = in.Reset(out)
				apply()
			},
			"": func(t *rapid.T) {
				if trust, _ := in.Trust(); trust == kvevent.Exact {
					exact++
					if want := states[heard-1]; state != want {
						t.Fatalf("exact, but the engine has %b, the consumer %b", want, state)
					}
				}
			},
		})
	})
	require.NotZero(t, exact)
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

// Dynamo numbers its events from 1.
// Without times, a number that falls back by little is a repetition if it is the same batch.
func TestIngestRestartWithoutTime(t *testing.T) {
	batch := func(seq, hash uint64) kvevent.Batch {
		return kvevent.Batch{Seq: seq, Events: []kvevent.Event{{Kind: kvevent.Stored, BlockHashes: []uint64{hash}, TokenIDs: []uint32{1}}}}
	}
	var in kvevent.Ingest
	var out []kvevent.Batch
	for i := range uint64(100) {
		out = in.Push(out[:0], batch(i, i))
	}
	require.Empty(t, in.Push(nil, batch(5, 5)))
	require.Empty(t, in.Replay(nil, batch(6, 1006)), "a replay may be old")
	trust, _ := in.Trust()
	require.Equal(t, kvevent.Exact, trust)

	var again kvevent.Ingest // goes on after a connection was lost
	_, err := again.Restore(nil, in.AppendPosition(nil))
	require.NoError(t, err)
	require.Empty(t, again.Push(nil, batch(5, 5)))
	for _, in := range []*kvevent.Ingest{&in, &again} {
		out = in.Push(nil, batch(6, 1006))
		require.Len(t, out, 1)
		require.Equal(t, kvevent.Cleared, out[0].Events[0].Kind)
		require.Equal(t, kvevent.Need{Kind: kvevent.ReplayFrom}, in.Need())
	}
}

// What a decoder of TensorRT-LLM makes of an event goes by those before: when one comes twice, it is the same batch nevertheless.
func TestIngestRepetitionDecodedOtherwise(t *testing.T) {
	d := kvevent.NewDecoder(kvevent.TensorRTLLM, &kvevent.DecoderOptions{BlockSize: 2})
	var in kvevent.Ingest
	stored := func(id, level int, hashes ...int) []byte {
		blocks := a{}
		for _, h := range hashes {
			tokens := a{m{"token_id", 1}, m{"token_id", 2}}
			blocks = append(blocks, m{"block_hash", h, "tokens", tokens[:2-h%2], "cache_level", level})
		}
		return pack(m{"event_id", id, "data", m{"type", "stored", "blocks", blocks}})
	}
	removed := func(id int, hashes ...any) []byte {
		return pack(m{"event_id", id, "data", m{"type", "removed", "block_hashes", a(hashes)}})
	}
	moved := func(id, h int) []byte {
		return pack(m{"event_id", id, "data", m{"type", "updated", "block_hash", h, "cache_level", m{"old_value", 0, "new_value", 1}}})
	}
	payloads := [][]byte{stored(0, 0, 2, 4, 5), stored(1, 0, 6, 7), moved(2, 7), removed(3, 2, 5), removed(4, 7), stored(5, 2, 8)}
	for i, p := range append(payloads, payloads[1:]...) {
		batches, err := d.Decode(nil, p)
		require.NoError(t, err)
		ready := in.Push(nil, batches[0])
		require.Equal(t, i < len(payloads), len(ready) == 1)
	}
	trust, _ := in.Trust()
	require.Equal(t, kvevent.Exact, trust)
}

// A batch that cannot be read, under a number that was there, may be of another life.
func TestIngestUnreadable(t *testing.T) {
	var in kvevent.Ingest
	in.Push(nil, kvevent.Batch{Time: time.Unix(1, 0)})
	require.Empty(t, in.Push(nil, kvevent.Batch{Damaged: true}))
	trust, why := in.Trust()
	require.Equal(t, kvevent.Degraded, trust)
	require.Equal(t, "batches were lost between 0 and 0", why)
}

// Where ranks share a socket, a batch that ends too early is taken for one of rank 0: that is no restart of rank 0.
func TestIngestUnreadableOfAnotherRank(t *testing.T) {
	d := kvevent.NewDecoder(kvevent.VLLM, nil)
	var in kvevent.Ingest
	for seq := range uint64(5) {
		in.Push(nil, kvevent.Batch{Seq: seq, Time: time.Unix(1, 0)})
	}
	payload := pack(a{9.5, a{a{"AllBlocksCleared"}}, 1})
	for seq := range byte(4) {
		batches, err := d.DecodeFrames(nil, [][]byte{nil, {0, 0, 0, 0, 0, 0, 0, seq}, payload[:len(payload)-1]})
		require.Error(t, err)
		require.Empty(t, in.Push(nil, batches[0]))
	}
	trust, _ := in.Trust()
	require.Equal(t, kvevent.Degraded, trust)
}

// What empties the caches of another attention, or a store, does not make up for what is missing.
func TestIngestClearsOnlyAll(t *testing.T) {
	for _, ev := range []kvevent.Event{
		{Kind: kvevent.Cleared, Attention: kvevent.SlidingWindow},
		{Kind: kvevent.Cleared, Tier: kvevent.Device},
		{Kind: kvevent.Cleared, Owner: "store"},
	} {
		var in kvevent.Ingest
		stored := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, Namespace: "salt", RootNamespace: true}
		in.Push(nil, kvevent.Batch{Events: []kvevent.Event{stored}})
		require.Empty(t, in.Push(nil, kvevent.Batch{Seq: 2, Events: []kvevent.Event{ev}}))
		next := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{2}, Parent: 1, HasParent: true, RootNamespace: true}
		out := in.Replay(nil, kvevent.Batch{Seq: 1, Events: []kvevent.Event{ev, next}})
		require.Len(t, out, 2)
		if ev.Tier == kvevent.AnyTier {
			require.Equal(t, "salt", out[0].Events[1].Namespace, "the rank's own blocks are still there")
		}
	}
}

func TestIngestFirst(t *testing.T) {
	in := kvevent.NewIngest(&kvevent.IngestOptions{First: 1})
	require.Equal(t, kvevent.Need{}, in.Need())
	for range 2 { // the second life begins with 1 again
		out := in.Push(nil, kvevent.Batch{Seq: 1, Worker: 5})
		require.EqualValues(t, 1, out[len(out)-1].Seq)
		out = in.Push(nil, kvevent.Batch{Seq: 3, Worker: 5})
		require.Empty(t, out)
		require.Equal(t, kvevent.Need{Kind: kvevent.ReplayFrom, Seq: 2}, in.Need())
		require.Len(t, in.Replay(nil, kvevent.Batch{Seq: 2, Worker: 5}), 2)
		trust, _ := in.Trust()
		require.Equal(t, kvevent.Exact, trust)
	}
	require.Len(t, in.Reset(nil), 1)
	in.Push(nil, kvevent.Batch{Seq: 2, Worker: 5})
	require.Equal(t, kvevent.Need{Kind: kvevent.ReplayFrom, Seq: 1}, in.Need())
}

// Two ranks that come in at one place: their numbers say nothing about each other.
func TestIngestMixedRanks(t *testing.T) {
	for _, other := range []kvevent.Batch{{Seq: 1, DPRank: 1}, {Seq: 0, DPRank: 1, Time: time.Unix(9, 0)}, {Seq: 7, Worker: 3}} {
		in := kvevent.NewIngest(nil)
		require.Len(t, in.Push(nil, kvevent.Batch{Seq: 0, Time: time.Unix(1, 0)}), 1)
		require.Empty(t, in.Push(nil, other))
		require.Empty(t, in.Replay(nil, other))
		require.Equal(t, kvevent.Need{}, in.Need())
		require.Len(t, in.Push(nil, kvevent.Batch{Seq: 1, Time: time.Unix(2, 0)}), 1)
		trust, why := in.Trust()
		require.Equal(t, "degraded batches of another rank came in", trust.String()+" "+why)
		require.Len(t, in.Reset(nil), 1)
		other.Seq = 0
		require.Len(t, in.Push(nil, other), 1)
		trust, _ = in.Trust()
		require.Equal(t, kvevent.Exact, trust)
	}
	// What is damaged may have lost its rank.
	in := kvevent.NewIngest(nil)
	require.Len(t, in.Push(nil, kvevent.Batch{Seq: 0, DPRank: 2}), 1)
	require.Len(t, in.Push(nil, kvevent.Batch{Seq: 1, Damaged: true}), 1)
	require.Len(t, in.Push(nil, kvevent.Batch{Seq: 2, DPRank: 2}), 1)
	trust, why := in.Trust()
	require.Equal(t, "degraded batches were lost between 1 and 1", trust.String()+" "+why)
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
