// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"testing"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// FuzzEvents applies events made of arbitrary bytes. Nothing may panic or break an invariant, a lookup must add up, and removing
// every worker must leave nothing.
func FuzzEvents(f *testing.F) {
	f.Add([]byte{1, 0, 0, 2, 1, 2, 0, 1, 1, 2, 2, 0, 1, 1})
	f.Add([]byte("\x01\x10\x00\x03abc\x00\x01\x02\x03\x04\x05\x06\x02\x10\x01\x01b\x05\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		next := func() byte {
			if len(in) == 0 {
				return 0
			}
			b := in[0]
			in = in[1:]
			return b
		}
		x := index.New(modelBlock, &index.Options{MaxOrphans: 8})
		for i := range uint32(70) {
			x.AddWorker(index.Key{Instance: "e", DPRank: i})
		}
		var last index.Prediction
		now := time.Unix(0, 0)
		for range min(len(in), 200) {
			op, who := next(), next()
			id := index.WorkerID(who & 3)
			if who&4 != 0 {
				id += 65 // in the second word
			}
			ev := kvevent.Event{Kind: kvevent.Kind(op & 7), Tier: kvevent.Tier(op >> 3 & 7), HasParent: op&64 != 0, BlockSize: modelBlock}
			ev.Attention = kvevent.Attention(who >> 7)
			ev.Group = int32(who >> 6 & 1)
			if ev.HasParent {
				ev.Parent = uint64(next())
			}
			n := int(next() & 7)
			for range n {
				ev.BlockHashes = append(ev.BlockHashes, uint64(next()))
			}
			if op&128 == 0 {
				for range modelBlock*n - int(who>>3&1) {
					ev.TokenIDs = append(ev.TokenIDs, uint32(next()&1))
				}
			} else if who&16 != 0 {
				for range n {
					ev.LocalHashes = append(ev.LocalHashes, uint64(next()))
				}
			}
			switch ev.Kind {
			case 4:
				last = x.Predict(id, ev.BlockHashes, int(who>>5), now.Add(time.Duration(n)*time.Second))
			case 5:
				now = now.Add(time.Duration(n) * time.Second)
				x.Expire(now)
			case 6:
				x.Unpredict(last)
			default:
				x.Apply(id, &ev)
			}
			if err := x.Check(); err != nil {
				t.Fatal(err)
			}
			for _, m := range x.Match(nil, modelHashes("ab")) {
				sum := m.Predicted
				for _, d := range m.Tiers {
					sum += d
				}
				if m.Depth < 1 || m.Depth > 2 || sum != m.Depth {
					t.Fatalf("%+v", m)
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
