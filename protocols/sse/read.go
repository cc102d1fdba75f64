// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"time"
)

// Event is an event or a comment. Its slices are views of the Reader's memory, valid until the next call on it.
type Event struct {
	Type    []byte // value of the event field; empty means "message"
	Data    []byte // data fields joined by LF; the text of a comment
	ID      []byte // last id of the stream so far, as a client would send it in Last-Event-ID
	Comment bool   // the event is a comment
	Offset  int64  // of its first byte, in bytes since the start of the stream
}

// Done reports whether the whole data is [DONE], which ends a stream of the chat API.
func (e *Event) Done() bool { return !e.Comment && string(e.Data) == Done }

// LimitError reports an event that is too big. The Reader goes on with the event after it.
type LimitError struct {
	Max    int   // the limit in bytes
	Offset int64 // of the first byte beyond the limit, in bytes since the start of the stream
}

// Error returns a message with the limit and the position.
func (e *LimitError) Error() string {
	return fmt.Sprintf("sse: event exceeds %d bytes at offset %d", e.Max, e.Offset)
}

const defaultMaxEvent = 8 << 20

// Reader splits a stream into events. Set the exported fields before the first call. The zero value is ready for use.
// One goroutine at a time.
type Reader struct {
	// MaxEvent is the greatest size of an event in bytes, its field names and inner line breaks included. 0 means 8 MiB.
	// The Reader holds at most this much besides the piece it was fed last.
	MaxEvent int
	// FlushAtEOF reports an event that the end of the stream cut before its blank line, as many servers send it. The
	// standard discards it.
	FlushAtEOF bool

	buf   []byte
	base  int64 // offset of buf[0] in the stream
	start int   // of the current event; what is before it may be dropped
	pos   int   // of the current line; start <= pos <= len(buf)
	lf    mark
	cr    mark

	begun    bool // past a byte order mark
	eof      bool
	afterCR  bool // an LF at pos belongs to the CR before it
	discard  bool // the current event was too big
	lineSeen bool // while discarding: bytes of the current line were dropped

	fields     bool // the current event has a field
	typed      bool // typ is that of the current event
	typ        []byte
	id         []byte
	hasData    bool
	dStart     int // data of the current event, in buf
	dEnd       int
	retry      time.Duration
	retryGiven bool
}

// mark remembers the search for a byte: buf[pos:at] does not hold it, and if hit is set buf[at] is it. It keeps the
// search linear whatever line ends the stream uses.
type mark struct {
	at  int
	hit bool
}

func (m *mark) find(buf []byte, pos int, c byte) {
	if m.at < pos {
		m.at, m.hit = pos, false
	}
	if m.hit || m.at >= len(buf) {
		return
	}
	if i := bytes.IndexByte(buf[m.at:], c); i >= 0 {
		m.at, m.hit = m.at+i, true
	} else {
		m.at = len(buf)
	}
}

// Feed adds the next piece of the stream, cut anywhere. The Reader copies it. Take out all events with Next before the
// next Feed, else they pile up.
func (r *Reader) Feed(piece []byte) {
	r.grow(len(piece))
	r.buf = append(r.buf, piece...)
}

// End tells the Reader that the stream has ended. Next then returns what FlushAtEOF asks for.
func (r *Reader) End() { r.eof = true }

// Reset makes the Reader ready for another stream and keeps its memory.
func (r *Reader) Reset() {
	*r = Reader{MaxEvent: r.MaxEvent, FlushAtEOF: r.FlushAtEOF, buf: r.buf[:0], typ: r.typ[:0], id: r.id[:0]}
}

// Retry returns the last reconnection time that the stream gave.
func (r *Reader) Retry() (d time.Duration, ok bool) { return r.retry, r.retryGiven }

// Next returns the next event or comment. ok is false when another piece is needed, or after End when there are no more.
// The only error is a *[LimitError]; the events after it can still be read.
func (r *Reader) Next() (ev Event, ok bool, err error) {
	if !r.begun && !r.skipBOM() {
		return ev, false, nil
	}
	limit := r.MaxEvent
	if limit <= 0 {
		limit = defaultMaxEvent
	}
	for {
		if r.afterCR && r.pos < len(r.buf) {
			r.afterCR = false
			if r.buf[r.pos] == '\n' {
				r.pos++
				r.advance()
			}
		}
		end, term, found := r.line()
		if r.discard {
			if !found {
				r.lineSeen = r.lineSeen || r.pos < len(r.buf)
				r.pos = len(r.buf)
				r.start = r.pos
				return ev, false, nil
			}
			r.discard = end > r.pos || r.lineSeen
			r.lineSeen = false
			r.next(end, term)
			r.start = r.pos
			continue
		}
		if end-r.start > limit {
			err = &LimitError{Max: limit, Offset: r.base + int64(r.start) + int64(limit)}
			r.discard, r.fields, r.typed, r.hasData = true, false, false, false
			r.start = r.pos
			return ev, false, err
		}
		if !found {
			if !r.eof || !r.FlushAtEOF {
				return ev, false, nil
			}
			if r.pos == len(r.buf) {
				return r.dispatch()
			}
		}
		line := r.buf[r.pos:end]
		at := r.pos
		r.next(end, term)
		if len(line) == 0 {
			if ev, ok, _ = r.dispatch(); ok {
				return ev, true, nil
			}
			continue
		}
		if line[0] == ':' {
			ev = Event{Data: trimSpace(line[1:]), ID: r.id, Comment: true, Offset: r.base + int64(at)}
			r.advance()
			return ev, true, nil
		}
		r.field(line, at)
	}
}

// skipBOM skips a byte order mark at the start of the stream. It returns false while it cannot tell.
func (r *Reader) skipBOM() bool {
	const bom = "\xEF\xBB\xBF"
	n := min(len(r.buf), len(bom))
	if string(r.buf[:n]) == bom[:n] && n < len(bom) && !r.eof {
		return false
	}
	r.begun = true
	if string(r.buf[:n]) == bom {
		r.pos, r.start = n, n
	}
	return true
}

// line finds the end of the line at pos and the length of its terminator, as far as it is known: the LF of a CRLF is
// skipped later. If there is no line end, found is false and end is the end of the buffer.
func (r *Reader) line() (end, term int, found bool) {
	r.lf.find(r.buf, r.pos, '\n')
	r.cr.find(r.buf, r.pos, '\r')
	if r.lf.hit && (!r.cr.hit || r.lf.at < r.cr.at) {
		return r.lf.at, 1, true
	}
	if r.cr.hit {
		return r.cr.at, 1, true
	}
	return len(r.buf), 0, false
}

// next moves behind the line that ends at end.
func (r *Reader) next(end, term int) {
	r.pos = end + term
	r.afterCR = term > 0 && r.buf[end] == '\r'
}

// advance lets the current event start at pos if it has no field yet.
func (r *Reader) advance() {
	if !r.fields {
		r.start = r.pos
	}
}

// dispatch ends the current event. An event without data is none.
func (r *Reader) dispatch() (ev Event, ok bool, err error) {
	if ok = r.hasData; ok {
		ev = Event{Data: r.buf[r.dStart:r.dEnd:r.dEnd], ID: r.id, Offset: r.base + int64(r.start)}
		if r.typed {
			ev.Type = r.typ
		}
	}
	r.fields, r.typed, r.hasData = false, false, false
	r.start = r.pos
	return ev, ok, nil
}

// field takes in the line that starts at buf[at].
func (r *Reader) field(line []byte, at int) {
	r.fields = true
	name, value := line, line[len(line):]
	if before, after, ok := bytes.Cut(line, []byte{':'}); ok {
		name, value = before, trimSpace(after)
	}
	switch string(name) {
	case "data":
		if !r.hasData {
			r.hasData = true
			r.dStart = at + len(line) - len(value)
			r.dEnd = at + len(line)
			return
		}
		// The value moves to the end of the data, over line ends and field names.
		r.buf[r.dEnd] = '\n'
		r.dEnd += 1 + copy(r.buf[r.dEnd+1:], value)
	case "event":
		r.typ, r.typed = append(r.typ[:0], value...), true
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			r.id = append(r.id[:0], value...)
		}
	case "retry":
		if ms, ok := digits(value); ok {
			r.retry, r.retryGiven = time.Duration(ms)*time.Millisecond, true
		}
	}
}

func trimSpace(value []byte) []byte {
	if len(value) > 0 && value[0] == ' ' {
		return value[1:]
	}
	return value
}

// digits reads a number of ASCII digits; one beyond a year of milliseconds is not believed.
func digits(s []byte) (n int64, ok bool) {
	for _, c := range s {
		if c < '0' || c > '9' || n > 1<<35 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(s) > 0
}

// grow makes room for n more bytes, first by dropping what was read.
func (r *Reader) grow(n int) {
	if drop := r.start; drop > 0 && (drop == len(r.buf) || drop > len(r.buf)/2 || cap(r.buf)-len(r.buf) < n) {
		r.buf = r.buf[:copy(r.buf, r.buf[drop:])]
		r.base += int64(drop)
		r.start, r.pos = 0, r.pos-drop
		r.dStart, r.dEnd = r.dStart-drop, r.dEnd-drop
		for _, m := range [...]*mark{&r.lf, &r.cr} {
			if m.at -= drop; m.at < 0 {
				*m = mark{}
			}
		}
	}
	if cap(r.buf)-len(r.buf) < n {
		r.buf = append(r.buf, make([]byte, n)...)[:len(r.buf)]
	}
}

const (
	readSize = 16 << 10
	maxEmpty = 100 // reads in a row without a byte, as bufio counts them
)

// Events returns the events and comments of src, read until its end. An error of src is returned as the last element;
// a *[LimitError] is not the last. The events are valid until the next one is asked for. To stop the range while src
// blocks, close src.
func (r *Reader) Events(src io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for empty := 0; ; {
			for {
				ev, ok, err := r.Next()
				if !ok && err == nil {
					break
				}
				if !yield(ev, err) {
					return
				}
			}
			if r.eof {
				return
			}
			r.grow(readSize)
			n, err := src.Read(r.buf[len(r.buf):cap(r.buf)])
			r.buf = r.buf[:len(r.buf)+n]
			if empty++; n > 0 {
				empty = 0
			} else if err == nil && empty >= maxEmpty {
				err = io.ErrNoProgress
			}
			if err == io.EOF {
				r.End()
			} else if err != nil {
				r.fail(err, yield)
				return
			}
		}
	}
}

// fail yields what can still be read and then err.
func (r *Reader) fail(err error, yield func(Event, error) bool) {
	for {
		ev, ok, lerr := r.Next()
		if !ok && lerr == nil {
			yield(Event{}, err)
			return
		}
		if !yield(ev, lerr) {
			return
		}
	}
}
