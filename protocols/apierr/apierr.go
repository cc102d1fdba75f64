// SPDX-License-Identifier: Apache-2.0

package apierr

import (
	"fmt"
	"strings"
	"time"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/errform"
)

// Codes that programs set or compare. The package comment lists the others that determine a status or that clients
// recognize.
const (
	CodeContextLength = errform.ContextLength // the prompt does not fit the model
	CodeTimeout       = errform.Timeout       // the response took too long
	CodeUnsupported   = errform.Unsupported   // a feature that is not supported
)

// Error is an error in API-neutral terms. Why and Message are required; the rest may be zero.
type Error struct {
	Why        event.Why     // class: Invalid, NotFound, Overloaded, EngineFailed, Canceled or Internal; others are treated as Internal
	Message    string        // text for the client; must not contain internals or secrets
	Code       string        // machine-readable code, in OpenAI's spelling
	Param      string        // the request field at fault, as a JSON path such as messages[3].content
	Status     int           // HTTP status; 0 means derived from class and code, see [Error.HTTPStatus]
	RetryAfter time.Duration // time to wait before a retry; 0 means unspecified

	// Cause is the underlying error. It is intended for logs: Unwrap returns it, and it is never sent to a client.
	Cause error

	// These are the token counts of a context_length_exceeded error: the length of the prompt, the requested output length
	// if prompt and output together are too long (otherwise 0), and the limit of the model. If limit is set, the message is
	// generated from them in the wording of each API, and Message is ignored.
	prompt, output, limit int64
}

// New returns an Error of class why.
func New(why event.Why, message string) *Error { return &Error{Why: why, Message: message} }

// EventError returns the error reported by an event of kind event.Error.
func EventError(e *event.Event) *Error {
	return &Error{Why: e.Why, Message: string(e.Data), Code: string(e.ID)}
}

// Invalid returns an error in the request field param, which may be empty.
func Invalid(param, format string, args ...any) *Error {
	return &Error{Why: event.Invalid, Param: param, Message: fmt.Sprintf(format, args...)}
}

// ModelNotFound returns an error that names a model that is not served.
func ModelNotFound(model string) *Error {
	return &Error{
		Why: event.NotFound, Code: errform.ModelNotFound, Param: "model",
		Message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", model),
	}
}

// TooLarge returns the error for a body of more than max bytes.
func TooLarge(max int64) *Error {
	return &Error{
		Why: event.Invalid, Code: errform.TooLarge,
		Message: fmt.Sprintf("The body of your request exceeds the maximum of %d bytes.", max),
	}
}

// ContextLength returns the error for a request that does not fit a context window of limit tokens. If output is 0, the
// prompt alone is too long; otherwise the prompt together with the output tokens that were requested. Claude Code reads
// the numbers of the second form and retries with a lower limit. If output is 0 and prompt is not above limit, because
// the prompt leaves no room for a response, it is reported as limit+1 tokens long.
func ContextLength(prompt, output, limit int64) *Error {
	if output == 0 {
		return &Error{Why: event.Invalid, Code: CodeContextLength, Param: "messages", prompt: max(prompt, limit+1), limit: limit}
	}
	return &Error{Why: event.Invalid, Code: CodeContextLength, Param: "max_tokens", prompt: prompt, output: output, limit: limit}
}

// Overloaded returns the error of an overloaded server. after is the suggested time to wait before a retry, or 0 if
// unspecified.
func Overloaded(after time.Duration) *Error {
	return &Error{
		Why: event.Overloaded, Code: errform.Overloaded, RetryAfter: after,
		Message: "The server is overloaded. Please try again later.",
	}
}

// EngineFailed returns the error of a failed engine. The message does not disclose cause, which is kept for logs. Pi
// and OpenClaw recognize the first words of the message, also in the middle of a stream, as an error to retry.
func EngineFailed(cause error) *Error {
	return &Error{Why: event.EngineFailed, Message: "Server error: the engine failed while it was answering.", Cause: cause}
}

// Error returns the class, the message and the cause, for logs.
func (e *Error) Error() string {
	s := e.Why.String() + ": " + e.text(OpenAI)
	if e.Cause != nil && !strings.HasSuffix(s, e.Cause.Error()) {
		s = strings.TrimSuffix(s, ".") + ": " + e.Cause.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// text returns the public message in the wording of one API.
func (e *Error) text(s Style) string {
	if e.Code == CodeContextLength && e.limit > 0 {
		switch {
		case s == Anthropic && e.output > 0:
			return fmt.Sprintf("input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or `max_tokens` and try again", e.prompt, e.output, e.limit)
		case s == Anthropic:
			return fmt.Sprintf("prompt is too long: %d tokens > %d maximum", e.prompt, e.limit)
		case e.output > 0:
			return fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages, %d in the completion). Please reduce the length of the messages or completion.", e.limit, e.prompt+e.output, e.prompt, e.output)
		}
		return fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.", e.limit, e.prompt)
	}
	if e.Message == "" {
		return "The request failed."
	}
	return e.Message
}
