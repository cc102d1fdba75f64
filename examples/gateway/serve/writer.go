// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-go/weft/protocols/sse"
)

// errClientGone reports that writing to the client failed.
var errClientGone = errors.New("serve: client disconnected")

// A streamWriter writes a stream to the client and keeps it alive.
//
// Nothing is sent before the first write or keep-alive, so until then a failure can still become an HTTP error. After
// idle time it writes a keep-alive, preceded by the opening frames if they have not been sent yet, so that clients and
// proxies do not time out during a long prefill. It is safe for concurrent use by multiple goroutines.
type streamWriter struct {
	mu      sync.Mutex
	started bool
	closed  bool
	err     error
	w       http.ResponseWriter
	rc      http.ResponseController
	silence silence // until the next keep-alive
	opening []byte  // written first
	alive   []byte  // keep-alive frame
}

// start makes s ready to use.
func (s *streamWriter) start(w http.ResponseWriter, opening, alive []byte, idle time.Duration) {
	s.w, s.rc, s.opening, s.alive = w, *http.NewResponseController(w), opening, alive
	s.silence.start(idle, s.keepAlive)
}

// write sends frames, which must be complete events.
func (s *streamWriter) write(frames []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.err != nil || len(frames) == 0 && s.started {
		return s.err
	}
	return s.send(frames)
}

// send writes frames in one write and flushes them. s.mu must be held.
func (s *streamWriter) send(frames []byte) error {
	if !s.started {
		s.started = true
		h := s.w.Header()
		h.Set("Content-Type", sse.ContentType)
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		frames = append(s.opening, frames...)
		s.opening = nil
	}
	if len(frames) > 0 {
		_, s.err = s.w.Write(frames)
	}
	if s.err == nil {
		s.err = s.rc.Flush()
	}
	if s.err != nil {
		s.err = fmt.Errorf("%w: %w", errClientGone, s.err)
	}
	s.silence.interrupt(time.Now())
	return s.err
}

// reopen replaces the opening frames if they have not been sent. A stream that has begun keeps those that it has.
func (s *streamWriter) reopen(opening []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.opening = opening
	}
}

func (s *streamWriter) keepAlive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.err == nil {
		s.send(s.alive)
	}
}

// close ends the writer: nothing is written after it returns. If the stream has started, close sends last first. It
// reports whether the stream has started.
func (s *streamWriter) close(last []byte) (started bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started && !s.closed && s.err == nil && len(last) > 0 {
		s.send(last)
	}
	s.closed = true
	s.silence.stop()
	return s.started
}

// A silence calls a function each time that nothing has interrupted it for a while. An interruption only notes the
// time, which costs less than setting a timer: the timer runs on, and looks at the time when it fires. It is safe for
// concurrent use by multiple goroutines.
type silence struct {
	last  atomic.Int64 // the last interruption, in nanoseconds since begun
	begun time.Time
	limit time.Duration
	broke func() // called by a goroutine of its own, and at least limit after the call before

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

// start begins the silence.
func (s *silence) start(limit time.Duration, broke func()) {
	s.limit, s.broke, s.begun = limit, broke, time.Now()
	s.mu.Lock() // the timer may fire before it is stored
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(limit, s.look)
}

// interrupt begins the silence again.
func (s *silence) interrupt(now time.Time) { s.last.Store(int64(now.Sub(s.begun))) }

// look calls the function if the silence has lasted long enough, and sets the timer to the earliest time at which it may
// have to be called again.
func (s *silence) look() {
	left := s.left()
	if left <= 0 {
		s.broke()
		left = s.limit
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.timer.Reset(left)
	}
}

// left returns the time until the silence has lasted long enough.
func (s *silence) left() time.Duration {
	return s.limit - (time.Since(s.begun) - time.Duration(s.last.Load()))
}

// stop ends the calls. One that has begun may still be running.
func (s *silence) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.timer.Stop()
}

const (
	// closeTimeout is the time in which a client must accept the end of its response after Close.
	closeTimeout = 2 * time.Second
	// writePiece is the number of bytes that a client must accept within Options.WriteTimeout.
	writePiece = 256 << 10
)

// A timedWriter sets a deadline for each write of a response, after which the client is treated as disconnected. It is
// safe for concurrent use by multiple goroutines, except that writes must not overlap. Setting a deadline costs as much as
// encoding several events, so one that leaves a write seven eighths of its time is kept.
//
// HTTP/2 ends a request at the deadline even if nothing is being written, so there the deadline is lifted between writes.
type timedWriter struct {
	http.ResponseWriter
	rc      http.ResponseController
	timeout time.Duration
	http2   bool

	mu       sync.Mutex
	deadline time.Time // of the next write; zero if none is set
	until    time.Time // if not zero, the end of all writes, because the gateway closes
	done     bool      // the handler has returned
}

func newTimedWriter(w http.ResponseWriter, r *http.Request, timeout time.Duration) *timedWriter {
	t := &timedWriter{ResponseWriter: w, rc: *http.NewResponseController(w), timeout: timeout, http2: r.ProtoMajor >= 2}
	if !t.http2 {
		t.extend() // the deadline of the request before may have passed
	}
	return t
}

// extend sets the deadline of the next write. A server without deadlines has no such limit.
func (t *timedWriter) extend() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.until.IsZero() {
		return
	}
	if now := time.Now(); t.deadline.Sub(now) < t.timeout-t.timeout/8 {
		t.deadline = now.Add(t.timeout)
		t.rc.SetWriteDeadline(t.deadline)
	}
}

// lift removes the deadline after a write that a flush has completed.
func (t *timedWriter) lift() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.http2 && !t.deadline.IsZero() && t.until.IsZero() {
		t.deadline = time.Time{}
		t.rc.SetWriteDeadline(time.Time{})
	}
}

// WriteHeader implements http.ResponseWriter.
func (t *timedWriter) WriteHeader(status int) {
	t.extend()
	t.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (t *timedWriter) Write(b []byte) (int, error) {
	done := 0
	for {
		t.extend()
		piece := b[done:min(done+writePiece, len(b))]
		n, err := t.ResponseWriter.Write(piece)
		if done += n; err != nil || done == len(b) {
			return done, err
		}
	}
}

// FlushError flushes for http.ResponseController. The deadline of the last write holds.
func (t *timedWriter) FlushError() error {
	t.mu.Lock()
	armed := !t.deadline.IsZero()
	t.mu.Unlock()
	if !armed {
		t.extend()
	}
	err := t.rc.Flush()
	t.lift()
	return err
}

// Unwrap returns the underlying writer for http.ResponseController.
func (t *timedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// expire ends reads at once, and all writes after closeTimeout.
func (t *timedWriter) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.done && t.until.IsZero() {
		now := time.Now()
		t.until = now.Add(closeTimeout)
		t.rc.SetReadDeadline(now)
		t.rc.SetWriteDeadline(t.until)
	}
}

// end ends the use of the connection. What the server writes afterwards has the deadline of the last write.
func (t *timedWriter) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done = true
}
