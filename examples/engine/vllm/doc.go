// SPDX-License-Identifier: Apache-2.0

// Package vllm is the embedded engine: a server that speaks vLLM's HTTP API and has a real prefix cache, but no model.
//
// What it says is scripted: a [Script] reads the decoded prompt and answers with raw model output, markers included, in
// the format of some model family. The answer is tokenised by the real tokenizer and streamed token by token, so
// everything behind the engine (detokenising, parsing, encoding) does its real work. What a model would cost is
// computed by a [Timing] and waited for, at a [Options.Speed] of choice.
//
// # Terminology
//
//   - block: Options.BlockSize consecutive tokens. Only full blocks are cached.
//   - block hash: 64 bits over the parent's hash and the block's tokens; it names the whole prefix up to the block's end.
//     Two engines give the same prefix the same hash. The value has no meaning outside this package.
//   - cached token: a prompt token in a block that the cache held when the prefill began. As in vLLM at least one
//     prompt token is always computed.
//   - modelled time: what [Timing] says the work takes. Real time is modelled time divided by Options.Speed.
//
// # One request
//
//	POST /v1/completions -> wait for a running slot -> wait for the prefill (one at a time)
//	  -> match the prompt against the cache, pin what matches       -> modelled: Base + uncached / PrefillPerSecond
//	  -> store the prompt's blocks, publish events                  -> first token
//	  -> one token each DecodePerToken; full blocks are stored as they fill
//	  -> unpin: the blocks stay cached until the least recently used ones are needed for others
//
// # Endpoints
//
// /v1/completions, /v1/models, /health, /metrics, /tokenize, /detokenize, /version, and /kv_events, which vLLM has not: the
// cache's events as JSON lines (vLLM sends them over ZMQ). Field names, defaults (max_tokens is 16 when
// absent) and the error envelope follow vLLM 0.11 to 0.28; unknown fields are ignored. Not offered: more than one prompt per
// request, logprobs, echo, chat endpoints, sampling. With n > 1 the script is asked once per choice; the choices share the
// prompt's blocks and get a token each per step.
//
// # Cost
//
// An event is a SHA-256 over one block and a map entry; a token is one small write.
package vllm
