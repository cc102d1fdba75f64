// SPDX-License-Identifier: Apache-2.0

package embeddings

import "github.com/weft-go/weft/protocols/apierr"

// ErrorStatus returns the HTTP status with which this API reports e.
func ErrorStatus(e *apierr.Error) int { return e.HTTPStatus(apierr.OpenAI) }

// AppendError appends the body of an error response, {"error":{…}}.
func AppendError(dst []byte, e *apierr.Error) []byte { return e.AppendBody(dst, apierr.OpenAI, "") }
