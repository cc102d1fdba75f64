// SPDX-License-Identifier: Apache-2.0

// Package embeddings is the Embeddings API, POST /v1/embeddings, as of openai-go v3.52 (2026-08) with what vLLM adds.
//
// Requests come in through [Decode] and go out through [Request.AppendJSON]; answers go out through [Response.AppendJSON]
// and come in through [DecodeResponse]. There is no conversation in here, so this package stands beside the shared form
// of requests and not under it.
//
// # Guarantees
//
//   - A request that was decoded and not changed comes out byte for byte. A changed field changes its own member only.
//   - Members that are not modelled are in [Request.Extra], in order, as raw JSON.
//   - Invalid UTF-8, duplicate member names, wrong types and passed limits are *[block.Error], with path and offset.
//   - Vectors are 32-bit floats, as engines compute them. They are written with as many digits as it takes to read the same
//     float back; base64 holds the bits themselves, little-endian.
//
// # Cost
//
// Decoding is one pass. A vector is read from and written to JSON without an index of its numbers, and a warm buffer costs
// no allocation.
package embeddings
