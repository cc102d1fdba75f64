// SPDX-License-Identifier: Apache-2.0

package kvevent

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
	"unsafe"
)

// Kind says what happened. The zero Kind is no event. New kinds may be added: consumers skip those they do not know.
type Kind uint8

// The kinds of events.
const (
	// Stored says that the blocks are now in the tier. They follow each other, and Parent if there is one.
	Stored Kind = iota + 1
	// Removed says that the blocks are no longer in the tier.
	Removed
	// Cleared says that the rank's cache is empty: the tier's, or every tier's if none is given.
	Cleared
)

// String returns the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Stored:
		return "stored"
	case Removed:
		return "removed"
	case Cleared:
		return "cleared"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Tier is where a block lies. Faster tiers have lower numbers.
type Tier uint8

// The tiers. The zero Tier is what an engine says that does not speak of tiers: the device for Stored and Removed, every tier for
// Cleared.
const (
	AnyTier Tier = iota
	Device       // the accelerator's memory
	Host         // main memory of the machine
	Disk         // local storage
	Remote       // storage reached over the network, shared or not

	// NumTiers is the number of real tiers. Tier t has the index t-1 in arrays by tier.
	NumTiers = 4
)

var tierNames = [...]string{"", "device", "host", "disk", "remote"}

// String returns the tier in lower case, "" for AnyTier.
func (t Tier) String() string {
	if int(t) < len(tierNames) {
		return tierNames[t]
	}
	return fmt.Sprintf("tier(%d)", uint8(t))
}

// Attention is the kind of attention a group of caches serves.
type Attention uint8

// The kinds of attention. Only blocks of full attention say how long a cached prefix is: the others forget its beginning.
const (
	FullAttention Attention = iota
	SlidingWindow
	StateSpace // Mamba and other recurrent state
	OtherAttention
)

// Event is one change of a rank's cache. Which fields are used depends on Kind.
//
// Slices belong to whoever made the event; a consumer copies what it keeps. [Event.Clone] makes a deep copy.
type Event struct {
	Kind Kind
	// Tier is where the change happened; see [AnyTier] for the zero value.
	Tier Tier
	// Attention and Group say which of the model's caches it was. Models with one cache leave both zero.
	Attention Attention
	Group     int32
	// BlockSize is the number of tokens in a block (Stored). 0 means the size the consumer expects.
	BlockSize int32

	// BlockHashes are the engine hashes of the blocks, in order of the prompt for Stored (Stored, Removed).
	BlockHashes []uint64
	// Parent is the engine hash of the block before the first one, if HasParent (Stored). Without, the first block is
	// the beginning of a prompt.
	Parent    uint64
	HasParent bool

	// TokenIDs are the tokens of the blocks, BlockSize for each hash but the last, which may stand for fewer (Stored). With EAGLE,
	// one token of the block after them follows. Engines leave them out when they copy a block they announced before to another tier.
	TokenIDs []uint32
	// LocalHashes, one for each block, take the place of TokenIDs where the publisher hashed the tokens itself, as Dynamo's
	// does: see package kvhash. LoRA, Namespace and Objects are in them already.
	LocalHashes []uint64
	// SequenceHashes, one for each block, are the chained hashes of package kvhash, from publishers that know them (Stored). They take
	// the place of TokenIDs and LocalHashes.
	SequenceHashes []uint64
	// Objects holds, for each block, the hashes ([ObjectHash]) of the images and embeddings it overlaps. Blocks beyond its length have
	// none (Stored).
	Objects [][]uint64
	// LoRA is the adapter's name, "" for the base model (Stored).
	LoRA string
	// Namespace is the cache salt of the request, "" for none (Stored). It names every block.
	Namespace string
	// RootNamespace says that the engine names the namespace only with the first block of a prompt: it is Parent's, whatever Namespace
	// says (Stored). An [Ingest], which sees events in order, puts it in and clears the flag.
	RootNamespace bool
	// NoCopies says that no copy of the blocks remains in the tier (Removed). Engines that do not say so may hold others:
	// [IngestOptions.Copies].
	NoCopies bool
	// Owner is the store, outside the worker and shared by several, that the blocks lie in: who else can reach it holds them too. ""
	// means that they are the worker's own, or that the engine does not say.
	Owner string
}

// Clone returns a deep copy of e.
func (e *Event) Clone() Event {
	c := *e
	c.BlockHashes = slices.Clone(e.BlockHashes)
	c.TokenIDs = slices.Clone(e.TokenIDs)
	c.LocalHashes = slices.Clone(e.LocalHashes)
	c.SequenceHashes = slices.Clone(e.SequenceHashes)
	c.Objects = slices.Clone(e.Objects)
	for i, o := range c.Objects {
		c.Objects[i] = slices.Clone(o)
	}
	return c
}

// Batch is what a rank publishes at once.
type Batch struct {
	// Worker is the publisher's number for the engine instance, in streams that carry several, as Dynamo's do; otherwise 0.
	Worker uint64
	// Seq counts the batches of one life of the rank's publisher, from 0.
	Seq uint64
	// Time is when the engine made the batch, by its clock. The zero Time means unknown.
	Time time.Time
	// DPRank is the data-parallel rank, 0 in an engine without.
	DPRank uint32
	// Damaged says that some events of the batch could not be read: from here on it is not known exactly what the rank holds.
	Damaged bool
	// Events are in the order in which they happened.
	Events []Event
}

// Clone returns a deep copy of b.
func (b *Batch) Clone() Batch {
	c := *b
	c.Events = slices.Clone(b.Events)
	for i := range b.Events {
		c.Events[i] = b.Events[i].Clone()
	}
	return c
}

// sum returns a number, not 0, that two batches about other blocks hardly have in common, and that a batch has wherever it was decoded:
// what a decoder of TensorRT-LLM makes of a change of level or a removal goes by what it saw before.
func (b *Batch) sum() uint32 {
	const odd = 0x9e3779b97f4a7c15
	h := uint64(odd)
	add := func(v uint64) { h = bits.RotateLeft64((h^v)*odd, 29) }
	var before []uint64
	for i := range b.Events {
		e := &b.Events[i]
		known := e.Kind == Stored && len(e.TokenIDs)+len(e.LocalHashes)+len(e.SequenceHashes) == 0 // is copied to another tier
		if again := i > 0 && slices.Equal(e.BlockHashes, before); !known && !(again && e.Kind == Removed) {
			add(uint64(e.Kind)<<1 | uint64(b2i(e.HasParent)))
			add(e.Parent)
			for _, v := range e.BlockHashes {
				add(v)
			}
		}
		before = e.BlockHashes
	}
	return uint32(h>>32) | 1
}

// size returns about how many bytes the batch takes.
func (b *Batch) size() int {
	n := int(unsafe.Sizeof(*b))
	for i := range b.Events {
		e := &b.Events[i]
		n += int(unsafe.Sizeof(*e)) + 8*(len(e.BlockHashes)+len(e.LocalHashes)+len(e.SequenceHashes)) + 4*len(e.TokenIDs) + len(e.LoRA) +
			len(e.Namespace) + len(e.Owner)
		for _, o := range e.Objects {
			n += 24 + 8*len(o)
		}
	}
	return n
}
