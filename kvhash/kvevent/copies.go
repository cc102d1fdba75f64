// SPDX-License-Identifier: Apache-2.0

package kvevent

import "slices"

// copies counts how often each block of a rank is there, for engines that tell of every copy. Tiers are counted apart, and so are groups.
// An engine that says itself how many copies remain ([Event.NoCopies]) is believed.
type copies [NumTiers + 1]map[uint64]uint32

// counted is the key of a block of a group: the hash itself for group 0, to which most blocks belong.
func counted(hash uint64, group int32) uint64 { return hash + uint64(group)*0x9e3779b97f4a7c15 }

// maxCounted is how many blocks of a tier are counted. Those beyond are gone with the first Removed.
const maxCounted = 1 << 24

// see takes the next batch of the rank and leaves out the removals after which copies remain. What it gets is not changed.
func (c *copies) see(b *Batch) {
	cloned := false
	for i := range b.Events {
		e := &b.Events[i]
		switch {
		case e.clearsAll():
			*c = copies{}
		case e.Tier > NumTiers || e.Owner != "":
		case e.Kind == Stored:
			if e.Attention == FullAttention { // others do not say how long a cached prefix is, so nobody minds them
				c.add(e)
			}
		case e.clearsTier():
			c[e.Tier] = nil
		case e.Kind == Removed:
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

func (c *copies) add(e *Event) {
	of := &c[max(e.Tier, Device)]
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

// remove returns the hashes of which no copy remains: those of e if there are no others.
func (c *copies) remove(e *Event) []uint64 {
	of := c[max(e.Tier, Device)]
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
