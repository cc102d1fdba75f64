// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/internal/chunkw"
)

// ErrorStatus returns the HTTP status with which this API reports e.
func ErrorStatus(e *apierr.Error) int { return e.HTTPStatus(apierr.OpenAI) }

// AppendError appends the body of an error response, {"error":{…}}.
func AppendError(dst []byte, e *apierr.Error) []byte { return e.AppendBody(dst, apierr.OpenAI, "") }

// AppendStreamError appends the line that reports e in a stream whose headers are already sent. The stream ends with
// it: no [DONE] follows.
func AppendStreamError(dst []byte, e *apierr.Error) []byte {
	return chunkw.AppendError(dst, e)
}
