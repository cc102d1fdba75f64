// SPDX-License-Identifier: Apache-2.0

// Package kvevent is what an engine says about its KV cache: which blocks it stored, removed or dropped altogether, and how a
// consumer keeps the stream of one engine complete.
//
// # Terminology
//
//   - rank: one data-parallel rank of one engine instance. Each rank has a cache, a publisher and a sequence of its own.
//
//   - engine hash: the engine's name of a block, 64 bits. Ranks need not agree on engine hashes; only the rank that sent one
//     understands it.
//
//   - batch: the events of one step of a rank, with a sequence number that counts batches from 0.
//
//   - tier: where the block lies: device, host, disk or remote.
//
//   - group: one KV cache of a model with several kinds of attention.
//
//   - owner: a store outside the worker, shared by several, that a block lies in.
//
// # Contents
//
// [Event] and [Batch] are the form in memory. A [Decoder] makes batches of what engines send. [Ingest] follows the sequence of one rank:
// it drops duplicates, notices gaps and restarts, holds back what came too early, and says what to fetch ([Need]). It moves no bytes: a
// transport hands it batches and does the fetching. Package index has a Feed that puts what comes out into an index. [AppendBatch] writes
// a compact form for other routers.
//
// # Forms on the wire
//
//	format       payload                                          batches     sequence     hash of a block          names of content
//	VLLM         [ts, [event...], rank] or a map of them;         1           ZMQ frame    number; last 8 bytes     tokens, adapter, salt,
//	             an event is an array or a map, each its own                               of a digest              objects
//	SGLang       the same                                         1           ZMQ frame    number; first 8 bytes    tokens, salt
//	TensorRTLLM  {event_id, data: {type, ...}} or an array        1 an event  event_id     number                   tokens, adapter, salt,
//	                                                                                                                objects
//	Dynamo       {worker_id, event: {event_id, data}} or an array 1 an event  event_id     number                   local hashes
//	Compact      see AppendBatch                                  any         in it        number                   any
//
// All but the last may be msgpack or JSON. Where forms differ:
//
//   - Arrays of every length since vLLM 0.8 are read, with what Dynamo adds to them; fields that are not there stay zero.
//   - Negative hashes are taken as their two's complement.
//   - Media are GPU and DEVICE (device); CPU, CPU_PINNED, CPU_TIER1 and HOST_PINNED (host); CPU_TIER2, DISK, NVME and STORAGE (disk);
//     EXTERNAL, NETWORK, REMOTE and SHARED (remote), in any case. Events of other media, localities and residency domains are left
//     out. A block whose locality is REMOTE is in the remote tier, whatever the medium.
//   - Token ids in pairs, for EAGLE, become the tokens with the one that follows them. A Stored without tokens says where known blocks
//     are. Blocks that do not have all their tokens are left out.
//   - vLLM says the cache salt among the extra keys of the first block of a prompt; see [Event.RootNamespace]. A key may be a value of its
//     own or a map that says what it is.
//   - vLLM may hold a block in several copies, and says Stored and Removed of each: see [IngestOptions.Copies]. An event that says how many
//     remain (a proposal, PR 48933) names the blocks of which none does, and has [Event.NoCopies].
//   - An adapter that has only a number, as in old versions, is called "#" and the number.
//   - Images, embeddings and other objects go by [ObjectHash]. A key of an unknown type counts as one: such a block is not found,
//     rather than found by mistake.
//   - Numbers begin at 0, Dynamo's at 1: see [IngestOptions.First]. Those of vLLM and SGLang are in the frame before the payload.
//   - TensorRT-LLM tells the caches of a model apart by their windows: the longest seen so far is taken for the one of full attention. All
//     are known from its first events; who joins later may take a shorter one for it until the longest is seen.
//   - TensorRT-LLM that streams its events over ZMQ (kv_events_config, 2026) sends vLLM's form: take that format.
//   - TensorRT-LLM does not say which level a block is removed from: it is removed from all. A change of level is a Stored in the new
//     tier and a Removed in the old one.
//   - A shared store that is cleared becomes a Cleared of each tier but the device, with its owner.
//
// # Guarantees
//
// What a decoder does not know it skips and counts; what it cannot read makes the batch damaged, never silently less. A payload of n
// bytes costs O(n) time and memory, whatever lengths it claims and however deep it is; nothing is allocated when warm. A token
// costs 2 to 4 ns on one core.
//
// Batches come out of an Ingest in sequence, each at most once, or preceded by a batch that clears the rank. When a batch is lost
// for good or damaged, [Ingest.Trust] says so until a snapshot or a cleared rank repairs it. Memory is bounded by [IngestOptions].
//
// # What to fetch
//
// vLLM and SGLang answer on their replay socket, a ROUTER, to the first number wanted in 8 bytes, big-endian, with an empty frame in front
// of it (a REQ socket puts it there, a DEALER does not): a message for each batch that they still have, and [EndOfReplay]. The live
// stream goes on meanwhile. They keep 10,000 batches by default, and have no snapshot: who comes later takes one from a sidecar that has
// followed from the beginning (AppendWorker and Feed.Restore of package index), or does without until the engine's prefix cache is reset.
//
// An engine need not say all: AllBlocksCleared is sent with the next step, so one that sleeps or idles after a reset may never send it.
// Who learns of a reset, from the engine's sleep state or its metrics, calls [Ingest.Reset].
package kvevent
