// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
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
	maxStreams    = 100       // requests at the same time on an HTTP/2 connection

	// defaultPerAddress is the default of ServerOptions.PerAddress.
	defaultPerAddress = 512
)

// ServerOptions configures a Server.
type ServerOptions struct {
	// TLS makes the server speak TLS, from version 1.2 on, with HTTP/1.1 and HTTP/2. It must have a certificate; its
	// GetCertificate may return another one for each connection. The caller must not modify it.
	TLS *tls.Config
	// H2C permits HTTP/2 without TLS, for clients that know that the server speaks it.
	H2C bool
	// PerAddress limits the connections, and the requests, that a client's address has at the same time. The addresses of
	// an IPv6 /64 network share a limit. This machine's addresses have none. 0 means 512, and a negative value no limit.
	PerAddress int

	Logger *slog.Logger // for errors of connections; nil means no logs
}

// A Server serves a Gateway on a listener, with limits for everything that clients may delay. The limits hold for HTTP/1
// and HTTP/2. It is safe for concurrent use by multiple goroutines.
type Server struct {
	http     http.Server
	gateway  atomic.Pointer[Gateway]
	tls      *tls.Config // or nil
	log      *slog.Logger
	conns    addresses // of connections
	requests addresses // of HTTP/2 requests
}

// NewServer returns a server of g.
func NewServer(g *Gateway, o *ServerOptions) *Server {
	if o == nil {
		o = &ServerOptions{}
	}
	s := &Server{log: o.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.conns.most = cmp.Or(o.PerAddress, defaultPerAddress)
	s.requests.most = s.conns.most
	if o.TLS != nil {
		s.tls = o.TLS.Clone()
		s.tls.MinVersion = max(s.tls.MinVersion, tls.VersionTLS12)
		s.tls.NextProtos = []string{"h2", "http/1.1"}
	}
	s.gateway.Store(g)
	s.http = http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		HTTP2:       &http.HTTP2Config{MaxConcurrentStreams: maxStreams, WriteByteTimeout: g.opt.WriteTimeout},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		Protocols:   new(http.Protocols),
	}
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetUnencryptedHTTP2(o.H2C || s.tls != nil) // to net/http, a framedConn over TLS is unencrypted
	return s
}

// serve serves one request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	g := s.gateway.Load()
	if c, ok := r.Context().Value(connKey{}).(*framedConn); ok && r.ProtoMajor > 1 { // otherwise, it is as many as connections
		if !s.requests.enter(c.from) {
			t := newTimedWriter(w, r, g.opt.WriteTimeout)
			defer t.end()
			g.refuse(t, r, apiOf(r), limited("Too many requests of your address at the same time: at most %d.", s.requests.most))
			return
		}
		defer s.requests.leave(c.from)
	}
	g.ServeHTTP(w, r)
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
	if err := s.http.Serve(&listener{l, s}); !errors.Is(err, http.ErrServerClosed) {
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

// A framedConn reads the heads of requests along with the server, because net/http drops the Content-Length of a request
// that also has a Transfer-Encoding. A proxy that uses the former and a server that uses the latter disagree about where
// the next request begins.
//
// The server closes a connection after a request with a Transfer-Encoding, so such a request is the last one, and only
// bodies with a Content-Length need to be skipped. HTTP/2 has no such ambiguity, and is not read along.
type framedConn struct {
	net.Conn

	from  netip.Prefix // the client
	leave func()       // called once, by Close
	tls   bool         // Conn is a *tls.Conn; cleared after the handshake, by the goroutine that reads
	log   *slog.Logger

	mu        sync.Mutex
	head      []byte // of a request, so far
	skip      int64  // bytes of the body that follow
	begun     bool   // the first request was read
	http2     bool   // the connection is HTTP/2
	last      bool   // no further request is read along
	ambiguous bool   // the last request has both headers, or header lines that servers join differently
}

// Read implements net.Conn.
func (c *framedConn) Read(p []byte) (int, error) {
	if c.tls {
		c.tls = false
		if err := c.handshake(); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(p[:n])
	return n, err
}

// add reads along. c.mu must be held.
func (c *framedConn) add(p []byte) {
	for len(p) > 0 && !c.last && !c.http2 {
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
		if c.http2 = !c.begun && bytes.HasPrefix(c.head, []byte("PRI * HTTP/2.0\r\n")); c.http2 {
			break
		}
		c.begun = true
		c.parse(c.head[:end])
		p = p[end+size-from:]
		c.head = c.head[:0]
	}
	if c.last || c.http2 {
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
