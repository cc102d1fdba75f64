// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 128 << 10 // bytes
)

// A Server serves a Gateway on a listener, with limits for everything that clients may delay. It is safe for concurrent
// use by multiple goroutines.
type Server struct {
	http    http.Server
	gateway atomic.Pointer[Gateway]
}

// NewServer returns a server of g.
func NewServer(g *Gateway) *Server {
	s := &Server{}
	s.gateway.Store(g)
	s.http = http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.gateway.Load().ServeHTTP(w, r) }),
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	return s
}

// Replace makes g serve all requests from now on and returns the previous gateway, which still serves the requests that
// it has, and passes later ones to g when it drains. The caller should drain and close it.
func (s *Server) Replace(g *Gateway) (old *Gateway) {
	if old = s.gateway.Swap(g); old != g {
		old.next.Store(g)
	}
	return old
}

// Serve accepts connections until Shutdown. It takes ownership of l.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(framedListener{l}); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown drains the gateway until ctx ends, then ends the requests that are still running, and closes all connections.
// While it drains, new requests get status 503, in the form of their API. After ctx has ended, Shutdown takes a few
// seconds at most.
func (s *Server) Shutdown(ctx context.Context) error {
	g := s.gateway.Load()
	err := g.Drain(ctx)
	g.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	s.http.Shutdown(ctx) // waits for the last responses to leave; if they do not, Close ends them
	return errors.Join(err, s.http.Close())
}

// connKey is the key of the framedConn in the context of a request.
type connKey struct{}

// A framedListener accepts connections that notice requests with an ambiguous end.
type framedListener struct{ net.Listener }

// Accept implements net.Listener.
func (l framedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &framedConn{Conn: c}, nil
}

// A framedConn reads the heads of requests along with the server, because net/http drops the Content-Length of a request
// that also has a Transfer-Encoding. A proxy that uses the former and a server that uses the latter disagree about where
// the next request begins.
//
// The server closes a connection after a request with a Transfer-Encoding, so such a request is the last one, and only
// bodies with a Content-Length need to be skipped.
type framedConn struct {
	net.Conn

	mu        sync.Mutex
	head      []byte // of a request, so far
	skip      int64  // bytes of the body that follow
	last      bool   // no further request is read along
	ambiguous bool   // the last request has both headers, or header lines that servers join differently
}

// Read implements net.Conn.
func (c *framedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(p[:n])
	return n, err
}

// add reads along. c.mu must be held.
func (c *framedConn) add(p []byte) {
	for len(p) > 0 && !c.last {
		if c.skip > 0 {
			n := min(c.skip, int64(len(p)))
			c.skip -= n
			p = p[n:]
			continue
		}
		from := len(c.head)
		c.head = append(c.head, p...)
		end, size := headEnd(c.head, from)
		if end < 0 {
			c.last = len(c.head) > 2*maxHeader // the server refuses it
			return
		}
		c.parse(c.head[:end])
		p = p[end+size-from:]
		c.head = c.head[:0]
	}
	if c.last {
		c.head = nil
	}
}

// headEnd returns the end of the header lines in head and the size of the blank line after them, or -1. Nothing ends
// before from.
func headEnd(head []byte, from int) (end, size int) {
	for at := max(0, from-3); ; {
		i := bytes.IndexByte(head[at:], '\n')
		if i < 0 {
			return -1, 0
		}
		at += i + 1
		switch rest := head[at:]; {
		case bytes.HasPrefix(rest, []byte("\n")):
			return at, 1
		case bytes.HasPrefix(rest, []byte("\r\n")):
			return at, 2
		}
	}
}

// parse reads the lines of a head.
func (c *framedConn) parse(head []byte) {
	var length, chunked bool
	for line := range bytes.Lines(head) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case line[0] == ' ' || line[0] == '\t':
			c.last, c.ambiguous = true, true
		case strings.EqualFold(string(name), "Content-Length"):
			length = true
			n, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
			if c.skip = n; err != nil || n < 0 {
				c.last, c.skip = true, 0 // the server refuses it
			}
		case strings.EqualFold(string(name), "Transfer-Encoding"):
			chunked = true
		}
	}
	if chunked {
		c.last, c.ambiguous, c.skip = true, c.ambiguous || length, 0
	}
}

// state reports whether the server must close the connection after this request, and whether it must refuse it.
func (c *framedConn) state() (last, ambiguous bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last, c.ambiguous
}
