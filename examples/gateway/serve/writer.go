// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/weft-go/weft/protocols/sse"
)

// writeTimeout is how long a client may leave a stream unread before it is taken for gone.
const writeTimeout = time.Minute

// errClientGone says that the client does not take its answer any more.
var errClientGone = errors.New("serve: the client is gone")

// A streamWriter writes a stream to the client and keeps it alive.
//
// Nothing is sent before the first write, so that until then a failure can still be an HTTP error. When the stream was
// idle for a while, it writes a keep-alive, preceded by the opening frames if they have not been sent yet: a long prefill
// looks dead to clients and proxies otherwise. Safe for concurrent use.
type streamWriter struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	opening []byte // written first
	alive   []byte // the keep-alive
	idle    time.Duration

	mu      sync.Mutex
	timer   *time.Timer
	started bool
	closed  bool
	err     error
}

func newStreamWriter(w http.ResponseWriter, opening, alive []byte, idle time.Duration) *streamWriter {
	s := &streamWriter{w: w, rc: http.NewResponseController(w), opening: opening, alive: alive, idle: idle}
	s.mu.Lock() // the timer may fire before it is stored
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(idle, s.keepAlive)
	return s
}

// write sends frames. Only whole events may be written.
func (s *streamWriter) write(frames []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.err != nil || len(frames) == 0 && s.started {
		return s.err
	}
	return s.send(frames)
}

// send writes with s.mu held.
func (s *streamWriter) send(frames []byte) error {
	s.rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // a server without deadlines has no such limit
	if !s.started {
		s.started = true
		h := s.w.Header()
		h.Set("Content-Type", sse.ContentType)
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		if len(s.opening) > 0 {
			_, s.err = s.w.Write(s.opening)
		}
	}
	if s.err == nil && len(frames) > 0 {
		_, s.err = s.w.Write(frames)
	}
	if s.err == nil {
		s.err = s.rc.Flush()
	}
	if s.err != nil {
		s.err = fmt.Errorf("%w: %w", errClientGone, s.err)
	}
	s.timer.Reset(s.idle)
	return s.err
}

func (s *streamWriter) keepAlive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.err == nil {
		s.send(s.alive)
	}
}

// close ends the writer; no write happens after it returns. If the stream was started, last is sent first: it reports which.
func (s *streamWriter) close(last []byte) (started bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started && !s.closed && s.err == nil && len(last) > 0 {
		s.send(last)
	}
	s.closed = true
	s.timer.Stop()
	return s.started
}
