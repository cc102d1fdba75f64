// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/intent"
)

// maxErrorBody limits the part of an engine's error response that is read, in bytes.
const maxErrorBody = 64 << 10

// errUnreachable reports that a request to an engine failed before its response arrived.
var errUnreachable = errors.New("serve: engine unreachable")

// complete sends a completion request with hints and returns its stream. If the engine cannot be reached or refuses the
// request, the error is an *apierr.Error. See readSteps for the sequence. The caller must iterate over it or cancel ctx.
func (e *engine) complete(ctx context.Context, id string, req *completionRequest, hints intent.Out) (iter.Seq2[step, error], error) {
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/v1/completions", nil)
	if err != nil {
		return nil, err
	}
	if err := req.attach(hr, &hints); err != nil {
		return nil, err
	}
	hr.Header.Set("Content-Type", "application/json")
	hints.SetHeaders(hr.Header)
	hr.Header.Set("X-Request-Id", id) // never the client's: engines identify requests by it
	if e.apiKey != "" {
		hr.Header.Set("Authorization", "Bearer "+e.apiKey)
	}
	resp, err := e.client.Do(hr)
	if err != nil {
		return nil, apierr.EngineFailed(fmt.Errorf("%w: %w", errUnreachable, err))
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, refusal(resp, req)
	}
	return readSteps(resp.Body, req.choices), nil
}

// refusal converts an engine's HTTP error to the error that the client gets. Client errors are passed on; all others
// become engine failures, with details only in the log.
func refusal(resp *http.Response, req *completionRequest) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial body is still useful
	reply := apierr.Parse(resp.StatusCode, data)
	cause := &engineFault{status: resp.StatusCode, code: reply.Code, bytes: len(data)}
	if reply.Cause == nil && resp.StatusCode != http.StatusBadRequest && resp.StatusCode != http.StatusUnprocessableEntity {
		cause.message = reply.Message
	}
	switch {
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable:
		e := apierr.Overloaded(retryAfter(resp.Header))
		e.Cause = cause
		return e
	case resp.StatusCode != http.StatusBadRequest || reply.Cause != nil: // reply.Cause is set if the body was not an error object
		return apierr.EngineFailed(cause)
	case reply.Code == apierr.CodeContextLength:
		return tooLong(reply.Message, req, cause)
	}
	return &apierr.Error{Why: event.Invalid, Message: reply.Message, Cause: cause}
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

// tooLong rewrites an engine's error about the context length in the words of the client's API. Harnesses parse the
// numbers in it and shorten the conversation, or request less output if only that does not fit. The window is the
// engine's; the lengths of prompt and output are the gateway's. If they fit the window, the engine's message is kept.
func tooLong(message string, req *completionRequest, cause error) error {
	e := &apierr.Error{Why: event.Invalid, Code: apierr.CodeContextLength, Message: message}
	var window int64
	_, rest, _ := strings.Cut(message, "maximum context length is ")
	if n, _ := fmt.Sscanf(rest, "%d tokens", &window); n == 1 {
		switch prompt, limit := int64(req.prompt), int64(req.limit); {
		case prompt >= window: // the output needs a token too
			e = apierr.ContextLength(prompt, 0, window)
		case limit > window-prompt:
			e = apierr.ContextLength(prompt, limit, window)
		}
	}
	e.Cause = cause
	return e
}
