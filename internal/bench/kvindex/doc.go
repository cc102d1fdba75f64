// SPDX-License-Identifier: Apache-2.0

// Package kvindex measures weft's index of KV caches beside simpler ones, on recorded workloads (package kvw) and on a made-up fleet.
//
//   - [Weft] is the index.
//   - [Tree] is a prefix tree with one node per block, plain or lean.
//   - [Naive] is a set of blocks for each worker.
//
// [Compare] plays a workload through all of them; every answer is checked, and what answers wrongly has no time. [Concurrent] lets readers
// and a writer work on one index at once. [Size] is what size costs. README.md of the module says how times are taken.
package kvindex
