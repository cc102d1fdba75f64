// SPDX-License-Identifier: Apache-2.0

// Package sse writes and reads server-sent events, the framing of all streaming APIs.
//
// # Terminology
//
//   - line: bytes up to LF, CR or CRLF.
//   - field: a line "name: value"; one space after the colon is not part of the value.
//   - event: the fields up to a blank line. Its data is the values of its data fields, joined by LF.
//   - comment: a line that begins with a colon. Servers send them to keep a connection alive, and some send errors in
//     them, so a Reader returns them.
//
// # Writing
//
// The Append functions append to a slice. They allocate only if it lacks capacity.
//
// # Reading
//
// A [Reader] receives pieces of a stream, split anywhere, and returns events:
//
//	var r sse.Reader
//	r.Add([]byte("event: ping\nda"))
//	r.Next()                               // false: more is needed
//	r.Add([]byte("ta: {}\n\n"))
//	r.Next()                               // Event{Type: "ping", Data: "{}"}, true
//
// The events and their order do not depend on where the stream was split. Each byte is copied once into the Reader's
// buffer and examined once. A Reader allocates only while its buffer grows. [Reader.Events] reads from an io.Reader.
//
// The rules are those of the WHATWG HTML standard, section 9.2.6, with three additions. Comments are returned. An event
// at the end of the stream without its blank line, which many servers omit, can be returned. An event that exceeds the
// size limit is an error that does not end the stream.
package sse
