// SPDX-License-Identifier: Apache-2.0

// Package index finds, for a prompt, the workers that hold its leading blocks, how many each holds, and in which tier. It is updated with
// the events of package kvevent and queried with the sequence hashes of package kvhash.
//
// # Terminology
//
//   - worker: one data-parallel rank of one engine instance ([Key]). The index gives it a dense ID ([WorkerID]).
//   - resident: a block is resident on a worker while at least one of the worker's tiers holds it.
//   - residency: a pair of a worker and a block that is resident on it. Memory is proportional to the number of
//     residencies.
//   - depth: the number of leading blocks of a prompt that are resident on a worker without a gap.
//   - pending: stored by a worker whose events have not contained the block's parent. The block's position is unknown
//     until the parent is.
//   - predicted: expected on a worker because a prompt was sent there, not yet confirmed by an event.
//   - state: whether the events of a worker are complete ([Exact]), something was lost ([Degraded]), or none arrived ([Unknown]).
//   - run: consecutive blocks with the same residents; an edge of a compressed radix tree.
//   - hybrid: a worker whose model has several cache groups, such as one with full attention and one with a sliding window.
//
// # Events and lookups
//
// A [Stream] applies the batches of one worker's engine, even if they arrive out of order or incompletely, and
// maintains the worker's state. [Index.Add] is for callers that never lose an event. [Index.AppendMatches] looks up a
// prompt.
//
// Engines choose their own hashes of blocks. The index hashes the tokens of a Stored event, so that equal prompts of
// all engines have the same blocks, and maps each worker's engine hashes to its blocks. The parent of a block, and
// later removals, are found through that map. Engines that call a block by the same hash share an entry. LoRA adapters and namespaces enter the hash and so never share a block.
// One Index serves one model at one block size; engine blocks may be a multiple of it.
//
// # Data structure
//
//	heads: hash of a run's first block -> run            one table for all
//	run:   [slot, slot+length), set                      one word has length, set and version
//	slots: the hash of each block, in prompt order       consecutive blocks in consecutive slots
//	sets:  which workers, in which tiers                 each distinct set once
//	names: engine hash -> slot                           one table of the names that workers share, and one for each worker of the others
//
// Sequence hashes are chained: two prompts that agree in the hash of block i agree in all blocks before. So a lookup
// finds the first run by the hash of block 0, compares one hash at the run's end, and finds the next run by the hash of
// the block after it. If a prompt ends or diverges inside a run, a binary search finds the block. There are no parent
// pointers. If a block is removed, no run begins with it; the blocks after it stay, and are found again when the block
// is stored again.
//
// A run is split where the residents of its blocks begin to differ or where prompts diverge, and joined again when
// neither applies. Names refer to slots, which never move, so that neither changes a name.
//
// # Lookups during updates
//
// Lookups take no locks and write no shared data. Each change to a run is one atomic store of its word. A lookup records the words it
// reads and verifies at the end that none has changed. If one has, it discards its result, including anything read from reused
// memory, and retries; each retry implies that an update made progress. The result is a consistent snapshot of all workers at one
// instant during the call.
//
// After four failed attempts, a lookup asks updates to yield until it succeeds. Each update yields a bounded number of times, a
// millisecond or so in all, so neither blocks the other.
//
// # Guarantees
//
//   - Lookups never wait for updates. The blocks of a Stored event appear in one step, mostly together with pending blocks that follow
//     them. Removed blocks disappear one after another, neighbors together. Cleared events and RemoveWorker are one step;
//     their work is done afterwards, in parts between which other updates continue.
//   - Storing a block twice under one engine hash changes nothing. A block stored under two engine hashes stays until both are removed.
//   - Removing a block in the middle hides what follows it; storing it again reveals what follows.
//   - The depth of a hybrid worker is the number of blocks that the engine serves: the greatest one such that the group with
//     full attention holds all blocks and each group with a sliding window the last ones, as many as the window covers
//     (vLLM 0.32). Blocks of a Stored event may appear run by run. If it is not known when an engine uses the blocks of a
//     group (Mamba, chunked attention, windows of several lengths or of unknown length, groups in slower tiers), the group
//     is ignored and the worker is Degraded.
//   - Clearing or removing one worker does not affect another.
//   - Pending blocks are kept, up to a limit and for a time, and stored when their parent arrives. While there are any,
//     and after one was dropped, the worker is Degraded, and [Worker].Why has the reason.
//   - Memory is proportional to the number of blocks: slots are reused before there are more than about twice as many
//     slots as blocks, and when everything is removed, all memory is released.
//
// # Cost
//
// A lookup compares one hash for each run of the prompt, and the logarithm of the length of the last one. On the workloads of
// the README, which have 16 to 64 workers and prompts of 200 to 4,000 blocks, it takes 0.3 to 1 µs, mostly for writing the
// result. It does not allocate if dst has room. A stored or removed block takes 46 to 100 ns there, a residency 16 to 51 bytes.
package index
