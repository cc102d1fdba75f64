// SPDX-License-Identifier: Apache-2.0

// Package policy computes what it costs to place a request on each worker of a fleet. Policies use no clock and no random source: a
// simulator, a test and a gateway get the same result from the same calls.
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
//	wait      predicted time until the worker begins a new prompt, including prompts from other senders that its gauges report
//	new       time to compute the tokens that it does not hold: base + n·(prefill + attention·(cached + n/2))
//	load      time to load the tokens that it holds in a slower tier, never more than computing them; and 100 ms to load an adapter;
//	          for a worker that only decodes, the time to transfer what it does not hold
//	move      (new + load - lowest new + load of any worker) · b/(1-b), with b from [View.Busy]
//	decode    0.02 ms for each 64 tokens of active blocks, and 1 % of new for each response in progress, which the prefill delays
//	room      time until running requests have ended whose KV blocks this one needs, if the capacity is known
//	cost      = wait + new + load + move + decode + room
//
// The terms other than move, and the second part of decode, predict the time to the first token. Move is the price of lost locality: work that is done
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
//	dynamo           blocks to compute, waiting ones included, minus cached ones, plus active blocks: NVIDIA Dynamo's cost;
//	                 options scale, credit, decay, host, disk, active, temperature
//	llm_d            cached part of the prompt + short queue + free KV memory: llm-d's scorers; options prefix (2), queue, kv (1)
//	smg              smg's cache_aware; options absolute, relative, match
//	preble           Preble's E2: exploit what is mostly cached, else explore by load, new and evicted; options window, balance
//	thompson         NeMo Agent Toolkit's Thompson sampling with session bonus; option reuse
//	prefix_lru       cost_ms without events: caches are assumed from what was placed, and corrected by what engines report
//
// Options follow the name, as in "dynamo:scale=4". cost_ms has decode, the milliseconds for 64 active tokens, and end, the part
// of its own prefill that a request pays for each response that it delays: 0.01 by default. Without it, a fleet that
// mostly decodes seems idle, and prompts are computed again that other workers hold; more shortens the time to the end a little, and
// makes the first token later.
//
// # Writing a policy
//
// Implement [Policy], and [Observer] if it learns from requests. Do not retain the view, because it is reused.
package policy
