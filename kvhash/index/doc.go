// SPDX-License-Identifier: Apache-2.0

// Package index answers, for a prompt, which worker already holds how many of its blocks, and in which tier. It is fed with the
// events of package kvevent and asked with the sequence hashes of package kvhash.
//
// # Terminology
//
//   - worker: one data-parallel rank of one engine instance ([Key]). The index gives it a dense number ([WorkerID]).
//   - store: a tier that several workers read from, such as a cache server. It has a number too.
//   - resident: a block is resident on a worker while at least one of the worker's tiers holds it.
//   - residency: one block that is resident on one worker; what memory is measured by.
//   - depth: the number of leading blocks of a prompt that are resident on a worker without a gap.
//   - orphan: a stored block whose parent the worker has not announced. It cannot be placed until the parent is known.
//   - predicted: expected on a worker because a prompt was sent there, not yet confirmed by an event.
//   - run: blocks that follow each other and have the same residents; an edge of a compressed radix tree.
//
// # How engine events are placed
//
// Engines name blocks as they like. The index hashes the tokens of a Stored event itself, so that equal prompts meet whatever the
// engine, and keeps for each worker a map from the engine's names to its own blocks. The parent, and later removals, are found
// through that map. LoRA adapters and namespaces enter the hash and so never share a block. One Index serves one model at one block
// size; engine blocks may be a multiple of it.
//
// # How blocks lie
//
//	heads: hash of a run's first block -> run            one table for all
//	run:   [slot, slot+length), set                      one word says length, set and version
//	slots: the hash of each block, in prompt order       consecutive blocks in consecutive slots
//	sets:  which workers, in which tiers                 each distinct set once
//	names: engine hash -> slot                           one table for each worker
//
// Sequence hashes are chained: two prompts that agree in the hash of block i agree in all blocks before. So a lookup finds the first run
// by the hash of block 0, compares one hash at the run's end, and finds the next run by the hash of the block behind it; where a
// prompt ends or leaves inside a run, a binary search says where. There are no parents: a missing block is one that no run begins
// with, what lies behind it stays, and is found again when the block comes back.
//
// A run is split where the residents of its blocks come to differ or where prompts part, and joined again when the reason is gone.
// Names point at slots, which never move, so that neither touches a name.
//
// # Lookups beside events
//
// Lookups take no lock and write nothing that others read. A run changes in one step, the store of its word; a lookup notes the words
// it saw and looks again at the end whether all are as they were. If not, it begins again; that it had to means that an event got on.
// What it read of memory that was given to something else meanwhile is thrown away with that. So what a lookup says was true, for
// all workers at once, at one moment between its begin and its end.
//
// A lookup that began again 16 times, as changes of its very prompt come faster than it gets through, holds changes back for a try, but does
// not wait for one that is under way and takes long.
//
// # Guarantees
//
//   - Lookups never wait for changes. The blocks of a Stored event appear in one step, mostly together with orphans that waited for them. Removed blocks
//     go one after another, neighbours together. Clear and RemoveWorker are one step.
//   - Storing a block twice under one engine hash changes nothing. A block stored under two engine hashes stays until both are removed.
//   - Removing a block in the middle hides what follows it; storing it again reveals what follows.
//   - Clearing or removing one rank touches no other rank.
//   - Orphans are parked, up to a limit and for a time, and placed when their parent arrives. While there are any, and after one was
//     lost, the worker's trust is Degraded, with the reason.
//   - Memory goes with what is held: slots are used again before there are more than about twice as many as blocks, and when everything
//     is removed, nothing is left.
//
// # Cost
//
// A lookup looks at one hash for each run on its way, and at the logarithm of the length of the last one; it takes 0.3 to 1 µs
// for prompts of a thousand to four thousand blocks on 16 to 64 workers, mostly for writing the result, and does not allocate if
// dst has room. A stored or removed block takes 60 to 110 ns, a residency 28 to 46 bytes. The README has the measurements.
package index
