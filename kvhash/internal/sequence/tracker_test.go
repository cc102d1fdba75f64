// SPDX-License-Identifier: Apache-2.0

package sequence_test

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

	"github.com/weft-go/weft/kvhash/internal/packed"
	"github.com/weft-go/weft/kvhash/internal/sequence"
	"github.com/weft-go/weft/kvhash/kvevent"
)

type (
	a = packed.Array
	m = packed.Map
)

func pack(v any) []byte { return packed.Append(nil, v) }

// need is the data that a tracker waits for.
type need struct {
	Kind sequence.Need
	Seq  uint64
}

func needOf(in *sequence.Tracker) need {
	n, from := in.Need()
	return need{n, from}
}

// A script is one word for each call: "5" pushes batch 5 from the live stream, "r5" one of a replay, "5@3" has time 3, "done" ends
// the replay, "snap5" is a snapshot up to batch 5, "give" gives up. The result lists what came out; "clear" is the clearing batch.
func TestTracker(t *testing.T) {
	tests := []struct {
		name, script, out string
		need              need
		trust             string
	}{
		{"nothing", "", "", need{}, "unknown no events yet"},
		{"in order", "0 1 2", "0 1 2", need{}, "exact "},
		{"duplicates", "0 1 1 1 2", "0 1 2", need{}, "exact "},
		{"gap", "0 1 4 5", "0 1", need{Kind: sequence.Replay, Seq: 2}, "degraded batch 2 is missing"},
		{"gap filled", "0 1 4 5 r2 r3 done 6", "0 1 2 3 4 5 6", need{}, "exact "},
		{"replay overlaps", "0 1 4 5 r1 r2 r3 r4 r5 r6 done 6 7", "0 1 2 3 4 5 6 7", need{}, "exact "},
		{"live goes on during the replay", "0 3 r1 4 r2 5 done", "0 1 2 3 4 5", need{}, "exact "},
		{"two gaps", "0 2 4 r1", "0 1 2", need{Kind: sequence.Replay, Seq: 3}, "degraded batch 3 is missing"},
		{"late start", "57", "", need{Kind: sequence.Replay}, "degraded batch 0 is missing"},
		{"replay starts too late", "0 10 r8 r9 done", "0", need{Kind: sequence.Snapshot, Seq: 1}, "degraded batch 1 is missing"},
		{"snapshot", "0 10 r8 r9 done snap7 11", "0 8 9 10 11", need{}, "exact "},
		{"snapshot beyond what is held", "0 10 done snap12 11 12 13", "0 13", need{}, "exact "},
		{"snapshot older than what is held", "0 10 done snap5", "0", need{Kind: sequence.Replay, Seq: 6}, "degraded batch 6 is missing"},
		{"snapshot first", "snap5 6", "6", need{}, "exact "},
		{"given up", "0 5 6 done give 7", "0 5 6 7", need{}, "degraded some of the batches 1 to 4 were lost or unreadable"},
		{"given up, then cleared", "0 5 give 6! 7", "0 5 6 7", need{}, "exact "},
		{"given up twice", "0 5 give 9 give", "0 5 9", need{}, "degraded some of the batches 1 to 8 were lost or unreadable"},
		{"given up: cleared and lost again", "0 3! 6 give", "0 3 6", need{}, "degraded some of the batches 4 to 5 were lost or unreadable"},
		{"cleared after the losses", "0 3 5! 6", "0 5 6", need{}, "exact "},
		{"cleared in the gap, and a gap again", "0 3 done 5! 7", "0 5", need{Kind: sequence.Replay, Seq: 6}, "degraded batch 6 is missing"},
		{"late replay after a clear", "0 3 5! r1 r2 r3 r4 done 6", "0 5 6", need{}, "exact "},
		{"replay of another life", "0@1 5@2 r1@7 r2@8 done", "0 clear", need{Kind: sequence.Replay}, "degraded batch 0 is missing"},
		{"replay when the clock was set back", "0@2 1@5 5@4 r1@5 r2@6 r3@7 r4@8 done", "0 1 2 3 4 5", need{}, "exact "},
		{"replay of the same time", "0@2 5@2 r1@2 r2@2 r3@2 r4@2 done", "0 1 2 3 4 5", need{}, "exact "},
		{"reset", "0 1 2 reset 0 1", "0 1 2 clear 0 1", need{}, "exact "},
		{"snapshot ahead of the live stream", "0@1 3@4 done snap6 4@5 5@6 6@7 7@8", "0 7", need{}, "exact "},
		{"restart after a snapshot ahead of the stream", "0@1 3@4 done snap6 4@5 2@9", "0 clear", need{Kind: sequence.Replay}, "degraded batch 0 is missing"},
		{"restart before the stream reached the snapshot", "0@1 3@4 done snap6 0@9 1@9", "0 clear 0 1", need{}, "exact "},
		{"late replay of the life before", "0@1 5@2 0@9 r1@1 r2@2 done 1@10", "0 clear 0 1", need{}, "exact "},
		{"restart when the clock was set back", "0@8 1@9 0@2 2@4 r1@3 done", "0 1 clear 0 1 2", need{}, "exact "},
		{"replay of before a reset", "0@1 1@2 reset 2@3 r0@1 r1@2 done", "0 1 clear", need{Kind: sequence.Snapshot}, "degraded batch 0 is missing"},
		{"cleared in a replay that did not help", "0 3 7 done r5! done", "0 5", need{Kind: sequence.Snapshot, Seq: 6}, "degraded batch 6 is missing"},
		{"cleared in a replay after one that did not help", "0 3 7 done r5!", "0 5", need{Kind: sequence.Replay, Seq: 6}, "degraded batch 6 is missing"},
		{"nothing to give up", "0 1 give done", "0 1", need{}, "exact "},
		{"restart", "0 1 2 0 1", "0 1 2 clear 0 1", need{}, "exact "},
		{"restart, first batches lost", "0@1 1@1 2@2 3@3 1@9", "0 1 2 3 clear", need{Kind: sequence.Replay}, "degraded batch 0 is missing"},
		{"restart far back", "snap5000 5001 7", "5001 clear", need{Kind: sequence.Replay}, "degraded batch 0 is missing"},
		{"restart while a replay runs", "0@1 5@2 2@9 r1@1 done", "0 clear", need{Kind: sequence.Replay}, "degraded batch 0 is missing"},
		{"restart while a replay runs, and another replay", "0@1 5@2 2@9 r1@1 done r0@7 r1@8 done", "0 clear 0 1 2", need{}, "exact "},
		{"restart while a replay runs, and another that did not help", "0@1 5@2 2@9 done done", "0 clear", need{Kind: sequence.Snapshot}, "degraded batch 0 is missing"},
		{"restart after a batch of no time", "0@1 1@2 2@3 3 1@9", "0 1 2 3 clear", need{Kind: sequence.Replay}, "degraded batch 0 is missing"},
		{"a batch of no time comes again, with its time", "0@1 1@2 2 2@9 3@10", "0 1 2 3", need{}, "exact "},
		{"late replay of a life of which no time is known", "0 1 0@9 r1@2 done 1@10", "0 1 clear 0 1", need{}, "exact "},
		{"restart in a gap", "0 5 0", "0 clear 0", need{}, "exact "},
		{"repetition of the first batch", "0@1 1@2 0@1 2@3", "0 1 2", need{}, "exact "},
		{"late replay of the previous run, of a batch that was not received", "0@1 0@9 2@11 r1@3", "0 clear 0", need{Kind: sequence.Replay, Seq: 1}, "degraded batch 1 is missing"},
		{"restart with one batch before", "0@1 0@1 0@2", "0 clear 0", need{}, "exact "},
		{"repetition of an old time is no restart", "0@1 1@2 2@3 1@2", "0 1 2", need{}, "exact "},
		{"too much held", "0 2 3 4 5 6 7 r1", "0 1", need{Kind: sequence.Replay, Seq: 2}, "degraded batch 2 is missing"},
		{"too much held, all replayed", "0 2 3 4 5 6 7 r1 r2 r3 r4 done", "0 1 2 3 4 5 6 7", need{}, "exact "},
		{"end marker", "0 end 1", "0 1", need{}, "exact "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := sequence.New(&sequence.Options{MaxHeld: 4})
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
					in.FinishReplay()
				case word == "give":
					out = in.Skip(out)
				case word == "end":
					out = in.Append(out, kvevent.Batch{Seq: math.MaxUint64})
					out = in.AppendReplay(out, kvevent.Batch{Seq: math.MaxUint64})
				case scan("snap%d"):
					out = in.Replace(out, n)
				case word == "reset":
					out = in.Reset(out, "")
				case scan("r%d@%d"):
					out = in.AppendReplay(out, b)
				case scan("%d@%d"):
					out = in.Append(out, b)
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
			require.Equal(t, tt.need, needOf(in))
			trust, why := in.State()
			require.Equal(t, tt.trust, trust.String()+" "+why)
		})
	}
}

// TestTrackerLossy plays an engine that stores, removes and clears blocks against a stream with losses, damage,
// replays, late replies of an earlier run, restarts and snapshots. Regardless of losses, the output between two clears
// is in order and without repetition, and when the state is Exact the consumer has the blocks that the engine had after
// the last known batch.
func TestTrackerLossy(t *testing.T) {
	exact := 0
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Uint64Range(0, 1).Draw(t, "first")
		in := sequence.New(&sequence.Options{MaxHeld: rapid.IntRange(1, 8).Draw(t, "held"),
			MaxHeldBytes: rapid.SampledFrom([]int{0, 1, 800}).Draw(t, "bytes"), First: first})
		now := time.Unix(1, 0)
		var log, dead []kvevent.Batch // of this run of the engine; and what was received of the previous one
		var states []uint64           // after each of them: the blocks it has, one bit each
		var out []kvevent.Batch
		var state uint64 // what a consumer has
		last := int64(-1)
		life := 0
		received := 0  // batches up to the highest that arrived, or that a snapshot holds
		came := 0      // batches up to the highest that arrived
		quiet := false // nothing was received since the engine cleared its cache
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
					case int(e.Group) != life: // a held batch or a late one of an earlier run must not come out
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
			out = in.Append(out, b)
			came = max(came, int(b.Seq-first)+1)
			received, quiet = max(received, came), false
			apply()
		}
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				if b := publish(t, came == 0); rapid.IntRange(0, 3).Draw(t, "lost") > 0 {
					push(b)
				}
			},
			"repeat": func(t *rapid.T) {
				if received == 0 || quiet {
					t.Skip("nothing received")
				}
				push(log[received-1])
			},
			"replay": func(t *rapid.T) {
				n := needOf(in)
				if n.Kind != sequence.Replay {
					t.Skip("nothing missing")
				}
				from := max(int(n.Seq-first)-rapid.IntRange(0, 2).Draw(t, "overlap"), len(log)-6, 0) // the engine's buffer
				for _, b := range log[from:] {
					out = in.AppendReplay(out, b)
					came = max(came, int(b.Seq-first)+1)
					received = max(received, came)
				}
				if rapid.IntRange(0, 4).Draw(t, "cut off") > 0 {
					in.FinishReplay()
				}
				apply()
			},
			"late replay": func(t *rapid.T) {
				for _, b := range dead {
					out = in.AppendReplay(out, b)
				}
				dead = nil
				in.FinishReplay()
				apply()
			},
			"recover": func(t *rapid.T) {
				if needOf(in).Kind != sequence.Snapshot {
					t.Skip("no snapshot needed")
				}
				if rapid.IntRange(0, 2).Draw(t, "possible") > 0 {
					i := rapid.IntRange(0, len(log)-1).Draw(t, "snapshot")
					state, last = states[i], int64(first)+int64(i)
					out = in.Replace(out, first+uint64(i))
					received = max(received, i+1)
				} else {
					out = in.Skip(out)
				}
				apply()
			},
			"restart": func(t *rapid.T) {
				if came == 0 || log[came-1].Time.IsZero() {
					t.Skip("no event of the engine received")
				}
				silent := rapid.IntRange(0, min(came-1, 3)).Draw(t, "silent") // nothing is received; an engine that continues to count is not noticed
				dead = slices.DeleteFunc(log[:came], func(b kvevent.Batch) bool { return b.Time.IsZero() })
				life++
				log, states, received, came = nil, nil, 0, 0
				now = now.Add(time.Minute)
				for range silent {
					publish(t, false)
				}
				push(publish(t, true)) // without a time, nothing distinguishes runs
			},
			"emptied without a word": func(t *rapid.T) {
				if came == 0 || came < len(log) || log[came-1].Time.IsZero() { // only the time of the last received batch identifies earlier ones
					t.Skip("no event of the engine received")
				}
				states[len(states)-1], quiet = 0, true
				out = in.Reset(out, "")
				apply()
			},
			"": func(t *rapid.T) {
				if trust, _ := in.State(); trust == sequence.Exact {
					exact++
					if want := states[received-1]; state != want {
						t.Fatalf("exact, but the engine has %b, the consumer %b", want, state)
					}
				}
			},
		})
	})
	require.NotZero(t, exact)
}

func TestTrackerCopiesInput(t *testing.T) {
	in := sequence.New(nil)
	ev := []kvevent.Event{{Kind: kvevent.Stored, BlockHashes: []uint64{1}, TokenIDs: []uint32{2}, Objects: [][]uint64{{3}}}}
	require.Empty(t, in.Append(nil, kvevent.Batch{Seq: 1, Events: ev}))
	ev[0].BlockHashes[0], ev[0].TokenIDs[0], ev[0].Objects[0][0] = 9, 9, 9
	out := in.AppendReplay(nil, kvevent.Batch{Seq: 0})
	want := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, TokenIDs: []uint32{2}, Objects: [][]uint64{{3}}}
	require.Len(t, out, 2)
	if d := cmp.Diff(want, out[1].Events[0]); d != "" {
		t.Error(d)
	}
}

// Dynamo numbers its events from 1.
// Without times, a number that falls back by little is a repetition if it is the same batch.
func TestTrackerRestartWithoutTime(t *testing.T) {
	batch := func(seq, hash uint64) kvevent.Batch {
		return kvevent.Batch{Seq: seq, Events: []kvevent.Event{{Kind: kvevent.Stored, BlockHashes: []uint64{hash}, TokenIDs: []uint32{1}}}}
	}
	var in sequence.Tracker
	var out []kvevent.Batch
	for i := range uint64(100) {
		out = in.Append(out[:0], batch(i, i))
	}
	require.Empty(t, in.Append(nil, batch(5, 5)))
	require.Empty(t, in.AppendReplay(nil, batch(6, 1006)), "a replay may be old")
	trust, _ := in.State()
	require.Equal(t, sequence.Exact, trust)

	var again sequence.Tracker // continues after a lost connection
	_, err := again.Restore(nil, in.AppendPosition(nil))
	require.NoError(t, err)
	require.Empty(t, again.Append(nil, batch(5, 5)))
	for _, in := range []*sequence.Tracker{&in, &again} {
		out = in.Append(nil, batch(6, 1006))
		require.Len(t, out, 1)
		require.Equal(t, kvevent.Cleared, out[0].Events[0].Kind)
		require.Equal(t, need{Kind: sequence.Replay}, needOf(in))
	}
}

// What a decoder of TensorRT-LLM makes of an event goes by those before: when one comes twice, it is the same batch nevertheless.
func TestTrackerRepetitionDecodedOtherwise(t *testing.T) {
	d := kvevent.NewDecoder(kvevent.TensorRTLLM, &kvevent.DecoderOptions{BlockSize: 2})
	var in sequence.Tracker
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
		batches, err := d.Append(nil, p)
		require.NoError(t, err)
		ready := in.Append(nil, batches[0])
		require.Equal(t, i < len(payloads), len(ready) == 1)
	}
	trust, _ := in.State()
	require.Equal(t, sequence.Exact, trust)
}

// A damaged batch with an old number may be from another run.
func TestTrackerUnreadable(t *testing.T) {
	var in sequence.Tracker
	in.Append(nil, kvevent.Batch{Time: time.Unix(1, 0)})
	require.Empty(t, in.Append(nil, kvevent.Batch{Damaged: true}))
	trust, why := in.State()
	require.Equal(t, sequence.Degraded, trust)
	require.Equal(t, "batch 0 was lost or unreadable", why)
}

// Where ranks share a socket, a truncated batch is treated as one of rank 0, but not as a restart of rank 0.
func TestTrackerUnreadableOfAnotherRank(t *testing.T) {
	d := kvevent.NewDecoder(kvevent.VLLM, nil)
	var in sequence.Tracker
	for seq := range uint64(5) {
		in.Append(nil, kvevent.Batch{Seq: seq, Time: time.Unix(1, 0)})
	}
	payload := pack(a{9.5, a{a{"AllBlocksCleared"}}, 1})
	for seq := range byte(4) {
		batches, err := d.AppendFrames(nil, [][]byte{nil, {0, 0, 0, 0, 0, 0, 0, seq}, payload[:len(payload)-1]})
		require.Error(t, err)
		require.Empty(t, in.Append(nil, batches[0]))
	}
	trust, _ := in.State()
	require.Equal(t, sequence.Degraded, trust)
}

// What empties the caches of another attention, or a store, does not make up for what is missing.
func TestTrackerClearsOnlyAll(t *testing.T) {
	for _, ev := range []kvevent.Event{
		{Kind: kvevent.Cleared, Attention: kvevent.SlidingWindow},
		{Kind: kvevent.Cleared, Tier: kvevent.Device},
		{Kind: kvevent.Cleared, Owner: "store"},
	} {
		var in sequence.Tracker
		stored := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, Namespace: "salt", RootNamespace: true}
		in.Append(nil, kvevent.Batch{Events: []kvevent.Event{stored}})
		require.Empty(t, in.Append(nil, kvevent.Batch{Seq: 2, Events: []kvevent.Event{ev}}))
		next := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{2}, Parent: 1, HasParent: true, RootNamespace: true}
		out := in.AppendReplay(nil, kvevent.Batch{Seq: 1, Events: []kvevent.Event{ev, next}})
		require.Len(t, out, 2)
		if ev.Tier == kvevent.AnyTier {
			require.Equal(t, "salt", out[0].Events[1].Namespace, "the rank's own blocks are still there")
		}
	}
}

func TestTrackerFirst(t *testing.T) {
	in := sequence.New(&sequence.Options{First: 1})
	require.Equal(t, need{}, needOf(in))
	for range 2 { // the second run begins with 1 again
		out := in.Append(nil, kvevent.Batch{Seq: 1, Worker: 5})
		require.EqualValues(t, 1, out[len(out)-1].Seq)
		out = in.Append(nil, kvevent.Batch{Seq: 3, Worker: 5})
		require.Empty(t, out)
		require.Equal(t, need{Kind: sequence.Replay, Seq: 2}, needOf(in))
		require.Len(t, in.AppendReplay(nil, kvevent.Batch{Seq: 2, Worker: 5}), 2)
		trust, _ := in.State()
		require.Equal(t, sequence.Exact, trust)
	}
	require.Len(t, in.Reset(nil, ""), 1)
	in.Append(nil, kvevent.Batch{Seq: 2, Worker: 5})
	require.Equal(t, need{Kind: sequence.Replay, Seq: 1}, needOf(in))
}

// Two ranks on one socket: their numbers are independent.
func TestTrackerMixedRanks(t *testing.T) {
	for _, other := range []kvevent.Batch{{Seq: 1, DPRank: 1}, {Seq: 0, DPRank: 1, Time: time.Unix(9, 0)}, {Seq: 7, Worker: 3}} {
		in := sequence.New(nil)
		require.Len(t, in.Append(nil, kvevent.Batch{Seq: 0, Time: time.Unix(1, 0)}), 1)
		require.Empty(t, in.Append(nil, other))
		require.Empty(t, in.AppendReplay(nil, other))
		require.Equal(t, need{}, needOf(in))
		require.Len(t, in.Append(nil, kvevent.Batch{Seq: 1, Time: time.Unix(2, 0)}), 1)
		trust, why := in.State()
		require.Equal(t, "degraded batches of another rank came in", trust.String()+" "+why)
		require.Len(t, in.Reset(nil, ""), 1)
		other.Seq = 0
		require.Len(t, in.Append(nil, other), 1)
		trust, _ = in.State()
		require.Equal(t, sequence.Exact, trust)
	}
	// What is damaged may have lost its rank.
	in := sequence.New(nil)
	require.Len(t, in.Append(nil, kvevent.Batch{Seq: 0, DPRank: 2}), 1)
	require.Len(t, in.Append(nil, kvevent.Batch{Seq: 1, Damaged: true}), 1)
	require.Len(t, in.Append(nil, kvevent.Batch{Seq: 2, DPRank: 2}), 1)
	trust, why := in.State()
	require.Equal(t, "degraded batch 1 was lost or unreadable", trust.String()+" "+why)
}

func TestTrackerAllocs(t *testing.T) {
	in := sequence.New(nil)
	out := make([]kvevent.Batch, 0, 1)
	seq := uint64(0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		out = in.Append(out[:0], kvevent.Batch{Seq: seq})
		seq++
	}))
	require.True(t, slices.ContainsFunc(out, func(b kvevent.Batch) bool { return b.Seq == seq-1 }))
}
