// SPDX-License-Identifier: Apache-2.0

// Package replica copies an [index.Index] to other processes, and lets several workers share a store. No program of this repository uses it
// yet: unlike package index, it may change or disappear in any version.
//
//   - A snapshot ([AppendSnapshot], [Load]) lets a router continue after a restart.
//   - A worker's snapshot ([AppendWorker], [Restore]) comes from a process next to the engine that has received every
//     batch, for a router that connects later.
//   - Deltas ([AppendDelta], [AddDelta]) let an index follow another one, its leader.
//   - A store ([AddStore], [Attach]) is a tier that several workers read from, such as a cache server.
//   - [AppendMatches] looks up a prompt for some of the workers.
//
// The formats are the same on all machines. They have a version and a checksum: data of another version, and damaged data, are refused
// as a whole.
package replica

import (
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/internal/bridge"
	"github.com/weft-go/weft/kvhash/kvevent"
)

var hooks = bridge.Index.(bridge.Hooks[index.Index, index.Options, index.Stream, index.Key, index.WorkerID, index.Match])

// ErrGap is the cause of an error of [AddDelta] if the delta does not continue from the version that the index has. A snapshot is needed.
var ErrGap = hooks.ErrGap

// Version identifies the updates that an index has seen. It is comparable; the zero Version belongs to an empty index.
type Version [16]byte

// New returns an empty index as [index.New] does, which keeps journal bytes of its latest updates for followers.
func New(block, journal int, o *index.Options) *index.Index { return hooks.New(block, o, journal) }

// Load returns the index of a snapshot that [AppendSnapshot] made, for the options of the index that it was made of; nil options mean
// the defaults. Workers have their previous IDs. [index.Index.NewStream] continues where the worker's stream was; batches sent since are
// missing, and requested. The index follows the other one ([AddDelta]) until it has an update of its own, or a stream. journal is as in [New].
//
// If there is an error, the index is nil. Load takes about as long as adding the blocks with events. Memory is
// proportional to len(data), except that a range of blocks whose engine hashes are sequence hashes takes 3 bytes of
// data for each worker, regardless of its length.
func Load(data []byte, journal int, o *index.Options) (*index.Index, error) {
	return hooks.Load(data, o, journal)
}

// AppendSnapshot appends everything the index holds to dst, for [Load]: blocks, workers with their IDs, states and positions in their
// streams, pending blocks. Predictions are left out. About 8 bytes for each distinct block, little for each range of blocks that a
// worker holds under sequence hashes, 8 more for each engine hash that differs. The snapshot of a loaded index has the same bytes.
//
// The snapshot is of one moment, for which streams are stopped between two batches. It is then copied in parts of some 0.1 ms, between
// which updates continue, and written without a lock: 40 to 100 ns for each block and each residency, with 50 to 60 bytes of memory
// for each block meanwhile and 20 for each residency of one worker. Other snapshots wait. Pending blocks, and blocks in a namespace, are copied
// at once for each worker.
func AppendSnapshot(dst []byte, x *index.Index) []byte { return hooks.AppendSnapshot(x, dst) }

// AppendWorker appends what the index holds of one worker to dst, with its position in its stream, for [Restore] in an index that has the
// same worker with any ID. For an unknown worker it appends nothing. It costs as much as [AppendSnapshot] of the worker's blocks.
func AppendWorker(dst []byte, x *index.Index, id index.WorkerID) []byte {
	return hooks.AppendWorker(x, dst, id)
}

// Restore replaces the blocks of the stream's worker by those in data, which [AppendWorker] made, and continues in the stream from there.
// Lookups do not report the worker meanwhile. An error changes nothing. O(blocks of the worker), and O(all blocks) if some of them do not
// begin a prompt and follow none of its own.
func Restore(s *index.Stream, data []byte) error { return hooks.Restore(s, data) }

// Current returns the version of the index; the zero Version if it keeps no journal and was not loaded from an index that does.
func Current(x *index.Index) Version { return hooks.Version(x) }

// AppendDelta appends to dst what changed since a version, for [AddDelta], and returns the version after it. ok is false, and nothing is
// appended, if the journal does not go back that far, or the version is not one of this index: the follower needs a snapshot. A batch of events
// takes 8 bytes for each block, 16 if engine hashes differ from sequence hashes. Positions in the workers' streams are included. O(bytes
// appended); it stops updates meanwhile, as [AppendSnapshot] does.
func AppendDelta(dst []byte, x *index.Index, since Version) (delta []byte, now Version, ok bool) {
	delta, v, ok := hooks.AppendDelta(x, dst, since)
	return delta, v, ok
}

// AddDelta applies what [AppendDelta] of another index, the leader, appended. The index must have the version that the delta continues
// from: it is new and empty, or was loaded from a snapshot of a leader that keeps a journal, and nothing else changed it since except
// predictions. Its scheme and its MaxPending must be the leader's. Workers have the leader's IDs.
//
// An error changes nothing. [ErrGap] means that a snapshot is needed. While an index follows, [index.Index.Expire]
// keeps pending blocks: the delta contains their end. Make streams only when the index no longer follows: existing
// streams do not advance. Lookups see each change separately. AddDelta costs as much as adding the events, except that
// no tokens are hashed.
func AddDelta(x *index.Index, data []byte) error { return hooks.AddDelta(x, data) }

// AddStore adds a store. Its blocks count for each worker that is attached to it, in the given tier, whatever tier its
// events name. They are in events added with the returned ID, or in events of workers whose Owner is the store's
// instance, if its rank is 0. An Owner that is not a store of the index means the worker's own cache. Stores share the
// IDs of workers; lookups do not report them. If the key is known already, AddStore returns its ID and changes nothing.
// It panics if the tier is invalid, or if there are too many workers; see [index.Index.AddWorker].
func AddStore(x *index.Index, k index.Key, tier kvevent.Tier) index.WorkerID {
	return hooks.AddStore(x, k, tier)
}

// Attach records that the worker reads from the store. It does nothing if either does not exist.
func Attach(x *index.Index, worker, store index.WorkerID) { hooks.Attach(x, worker, store, true) }

// Detach reverts [Attach].
func Detach(x *index.Index, worker, store index.WorkerID) { hooks.Attach(x, worker, store, false) }

// AppendMatches is [index.Index.AppendMatches] for some workers, in any order; nil means all. The lookup ends when at
// most stop workers hold all blocks so far; the reported depths of those are lower bounds.
func AppendMatches(dst []index.Match, x *index.Index, hashes []uint64, workers []index.WorkerID, stop int) []index.Match {
	return hooks.AppendMatches(x, dst, hashes, workers, stop)
}
