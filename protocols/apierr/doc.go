// SPDX-License-Identifier: Apache-2.0

// Package apierr defines API-neutral errors and encodes them in the form of each API.
//
// An [Error] has a class (one of the error values of [event.Why]), a public message, and optionally a code, the
// parameter at fault, an HTTP status and a time to wait before a retry. It is encoded in one of two [Style] values:
//
//	OpenAI     {"error":{"message":…,"type":…,"param":…,"code":…}}            chat and responses
//	Anthropic  {"type":"error","error":{"type":…,"message":…},"request_id":…}  messages
//
// The status may depend on the style: an overloaded server is 503 for OpenAI clients and 529 for Anthropic clients.
// Some clients act on the exact wording of an error, so the constructors use that wording. For Anthropic clients, [ContextLength] returns "prompt is too long: N tokens > M maximum", on which Claude Code
// compacts the conversation. For OpenAI clients, it has the code context_length_exceeded and words that opencode, pi
// and OpenClaw search for. Codex reads the code, but only in the event response.failed, not in an HTTP error.
//
// # Codes
//
// [Error.Code] may have any value. These determine the status, or clients act on them:
//
//	code                         class       status  meaning
//	context_length_exceeded      Invalid     400     the prompt does not fit the model
//	unsupported_parameter        Invalid     400     a feature that is not supported
//	invalid_json                 Invalid     400     the body cannot be parsed
//	request_too_large            Invalid     413     the body is too large
//	invalid_api_key              Invalid     401     missing or unknown credentials
//	permission_denied            Invalid     403     the client is known but not authorized
//	method_not_allowed           Invalid     405     the path does not support the method
//	previous_response_not_found  Invalid     400     the previous response is not stored here
//	model_not_found              NotFound    404     the model does not exist
//	unknown_url                  NotFound    404     no such method and path
//	item_not_found               NotFound    404     the item referred to by the input is not stored here
//	thread_not_found             NotFound    404     the thread is not stored here; Anthropic's SDKs then send
//	                                                 the whole conversation, so it is repeated in error.details.error_code
//	rate_limit_exceeded          Overloaded  429     this client sends too many requests
//	insufficient_quota           Overloaded  429     this client has exhausted its quota
//	server_overloaded            Overloaded  503     all clients together send too many requests; 529 to Anthropic clients
//	timeout                      EngineFailed 504    the response took too long
//
// [Parse] does the reverse: it parses the error of another server, in these and several other forms.
//
// This package neither reads nor writes HTTP. An Error is safe for concurrent use by multiple goroutines if none
// modifies it.
//
// Sources: the error pages of both vendors as of 2026-10; openai-go v3.96 and anthropic-sdk-go v2.13 for what
// clients decode.
package apierr
