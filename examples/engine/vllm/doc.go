// SPDX-License-Identifier: Apache-2.0

// Package vllm implements the embedded engine: a server with vLLM's HTTP API and a real prefix cache, but no model.
//
// Its output is scripted: a [Script] reads the decoded prompt and returns raw model output, markers included, in the
// format of some model family. The output is tokenized by the real tokenizer and streamed token by token, so
// detokenizing, parsing and encoding after the engine do real work. A [Timing] models the duration of the model's work,
// for which the engine waits, scaled by [Options.Speed].
//
// # Terminology
//
//   - block: Options.BlockSize consecutive tokens. Only full blocks are cached.
//   - block hash: 64 bits over the parent's hash and the block's tokens; it identifies the whole prefix up to the end
//     of the block. All engines compute the same hash for a prefix. The value has no meaning outside this package.
//   - cached token: a prompt token in a block that the cache held when the prefill began. As in vLLM at least one
//     prompt token is always computed.
//   - modeled time: the duration of the work according to [Timing]. Real time is modeled time divided by Options.Speed.
//
// # One request
//
//	POST /v1/completions -> wait for a running slot -> wait for the prefill (one at a time)
//	  -> match the prompt against the cache, pin what matches       -> modeled: Base + uncached / PrefillPerSecond
//	  -> store the prompt's blocks, publish events                  -> first token
//	  -> one token each DecodePerToken; full blocks are stored as they fill
//	  -> unpin: the blocks stay cached until the least recently used ones are needed for others
//
// # Endpoints
//
// /v1/completions, /v1/models, /health, /metrics, /tokenize, /detokenize, /version, and /kv_events, which is not in
// vLLM: the cache's events as JSON lines (vLLM sends them over ZMQ). Field names, defaults (max_tokens is 16 when
// absent) and the error envelope follow vLLM 0.11 to 0.28; unknown fields are ignored. Not implemented: more than one
// prompt per request, logprobs, echo, chat endpoints, sampling. With n > 1 the script is called once per choice; the
// choices share the prompt's blocks and get one token each per step.
//
// # Cost
//
// An event is a SHA-256 over one block and a map entry; a token is one small write.
package vllm
