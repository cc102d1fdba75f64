// SPDX-License-Identifier: Apache-2.0

// Package kvindex compares weft's index of KV caches with simpler ones, on recorded workloads (package kvw) and on a
// synthetic fleet.
//
//   - [Weft] is the index.
//   - [Tree] is a prefix tree with one node per block, plain or lean.
//   - [Naive] is a set of blocks for each worker.
//
// [Compare] plays a workload through all of them; every result is checked, and a peer with a wrong result has no time.
// [Concurrent] lets readers and a writer work on one index at once. [Size] measures the cost of size. README.md of the
// module describes how times are measured.
package kvindex
