// SPDX-License-Identifier: Apache-2.0

package messages

import "github.com/weft-go/weft/protocols/apierr"

// ErrorStatus returns the HTTP status with which this API reports e: 529 for an overloaded server, for one.
func ErrorStatus(e *apierr.Error) int { return e.HTTPStatus(apierr.Anthropic) }

// AppendError appends the body of an error response. requestID, which may be empty, is the one of the request-id
// header.
func AppendError(dst []byte, e *apierr.Error, requestID string) []byte {
	return e.AppendBody(dst, apierr.Anthropic, requestID)
}

// AppendStreamError appends the event that reports e in a stream whose headers are already sent. The stream ends with
// it: no message_stop follows.
func AppendStreamError(dst []byte, e *apierr.Error) []byte {
	dst = append(dst, "event: error\ndata: "...)
	dst = e.AppendBody(dst, apierr.Anthropic, "")
	return append(dst, "\n\n"...)
}
