// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// This file serves the Responses API over WebSocket (developers.openai.com/api/docs/guides/websocket-mode, 2026-09): a
// client sends response.create messages, and gets the events of each response as messages.
//
//	connect       upgrades a connection and ends it
//	receive       reads messages, and serves each like a request over HTTP, with the same limits
//	socketWriter  sends the response of such a request
//
// Responses of a lane, which stream_id names, come one after the other; different lanes are independent. A
// connection keeps the last response of each lane for previous_response_id, also without store.

const (
	maxSocketTime = time.Hour // as at OpenAI, like the other two
	maxLanes      = 32        // named in a connection
	maxUnanswered = 16        // messages that are read before the response to the first has ended
)

// A socket is a connection.
type socket struct {
	g       *Gateway
	id      string // request id of the upgrade
	conn    *websocket.Conn
	raw     net.Conn      // of conn; closing it ends reads and writes
	request *http.Request // the upgrade, as a request to be served
	life    context.Context
	slots   slots // of messages without a complete response
	lanes   map[string]*lane
	running sync.WaitGroup
}

// A lane is a sequence of responses.
type lane struct {
	socket *socket
	name   string
	free   chan struct{} // closed when the last message of the lane has been served
	last   storeKey      // of the last response
}

// laneKey is the key of the lane in the context of a request.
type laneKey struct{}

// A hijacker gets the connection of a response. It keeps the status of an error and discards its text.
type hijacker struct {
	http.ResponseWriter
	conn   net.Conn
	status int // of the error, or 0
}

// WriteHeader implements http.ResponseWriter.
func (h *hijacker) WriteHeader(status int) {
	if status < 400 {
		h.ResponseWriter.WriteHeader(status)
		return
	}
	h.status = status
}

// Write implements http.ResponseWriter. Only errors are written.
func (h *hijacker) Write(text []byte) (int, error) { return len(text), nil }

// Hijack implements http.Hijacker.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = conn
	return conn, rw, err
}

// fault returns the error that the client gets if the upgrade failed with err.
func (h *hijacker) fault(err error) error {
	head := h.Header()
	if head.Get("Sec-WebSocket-Version") != "" { // the client's is another one
		h.status = http.StatusUpgradeRequired
	}
	if h.status == http.StatusUpgradeRequired {
		head.Set("Connection", "Upgrade")
		head.Set("Upgrade", "websocket")
	}
	return &apierr.Error{Why: event.Invalid, Status: h.status, Message: fmt.Sprintf("The upgrade to WebSocket failed: %.200s.", cmp.Or(errors.Unwrap(err), err)), Cause: err}
}

// connect serves a connection.
func (g *Gateway) connect(w http.ResponseWriter, r *http.Request) {
	s := &socket{g: g, id: g.requestID(w, r, wire.Responses), slots: make(slots, maxUnanswered), lanes: make(map[string]*lane)}
	_, err := g.identify(r)
	if n := g.sockets.Add(1); err == nil && n > int64(g.opt.MaxRequests) {
		err = busy(errTooMany)
	}
	defer g.sockets.Add(-1)
	if err != nil {
		g.refuse(w, r, wire.Responses, err)
		return
	}
	h := &hijacker{ResponseWriter: w}
	if s.conn, err = websocket.Accept(h, r, &websocket.AcceptOptions{InsecureSkipVerify: true}); err != nil { // guard checked the origin
		g.refuse(w, r, wire.Responses, h.fault(err))
		return
	}
	s.raw = h.conn
	w.(*timedWriter).end() // from now on, writes have deadlines of their own
	if c, ok := h.conn.(*framedConn); ok {
		c.upgrade()
	}
	s.conn.SetReadLimit(-1) // receive has another one

	ctx, cancel := context.WithCancel(r.Context()) // of responses; ends at Gateway.Close, too
	defer cancel()
	var end context.CancelFunc
	s.life, end = context.WithCancel(context.Background())
	s.request = r.WithContext(ctx)
	s.request.Method, s.request.Header = http.MethodPost, maps.Clone(r.Header)
	for _, name := range []string{"Connection", "Upgrade", "Content-Encoding"} {
		s.request.Header.Del(name)
	}
	s.open("")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer end()
		err := s.receive()
		g.opt.Logger.Debug("connection ended", "request", s.id, "err", err)
	}()
	g.opt.Logger.Info("connection upgraded", "request", s.id)
	limit := time.NewTimer(maxSocketTime)
	defer limit.Stop()
	select {
	case <-ended:
	case <-g.leaving:
		if s.settle() {
			s.close(websocket.StatusGoingAway, "the server is shutting down or restarting")
		}
	case <-limit.C:
		if s.settle() {
			s.refuse(&lane{socket: s}, &apierr.Error{Why: event.Invalid, Code: "websocket_connection_limit_reached",
				Message: "Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue."})
			s.close(websocket.StatusNormalClosure, "connection limit reached")
		}
	}
	end()
	cancel()
	s.raw.Close()
	<-ended
	s.running.Wait()
	for _, l := range s.lanes {
		g.recent.drop(l.last)
	}
}

// upgrade ends reading along: what follows is not HTTP.
func (c *framedConn) upgrade() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.head = true, nil
}

// settle waits for the responses to the messages that were read. Later messages get none. It reports false if the
// connection ended.
func (s *socket) settle() bool {
	for range maxUnanswered {
		if s.slots.take(s.life) != nil {
			return false
		}
	}
	return true
}

// close ends the connection, with the time of Gateway.Close for the client to agree.
func (s *socket) close(code websocket.StatusCode, reason string) {
	defer time.AfterFunc(closeTimeout, func() { s.raw.Close() }).Stop()
	s.conn.Close(code, reason) // an error means that the client disconnected
}

// receive reads messages until the connection ends, and serves them.
func (s *socket) receive() error {
	for n := 1; ; n++ {
		kind, r, err := s.conn.Reader(s.life)
		if err != nil {
			return err
		}
		m := &message{memory: share{of: &s.g.memory}}
		text, err := m.read(r, s)
		if err != nil { // the rest of the message is lost
			m.memory.release()
			s.refuse(&lane{socket: s}, err)
			s.close(websocket.StatusMessageTooBig, "the message could not be read")
			return err
		}
		typ, stream, ok := head(text)
		if !ok || kind != websocket.MessageText {
			err = apierr.Invalid("", "The message must be text with a JSON object, whose type and stream_id are strings.")
		} else if typ == "response.steer" {
			if err = s.refuseSteer(m, text); err == nil {
				m.memory.release()
				continue
			}
		} else if typ != "response.create" && typ != "response.processed" {
			err = apierr.Invalid("type", "There is no message of the type '%.100s': send response.create.", typ)
		}
		l := s.lanes[stream]
		switch {
		case err != nil:
		case typ == "response.processed": // of Codex; needs no response
			continue
		case l == nil && len(s.lanes) > maxLanes: // one has no name
			err = &apierr.Error{Why: event.Invalid, Code: "websocket_stream_limit_reached", Param: "stream_id",
				Message: fmt.Sprintf("A connection can have %d streams. Create a new websocket connection for more.", maxLanes)}
		case l == nil:
			l = s.open(stream)
		}
		if err != nil {
			m.memory.release()
			s.refuse(&lane{socket: s, name: stream}, err)
			continue
		}
		if err := s.slots.take(s.life); err != nil {
			m.memory.release()
			return err
		}
		before, done := l.free, make(chan struct{})
		l.free = done
		s.running.Go(func() {
			defer s.slots.give()
			defer close(done)
			defer m.memory.release()
			<-before
			s.serve(l, m, fmt.Sprintf("%s.%d", s.id, n))
		})
	}
}

// refuseSteer returns the input of a message of the type response.steer, which asks to change a response that is being
// generated. Clients send the input with their next request. An error event would end the response for them.
func (s *socket) refuseSteer(m *message, text []byte) error {
	var steer struct {
		Previous string          `json:"previous_response_id"`
		Input    json.RawMessage `json:"input"`
	}
	if json.Unmarshal(text, &steer) != nil || len(steer.Input) == 0 {
		return apierr.Invalid("", "A message of the type response.steer must have an input, and previous_response_id as a string.")
	}
	if err := m.memory.add(int64(len(text)) * perByte); err != nil {
		return err
	}
	failed, err := json.Marshal(map[string]any{
		"type": "response.steer.failed", "sequence_number": 0, "steer": &steer, "error": map[string]string{
			"type": "invalid_request_error", "code": "steering_not_supported",
			"message": "This server does not steer responses: send the input with the next response.create.",
		},
	})
	if err != nil {
		return err
	}
	w := newSocketWriter(&lane{socket: s})
	w.SetWriteDeadline(time.Now().Add(s.g.opt.WriteTimeout))
	w.send(failed) // an error means that the client disconnected
	return nil
}

// head returns the type and the stream of a message. It reports false if it is not an object in which they are strings. Unlike
// json.Unmarshal, it does not confuse names that differ in case. Of equal names, which join refuses, the last counts.
func head(text []byte) (typ, stream string, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return "", "", false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return "", "", false
		}
		switch name {
		case "type":
			err = d.Decode(&typ)
		case "stream_id":
			err = d.Decode(&stream)
		default:
			err = d.Decode(&skipped{})
		}
		if err != nil {
			return "", "", false
		}
	}
	_, err := d.Token() // the end of the object
	return typ, stream, err == nil
}

// A skipped is a JSON value that is not read.
type skipped struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// open adds a lane.
func (s *socket) open(name string) *lane {
	l := &lane{socket: s, name: name, free: make(chan struct{})}
	close(l.free)
	s.lanes[name] = l
	return l
}

// serve serves a message like a request over HTTP.
func (s *socket) serve(l *lane, m *message, id string) {
	defer func() {
		if p := recover(); p != nil { // as in net/http
			s.g.opt.Logger.Error("panic", "request", id, "panic", p, "stack", string(debug.Stack()))
			s.raw.Close()
		}
	}()
	r := s.request.WithContext(context.WithValue(s.request.Context(), laneKey{}, l))
	r.Header = maps.Clone(r.Header)
	r.Header.Set("X-Request-Id", id)
	r.Body, r.ContentLength = m, int64(m.rest.Len())
	w := newSocketWriter(l)
	s.g.ServeHTTP(w, r)
	w.end()
}

// refuse sends an error that is not the response to a message that was served.
func (s *socket) refuse(l *lane, err error) {
	w := newSocketWriter(l)
	w.Header().Set("X-Request-Id", s.id)
	s.g.refuse(w, s.request, wire.Responses, err)
	w.end()
}

// answerWarm sends the response to a message with generate: false, or with prewarm: true, which overrides generate. What it may
// have brought is a prompt in the caches.
func (c *call) answerWarm(w http.ResponseWriter) {
	enc := c.encoder()
	begin := enc.Append(nil, event.Event{Kind: event.Start, Call: -1})
	end := enc.Finish(nil, event.Event{Kind: event.Finish, Call: -1, Why: event.Stop})
	c.keep(end)
	w.Write(append(begin, end...)) // an error means that the client disconnected
}

// A message is a request body.
type message struct {
	rest   bytes.Reader
	memory share // for the text, until it was read
}

// read reads a message from a connection and returns its text. It must arrive within Options.BodyTimeout.
func (m *message) read(r io.Reader, s *socket) ([]byte, error) {
	defer time.AfterFunc(s.g.opt.BodyTimeout, func() { s.raw.Close() }).Stop()
	text, err := unpack(&source{r: r}, "", s.g.opt.MaxBody, &m.memory, uncleared(unknownSize))
	if err != nil {
		return nil, err
	}
	m.rest.Reset(text)
	return text, nil
}

// Read implements io.Reader.
func (m *message) Read(p []byte) (int, error) {
	n, err := m.rest.Read(p)
	if err == io.EOF {
		m.rest.Reset(nil)
		m.memory.release()
	}
	return n, err
}

// Close implements io.Closer.
func (m *message) Close() error { return nil }

// A socketWriter sends the response of a request over a connection: each event as a message, without its framing, and an
// HTTP error as an event. A comment, which keeps a stream alive, becomes a ping. It is used by one goroutine at a time,
// except for SetWriteDeadline.
type socketWriter struct {
	lane   *lane
	header http.Header
	status int    // of an error, or 0
	text   []byte // of the error, or of an event that is not complete

	mu       sync.Mutex
	deadline time.Time
	expiry   *time.Timer // ends the running write; nil if there is none
}

func newSocketWriter(l *lane) *socketWriter { return &socketWriter{lane: l, header: make(http.Header)} }

// Header implements http.ResponseWriter.
func (w *socketWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *socketWriter) WriteHeader(status int) {
	if status >= 400 {
		w.status = status
	}
}

// Flush implements http.Flusher. All complete events have been sent.
func (w *socketWriter) Flush() {}

// SetWriteDeadline sets the deadline of a running write and later ones, for http.ResponseController.
func (w *socketWriter) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deadline = t; w.expiry != nil {
		w.expiry.Reset(time.Until(t))
	}
	return nil
}

// Write implements http.ResponseWriter.
func (w *socketWriter) Write(b []byte) (int, error) {
	w.text = append(w.text, b...)
	if w.status != 0 {
		return len(b), nil
	}
	rest := w.text
	for {
		frame, more, complete := bytes.Cut(rest, []byte("\n\n"))
		if !complete {
			break
		}
		rest = more
		for line := range bytes.Lines(frame) {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				if err := w.send(data); err != nil {
					return 0, err
				}
			} else if line[0] == ':' {
				w.ping()
			}
		}
	}
	w.text = append(w.text[:0], rest...)
	return len(b), nil
}

// send sends an event, a JSON object. A client that does not take it in time is treated as disconnected.
func (w *socketWriter) send(data []byte) error {
	s := w.lane.socket
	if w.lane.name != "" {
		name, err := json.Marshal(w.lane.name)
		if err != nil {
			return err
		}
		data = fmt.Appendf(nil, `{"stream_id":%s,%s`, name, data[1:])
	}
	w.mu.Lock()
	w.expiry = time.AfterFunc(time.Until(w.deadline), func() { s.raw.Close() })
	w.mu.Unlock()
	err := s.conn.Write(context.Background(), websocket.MessageText, data)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expiry.Stop()
	w.expiry = nil
	return err
}

// ping sends a ping. A client that does not respond in time is treated as disconnected.
func (w *socketWriter) ping() {
	s := w.lane.socket
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(s.request.Context(), s.g.opt.WriteTimeout)
		defer cancel()
		if errors.Is(s.conn.Ping(ctx), context.DeadlineExceeded) {
			s.raw.Close()
		}
	})
}

// end sends the error, if there is one.
func (w *socketWriter) end() {
	if w.status == 0 {
		return
	}
	head := fmt.Appendf(nil, `{"type":"error","status":%d,`, w.status)
	if after := w.header.Get("Retry-After"); after != "" {
		head = fmt.Appendf(head, `"headers":{"retry-after":%q},`, after)
	}
	w.SetWriteDeadline(time.Now().Add(w.lane.socket.g.opt.WriteTimeout))
	w.send(append(head, w.text[1:]...)) // an error means that the client disconnected
}
