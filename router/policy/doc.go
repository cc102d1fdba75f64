// SPDX-License-Identifier: Apache-2.0

// Package policy decides which worker gets a request. Decisions are pure functions: a simulator, a test and a gateway get the same result
// from the same arguments.
//
// # Terminology
//
//   - view: all workers at one moment, for one request.
//   - barred: not eligible, with a human-readable reason: down, draining, wrong role, excluded by the request.
//   - term: one part of a worker's cost, in milliseconds until and around the first token. The cost is their sum; the lowest wins.
//   - cached tokens: what the worker holds of the prompt according to the index. It is an estimate until the engine reports its own count.
//
// # Cost in milliseconds
//
// [KVAware] is the default. For each worker
//
//	wait      predicted time until the worker begins a new prompt
//	new       tokens it must compute, times its ms/token
//	load      tokens it holds in a slower tier, times that tier's ms/token, never more than computing them
//	decode    ms by which the KV blocks already active there slow this request down
//	move      share of the work that later turns repeat if the prompt is computed on this worker instead of the cheapest one
//	affinity  credit of the worker that served the session's last request, unless its wait is too long
//	cost      = wait + new + load + decode + move - affinity
//
// The terms other than move and affinity predict the time to the first token. Because of move, two requests with the
// same prefix are placed on the same worker even while the first is still being computed, until the wait costs more
// than computing the prefix on another worker.
//
// # Writing a policy
//
// Implement [Policy]. Skip workers for which [Worker.Barred] returns a reason. Do not retain the view, because it is
// reused.
package policy
