// SPDX-License-Identifier: Apache-2.0

// Package kvevent decodes the events that engines publish about their KV caches: which blocks they stored, removed or dropped altogether.
//
// # Terminology
//
//   - rank: one data-parallel rank of one engine instance. Each rank has a cache, a publisher and a sequence of its own.
//
//   - engine hash: the engine's 64-bit name of a block. Ranks need not agree on engine hashes.
//
//   - batch: the events of one step of a rank, with a sequence number that counts batches from 0.
//
//   - tier: where a block is: device, host, disk or remote.
//
//   - group: one KV cache of a model with several kinds of attention.
//
//   - owner: a store outside the worker, shared by several, that holds a block.
//
// # Contents
//
// [Event] and [Batch] are the form in memory. A [Decoder] appends the batches of what engines send. A Stream of package index puts batches
// in order, detects lost ones and applies them to an index. [AppendBatch] writes a compact form for other routers.
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
//   - Token ids in pairs, for EAGLE, become the tokens with the one that follows them. A Stored without tokens reports
//     where known blocks are. Blocks that do not have all their tokens are left out.
//   - vLLM sends the cache salt among the extra keys of the first block of a prompt; see [Event.RootNamespace]. A key
//     may be a value of its own or a map that says what it is.
//   - vLLM may hold a block in several copies, with a Stored and a Removed for each: see StreamOptions of package index. An event with the
//     number that remains (a proposal, PR 48933) contains the blocks of which none does, and has [Event.NoCopies].
//   - An adapter that has only a number, as in old versions, is called "#" and the number.
//   - Images, embeddings and other objects go by [ObjectHash]. A key of an unknown type is treated as one: such a block
//     is not found, rather than found by mistake.
//   - Numbers begin at 0, Dynamo's at 1. Sequence numbers of vLLM and SGLang are in the frame before the payload.
//   - TensorRT-LLM identifies the caches of a model by their windows: the longest seen so far is treated as the cache
//     of full attention. All are known from its first events; who joins later may take a shorter one for it until the
//     longest is seen.
//   - TensorRT-LLM that streams its events over ZMQ (kv_events_config, 2026) sends vLLM's form: take that format.
//   - TensorRT-LLM does not specify the level that a block is removed from: it is removed from all. A change of level
//     is a Stored in the new tier and a Removed in the old one.
//   - A shared store that is cleared becomes a Cleared of each tier but the device, with its owner.
//
// # Guarantees
//
// What a decoder does not know it skips and counts; what it cannot read makes the batch damaged, never silently less. A payload of n
// bytes costs O(n) time and memory, whatever lengths it claims and however deep it is; nothing is allocated when warm. A token
// costs 2 to 4 ns on one core.
package kvevent
