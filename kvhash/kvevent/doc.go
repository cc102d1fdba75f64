// SPDX-License-Identifier: Apache-2.0

// Package kvevent is what an engine says about its KV cache: which blocks it stored, removed or dropped altogether, and how a
// consumer keeps the stream of one engine complete.
//
// # Terminology
//
//   - rank: one data-parallel rank of one engine instance. Each rank has a cache, a publisher and a sequence of its own.
//   - engine hash: the engine's name of a block, 64 bits. Ranks need not agree on engine hashes; only the rank that sent one
//     understands it.
//   - batch: the events of one step of a rank, with a sequence number that counts batches from 0.
//   - tier: where the block lies: device, host, disk or remote.
//   - group: one KV cache of a model with several kinds of attention.
//
// # Contents
//
// [Event] and [Batch] are the form in memory. [Ingest] follows the sequence of one rank: it drops duplicates, notices gaps and
// restarts, holds back what came too early, and says what to fetch ([Need]). It moves no bytes: a transport hands it batches and
// does the fetching. Package index has a Feed that puts what comes out into an index.
//
// Decoders of the forms on the wire (vLLM and SGLang over ZMQ as msgpack arrays or maps, TensorRT-LLM, Dynamo) are not part of this
// package yet. They fill the same Event; fields that a form does not have stay zero.
//
// # Guarantees
//
// Batches come out of an Ingest in sequence, each at most once, or preceded by a batch that clears the rank. When a batch is lost
// for good, [Ingest.Trust] says so until a snapshot repairs it. Memory is bounded by [IngestOptions].
package kvevent
