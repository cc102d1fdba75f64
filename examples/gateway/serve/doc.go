// SPDX-License-Identifier: Apache-2.0

// Package serve implements a gateway: an http.Handler that serves the Chat Completions, Responses and Messages APIs in
// front of engines that complete prompts, or of endpoints that have one of these APIs themselves. It connects the libraries of this repository; path.go handles a request
// from beginning to end, in order, and is meant to be copied from.
//
// # Terminology
//
//   - engine: one server behind the gateway. It receives prompts as token IDs, or is a managed endpoint.
//   - managed endpoint: a server that has one of the three APIs itself, such as Anthropic's; see managed.go.
//   - worker: an engine, as registered with the router.
//   - dispatch: reporting a complete tool call while the model is still generating, so that it can run early.
//
// # Endpoints
//
//	POST /v1/chat/completions   POST /v1/responses                 POST /v1/messages
//	                            POST /v1/responses/input_tokens    POST /v1/messages/count_tokens
//	                            GET, DELETE /v1/responses/{id}     GET  /v1/responses/{id}/input_items
//	POST /v1/tokenize           POST /v1/detokenize
//	GET  /v1/models             GET  /v1/models/{id}               GET  /health  GET /ready  HEAD /
//	                                                               GET  /metrics, if Options.Metrics is set
//	POST /v1/completions        POST /v1/responses/compact         GET  /version
//	POST /v1/embeddings
//
// GET /v1/models lists the models in the form of OpenAI, Anthropic or Codex, depending on the client; see package
// catalog. A request may use any listed name, and with Options.AnyModel any name; its response contains the same name.
//
// GET /v1/responses with an upgrade to WebSocket opens a connection of which each response.create message is served like
// a POST, with the same limits; see websocket.go. Fields without effect are only in the log there. Options.Store has the
// stored responses.
//
// Unknown query parameters (?beta=true), unknown headers and unknown fields are ignored; unknown roles are refused.
// Bodies may be compressed with gzip or zstd; their size limit applies before and after decompression.
//
// # Request headers
//
//   - X-Request-Id identifies the request in logs and in the response. By default the gateway generates one. Engines get
//     another id, which is unique and in the log.
//   - X-Weft-Tool-Dispatch: 1 requests tool_call_dispatch and reasoning_dispatch events in a chat stream, if
//     Options.ToolDispatch and Options.ReasoningDispatch permit them.
//   - X-Weft-Tool-Call-Parser: NAME selects the parser family for this request.
//   - Hints and sessions are accepted in all dialects that package intent reads, in headers and in the body.
//
// # Hints, reasoning, prefixes
//
// Hints are limited by the policy of the tenant and sent to the engine in the form that it accepts ([Engine].Hints).
// Reasoning that clients return is checked with Options.Signer, and modified reasoning is dropped. The request or
// prompt.Options.Replay of Options.Prompts selects the past reasoning that the prompt contains; otherwise the
// template's rule applies, then the family's. Options.StripPreamble, Relocate and SortTools stabilize the start of
// prompts, for count_tokens too. A [Record] contains the hints received, granted and dropped, the reasoning checked,
// the positions of cache breakpoints in the prompt, and the position at which the prompt diverges from the previous one
// of its session. Invalid hints and modified reasoning never make a request fail, except values that the API does not specify
// in fields that a response repeats.
//
// # Guarantees
//
// A request that fails gets an error in the form of its API: an HTTP status if nothing was sent yet, otherwise the
// error event of the stream. A stream never ends without a final event, unless the client disconnects. If a prompt is
// too long, Codex gets a stream that begins with the error, since it shortens the conversation only then. If the client
// disconnects, the engine's request is canceled and the router releases its reservation; a client that closed only its
// sending side gets status 499. A body must arrive within Options.BodyTimeout. Engine requests always contain
// max_tokens. Tool call ids are unique within a conversation, regardless of the ids that the model generates.
//
// # Limits
//
// Everything that clients and engines can make the gateway do is bounded: connections, bodies, prompts before they are
// encoded, output by max_tokens, the memory of all requests, requests per key, per address, per engine and waiting, the
// time of reads and writes, and retries. See Options and ServerOptions; limits.go, keys.go, guard.go, health.go, server.go
// and connections.go. A request is retried on another engine only while the client has none of its output. Tenants share
// no cached prefixes unless Options.Shared lists them.
package serve
