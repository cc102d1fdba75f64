// SPDX-License-Identifier: Apache-2.0

package apierr

import (
	"strconv"
	"time"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// Style is the form of an error body.
type Style uint8

const (
	// OpenAI is the form of the chat and responses APIs.
	OpenAI Style = iota
	// Anthropic is the form of the messages API.
	Anthropic
)

// statusOverloaded is Anthropic's own status for a server that is too busy.
const statusOverloaded = 529

// statusCanceled is the status that logs give to a request whose caller went away; nobody receives it.
const statusCanceled = 499

// HTTPStatus returns e.Status if it is set, else the status of the code, else that of the class, in the given style.
func (e *Error) HTTPStatus(s Style) int {
	if e.Status != 0 {
		return e.Status
	}
	switch e.Code {
	case CodeTooLarge:
		return 413
	case CodeUnauthorized:
		return 401
	case CodeForbidden:
		return 403
	case CodeRateLimited, CodeQuota:
		return 429
	case CodeTimeout:
		return 504
	case CodeMethodNotAllowed:
		return 405
	}
	switch e.Why {
	case event.Invalid:
		return 400
	case event.NotFound:
		return 404
	case event.Overloaded:
		if s == Anthropic {
			return statusOverloaded
		}
		return 503
	case event.EngineFailed:
		if s == Anthropic {
			return 500 // the only 5xx besides 504 and 529 that Anthropic clients know
		}
		return 502
	case event.Canceled:
		return statusCanceled
	}
	return 500
}

// Type returns the error type, which is a function of the status.
func (e *Error) Type(s Style) string {
	status := e.HTTPStatus(s)
	if s == Anthropic {
		switch status {
		case 401:
			return "authentication_error"
		case 402:
			return "billing_error"
		case 403:
			return "permission_error"
		case 404:
			return "not_found_error"
		case 413:
			return "request_too_large"
		case 429:
			return "rate_limit_error"
		case 504:
			return "timeout_error"
		case 503, statusOverloaded:
			return "overloaded_error"
		}
		if status >= 500 {
			return "api_error"
		}
		return "invalid_request_error"
	}
	switch {
	case status == 401:
		return "authentication_error"
	case status == 403:
		return "permission_error"
	case status == 429:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// RetryAfterHeader returns the value of the Retry-After header in whole seconds, rounded up, or "" for none. When
// e says nothing, statuses that call for another try (429, 503, 529) get "1".
func (e *Error) RetryAfterHeader(s Style) string {
	if e.RetryAfter > 0 {
		return strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10)
	}
	switch e.HTTPStatus(s) {
	case 429, 503, statusOverloaded:
		return "1"
	}
	return ""
}

// AppendBody appends the whole JSON body of an error response. requestID is used by Anthropic's form only; when it is
// empty the field is left out.
func (e *Error) AppendBody(dst []byte, s Style, requestID string) []byte {
	if s == Anthropic {
		dst = append(dst, `{"type":"error","error":{"type":"`...)
		dst = append(dst, e.Type(s)...)
		dst = append(dst, `","message":`...)
		dst = jsonw.AppendString(dst, e.text(s))
		if e.Code == CodeThreadNotFound { // the SDKs look there
			dst = append(dst, `,"details":{"error_code":"`+CodeThreadNotFound+`"}`...)
		}
		dst = append(dst, '}')
		if requestID != "" {
			dst = append(dst, `,"request_id":`...)
			dst = jsonw.AppendString(dst, requestID)
		}
		return append(dst, '}')
	}
	dst = append(dst, `{"error":`...)
	dst = e.AppendObject(dst)
	return append(dst, '}')
}

// AppendObject appends OpenAI's inner error object: message, type, param and code, the last two null when empty.
func (e *Error) AppendObject(dst []byte) []byte {
	dst = append(dst, `{"message":`...)
	dst = jsonw.AppendString(dst, e.text(OpenAI))
	dst = append(dst, `,"type":"`...)
	dst = append(dst, e.Type(OpenAI)...)
	dst = append(dst, `","param":`...)
	dst = appendNullable(dst, e.Param)
	dst = append(dst, `,"code":`...)
	dst = appendNullable(dst, e.Code)
	return append(dst, '}')
}

// AppendResponseError appends the error object of a failed response of the responses API: a code of that API's own
// set, and the message. Codex reads the codes context_length_exceeded and rate_limit_exceeded.
func (e *Error) AppendResponseError(dst []byte) []byte {
	dst = append(dst, `{"code":`...)
	dst = jsonw.AppendString(dst, e.ResponseCode())
	dst = append(dst, `,"message":`...)
	dst = jsonw.AppendString(dst, e.text(OpenAI))
	return append(dst, '}')
}

// ResponseCode returns the error code of a failed response of the responses API.
func (e *Error) ResponseCode() string {
	switch {
	case e.Code == CodeContextLength || e.Code == CodeQuota:
		return e.Code
	case e.Code == CodeRateLimited || e.Why == event.Overloaded:
		return CodeRateLimited
	case e.Why == event.Invalid:
		return "invalid_prompt"
	}
	return "server_error"
}

// Text returns the public message in the words of one API.
func (e *Error) Text(s Style) string { return e.text(s) }

func appendNullable(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return jsonw.AppendString(dst, s)
}
