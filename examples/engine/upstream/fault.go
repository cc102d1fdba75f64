// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
)

// maxErrorBody limits the part of an engine's error response that is read, in bytes.
const maxErrorBody = 64 << 10

// Refusal converts an engine's HTTP error to the error that the client gets. The reason for which it refuses a request is
// passed on. A key that the engine does not accept and failures of the engine have details in the log only, as has any
// response that is not an error object. r may be nil if it is not a request for a response.
func Refusal(resp *http.Response, r *Request) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial body is still useful
	var passed struct{ Error string }                              // Ollama passes on the error object of llama.cpp as a text
	if json.Unmarshal(data, &passed) == nil && strings.HasPrefix(passed.Error, "{") {
		data = []byte(passed.Error)
	}
	reply := apierr.Parse(resp.StatusCode, data)
	cause := &Fault{Status: resp.StatusCode, Code: reply.Code, Size: len(data)}
	invalid := resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnprocessableEntity
	if reply.Cause == nil && !invalid {
		cause.Message = reply.Message
	}
	switch {
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable:
		e := apierr.Overloaded(retryAfter(resp.Header))
		e.Cause = cause
		return e
	case reply.Cause != nil: // not an error object
		return apierr.EngineFailed(cause)
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return &apierr.Error{Why: event.EngineFailed, Message: "Server error: the engine does not accept the key of this server.", Cause: cause}
	case invalid:
		if window := windowIn(reply.Message, data); window > 0 || reply.Code == apierr.CodeContextLength {
			return tooLong(reply.Message, window, r, cause)
		}
		return &apierr.Error{Why: event.Invalid, Message: reply.Message, Cause: cause}
	case resp.StatusCode < http.StatusInternalServerError:
		return &apierr.Error{Why: event.EngineFailed, Message: "Server error: the engine refused the request: " + reply.Message, Cause: cause}
	}
	return apierr.EngineFailed(cause)
}

// maxRetryAfter limits the Retry-After of an engine.
const maxRetryAfter = time.Hour

// retryAfter returns the Retry-After of a response, or 0 if it is absent or not in seconds.
func retryAfter(h http.Header) time.Duration {
	n, err := strconv.ParseUint(strings.TrimSpace(h.Get("Retry-After")), 10, 32)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return min(time.Duration(n)*time.Second, maxRetryAfter) // ParseUint returns the maximum if out of range
}

// windowIn returns the context window that an error response names, or 0.
func windowIn(message string, body []byte) (window int64) {
	_, rest, _ := strings.Cut(message, "maximum context length is ") // vLLM, SGLang
	if n, _ := fmt.Sscanf(rest, "%d tokens", &window); n == 1 {
		return window
	}
	var e struct {
		Error struct {
			Type   string `json:"type"`
			Window int64  `json:"n_ctx"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &e) == nil && e.Error.Type == "exceed_context_size_error" { // llama.cpp
		return e.Error.Window
	}
	return 0
}

// tooLong rewrites an engine's error about the context length in the words of the client's API. Harnesses parse the
// numbers in it and shorten the conversation, or request less output if only that does not fit. The window is the
// engine's; the lengths of prompt and output are the gateway's. If they fit the window, the engine's message is kept.
func tooLong(message string, window int64, r *Request, cause error) error {
	e := &apierr.Error{Why: event.Invalid, Code: apierr.CodeContextLength, Message: message}
	if window > 0 && r != nil {
		switch prompt, limit := int64(len(r.Prompt.IDs())), int64(r.Decoder.Limit()); {
		case prompt >= window: // the output needs a token too
			e = apierr.ContextLength(prompt, 0, window)
		case limit > window-prompt:
			e = apierr.ContextLength(prompt, limit, window)
		}
	}
	e.Cause = cause
	return e
}

// A Fault is an error that an engine sent. Its text contains no text of requests and responses.
type Fault struct {
	Status  int    // of HTTP, or 0 in a stream
	Code    string // may be empty
	Size    int    // bytes of the body
	Message string // "" if it may quote the request
}

// Error implements error.
func (e *Fault) Error() string {
	out := "engine: error in stream"
	if e.Status != 0 {
		out = fmt.Sprintf("engine: HTTP %d", e.Status)
	}
	if e.Code != "" {
		out += fmt.Sprintf(", %.50s", e.Code)
	}
	if e.Message != "" {
		return out + ": " + excerpt(e.Message)
	}
	return fmt.Sprintf("%s, %d bytes", out, e.Size)
}

// quoted matches the beginning of what an engine's message may quote: engines get prompts as lists of token ids.
var quoted = regexp.MustCompile(`\[\s*\d|"?(input|prompt|text|content)"?'?\s*[:=]`)

// maxExcerpt is the maximum length of an engine's message in the log, in bytes.
const maxExcerpt = 200

// excerpt returns the beginning of an engine's message.
func excerpt(message string) string {
	end := len(message)
	if at := quoted.FindStringIndex(message); at != nil {
		end = at[0]
	}
	if end > maxExcerpt {
		end = maxExcerpt
	}
	if end < len(message) {
		return fmt.Sprintf("%s… (%d bytes)", message[:end], len(message))
	}
	return message
}
