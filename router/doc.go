// SPDX-License-Identifier: Apache-2.0

// Package router places requests on the workers of a fleet. It prefers workers that have cached most of the prompt and
// have a short wait.
//
// # Terminology
//
//   - worker: one data-parallel rank of one engine instance, identified by the [index.Index] that follows its KV cache.
//   - placing: choosing a worker and reserving the work on it, in one step, so that the next decision takes the work
//     into account.
//   - ticket: a request that was placed or waits. It releases the work when the request ends, for whatever reason.
//
// # A request
//
//	t, err := r.Place(ctx, &router.Request{Hashes: chain.Blocks(), Tokens: chain.Len()})
//	...                                   // send it to t.Decision().Key
//	t.FirstToken(time.Now())              // when the first token arrives
//	t.Finish(time.Now(), 4096, 250)       // when the response is complete: 4,096 tokens were cached, 250 generated
//
// A [policy.Policy] computes what each worker would cost; package policy has the policies of this module and describes
// the default. The router makes the view for it and tracks each worker's load: a queue of prefills, which run one after
// another, and the requests that are decoding. From the times in which workers had prefills without pause it learns how
// long prefills take.
//
// # The queue
//
// If workers have a limit of requests (Engine.Slots), or Options.Hold is set, requests wait while none of the workers that they
// may use has room. The order is:
//
//  1. Requests of a higher intent.Intent.Tier come first.
//  2. Then tenants, and the sessions of each tenant, get equal parts of the prefill time that is spent while others wait:
//     who has had more comes later, by at most two minutes.
//  3. Then the request comes first that is due first: its arrival, plus its estimated length, minus 10 seconds for each
//     step of intent.Intent.Priority, which also halves the length that counts; or earlier if its target TTFT or
//     its Deadline requires that.
//
// All of these are points in time, so a waiting request is overtaken by only a limited number of later requests of its
// tier. At its deadline a request leaves the queue with an error.
//
// # Preemption
//
// A request can give way to requests of a higher tier until its first token: [Ticket.Preemptible] sets a function that the router
// calls then, such as the cancel function of the request to the engine, and [Ticket.Requeue] offers the request again. What the engine
// has computed is usually still cached. By default, no request is preempted.
//
// # Prefill and decode workers
//
// A request with policy.Split is placed on a worker that computes the prompt and one that generates the response, in one decision: both
// have it in their loads, and the cost of the second includes the time to transfer what it lacks, Engine.Load of the remote tier.
// If there are also workers with the role Both, the policy's costs must be times, as in cost_ms; other costs cannot be compared.
//
//	t, err := r.Place(ctx, &router.Request{Hashes: hashes, Tokens: n, Role: policy.Split})
//	...                             // if t.Prefill() is not nil, send the prompt to its worker
//	t.Prefilled(time.Now(), cached) // when it is computed
//	...                             // send the request to t.Decision().Key, and so on
//
// # Retention
//
// Options.Drop receives the blocks that no request will need again: after a session's last request, after a compaction, and
// of sub-agents whose result their parent has received. Today's engines cannot remove single blocks on request, so that it is for caches
// that the caller controls. SGLang can be told that a session has ended.
//
// # Virtual time
//
// [Router.Offer] and [Router.Tick] are for programs with a clock of their own, such as simulators: they never block, and what
// they return depends only on their arguments and the calls before. Package sim is an example.
//
// # Guarantees
//
//   - If two requests are placed at the same time, the second decision includes the load and the prefix of the first.
//   - Workers with equal costs take turns, and equal requests at one time are spread over all of them.
//   - The methods that end a ticket may be called at any time, from any goroutine and repeatedly. When all tickets have
//     ended, every worker's load is zero. A request counts until then, however long it takes.
//   - A request that is canceled while it waits leaves the queue as if it had never been there.
//   - A preempted request has the place in the queue that it would have had, and is preempted at most three times.
//   - Workers can be added and removed at any time. A ticket of a removed worker stays valid.
//   - The router starts no goroutines, except for a timer while requests wait in Place.
package router
