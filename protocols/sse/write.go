// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"bytes"
)

// ContentType is the media type of a stream. It has no parameters, because official clients compare it exactly.
const ContentType = "text/event-stream"

// Done is the data of the event that ends a stream of the Chat or Completions API. The other APIs do not use it.
const Done = "[DONE]"

// AppendEvent appends an event with the given type and data, including the blank line. An empty type is omitted. Data
// with line breaks becomes several data fields, which a reader joins with LF. typ must not contain a line break.
func AppendEvent(dst []byte, typ string, data []byte) []byte {
	if typ != "" {
		dst = append(dst, "event: "...)
		dst = append(dst, typ...)
		dst = append(dst, '\n')
	}
	for {
		dst = append(dst, "data: "...)
		i := bytes.IndexAny(data, "\r\n")
		if i < 0 {
			dst = append(dst, data...)
			return append(dst, '\n', '\n')
		}
		dst = append(dst, data[:i]...)
		dst = append(dst, '\n')
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			i++
		}
		data = data[i+1:]
	}
}

// AppendComment appends a comment and a blank line. Readers skip it. Line breaks in text become spaces.
func AppendComment(dst []byte, text string) []byte {
	dst = append(dst, ": "...)
	n := len(dst)
	dst = append(dst, text...)
	for i := n; i < len(dst); i++ {
		if dst[i] == '\n' || dst[i] == '\r' {
			dst[i] = ' '
		}
	}
	return append(dst, '\n', '\n')
}
