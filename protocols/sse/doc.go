// SPDX-License-Identifier: Apache-2.0

// Package sse writes and reads server-sent events, the framing of all three streaming APIs.
//
// # Terminology
//
//   - line: bytes up to LF, CR or CRLF.
//   - field: a line "name: value"; one space after the colon is not part of the value.
//   - event: the fields up to a blank line. Its data is the value of its data fields joined by LF.
//   - comment: a line that begins with a colon. Servers send them to keep a connection alive, and some put errors
//     into them, so they are not thrown away here.
//
// # Writing
//
// The Append functions are pure: they append to a slice and allocate nothing else.
//
// # Reading
//
// A [Reader] is fed pieces of a stream, cut anywhere, and returns events:
//
//	var r sse.Reader
//	r.Feed([]byte("event: ping\nda"))
//	r.Next()                               // false: more is needed
//	r.Feed([]byte("ta: {}\n\n"))
//	r.Next()                               // Event{Type: "ping", Data: "{}"}, true
//
// The events and their order do not depend on where the stream was cut. Each byte is copied once into the Reader's
// buffer and examined once; a warm Reader allocates nothing. [Events] reads from an io.Reader.
//
// The rules are those of the WHATWG HTML standard, section 9.2.6, with three additions: comments are reported, an
// event at the end of the stream without its blank line can be reported (many servers forget it), and an event
// over a size limit is an error that does not end the stream.
package sse
