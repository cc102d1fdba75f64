// SPDX-License-Identifier: Apache-2.0

package kvevent

import (
	"fmt"
	"slices"
	"time"
)

// Kind specifies the kind of an event. The zero Kind is invalid. New kinds may be added; consumers must ignore unknown
// ones.
type Kind uint8

// The kinds of events.
const (
	// Stored reports that the blocks are now in the tier. They follow each other, and the first one follows Parent if
	// HasParent is set.
	Stored Kind = iota + 1
	// Removed reports that the blocks are no longer in the tier.
	Removed
	// Cleared reports that the rank's cache is empty, in the given tier or, if none is given, in every tier.
	Cleared
)

// wire returns the name of the kind in events of vLLM and SGLang.
func (k Kind) wire() string {
	return [...]string{"event", "BlockStored", "BlockRemoved", "AllBlocksCleared"}[k]
}

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

// Tier is the memory that holds a block. Faster tiers have lower numbers.
type Tier uint8

// The tiers. The zero Tier comes from engines that do not report tiers: it means the device for Stored and Removed, and
// every tier for Cleared.
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

// Attention specifies the kind of attention of a group.
type Attention uint8

// The kinds of attention. Full attention needs all blocks of a cached prefix. The other caches drop its first blocks, and only need
// the last ones.
const (
	FullAttention Attention = iota
	SlidingWindow
	StateSpace // Mamba and other recurrent state
	OtherAttention
)

// Event is one change of a rank's cache. Which fields are used depends on Kind.
//
// The producer of the event owns its slices; a consumer must copy what it keeps. [Batch.Clone] makes a deep copy.
type Event struct {
	Kind Kind
	// Tier is where the change happened; see [AnyTier] for the zero value.
	Tier Tier
	// Attention and Group identify the cache of the model. Models with one cache leave both zero. A Removed event may have
	// only the Group.
	Attention Attention
	Group     int32
	// Window is the length of the sliding window in tokens; 0 means unknown (Stored).
	Window int32
	// BlockSize is the number of tokens in a block (Stored). 0 means the size the consumer expects.
	BlockSize int32

	// BlockHashes are the engine hashes of the blocks, in order of the prompt for Stored (Stored, Removed).
	BlockHashes []uint64
	// Parent is the engine hash of the block before the first one, if HasParent is set (Stored). Otherwise the first
	// block begins a prompt.
	Parent    uint64
	HasParent bool

	// TokenIDs are the tokens of the blocks, BlockSize for each hash except the last, which may have fewer (Stored).
	// With EAGLE and MTP, they include the first tokens of the next block that the hash of the last one covers. Engines omit
	// them when they copy a known block to another tier. There are none if the cache holds only some blocks of the prompt, as
	// with a sliding window: the hashes are those of the same blocks in the group with full attention.
	TokenIDs []uint32
	// LocalHashes, one for each block, replace TokenIDs if the publisher hashed the tokens, as Dynamo's does; see
	// package kvhash. They already include LoRA, Namespace and Objects.
	LocalHashes []uint64
	// SequenceHashes, one for each block, are the chained hashes of package kvhash, from publishers that know them
	// (Stored). They replace TokenIDs and LocalHashes.
	SequenceHashes []uint64
	// Objects holds, for each block, the hashes ([ObjectHash]) of the images and embeddings it overlaps. Blocks beyond its length have
	// none (Stored).
	Objects [][]uint64
	// LoRA is the adapter's name, "" for the base model (Stored).
	LoRA string
	// Namespace is the cache salt of the request, or "" for none (Stored). It applies to every block.
	Namespace string
	// RootNamespace reports that the engine sends the namespace only with the first block of a prompt, so that the
	// namespace of these blocks is that of Parent and Namespace must be ignored (Stored). A Stream of package index,
	// which applies events in order, sets Namespace and clears the flag.
	RootNamespace bool
	// NoCopies reports that no copy of the blocks remains in the tier (Removed). Engines that do not report this may
	// have other copies; see StreamOptions of package index.
	NoCopies bool
	// Owner is the store that holds the blocks, if they are outside the worker and shared: every worker with access to
	// the store holds them too. "" means that the worker owns the blocks or that the engine does not report the owner.
	Owner string
}

// clone returns a deep copy of e.
func (e *Event) clone() Event {
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

// Batch is a group of events that a rank publishes at once.
type Batch struct {
	// Worker is the publisher's number of the engine instance in streams that carry several instances, such as
	// Dynamo's; otherwise it is 0.
	Worker uint64
	// Seq counts the batches of one run of the rank's publisher, from 0.
	Seq uint64
	// Time is the time at which the engine made the batch, by its own clock. The zero Time means unknown.
	Time time.Time
	// DPRank is the data-parallel rank. It is 0 for engines without data parallelism and for batches that do not
	// contain it. A caller that subscribed to one rank may set it.
	DPRank uint32
	// Damaged reports that some events of the batch could not be decoded, so that the contents of the rank's cache are
	// no longer known exactly.
	Damaged bool
	// Events are in the order in which they happened.
	Events []Event
}

// Clone returns a deep copy of b.
func (b *Batch) Clone() Batch {
	c := *b
	c.Events = slices.Clone(b.Events)
	for i := range b.Events {
		c.Events[i] = b.Events[i].clone()
	}
	return c
}
