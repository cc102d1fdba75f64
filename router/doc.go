// SPDX-License-Identifier: Apache-2.0

// Package router places requests on the workers of a fleet. It prefers workers that have cached most of the prompt and
// have a short wait.
//
// # Terminology
//
//   - worker: one data-parallel rank of one engine instance, identified by the [index.Index] that follows its KV cache.
//   - placing: choosing a worker and reserving the work on it, in one step, so that the next decision takes the work
//     into account.
//   - ticket: a placed request. It releases the work when the request ends, for whatever reason.
//
// # A request
//
//	t, err := r.Place(&router.Request{Hashes: chain.Blocks(), Tokens: chain.Len()}, time.Now())
//	...                                   // send it to t.Decision().Key
//	t.FirstToken(time.Now())              // when the first token arrives
//	t.Finish(time.Now(), 4096, 250)       // when the response is complete: 4,096 tokens were cached, 250 generated
//
// A [policy.Policy] chooses the worker; package policy has those that come with weft and explains the default. The decision is
// a pure function of a [policy.View]; the router gathers the view, locks, and keeps the account of each worker's load: a line of prefills
// served one after another, of which the first has been running since it came first, and the requests that decode.
//
// # Guarantees
//
//   - Two requests placed at the same time see each other's load and each other's prefix.
//   - Every way to end a ticket may be called at any time, from any goroutine, any number of times. When all tickets are ended, every
//     worker's load is zero.
//   - Workers come and go at run time. A ticket of a removed worker stays valid.
//   - The router starts no goroutine and reads no clock: the caller passes the time, which should not run backwards.
//
// # Limits
//
// There is no queue for the time when all workers are busy, and no retention advice, trace records and simulator yet.
package router
