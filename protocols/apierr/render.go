// SPDX-License-Identifier: Apache-2.0

package apierr

import (
	"strconv"
	"time"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/errform"
	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// Style is the form of an error body.
type Style uint8

const (
	// OpenAI is the form of the Chat Completions and Responses APIs.
	OpenAI Style = iota
	// Anthropic is the form of the Messages API.
	Anthropic
)

// HTTPStatus returns e.Status if it is set, otherwise the status of the code, otherwise the status of the class, in the
// given style.
func (e *Error) HTTPStatus(s Style) int {
	if e.Status != 0 {
		return e.Status
	}
	switch e.Code {
	case errform.TooLarge:
		return 413
	case errform.Unauthorized:
		return 401
	case errform.Forbidden:
		return 403
	case errform.RateLimited, errform.Quota:
		return 429
	case CodeTimeout:
		return 504
	case errform.MethodNotAllowed:
		return 405
	}
	switch e.Why {
	case event.Invalid:
		return 400
	case event.NotFound:
		return 404
	case event.Overloaded:
		if s == Anthropic {
			return errform.StatusOverloaded
		}
		return 503
	case event.EngineFailed:
		if s == Anthropic {
			return 500 // the only 5xx besides 504 and 529 that Anthropic clients recognize
		}
		return 502
	case event.Canceled:
		return errform.StatusCanceled
	}
	return 500
}

// typ returns the error type, which is a function of the status.
func (e *Error) typ(s Style) string {
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
		case 503, errform.StatusOverloaded:
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

// RetryAfterHeader returns the value of the Retry-After header in whole seconds, rounded up, or "" if the header must
// be omitted. If e.RetryAfter is 0, it returns "1" for statuses that suggest a retry (429, 503, 529).
func (e *Error) RetryAfterHeader(s Style) string {
	if e.RetryAfter > 0 {
		return strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10)
	}
	switch e.HTTPStatus(s) {
	case 429, 503, errform.StatusOverloaded:
		return "1"
	}
	return ""
}

// AppendBody appends the JSON body of an error response to dst. requestID appears only in Anthropic's form; if it is
// empty, the field is omitted.
func (e *Error) AppendBody(dst []byte, s Style, requestID string) []byte {
	if s == Anthropic {
		dst = append(dst, `{"type":"error","error":{"type":"`...)
		dst = append(dst, e.typ(s)...)
		dst = append(dst, `","message":`...)
		dst = jsonw.AppendString(dst, e.text(s))
		if e.Code == errform.ThreadNotFound { // where the SDKs read it
			dst = append(dst, `,"details":{"error_code":"`+errform.ThreadNotFound+`"}`...)
		}
		dst = append(dst, '}')
		if requestID != "" {
			dst = append(dst, `,"request_id":`...)
			dst = jsonw.AppendString(dst, requestID)
		}
		return append(dst, '}')
	}
	dst = append(dst, `{"error":`...)
	dst = e.appendObject(dst)
	return append(dst, '}')
}

// appendObject appends OpenAI's inner error object: message, type, param and code, the last two null if empty.
func (e *Error) appendObject(dst []byte) []byte {
	dst = append(dst, `{"message":`...)
	dst = jsonw.AppendString(dst, e.text(OpenAI))
	dst = append(dst, `,"type":"`...)
	dst = append(dst, e.typ(OpenAI)...)
	dst = append(dst, `","param":`...)
	dst = appendNullable(dst, e.Param)
	dst = append(dst, `,"code":`...)
	dst = appendNullable(dst, e.Code)
	return append(dst, '}')
}

// AppendResponseError appends the error object of a failed response of the Responses API: one of that API's codes, and
// the message. Codex reads the codes context_length_exceeded and rate_limit_exceeded.
func (e *Error) AppendResponseError(dst []byte) []byte {
	dst = append(dst, `{"code":`...)
	dst = jsonw.AppendString(dst, e.responseCode())
	dst = append(dst, `,"message":`...)
	dst = jsonw.AppendString(dst, e.text(OpenAI))
	return append(dst, '}')
}

// responseCode returns the error code of a failed response of the Responses API.
func (e *Error) responseCode() string {
	switch {
	case e.Code == CodeContextLength || e.Code == errform.Quota:
		return e.Code
	case e.Code == errform.RateLimited || e.Why == event.Overloaded:
		return errform.RateLimited
	case e.Why == event.Invalid:
		return "invalid_prompt"
	}
	return "server_error"
}

func appendNullable(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return jsonw.AppendString(dst, s)
}
