// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"slices"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// copies counts the copies of each block of a rank, by tier and group, for engines that report every copy. If an engine
// reports that no copies remain ([kvevent.Event.NoCopies]), the count is not used.
type copies [kvevent.NumTiers + 1]map[uint64]uint32

// counted is the key of a block of a group: the hash itself for group 0, to which most blocks belong.
func counted(hash uint64, group int32) uint64 { return hash + uint64(group)*0x9e3779b97f4a7c15 }

// maxCounted limits the number of counted blocks in a tier. Other blocks are removed with the first Removed event.
const maxCounted = 1 << 24

// see counts the blocks of the next batch, and removes from it the removals after which copies remain. The memory of
// the events is not modified.
func (c *copies) see(b *kvevent.Batch) {
	cloned := false
	for i := range b.Events {
		e := &b.Events[i]
		switch {
		case clearsAll(e):
			*c = copies{}
		case e.Tier > kvevent.NumTiers || e.Owner != "":
		case e.Kind == kvevent.Stored:
			c.add(e)
		case clearsTier(e):
			c[e.Tier] = nil
		case e.Kind == kvevent.Removed:
			left := c.remove(e)
			if len(left) == len(e.BlockHashes) {
				continue
			}
			if !cloned {
				b.Events, cloned = slices.Clone(b.Events), true
			}
			b.Events[i].BlockHashes = left
		}
	}
}

func (c *copies) add(e *kvevent.Event) {
	of := &c[max(e.Tier, kvevent.Device)]
	if *of == nil {
		*of = make(map[uint64]uint32)
	}
	for _, h := range e.BlockHashes {
		k := counted(h, e.Group)
		if n := (*of)[k]; n > 0 || len(*of) < maxCounted {
			(*of)[k] = n + 1
		}
	}
}

// remove returns the hashes of which no copy remains: the hashes of e if there are no other copies.
func (c *copies) remove(e *kvevent.Event) []uint64 {
	of := c[max(e.Tier, kvevent.Device)]
	left := e.BlockHashes
	for i, h := range e.BlockHashes {
		k := counted(h, e.Group)
		n := of[k]
		if n < 2 || e.NoCopies {
			delete(of, k)
			if len(left) < len(e.BlockHashes) {
				left = append(left, h)
			}
			continue
		}
		of[k] = n - 1
		if len(left) == len(e.BlockHashes) {
			left = append(make([]uint64, 0, len(e.BlockHashes)-1), left[:i]...)
		}
	}
	return left
}
