// SPDX-License-Identifier: Apache-2.0

package apierr

import (
	"context"
	"errors"

	"github.com/weft-go/weft/protocols/event"
)

// From turns any error into an Error:
//
//   - an *Error in its chain is returned as it is;
//   - an error with a method APIError() *Error says itself what it is;
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
	switch {
	case errors.Is(err, context.Canceled):
		return &Error{Why: event.Canceled, Message: "The request was canceled by its caller.", Cause: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Why: event.EngineFailed, Code: CodeTimeout, Message: "The answer took too long.", Cause: err}
	}
	return &Error{Why: event.Internal, Message: "The server had an error while processing your request.", Cause: err}
}
