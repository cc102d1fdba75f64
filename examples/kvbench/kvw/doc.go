// SPDX-License-Identifier: Apache-2.0

// Package kvw reads and writes KVW1 files: recorded workloads of a KV cache index, for benchmarks and tests.
//
// A file is a line with "KVW1 " and a [Header] as JSON, followed by operations in order:
//
//	query   0  list                       a prompt was asked for
//	store   1  worker  parent+1|0  list   a worker stored blocks, which follow parent if there is one
//	remove  2  worker  list               a worker removed blocks
//	list    n, then n runs: zigzag(first - last id before), length<<1 | down
//
// Numbers are LEB128. A block id represents the block's content and everything before it, so equal ids are equal
// prefixes. The hashes of a block are computed from its id: the local hash is splitmix64 of the id; the sequence hash
// is Dynamo's chain, [kvhash.Next] of the previous block's hash and the local hash. The engine hash of a block is its
// sequence hash.
//
// [Read] decodes a file once; a benchmark that plays it has hashes in memory, and no decoding in its time:
//
//	w, err := kvw.Read(data)
//	for i := range w.Ops {
//		switch op := &w.Ops[i]; op.Kind {
//		case kvw.Query:
//			hashes = w.AppendSeq(hashes[:0], op)
//			matches = x.AppendMatches(matches[:0], hashes)
//		default:
//			x.Add(index.WorkerID(op.Worker), &op.Event)
//		}
//	}
package kvw
