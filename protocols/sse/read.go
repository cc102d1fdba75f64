// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Event is an event or a comment. Its slices are views of the Reader's memory and are valid until the next call.
type Event struct {
	Type    []byte // value of the event field; empty means "message"
	Data    []byte // data fields joined by LF; the text of a comment
	Comment bool   // the event is a comment
}

// Done reports whether the data is exactly [DONE], which ends a stream of the Chat or Completions API.
func (e *Event) Done() bool { return !e.Comment && string(e.Data) == Done }

// ErrTooBig is wrapped by the error for an event that exceeds [Reader.MaxEvent]. The Reader continues with the next event.
var ErrTooBig = errors.New("sse: event exceeds the limit")

// tooBig is that error.
type tooBig struct {
	limit  int   // in bytes
	offset int64 // of the first byte beyond the limit, in bytes since the start of the stream
}

func (e *tooBig) Error() string {
	return fmt.Sprintf("sse: event exceeds %d bytes at offset %d", e.limit, e.offset)
}

func (e *tooBig) Unwrap() error { return ErrTooBig }

const defaultMaxEvent = 8 << 20

// Reader splits a stream into events. Set the exported fields before the first call. The zero value is ready for use. A
// Reader is not safe for concurrent use.
type Reader struct {
	// MaxEvent is the maximum size of an event in bytes, including field names and inner line breaks. 0 means 8 MiB.
	// The Reader holds at most this much in addition to the last piece added.
	MaxEvent int
	// FlushAtEOF returns an event that lacks its blank line at the end of the stream, as many servers send it. The
	// standard discards it.
	FlushAtEOF bool

	buf   []byte
	base  int64 // offset of buf[0] in the stream
	start int   // of the current event; earlier bytes may be dropped
	pos   int   // of the current line; start <= pos <= len(buf)
	lf    mark
	cr    mark

	begun    bool // the byte order mark, if any, was skipped
	eof      bool
	afterCR  bool // an LF at pos is part of the CRLF that ended the line before
	discard  bool // the current event exceeds the limit
	lineSeen bool // while discarding: bytes of the current line were dropped

	fields  bool // the current event has a field
	typed   bool // the current event has a type, typ
	typ     []byte
	hasData bool
	dStart  int // data of the current event, in buf
	dEnd    int
}

// mark records the search for a byte: buf[pos:at] does not contain it, and if hit is set, buf[at] is that byte. It
// keeps the search linear for all kinds of line ends.
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

// Add adds the next piece of the stream, split anywhere. The Reader copies it. Call Next until it returns false before
// the next Add, or events accumulate.
func (r *Reader) Add(piece []byte) {
	r.grow(len(piece))
	r.buf = append(r.buf, piece...)
}

// Finish ends the stream. Next then returns an unterminated event if FlushAtEOF is set.
func (r *Reader) Finish() { r.eof = true }

// Reset makes the Reader ready for another stream. It keeps its memory.
func (r *Reader) Reset() {
	*r = Reader{MaxEvent: r.MaxEvent, FlushAtEOF: r.FlushAtEOF, buf: r.buf[:0], typ: r.typ[:0]}
}

// Next returns the next event or comment. ok is false if another piece is needed, or after Finish if there are no more
// events. The only error is one that wraps [ErrTooBig]; later events can still be read.
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
			err = &tooBig{limit, r.base + int64(r.start) + int64(limit)}
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
			ev = Event{Data: trimSpace(line[1:]), Comment: true}
			r.advance()
			return ev, true, nil
		}
		r.field(line, at)
	}
}

// skipBOM skips a byte order mark at the start of the stream. It returns false if more input is needed.
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

// line finds the end of the line at pos and the length of its terminator, without the LF of a CRLF, which is skipped
// later. If the line has not ended, found is false and end is the end of the buffer.
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

// next advances past the line that ends at end.
func (r *Reader) next(end, term int) {
	r.pos = end + term
	r.afterCR = term > 0 && r.buf[end] == '\r'
}

// advance moves the start of the current event to pos if it has no field yet.
func (r *Reader) advance() {
	if !r.fields {
		r.start = r.pos
	}
}

// dispatch ends the current event. An event without data is skipped.
func (r *Reader) dispatch() (ev Event, ok bool, err error) {
	if ok = r.hasData; ok {
		ev = Event{Data: r.buf[r.dStart:r.dEnd:r.dEnd]}
		if r.typed {
			ev.Type = r.typ
		}
	}
	r.fields, r.typed, r.hasData = false, false, false
	r.start = r.pos
	return ev, ok, nil
}

// field adds the line that starts at buf[at] to the current event.
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
		// The value moves to the end of the data, overwriting line ends and field names.
		r.buf[r.dEnd] = '\n'
		r.dEnd += 1 + copy(r.buf[r.dEnd+1:], value)
	case "event":
		r.typ, r.typed = append(r.typ[:0], value...), true
	}
}

func trimSpace(value []byte) []byte {
	if len(value) > 0 && value[0] == ' ' {
		return value[1:]
	}
	return value
}

// grow makes room for n more bytes, first by dropping bytes already read.
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
	firstRead = 4 << 10 // most responses are small
	readSize  = 16 << 10
	maxEmpty  = 100 // consecutive empty reads, as in bufio
)

// Events returns the events and comments of src, which it reads to its end. An error of src is the last element, wrapped
// in one that contains the number of events and bytes before it; an error that wraps [ErrTooBig] need not be the last.
// An event is valid until the next iteration. To stop the loop while src blocks, close src.
func (r *Reader) Events(src io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		count := 0
		each := yield
		yield = func(ev Event, err error) bool {
			if err == nil && !ev.Comment {
				count++
			}
			return each(ev, err)
		}
		for empty, size := 0, firstRead; ; {
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
			r.grow(size)
			n, err := src.Read(r.buf[len(r.buf):cap(r.buf)])
			if r.buf = r.buf[:len(r.buf)+n]; len(r.buf) == cap(r.buf) {
				size = min(2*size, readSize)
			}
			if empty++; n > 0 {
				empty = 0
			} else if err == nil && empty >= maxEmpty {
				err = io.ErrNoProgress
			}
			if err == io.EOF {
				r.Finish()
			} else if err != nil {
				if r.rest(yield) {
					each(Event{}, fmt.Errorf("sse: read: %w after %s (%d bytes)", err, events(count), r.base+int64(len(r.buf))))
				}
				return
			}
		}
	}
}

// rest yields the complete events that are left and reports whether yield did not stop it.
func (r *Reader) rest(yield func(Event, error) bool) bool {
	for {
		ev, ok, err := r.Next()
		if !ok && err == nil {
			return true
		}
		if !yield(ev, err) {
			return false
		}
	}
}

// events returns n in words.
func events(n int) string {
	if n == 1 {
		return "1 event"
	}
	return fmt.Sprintf("%d events", n)
}
