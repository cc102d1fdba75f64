// SPDX-License-Identifier: Apache-2.0

// Package errform recognizes the forms in which servers report errors.
package errform

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// The error codes that determine a status or that clients recognize, in OpenAI's spelling.
const (
	ModelNotFound    = "model_not_found"         // no such model
	RouteNotFound    = "unknown_url"             // no such method and path
	MethodNotAllowed = "method_not_allowed"      // the path does not support the method
	InvalidJSON      = "invalid_json"            // the body cannot be parsed
	TooLarge         = "request_too_large"       // the body is too large
	Unsupported      = "unsupported_parameter"   // a feature that is not supported
	ContextLength    = "context_length_exceeded" // the prompt does not fit the model
	Unauthorized     = "invalid_api_key"         // missing or unknown credentials
	Forbidden        = "permission_denied"       // the client is known but not authorized
	RateLimited      = "rate_limit_exceeded"     // this client sends too many requests
	Quota            = "insufficient_quota"      // this client has exhausted its quota
	Overloaded       = "server_overloaded"       // all clients together send too many requests
	Timeout          = "timeout"                 // the response took too long

	ThreadNotFound   = "thread_not_found"            // the thread of the Messages API is not stored here
	ResponseNotFound = "previous_response_not_found" // the previous response is not stored here
	ItemNotFound     = "item_not_found"              // the item referred to is not stored here
)

// Statuses that package http does not define.
const (
	StatusOverloaded = 529 // Anthropic: the server is overloaded
	StatusCanceled   = 499 // for logs: the client disconnected, so no response was sent
)

// Fields contains the parts of an error.
type Fields struct {
	Why                  event.Why
	Message, Code, Param string
	Prompt, Output, Max  int64 // tokens, for a prompt that is too long
}

// classes maps the types and codes of servers' errors, in lower case, to classes. The names are from OpenAI and
// Anthropic, from vLLM and SGLang (Python exceptions), and from Dynamo (HTTP reason phrases).
var classes = map[string]event.Why{
	// OpenAI: codes and types.
	"invalid_request_error": event.Invalid, InvalidJSON: event.Invalid, TooLarge: event.Invalid,
	Unsupported: event.Invalid, ContextLength: event.Invalid, Unauthorized: event.Invalid,
	Forbidden: event.Invalid, MethodNotAllowed: event.Invalid, ResponseNotFound: event.Invalid,
	"invalid_prompt": event.Invalid, "authentication_error": event.Invalid, "permission_error": event.Invalid,
	"string_above_max_length": event.Invalid, "content_policy_violation": event.Invalid, "content_filter": event.Invalid,
	ModelNotFound: event.NotFound, RouteNotFound: event.NotFound, ItemNotFound: event.NotFound,
	RateLimited: event.Overloaded, Quota: event.Overloaded, Overloaded: event.Overloaded,
	"rate_limit_error": event.Overloaded, "tokens": event.Overloaded, "requests": event.Overloaded,
	"service_unavailable": event.Overloaded, "engine_overloaded": event.Overloaded, "slow_down": event.Overloaded,
	"server_error": event.EngineFailed, Timeout: event.EngineFailed,
	// Anthropic: types.
	"not_found_error": event.NotFound, "overloaded_error": event.Overloaded, "billing_error": event.Invalid,
	"api_error": event.EngineFailed, "timeout_error": event.EngineFailed, ThreadNotFound: event.NotFound,
	// vLLM and SGLang.
	"badrequesterror": event.Invalid, "validationerror": event.Invalid, "valueerror": event.Invalid,
	"typeerror": event.Invalid, "unprocessableentityerror": event.Invalid, "notfounderror": event.NotFound,
	"serviceunavailableerror": event.Overloaded, "internalservererror": event.EngineFailed,
	"internal_server_error": event.EngineFailed, "aborterror": event.EngineFailed, "abort": event.EngineFailed,
	// Dynamo and others: reason phrases.
	"bad request": event.Invalid, "unauthorized": event.Invalid, "forbidden": event.Invalid, "not found": event.NotFound,
	"unprocessable entity": event.Invalid, "payload too large": event.Invalid, "too many requests": event.Overloaded,
	"service unavailable": event.Overloaded, "internal server error": event.EngineFailed,
	"gateway timeout": event.EngineFailed, "bad gateway": event.EngineFailed, "not implemented": event.Invalid,
	// A client that disconnected.
	"request_cancelled": event.Canceled, "request_canceled": event.Canceled, "cancelled": event.Canceled, "canceled": event.Canceled,
}

// Class returns the class of an error that another server reports. It is determined by the code, otherwise by the HTTP
// status, otherwise by the type. 0 and empty strings mean that the server did not report the value. code may be a
// status in decimal, as in vLLM. The class of an error without known values is EngineFailed, because the other server
// failed.
func Class(status int, typ, code string) event.Why {
	if why, ok := classes[strings.ToLower(code)]; ok {
		return why
	}
	if n, err := strconv.Atoi(code); err == nil && n >= 400 && n < 600 {
		status = n
	}
	switch {
	case status == 404:
		return event.NotFound
	case status == 429, status == 503, status == StatusOverloaded:
		return event.Overloaded
	case status == 408:
		return event.EngineFailed
	case status == StatusCanceled:
		return event.Canceled
	case status == 501:
		return event.Invalid // the requested feature is not supported
	case status >= 400 && status < 500:
		return event.Invalid
	case status >= 500 && status < 600:
		return event.EngineFailed
	}
	if why, ok := classes[strings.ToLower(typ)]; ok {
		return why
	}
	return event.EngineFailed
}

// noMessage is the message of an error without a message.
const noMessage = "The engine reported an error without a message."

// Find returns the error object that a document is or contains. The value does not exist if the document is not an
// error:
//
//	{"error":{"message":…,"type":…,"code":…}}             OpenAI, vLLM, SGLang
//	{"error":"…"}                                          Ollama, and proxies
//	{"type":"error","error":{"type":…,"message":…}}        Anthropic
//	{"type":"error","message":…,"code":…}                  events of the Responses API
//	{"object":"error","message":…,"type":…,"code":400}     old vLLM
//	{"message":…,"type":"Bad Request","code":400}          Dynamo
//	{"detail":"…"}                                         FastAPI
//
// "error":null, which some servers write into every chunk, is not an error.
func Find(root jsonscan.Value) jsonscan.Value {
	switch e := root.Get("error"); e.Kind() {
	case jsonscan.Object, jsonscan.String:
		return e
	}
	if root.Get("choices").Exists() || root.Get("output").Exists() || root.Get("content").Exists() {
		return jsonscan.Value{} // a response
	}
	kind, _ := root.Get("type").Str(nil)
	object, _ := root.Get("object").Str(nil)
	_, known := classes[strings.ToLower(kind)]
	switch {
	case kind == "error", object == "error",
		root.Get("message").Kind() == jsonscan.String && (known || root.Get("code").Exists()),
		root.Get("detail").Exists() && root.Len() == 1:
		return root
	}
	return jsonscan.Value{}
}

// Read returns the error in an object that [Find] returned; status is the HTTP status, or 0 if unknown.
func Read(v jsonscan.Value, status int) *Fields {
	str := func(name string) string {
		s, _ := v.Get(name).Str(nil)
		return strings.Clone(s)
	}
	if s, ok := v.Str(nil); ok {
		return &Fields{Why: Class(status, "", ""), Message: orNone(strings.Clone(s))}
	}
	e := &Fields{Message: str("message"), Code: str("code"), Param: str("param")}
	if e.Message == "" {
		e.Message = str("detail")
	}
	for _, name := range [...]string{"code", "status", "status_code"} {
		if n, ok := v.Get(name).Int(); ok && n >= 400 && n < 600 {
			status = int(n)
			break
		}
	}
	e.Message = orNone(e.Message)
	typ := str("type")
	e.Why = Class(status, typ, e.Code)
	if e.Code == "" {
		e.Code = typeCodes[typ]
	}
	e.context()
	if _, err := strconv.Atoi(e.Code); err == nil {
		e.Code = "" // a status, not a code
	}
	return e
}

// typeCodes maps Anthropic's types to the equivalent codes.
var typeCodes = map[string]string{
	"rate_limit_error": RateLimited, "authentication_error": Unauthorized, "permission_error": Forbidden,
	"request_too_large": TooLarge, "timeout_error": Timeout, "billing_error": Quota,
}

// context determines whether the message reports a prompt that is too long, alone or together with the output, which
// harnesses act on, and extracts its token counts:
//
//	prompt is too long: 210000 tokens > 200000 maximum                                          Anthropic
//	input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000, …
//	This model's maximum context length is 4096 tokens. However, your messages resulted in      OpenAI
//	5000 tokens. …
//	… However, you requested 5000 tokens (4500 in the messages, 500 in the completion). …       OpenAI, old vLLM
//	… However, your request has 4200 input tokens. …                                            vLLM
//	… However, you requested 500 output tokens and your prompt contains at least 4200 input
//	tokens, for a total of at least 4700 tokens. …                                              vLLM, 2026
func (e *Fields) context() {
	var prompt, output, limit int64
	if n, _ := fmt.Sscanf(e.Message, "prompt is too long: %d tokens > %d maximum", &prompt, &limit); n == 2 {
		e.Why, e.Code, e.Prompt, e.Max = event.Invalid, ContextLength, prompt, limit
		return
	}
	if n, _ := fmt.Sscanf(e.Message, "input length and `max_tokens` exceed context limit: %d + %d > %d", &prompt, &output, &limit); n == 3 {
		e.Why, e.Code, e.Prompt, e.Output, e.Max = event.Invalid, ContextLength, prompt, output, limit
		return
	}
	_, rest, ok := strings.Cut(e.Message, "maximum context length is ")
	if !ok {
		return
	}
	e.Why, e.Code = event.Invalid, ContextLength
	limit = countBefore(rest, " tokens")
	for _, words := range [...]string{" in the messages", " in the prompt", " in your prompt", " input tokens"} {
		prompt = cmp.Or(prompt, countBefore(rest, words))
	}
	if _, after, ok := strings.Cut(rest, "resulted in "); ok {
		prompt = cmp.Or(prompt, countBefore(after, " tokens"))
	}
	for _, words := range [...]string{" in the completion", " for the completion", " output tokens"} {
		output = cmp.Or(output, countBefore(rest, words))
	}
	switch {
	case limit <= 0 || prompt <= 0:
	case prompt > limit:
		e.Prompt, e.Max = prompt, limit
	case output > limit-prompt:
		e.Prompt, e.Output, e.Max = prompt, output, limit
	}
}

// countBefore returns the number immediately before words, or 0 if absent.
func countBefore(s, words string) int64 {
	i := max(0, strings.Index(s, words))
	k := i
	for k > 0 && s[k-1] >= '0' && s[k-1] <= '9' {
		k--
	}
	n, err := strconv.ParseInt(s[k:i], 10, 62) // so that the sum of two does not overflow
	if err != nil {
		return 0
	}
	return n
}

func orNone(message string) string {
	if message == "" {
		return noMessage
	}
	return message
}
