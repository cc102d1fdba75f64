// SPDX-License-Identifier: Apache-2.0

// Package router places requests on the workers of a fleet, where the prompt is mostly cached already and the wait is short.
//
// # Terminology
//
//   - worker: one data-parallel rank of one engine instance, numbered by the [index.Index] that follows its KV cache.
//   - placing: deciding for a worker and reserving the work there, in one step, so that the next request sees it.
//   - ticket: a placed request. It gives the work back when the request ends, however it ends.
//
// # A request
//
//	t, err := r.Place(&router.Request{Hashes: chain.Blocks(), Tokens: chain.Len()}, time.Now())
//	...                                   // send it to t.Decision().Key
//	t.FirstToken(time.Now())              // when the first token arrives
//	t.Finish(time.Now(), router.Usage{Cached: 4096, Output: 250})
//
// How a worker is chosen is a [Policy]; package policy has the ones that come with weft and explains the default. The decision is
// a pure function of what the router knows ([View]); the router only gathers, locks and keeps the account (package load).
//
// # Guarantees
//
//   - Two requests placed at the same time see each other's load and each other's prefix.
//   - Every way to end a ticket may be called at any time, from any goroutine, any number of times. When all tickets are ended, every
//     worker's load is zero.
//   - Workers come and go at run time. A ticket of a removed worker stays valid.
//   - The router starts no goroutine and reads no clock: time is passed in. Times should not run backwards.
//
// # Not here yet
//
// A queue for the time when all workers are busy, retention advice, trace records and the simulator.
package router
