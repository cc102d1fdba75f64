// SPDX-License-Identifier: Apache-2.0

// Package intent reads, limits and emits request hints: the priority of a request, its session, the expected length of the response,
// what to keep in the cache, and more.
//
// An [Intent] holds what the client requests, not what it gets. The zero Intent requests nothing, and every hint is optional.
//
//	engine, err := intent.NewTarget("vllm", "0.20.0")                                           once
//	in, faults := intent.Read(intent.Source{API: "chat", Header: r.Header, Field: req.Field})   in any dialect
//	in, limited := policy.Clamp(tenant, in)                                                    what this client may use
//	out := engine.Emit(&in)                                                                    in the engine's dialect
//	out.SetHeaders(outgoing.Header)
//	body, err := out.AppendBody(nil, body)
//
// The faults, limited and out.Changes are for a log: no hint is a reason to refuse a request.
//
// # Terminology
//
//   - dialect: how one engine, API or harness spells hints. Each dialect has a file here, which names the sources of
//     its facts.
//   - hint: one field of an Intent. [Hints] lists the names.
//   - target: a server that receives requests, with a dialect, a version and features. [Capabilities] returns what a
//     dialect can express.
//   - session: the requests of one conversation of one agent. They share a growing prompt.
//   - parent: the session that started this one, as for a sub-agent. root: the one that no agent started.
//   - breakpoint: a position in the prompt; the prompt before it should be kept in the cache. [Holds] rounds breakpoints
//     to whole blocks of a KV cache.
//
// # Our own dialect
//
// It expresses every hint without loss. In the body it is the field agent, an object with one field per hint, with the
// names that [Hints] lists:
//
//	"agent": {
//	    "priority": -1, "pace": "background", "ttft": "1.5s", "prefetch": true,
//	    "session": "s1", "parent": "s0", "trigger": "tool_result",
//	    "retain": {"ttl": "1h"}, "evict": ["thinking"], "pin": {"worker": 7}, "meta": {"k": "v"}
//	}
//
// Each hint can also be sent in a header, with dashes in its name:
//
//	x-weft-priority: -1
//	x-weft-cache-key: k1
//	x-weft-retain: {"ttl":"1h"}
//
// A string is written unquoted in a header, or as a JSON string in ASCII if it starts with a quotation mark or contains
// characters not allowed in a header. Durations have the format of time.Duration. Unknown fields are ignored.
//
// # Guarantees
//
// In our own dialect, Read is the inverse of Emit for every Intent whose values are within bounds. In other dialects,
// Read of what Emit wrote returns the hints that are not in Out.Changes, and no others. Emit sends only headers and
// fields that the target's table lists. Reading is bounded: texts of 1 KiB, headers of 16 KiB, 64 entries of metadata,
// 128 breakpoints, 64 faults with excerpts of 64 bytes.
//
// # Left out
//
//   - nvext: greed_sampling, use_raw_prompt, token_data (the prompt and its sampling), annotations, extra_fields,
//     metadata_upload (the response), request_timestamp_ms (the sender's clock), routing_constraints (names of a
//     fleet). AppendBody leaves them to Dynamo.
//   - llm-d: x-session-token (made by the router), x-gateway-model-name-rewrite (the model),
//     x-llm-d-request-dropped-reason (a response header).
//   - vLLM and SGLang: kv_transfer_params, bootstrap_* (between workers); SGLang's session_params are read, never sent: a
//     session there has to be opened first. Hints that RFCs propose (vllm#52113, sglang#27574) have no spelling yet.
//   - Anthropic: inference_geo, container; OpenAI: conversation, previous_response_id (state that a server keeps).
//   - OpenClaw: it names the session only in the user's text, and traceparent changes with every request.
package intent
