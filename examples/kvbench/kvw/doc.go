// SPDX-License-Identifier: Apache-2.0

// Package kvw reads and writes KVW1 files: recorded work of an index of KV caches, for benchmarks and tests.
//
// A file is one line, "KVW1 " and a [Header] as JSON, and then operations in their order:
//
//	query   0  list                       a prompt was asked for
//	store   1  worker  parent+1|0  list   a worker stored blocks, which follow parent if there is one
//	remove  2  worker  list               a worker removed blocks
//	list    n, then n runs: zigzag(first - last id before), length<<1 | down
//
// Numbers are LEB128. A block is an id that stands for its content and for all that comes before it, so that equal ids are equal
// prefixes. Its hashes are made of it: the local hash is splitmix64 of the id, the sequence hash is that of Dynamo's chain,
// [kvhash.Next] of the block before and the local hash; engines are taken to name a block by its sequence hash.
//
// [Read] decodes a file once; a benchmark that plays it has hashes in memory, and no decoding in its time:
//
//	w, err := kvw.Read(data)
//	for i := range w.Ops {
//		switch op := &w.Ops[i]; op.Kind {
//		case kvw.Query:
//			hashes = w.AppendSeq(hashes[:0], op)
//			matches = x.Match(matches[:0], hashes)
//		default:
//			x.Apply(index.WorkerID(op.Worker), &op.Event)
//		}
//	}
package kvw
