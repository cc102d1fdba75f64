// SPDX-License-Identifier: Apache-2.0

package apierr

func (e *Error) Type(s Style) string  { return e.typ(s) }
func (e *Error) Text(s Style) string  { return e.text(s) }
func (e *Error) Counts() [3]int64     { return [3]int64{e.prompt, e.output, e.limit} }
func (e *Error) ResponseCode() string { return e.responseCode() }
