// SPDX-License-Identifier: Apache-2.0

package sse

// Held returns the number of bytes that r holds.
func Held(r *Reader) int { return len(r.buf) - r.start }
