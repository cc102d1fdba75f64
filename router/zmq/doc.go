// SPDX-License-Identifier: Apache-2.0

// Package zmq applies the cache events that engines publish over ZeroMQ to an index. It implements the part of ZMTP 3.1
// that this takes and links nothing but package kvhash and its hash function.
//
// # Terminology
//
//   - events address: the endpoint of the engine's PUB socket. The subscription has a SUB socket.
//   - replay address: the endpoint of the engine's ROUTER socket, which repeats batches on request. The subscription
//     uses a DEALER socket, because a REQ socket accepts only the first message of the reply.
//   - rank: one data-parallel rank of an engine, with a publisher and a stream of its own.
//
// # Which side listens
//
// vLLM listens on an events address that contains "*" or "::" or begins with ipc://, and connects to any other one, such
// as tcp://127.0.0.1:5557 or tcp://router:5557. In the second case the subscription must listen: its address begins with
// "@". SGLang's publisher has the same rule. The engine always listens on the replay address. For rank n of several,
// both add n to the ports; see [Rank].
//
//	engine's --kv-events-config "endpoint"    address of the subscription
//	tcp://*:5557                              tcp://HOST-OF-THE-ENGINE:5557
//	tcp://10.0.0.1:5557                       @tcp://*:5557, on the host 10.0.0.1
//	ipc:///run/kv.ipc                         ipc:///run/kv.ipc, on the same host
//
// # Lost batches
//
// A publisher drops messages for subscribers that are slow or not connected, without notice. With a replay address, a
// subscription requests the batches that it misses:
//
//   - when it connects, all since the engine's start, or since the last one that the stream received;
//   - when a number is skipped;
//   - when nothing arrived for 10 s, the last batch, which also shows that the engine was restarted.
//
// The worker is Degraded while the connection is lost, and until the batches have arrived. If the engine no longer has
// them, or does not answer for 30 s, the subscription continues without them, and the worker is Degraded until the
// engine clears its cache.
//
// A replay also shows whether the engine was restarted while the connection was lost. New batches wait for it for at
// most 30 s. Then they are applied, and the worker is Degraded until the replay arrives.
//
// Without a replay address, every loss leaves the worker Degraded until the engine clears its cache, and a subscription
// that starts after the engine has lost the batches before. An engine that was restarted while the connection was lost is
// noticed when its first batch arrives.
//
// An engine that empties its cache without an event is not noticed. vLLM does so for POST /reset_prefix_cache and
// reports it with the next step (0.32).
//
// # Guarantees
//
// Connections use the NULL mechanism: no encryption and no authentication. A peer can report any content for its
// rank, so addresses must be on a trusted network. Peers cannot cause a panic or more memory than a message takes: at
// most 64 MiB and 64 frames; a listening subscription has at most 1,024 connections. PINGs are sent every 5 s while
// nothing arrives; a peer that does not respond to three of them is disconnected (libzmq 4.2 and newer, ZMTP 3.1). Lost
// connections are established again after 0.1 to 5 s.
package zmq
