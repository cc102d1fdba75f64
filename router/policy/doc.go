// SPDX-License-Identifier: Apache-2.0

// Package policy computes what it costs to place a request on each worker of a fleet. Policies are pure functions: a simulator, a test and
// a gateway get the same result from the same arguments.
//
// # Terminology
//
//   - view: all workers at one moment, for one request.
//   - barred: not eligible, with a human-readable reason: down, draining, wrong role, excluded by the request.
//   - term: one part of a worker's cost, with a name and a unit. The cost is their sum; the lowest wins.
//   - cached tokens: what the worker holds of the prompt according to the index. It is an estimate until the engine reports its own count.
//   - active blocks: KV blocks of the requests that run on a worker or wait there.
//
// # Cost in milliseconds
//
// cost_ms is the default. For each worker
//
//	wait      predicted time until the worker begins a new prompt
//	new       time to compute the tokens that it does not hold: base + n·(prefill + attention·(cached + n/2))
//	load      time to load the tokens that it holds in a slower tier, never more than computing them
//	move      (new + load - lowest new + load of any worker) · b/(1-b), with b from [View.Busy]
//	decode    0.02 ms for each active block
//	room      time until running requests have ended whose KV blocks this one needs, if the capacity is known
//	cost      = wait + new + load + move + decode + room
//
// The terms other than move predict the time to the first token. Move is the price of lost locality: work that is done
// twice delays other requests, the more of them the busier the fleet is. Because of it, two requests with the same
// prefix are placed on the same worker even while the first is still being computed, until the wait costs more than
// computing the prefix on another worker. No constant depends on the workload; the router learns the engines' rates.
//
// # Other policies
//
// [Named] returns them. They exist for comparison, and for fleets that need less:
//
//	round_robin      the worker that got a request least recently
//	random           any worker
//	power_of_two     the less loaded of two workers drawn at random
//	least_loaded     wait and decode as in cost_ms
//	consistent_hash  by the session, else by the first block
//	sticky           the session's worker unless it waits a second longer than another; otherwise like least_loaded
//	lmetric          (tokens to compute, waiting ones included) · (requests in the batch)
//	dynamo           blocks to compute, waiting ones included, plus active blocks: NVIDIA Dynamo's cost with its default weight
//	llm_d            2·(cached part of the prompt) + short queue + free KV memory: llm-d's scorers
//
// # Writing a policy
//
// Implement [Policy]. Do not retain the view, because it is reused.
package policy
