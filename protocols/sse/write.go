// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"bytes"
	"strconv"
	"time"
)

// ContentType is the media type of a stream, without parameters: official clients compare it as a whole.
const ContentType = "text/event-stream"

// Done is the data of the event that ends a stream of the chat API. The other APIs do not use it.
const Done = "[DONE]"

// AppendEvent appends an event with the given type and data, blank line included. An empty type is left out. Data with
// line breaks goes out as several data fields, which a reader joins with LF. typ must not contain a line break.
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

// AppendRetry appends the field that tells a reader how long to wait before it connects again, in whole milliseconds.
func AppendRetry(dst []byte, d time.Duration) []byte {
	dst = append(dst, "retry: "...)
	dst = strconv.AppendInt(dst, d.Milliseconds(), 10)
	return append(dst, '\n', '\n')
}
