// SPDX-License-Identifier: Apache-2.0

package apierr

import (
	"context"
	"errors"
	"net/http"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/errform"
)

// Wrap converts any error to an Error:
//
//   - an *Error in its chain is returned unmodified;
//   - an error with a method APIError() *Error is converted by that method;
//   - a *block.Error is an error in the request's body or, if its field Answer is set, in the engine's response;
//   - an *http.MaxBytesError is a body that is too large;
//   - a canceled context is Canceled, an exceeded deadline a timeout;
//   - any other error is Internal, with a generic message and err as its Cause.
//
// Wrap(nil) is nil.
func Wrap(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	var self interface{ APIError() *Error }
	if errors.As(err, &self) {
		return self.APIError()
	}
	if e, ok := errors.AsType[*block.Error](err); ok {
		return fromBlock(e, err)
	}
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		out := TooLarge(e.Limit)
		out.Cause = err
		return out
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &Error{Why: event.Canceled, Message: "The request was canceled by its caller.", Cause: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Why: event.EngineFailed, Code: CodeTimeout, Message: "The answer took too long.", Cause: err}
	}
	return &Error{Why: event.Internal, Message: internalMessage, Cause: err}
}

// fromBlock converts an error in a request body. The text of a block.Error is intended for clients and contains path
// and offset.
func fromBlock(e *block.Error, cause error) *Error {
	if e.Answer {
		return EngineFailed(cause)
	}
	out := &Error{Why: event.Invalid, Param: e.Path, Message: e.Error(), Cause: cause}
	switch e.Kind {
	case block.Malformed:
		out.Code = errform.InvalidJSON
		out.Message = "The body of your request cannot be read: " + out.Message
	case block.LimitPassed:
		if e.Path == "" && e.Limit == bodyLimit {
			out = TooLarge(e.Max)
			out.Cause = cause
		}
	case block.Unsupported:
		out.Code = CodeUnsupported
	case block.Stale:
		return &Error{Why: event.Internal, Message: internalMessage, Cause: cause} // an error of the program, not the client
	}
	return out
}

// bodyLimit is the name that package block gives the limit on the body's size.
const bodyLimit = "body bytes"

const internalMessage = "The server had an error while processing your request."
