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
// [Event] and [Batch] represent events in memory. A [Decoder] decodes the payloads of engines to batches. A Stream of
// package index puts batches in order, detects lost ones and applies them to an index. [AppendBatch] encodes a compact
// format for other routers.
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
//	             of them; over ZMQ in an envelope with 4 frames
//	Compact      see AppendBatch                                  any         in it        number                   any
//
// All but the last may be msgpack or JSON. Differences between formats:
//
//   - Arrays of all lengths since vLLM 0.8 are decoded, including the elements that Dynamo adds; absent fields are
//     zero.
//   - Negative hashes are converted to their two's complement.
//   - Media are GPU and DEVICE (device); CPU, CPU_PINNED, CPU_TIER1 and HOST_PINNED (host); CPU_TIER2, DISK, NVME and
//     STORAGE (disk); EXTERNAL, NETWORK, REMOTE and SHARED (remote), in upper or lower case. Events of other media and residency
//     domains are skipped, and events of other localities are invalid. A block whose locality is REMOTE is in the remote
//     tier, regardless of the medium.
//   - Pairs of token IDs, for EAGLE, are converted to the tokens of the blocks and the token after them. vLLM
//     sends the tokens after a block with EAGLE and MTP (lookahead_token_ids); they follow the tokens of the blocks. A Stored
//     event without tokens reports the tier of known blocks. Incomplete blocks are omitted.
//   - An event of vLLM may have fewer hashes than blocks of tokens. With a sliding window or another kind of attention,
//     the decoded event has no tokens. With full attention it is unknown which blocks they are, so the event is invalid.
//     In both cases block_offsets names them (proposed in PR 44488): the tokens remain if they are the first blocks.
//   - vLLM sends the cache salt among the extra keys of the first block of a prompt; see [Event.RootNamespace]. A key
//     may be a separate value or a map that contains its type.
//   - vLLM may hold several copies of a block, with a Stored and a Removed event for each; see StreamOptions of package
//     index. If a Removed event contains the numbers of remaining copies (proposed in PR 48933), the decoded event has
//     only the blocks without copies, and [Event.NoCopies] is set.
//   - The name of an adapter that has only a number, as in old versions, is "#" and the number; [Decoder.Field] returns
//     lora_id and all else that [Event] does not have, as the engine sent it.
//   - Images, embeddings and other objects are identified by [ObjectHash]. A key of an unknown type is treated as an
//     object, so that its block is missed instead of found by mistake.
//   - Sequence numbers begin at 0, and Dynamo's at 1. vLLM and SGLang send them in the frame before the payload.
//   - TensorRT-LLM identifies the caches of a model by their windows: the longest window so far is treated as the cache
//     of full attention. The engine's first events contain all windows; a decoder that starts later may treat a shorter
//     window as the longest until the longest one occurs.
//   - TensorRT-LLM with events over ZMQ (kv_events_config, 2026) sends vLLM's format: use VLLM.
//   - TensorRT-LLM does not specify the level from which a block is removed, so it is removed from all. A change of
//     level becomes a Stored event for the new tier and a Removed event for the old one.
//   - The clearing of a shared store becomes a Cleared event for each tier but the device, with the store as Owner.
//
// # Guarantees
//
// A decoder skips and counts unknown data. Data that it cannot decode marks the batch as damaged, and the error
// identifies it; no event is dropped silently. A payload of n bytes costs O(n) time and memory, regardless of the
// lengths that it declares and of its depth. A warm decoder does not allocate, except for errors. A token costs 2 to
// 4 ns on one core.
package kvevent
