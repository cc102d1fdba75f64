// SPDX-License-Identifier: Apache-2.0

// Package index answers, for a prompt, which worker already holds how many of its blocks, and in which tier. It is fed with the
// events of package kvevent and asked with the sequence hashes of package kvhash.
//
// # Terminology
//
//   - worker: one data-parallel rank of one engine instance ([Key]). The index gives it a dense number ([WorkerID]).
//   - resident: a block is resident on a worker while at least one of the worker's tiers holds it.
//   - depth: the number of leading blocks of a prompt that are resident on a worker without a gap.
//   - orphan: a stored block whose parent the worker has not announced. It cannot be placed until the parent is known.
//   - predicted: expected on a worker because a prompt was sent there, not yet confirmed by an event.
//
// # How engine events are placed
//
// Engines name blocks as they like. The index hashes the tokens of a Stored event itself, so that equal prompts meet whatever the
// engine, and keeps for each worker a map from the engine's names to its own blocks. The parent, and later removals, are found
// through that map. LoRA adapters and namespaces enter the hash and so never share a block. One Index serves one model at one block
// size.
//
//	engine hash --(map of the worker)--> block <--(one map for all)-- sequence hash
//	                                      |
//	                                      one bit for each worker: any tier | device | host | disk | remote | predicted
//
// # Guarantees
//
//   - Lookups run while events apply, and see each event either wholly or not at all.
//   - Storing a block twice under one engine hash changes nothing. A block stored under two engine hashes stays until both are removed.
//   - Removing a block in the middle hides what follows it; storing it again reveals what follows.
//   - Clearing or removing one rank touches no other rank.
//   - Orphans are parked, up to a limit, and placed when their parent arrives. While there are any, and after one was
//     lost, the worker's trust is Degraded, with the reason.
//   - When everything is removed, nothing is left.
//
// # Cost
//
// A lookup takes 5 to 50 ns for each block that any worker shares with the prompt, and does not allocate if dst has room (beyond 4,096
// workers it allocates three times). A stored or removed block takes 130 to 500 ns. A residency takes 75 to 140 bytes, less the more
// workers share a block. One lock serves all: readers share it, each event takes it alone.
package index
