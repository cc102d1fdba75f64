// SPDX-License-Identifier: Apache-2.0

package index

import "github.com/weft-go/weft/kvhash/kvevent"

// This file holds the blocks themselves. Only nodes mutates its fields; everything else goes through node numbers.

// The planes of bits that each node has, one bit for each worker. Plane t is tier t of package kvevent.
const (
	planeAny       = 0 // union of the others
	planePredicted = kvevent.NumTiers + 1
	numPlanes      = kvevent.NumTiers + 2
)

const noNode = ^uint32(0)

// nodes is an arena of blocks without pointers, so that the garbage collector does not look into it.
//
// Invariants: bySeq[info[n].seq] == n for each live n; a live node has a bit in planeAny, except while one call creates it; the
// bits of a free node are zero; len(bits) == len(info)*numPlanes*words.
type nodes struct {
	words int // of 64 workers, in each plane
	info  []nodeInfo
	bits  []uint64
	bySeq map[uint64]uint32
	free  []uint32
}

type nodeInfo struct {
	seq  uint64
	next uint32 // a hint: some node that followed this one, or noNode; to be checked before use
	live bool
}

// find returns the node with the given sequence hash, or noNode.
func (ns *nodes) find(seq uint64) uint32 {
	if n, ok := ns.bySeq[seq]; ok {
		return n
	}
	return noNode
}

// after is find with a guess: the node probably follows n.
func (ns *nodes) after(n uint32, seq uint64) uint32 {
	if h := ns.info[n].next; h != noNode && ns.info[h].seq == seq && ns.info[h].live {
		return h
	}
	return ns.find(seq)
}

// get returns the node with the given sequence hash, which follows prev if that is not noNode, and makes it if there is none.
func (ns *nodes) get(prev uint32, seq uint64) uint32 {
	n := noNode
	if prev != noNode {
		n = ns.after(prev, seq)
	} else {
		n = ns.find(seq)
	}
	if n == noNode {
		n = ns.add(seq)
	}
	if prev != noNode {
		ns.info[prev].next = n
	}
	return n
}

func (ns *nodes) add(seq uint64) uint32 {
	var n uint32
	if k := len(ns.free); k > 0 {
		n = ns.free[k-1]
		ns.free = ns.free[:k-1]
	} else {
		n = uint32(len(ns.info))
		ns.info = append(ns.info, nodeInfo{})
		for range numPlanes * ns.words {
			ns.bits = append(ns.bits, 0)
		}
	}
	if ns.bySeq == nil {
		ns.bySeq = make(map[uint64]uint32)
	}
	ns.info[n] = nodeInfo{seq: seq, next: noNode, live: true}
	ns.bySeq[seq] = n
	return n
}

// release frees n if no worker holds it.
func (ns *nodes) release(n uint32) {
	for _, w := range ns.plane(n, planeAny) {
		if w != 0 {
			return
		}
	}
	if !ns.info[n].live {
		return
	}
	delete(ns.bySeq, ns.info[n].seq)
	ns.info[n] = nodeInfo{next: noNode}
	ns.free = append(ns.free, n)
	if len(ns.free) == len(ns.info) { // empty: give the memory back
		*ns = nodes{words: ns.words}
	}
}

// plane returns the bits of one plane of n.
func (ns *nodes) plane(n uint32, p int) []uint64 {
	at := (int(n)*numPlanes + p) * ns.words
	return ns.bits[at : at+ns.words : at+ns.words]
}

func (ns *nodes) has(n uint32, p int, w WorkerID) bool {
	return ns.bits[(int(n)*numPlanes+p)*ns.words+int(w>>6)]>>(w&63)&1 != 0
}

// set sets or clears the bit of worker w and keeps planeAny in step. It reports whether w's bit in planeAny changed. It does not
// release.
func (ns *nodes) set(n uint32, p int, w WorkerID, on bool) (anyChanged bool) {
	at, bit := int(n)*numPlanes*ns.words+int(w>>6), uint64(1)<<(w&63)
	before := ns.bits[at] & bit
	if on {
		ns.bits[at+p*ns.words] |= bit
		ns.bits[at] |= bit
		return before == 0
	}
	ns.bits[at+p*ns.words] &^= bit
	var left uint64
	for q := 1; q < numPlanes; q++ {
		left |= ns.bits[at+q*ns.words]
	}
	ns.bits[at] = ns.bits[at]&^bit | left&bit
	return before != ns.bits[at]&bit
}

// room makes room for workers with numbers below n. O(nodes) when another 64 begin.
func (ns *nodes) room(n int) {
	words := (n + 63) / 64
	if words <= ns.words {
		return
	}
	old := ns.bits
	ns.bits = make([]uint64, len(ns.info)*numPlanes*words)
	for i := range len(ns.info) * numPlanes {
		copy(ns.bits[i*words:], old[i*ns.words:(i+1)*ns.words])
	}
	ns.words = words
}
