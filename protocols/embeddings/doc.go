// SPDX-License-Identifier: Apache-2.0

// Package embeddings implements the Embeddings API, POST /v1/embeddings, as of openai-go v3.96 with the extensions of
// vLLM.
//
// [Decode] and [Request.AppendJSON] convert requests from and to JSON; [DecodeResponse] and [Response.AppendJSON]
// convert responses. The API has no conversations, so its requests are not requests of package block.
//
// # Guarantees
//
//   - A request that was decoded and not changed is written byte for byte. Changing a field changes only that field of
//     the body.
//   - [Request.Field] returns any other field as raw JSON, and [Request.Set] sets it.
//   - Invalid UTF-8, duplicate names, wrong types and exceeded limits are reported as *[block.Error], with path and
//     offset.
//   - Vectors are 32-bit floats, as engines compute them. As text, they have as many digits as are necessary to parse
//     the same float; base64 contains the bits, little-endian.
//
// # Cost
//
// Decoding makes one pass. The numbers of a vector are not indexed. Writing to a buffer with sufficient capacity does
// not allocate.
package embeddings
