// SPDX-License-Identifier: Apache-2.0

package index

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// A block that continues a sequence leaves the same state and the same result as on the way of all other events, which an index with a
// journal takes. Workers share the beginnings of sequences, generate, branch, evict, repeat and contradict themselves. They are not
// cleared, which frees slots in an order that depends on the secret.
func TestNext(t *testing.T) {
	short, all := 0, 0
	schemes := []struct {
		name string
		kvhash.Options
	}{{"dynamo", kvhash.Options{Variant: "eagle"}}, {"vllm_sha256_cbor", kvhash.Options{}}}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		odd := seed%3 > 0 // also events that few engines send
		o := Options{}
		if seed%5 == 0 {
			o.MaxBlocks = 200
		}
		if seed%4 == 1 {
			scheme, err := kvhash.Lookup(schemes[seed/4%2].name, &schemes[seed/4%2].Options)
			require.NoError(t, err)
			o.Scheme = scheme
		}
		x, y := New(4, &o), newWithJournal(4, &o, 1<<20)
		var names [3][]uint64 // of blocks that each worker has stored, a few of them removed since
		for i := range names {
			require.Equal(t, x.AddWorker(Key{DPRank: uint32(i)}), y.AddWorker(Key{DPRank: uint32(i)}))
		}
		for range 200 {
			id := rnd.IntN(len(names))
			known := &names[id]
			ev := kvevent.Event{Kind: kvevent.Stored}
			one := func() uint64 { return rnd.Uint64N(3) + 1 } // few, so that workers share blocks
			switch n := rnd.IntN(20); {
			case n == 0 && len(*known) > 0:
				ev.Kind = kvevent.Removed
				ev.BlockHashes = []uint64{(*known)[rnd.IntN(len(*known))]}
			default:
				if len(*known) > 0 && n > 2 {
					ev.HasParent, ev.Parent = true, (*known)[max(0, len(*known)-1-rnd.IntN(5)/4*rnd.IntN(3))]
				}
				more := 1
				if n < 5 {
					more = 1 + rnd.IntN(4)
				}
				for range more {
					h := rnd.Uint64()
					if odd && rnd.IntN(40) == 0 && len(*known) > 0 {
						h = (*known)[rnd.IntN(len(*known))]
					}
					ev.BlockHashes = append(ev.BlockHashes, h)
					*known = append(*known, h)
				}
				switch kind := rnd.IntN(8); {
				case odd && kind == 0:
					for range ev.BlockHashes {
						ev.SequenceHashes = append(ev.SequenceHashes, rnd.Uint64())
					}
				case kind == 1:
					for range 4 * len(ev.BlockHashes) {
						ev.TokenIDs = append(ev.TokenIDs, uint32(one()))
					}
				case odd && kind == 2:
					if rnd.IntN(2) == 0 {
						ev.LoRA = "adapter"
					}
					ev.TokenIDs = make([]uint32, 4*len(ev.BlockHashes)-rnd.IntN(2))
				default:
					for range ev.BlockHashes {
						ev.LocalHashes = append(ev.LocalHashes, one())
					}
				}
			}
			accident := rnd.IntN(30)
			if !odd {
				accident = 30
			}
			switch accident {
			case 0:
				ev.Tier = kvevent.Host
			case 1:
				ev.Tier = kvevent.NumTiers + 1
			case 2:
				ev.BlockSize = 8
			case 3:
				ev.BlockSize = 4
			case 4:
				ev.Group = 1
			case 5:
				ev.Attention = kvevent.SlidingWindow
			case 6:
				ev.LocalHashes = append(ev.LocalHashes, one())
			case 7:
				ev.Objects = make([][]uint64, len(ev.BlockHashes))
				ev.Objects[0] = []uint64{1}
			case 8:
				ev.LocalHashes, ev.TokenIDs = nil, make([]uint32, 4*len(ev.BlockHashes)+1)
			case 9:
				ev.SequenceHashes = append(ev.SequenceHashes, one(), one())
			case 10:
				ev.Owner = "store"
			}
			var before []byte
			var taken *shot
			if rnd.IntN(8) == 0 { // during a snapshot
				before, taken = x.appendAll(nil), x.shoot(kindIndex, 0)
			}
			var res Result
			if x.addNext(x.workers[id], &ev) {
				res.Stored = 1
				short++
			} else {
				res = x.Add(WorkerID(id), &ev)
			}
			all++
			if taken != nil {
				require.True(t, bytes.Equal(before, taken.append(nil)), "seed %d: %+v", seed, ev)
			}
			require.Equal(t, y.Add(WorkerID(id), &ev), res, "seed %d: %+v", seed, ev)
			require.Equal(t, y.AppendWorkers(nil), x.AppendWorkers(nil), "seed %d: %+v", seed, ev)
		}
		require.NoError(t, x.check(false))
		y.journal = nil // so that its snapshot has no version
		require.True(t, bytes.Equal(y.appendAll(nil), x.appendAll(nil)), "seed %d", seed)
	}
	t.Logf("%d of %d events took the short way", short, all)
	require.Greater(t, short, all/10)
	require.Less(t, short, all*9/10)
}
