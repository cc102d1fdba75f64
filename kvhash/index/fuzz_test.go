// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// FuzzApply applies events made of arbitrary bytes, with all kinds and fields. Nothing may panic or break an invariant; every result,
// state and lookup must be the model's; removing every worker must leave nothing.
//
// With the first byte's lowest bit, the hashes are not a chain: then there is no model, lookups must only add up.
func FuzzApply(f *testing.F) {
	f.Add([]byte("\x00\x01\x00\x00\x02\x01\x02\x00\x01\x01\x02\x02\x00\x01\x01"))
	f.Add([]byte("\x00\x01\x10\x00\x03abc\x00\x01\x02\x03\x04\x05\x06\x02\x10\x01\x01b\x05\x00"))
	f.Add([]byte("\x01\x01\x20\x03\x01\x02\x03\x04\x20\x03\x03\x02\x01\x02\x20\x03\x01\x02\x03"))
	f.Add([]byte("\x00\x41\x00\x07\x03\x08\x09\x0A\x00\x01\x00\x01\x00\x01\x01\x00\x01\x07\x00\x00"))
	f.Add([]byte("0!0\xf0")) // a block of 2^30 tokens, and none of it
	f.Fuzz(func(t *testing.T, in []byte) {
		next := func() byte {
			if len(in) == 0 {
				return 0
			}
			b := in[0]
			in = in[1:]
			return b
		}
		flags := next()
		wild := flags&1 != 0
		o := index.AllOptions{MaxPending: 8, PendingTTL: -1}
		x, m := index.NewAll(modelBlock, &o), newModel(modelBlock, o)
		var ids []index.WorkerID
		for i := range uint32(70) {
			id := x.AddWorker(index.Key{Instance: "e", DPRank: i})
			m.add(id, index.Key{Instance: "e", DPRank: i})
			if i < 4 || i > 65 {
				ids = append(ids, id)
			}
		}
		var last prediction
		now := time.Unix(0, 0)
		var queries [][]uint64
		for range min(len(in), 200) {
			op, who := next(), next()
			id := ids[who&7]
			ev := kvevent.Event{Kind: kvevent.Kind(op & 7), Tier: kvevent.Tier(op >> 3 & 7), HasParent: op&64 != 0}
			rare := next()
			if rare&0xC0 == 0xC0 {
				ev.Attention, ev.Group = kvevent.Attention(rare&3), int32(rare>>2&1)
				ev.BlockSize = []int32{0, 2, 1, 3, -2, 4, 1 << 30, -1 << 31}[rare>>3&7]
			} else if rare&0x80 != 0 {
				ev.LoRA, ev.Namespace = []string{"", "x"}[rare&1], []string{"", "n"}[rare>>1&1]
			}
			if ev.HasParent {
				ev.Parent = uint64(next() & 15)
			}
			n := int(next() & 7)
			for range n {
				ev.BlockHashes = append(ev.BlockHashes, uint64(next()&15))
			}
			switch who >> 3 & 7 {
			case 0, 1, 2:
				for range modelBlock * n {
					ev.TokenIDs = append(ev.TokenIDs, uint32(next()&1))
				}
			case 3: // any number
				for range next() & 15 {
					ev.TokenIDs = append(ev.TokenIDs, uint32(next()&1))
				}
			case 4:
				for range n {
					ev.LocalHashes = append(ev.LocalHashes, uint64(next()&3))
				}
			case 5:
				for range next() & 7 {
					ev.LocalHashes = append(ev.LocalHashes, uint64(next()&3))
				}
			case 6:
				ev.Objects = [][]uint64{{uint64(next())}, nil, {2, 1}}
				for range modelBlock * n {
					ev.TokenIDs = append(ev.TokenIDs, 1)
				}
			}
			if ev.BlockSize > modelBlock && (wild || ev.HasParent || len(ev.LocalHashes) > 0) {
				ev.BlockSize |= 1 // a multiple only if the event is complete
			}
			if w := m.worker(id); ev.BlockSize > modelBlock && w != nil && w.small {
				ev.BlockSize |= 1 // the model has no blocks of two sizes; TestTogether has a model with them
			}
			if ev.BlockSize == 1 && !wild {
				ev.BlockSize = 3 // the model does not gather smaller blocks; TestPages does
			}
			// A prompt made of what may have been stored.
			query := make([]uint64, 0, 8)
			for range n {
				query = append(query, uint64(next()&3))
			}
			if !wild {
				query = modelChain(query)
			}
			if n > 0 && !slices.ContainsFunc(queries, func(q []uint64) bool { return slices.Equal(q, query) }) && len(queries) < 8 {
				queries = append(queries, query)
			}
			if wild {
				setAnyHashes(&ev, next)
			}
			until := now.Add(time.Duration(1+n) * time.Second)
			switch ev.Kind {
			case 4:
				from := int(rare) % (len(query) + 1)
				last = prediction{x.Predict(id, query, from, until), m.worker(id).predict(m.path(query)[from:], until)}
			case 5:
				now = until
				x.Expire(now)
				m.expire(now)
			case 6:
				x.Unpredict(last.p)
				for _, b := range last.m.fresh {
					last.m.takeBack(b)
				}
			case 7:
				if rare&32 == 0 {
					x.Clear(id)
					m.worker(id).clear(kvevent.AnyTier)
					m.worker(id).received = true // Clear is an event
					break
				}
				x.RemoveWorker(id)
				k := index.Key{Instance: "again", DPRank: uint32(id)}
				m.add(x.AddWorker(k), k)
			default:
				got, want := x.Add(id, &ev), m.apply(id, &ev)
				if got != want && !wild && (ev.BlockSize == 0 || ev.BlockSize == modelBlock) {
					t.Fatalf("%+v: %+v, model %+v", ev, got, want)
				}
			}
			check := x.Check
			if wild {
				check = x.CheckInvalidChains
			}
			if err := check(); err != nil {
				t.Fatal(err)
			}
			for _, q := range queries {
				got := x.AppendMatches(nil, q)
				for i := range got {
					sum := got[i].Predicted
					for _, d := range got[i].Tiers {
						sum += d
					}
					if g := got[i]; g.Depth < 1 || int(g.Depth) > len(q) || sum != g.Depth || i > 0 && got[i-1].Worker >= g.Worker {
						t.Fatalf("%+v", got)
					}
					if s, ok := x.Info(got[i].Worker); !ok || s.Blocks < 1 || !wild && s.Blocks < int(got[i].Depth) || s.State != got[i].State {
						t.Fatalf("%+v: state %+v", got[i], s)
					}
				}
				if wild {
					continue
				}
				if err := sameMatches(m.match(m.path(q)), got); err != nil {
					t.Fatal(err)
				}
			}
			if !wild && x.Len() != m.len() {
				t.Fatalf("%d blocks, model %d", x.Len(), m.len())
			}
		}
		if !wild {
			for i, s := range x.AppendInfos(nil) {
				w := m.states()[i]
				if s.Key, w.Key = (index.Key{}), (index.Key{}); s != w {
					t.Fatalf("%+v, model %+v", s, w)
				}
			}
		}
		for id := range index.WorkerID(70) {
			x.RemoveWorker(id)
		}
		if err := x.Check(); err != nil || x.Len() != 0 {
			t.Fatal(x.Len(), err)
		}
	})
}

// modelChain turns small numbers into the sequence hashes of blocks of the model's tokens or, beyond 1, of those local hashes.
func modelChain(locals []uint64) []uint64 {
	for i, l := range locals {
		if l < 2 {
			locals[i] = fuzzLocals[l]
		}
	}
	return kvhash.AppendSequence(nil, locals)
}

var fuzzLocals = func() []uint64 {
	return kvhash.Scheme{}.AppendLocal(nil, []uint32{0, 1, 1, 1}, modelBlock, nil)
}()
