// SPDX-License-Identifier: Apache-2.0

package apierr

import (
	"context"
	"errors"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
)

// From turns any error into an Error:
//
//   - an *Error in its chain is returned as it is;
//   - an error with a method APIError() *Error says itself what it is;
//   - a *block.Error is a request that cannot be read, or, marked as such, an answer of the engine that cannot; a
//     *block.LossError is a request that cannot be served as it is;
//   - a canceled context is Canceled, a passed deadline a timeout;
//   - anything else is Internal, with a message that gives nothing away and err as its Cause.
//
// From(nil) is nil.
func From(err error) *Error {
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
	if e, ok := errors.AsType[*block.LossError](err); ok && len(e.Losses) > 0 {
		return &Error{Why: event.Invalid, Code: CodeUnsupported, Param: e.Losses[0].Path, Message: e.Losses[0].String(), Cause: err}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &Error{Why: event.Canceled, Message: "The request was canceled by its caller.", Cause: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Why: event.EngineFailed, Code: CodeTimeout, Message: "The answer took too long.", Cause: err}
	}
	return &Error{Why: event.Internal, Message: internalMessage, Cause: err}
}

// fromBlock words a fault of the request body. The text of a block.Error is meant for clients and holds path and offset.
func fromBlock(e *block.Error, cause error) *Error {
	if e.Answer {
		return EngineFailed(cause)
	}
	out := &Error{Why: event.Invalid, Param: e.Path, Message: e.Error(), Cause: cause}
	switch e.Kind {
	case block.Malformed, block.InvalidEncoding, block.DuplicateKey:
		out.Code = CodeInvalidJSON
		out.Message = "The body of your request cannot be read: " + out.Message
	case block.LimitPassed:
		if e.Path == "" && e.Limit == bodyLimit {
			out = TooLarge(e.Max)
			out.Cause = cause
		}
	case block.Unsupported:
		out.Code = CodeUnsupported
	case block.Stale:
		return &Error{Why: event.Internal, Message: internalMessage, Cause: cause} // a program's fault, not the client's
	}
	return out
}

// bodyLimit is how block names the limit on the size of the body.
const bodyLimit = "body bytes"

const internalMessage = "The server had an error while processing your request."
