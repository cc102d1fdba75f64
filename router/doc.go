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
// A [policy.Policy] computes what each worker would cost; package policy has the policies of this module and describes
// the default. The router makes the view for it, serializes decisions, and tracks each worker's load: a queue of
// prefills, which run one after another, and the requests that are decoding. From requests that had their worker's
// prefill for themselves it learns how long prefills take.
//
// # Guarantees
//
//   - If two requests are placed at the same time, the second decision includes the load and the prefix of the first.
//   - Workers with equal costs take turns, and equal requests at one time are spread over all of them.
//   - The methods that end a ticket may be called at any time, from any goroutine and repeatedly. When all tickets have
//     ended, every worker's load is zero.
//   - Workers can be added and removed at any time. A ticket of a removed worker stays valid.
//   - The router starts no goroutines and uses neither a clock nor random numbers: the caller passes the time, which should
//     not go backwards. Package sim runs a router in virtual time.
//
// # Limits
//
// There is no queue for requests when all workers are busy. Retention advice and trace records are not implemented yet.
package router
