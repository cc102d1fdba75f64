// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/internal/packed"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// TestFollow follows an engine that is restarted now and then, over a transport that loses messages, with replays, new
// streams and states of a sidecar, from bytes to lookups: an exact state is the engine's state after the last received
// batch, blocks of a running engine are never cleared, and in the end every state is exact again.
func TestFollow(t *testing.T) {
	for _, timed := range []bool{true, false} {
		t.Run(fmt.Sprintf("timed=%t", timed), func(t *testing.T) {
			seeds := uint64(60)
			if testing.Short() {
				seeds = 15
			}
			for seed := range seeds {
				followOne(t, rand.New(rand.NewPCG(seed, 1)), timed)
			}
		})
	}
}

func followOne(t *testing.T, r *rand.Rand, timed bool) {
	const ids = 8 // blocks, each a prompt of its own
	var (
		clock    = time.Unix(1000, 0)
		life     = 0
		log      [][][]byte              // of this run: frames
		truth    = []map[uint32]bool{{}} // truth[n] is the state after n batches of this run
		received = -1                    // the run that the stream knows of
		top      = 0                     // how many batches of it
		exactIn  = -1                    // the last run that was exact
		trace    []string
	)
	x, sx := index.NewAll(2, nil), index.NewAll(2, nil)
	id, side := x.AddWorker(index.Key{Instance: "e"}), sx.AddWorker(index.Key{Instance: "e"})
	feed, sidecar := x.NewStream(id, nil), sx.NewStream(side, nil)
	format := kvevent.Compact
	if timed {
		format = kvevent.VLLM
	}
	d := kvevent.NewDecoder(format, nil)
	decode := func(frames [][]byte) kvevent.Batch {
		batches, err := d.Append(nil, frames[2])
		require.NoError(t, err)
		if timed {
			batches, err = d.AppendFrames(nil, frames)
			require.NoError(t, err)
		}
		return batches[0]
	}
	publish := func() [][]byte {
		clock = clock.Add(time.Duration(r.IntN(300)+1) * time.Millisecond)
		held, seq := maps.Clone(truth[len(truth)-1]), uint64(len(log))
		b := kvevent.Batch{Seq: seq}
		events := packed.Array{}
		for range 1 + r.IntN(3) {
			n := uint32(r.IntN(ids))
			hash := uint64(life*ids) + uint64(n)
			switch {
			case r.IntN(30) == 0:
				clear(held)
				b.Events, events = append(b.Events, kvevent.Event{Kind: kvevent.Cleared}), append(events, packed.Array{"AllBlocksCleared"})
			case held[n]:
				delete(held, n)
				b.Events = append(b.Events, kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{hash}})
				events = append(events, packed.Array{"BlockRemoved", packed.Array{hash}, "GPU"})
			default:
				held[n] = true
				b.Events = append(b.Events, kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{hash}, TokenIDs: []uint32{n, n}})
				events = append(events, packed.Array{"BlockStored", packed.Array{hash}, nil, packed.Array{int(n), int(n)}, 2, nil, "GPU"})
			}
		}
		payload := kvevent.AppendBatch(nil, &b)
		if timed {
			payload = packed.Append(nil, packed.Array{float64(clock.UnixMilli()) / 1000, events, 0})
		}
		frames := [][]byte{nil, binary.BigEndian.AppendUint64(nil, seq), payload}
		log, truth = append(log, frames), append(truth, held)
		sidecar.Add(decode(frames))
		return frames
	}
	check := func(what string, args ...any) {
		s, _ := x.Info(id)
		n, from := feed.Need()
		trace = append(trace, fmt.Sprintf(what, args...)+fmt.Sprintf(" -> %v %s, need %v from %d", s.State, s.Why, n, from))
		require.False(t, received == life && exactIn == life && n != index.None && from == 0, "cleared without a restart: %q", trace)
		if s.State != index.Exact || received != life {
			return
		}
		exactIn = life
		for n := range uint32(ids) {
			got := len(x.AppendMatches(nil, kvhash.Scheme{}.AppendBlocks(nil, []uint32{n, n}, 2, nil))) > 0
			require.Equal(t, truth[top][n], got, "block %d after %d batches: %q", n, top, trace)
		}
	}
	push := func(frames [][]byte) {
		seq := int(binary.BigEndian.Uint64(frames[1]))
		if received != life {
			if seq >= top { // no message indicates it: the caller does
				feed.Reset("")
			}
			received, top = life, 0
		}
		top = max(top, seq+1)
		feed.Add(decode(frames))
		check("push %d.%d", life, seq)
	}
	replay := func(lost int) {
		n, seq := feed.Need()
		if n != index.Replay || received != life {
			return
		}
		for seq := int(seq); seq < len(log); seq++ {
			if r.IntN(10) >= lost {
				top = max(top, seq+1)
				feed.AddReplay(decode(log[seq]))
				check("replay %d", seq)
			}
		}
		feed.FinishReplay()
		check("replay done")
	}
	restore := func() {
		if len(log) == 0 || !timed && received != life {
			return
		}
		received, top = life, len(log)
		require.NoError(t, feed.Restore(sx.AppendWorker(nil, side)))
		check("restore %d.%d", life, top)
	}
	for range 100 {
		switch r.IntN(20) {
		case 0:
			clock = clock.Add(6 * time.Second)
			life, log, truth = life+1, nil, []map[uint32]bool{{}}
			sidecar.Reset("")
			check("restart")
			if !timed {
				push(publish()) // the only certain difference from a repetition
			}
		case 1, 2:
			feed = x.NewStream(id, nil)
			check("new feed")
		case 3, 4:
			replay(2)
		case 5:
			if need(feed) == index.Snapshot || r.IntN(4) == 0 {
				restore()
			}
		case 6:
			feed.Skip()
			check("give up")
		default:
			if frames := publish(); r.IntN(4) > 0 {
				push(frames)
			}
		}
	}
	push(publish())
	replay(0)
	if s, _ := x.Info(id); s.State != index.Exact {
		restore()
	}
	s, _ := x.Info(id)
	require.Equal(t, index.Exact, s.State, "%q", trace)
}
