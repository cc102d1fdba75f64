// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// This file accepts connections: it limits their number per address, and does the handshake of TLS.

// A listener accepts the connections of a Server.
type listener struct {
	net.Listener
	server *Server
}

// Accept implements net.Listener. It closes connections of addresses that have too many.
func (l *listener) Accept() (net.Conn, error) {
	s := l.server
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := network(c.RemoteAddr())
		if !s.conns.enter(from) {
			c.Close()
			if n := s.conns.refuse(time.Now()); n > 0 {
				s.log.Warn("connections refused", "connections", n, "last", from, "limit", s.conns.most)
			}
			continue
		}
		f := &framedConn{Conn: c, from: from, leave: sync.OnceFunc(func() { s.conns.leave(from) }), log: s.log}
		if s.tls != nil {
			f.Conn, f.tls = tls.Server(c, s.tls), true
		}
		return f, nil
	}
}

// network returns the part of an address that a limit holds for. It is invalid if there is no limit.
func network(a net.Addr) netip.Prefix {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := t.AddrPort().Addr().Unmap().WithZone("")
	switch {
	case ip.IsLoopback() || !ip.IsValid():
		return netip.Prefix{}
	case ip.Is4():
		return netip.PrefixFrom(ip, 32)
	}
	p, _ := ip.Prefix(64) // 64 is valid for IPv6
	return p
}

// refusedEvery is the time between two log lines about refused connections.
const refusedEvery = 10 * time.Second

// An addresses counts uses by the network of a client. It is safe for concurrent use by multiple goroutines.
type addresses struct {
	most int // negative: no limit

	mu      sync.Mutex
	n       map[netip.Prefix]int
	refused int       // since logged
	logged  time.Time // the last log line about them
}

// enter counts a use until leave, or reports false if the limit is reached.
func (a *addresses) enter(p netip.Prefix) bool {
	if a.most < 0 || !p.IsValid() {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n[p] >= a.most {
		return false
	}
	if a.n == nil {
		a.n = make(map[netip.Prefix]int)
	}
	a.n[p]++
	return true
}

// leave ends a use.
func (a *addresses) leave(p netip.Prefix) {
	if a.most < 0 || !p.IsValid() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n[p]--; a.n[p] == 0 {
		delete(a.n, p)
	}
}

// refuse counts a refusal. It returns the number of those to log now, or 0 if the last log line is recent.
func (a *addresses) refuse(now time.Time) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused++
	if now.Sub(a.logged) < refusedEvery {
		return 0
	}
	n := a.refused
	a.refused, a.logged = 0, now
	return n
}

// Close implements net.Conn.
func (c *framedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// handshake does the handshake of TLS, for which the read deadline of the first request holds.
func (c *framedConn) handshake() error {
	conn := c.Conn.(*tls.Conn)
	conn.SetWriteDeadline(time.Now().Add(headerTimeout)) // an error means that the client disconnected
	err := conn.Handshake()
	conn.SetWriteDeadline(time.Time{})
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[tls.RecordHeaderError](err); ok && e.Conn != nil && e.RecordHeader[0] >= 'A' && e.RecordHeader[0] <= 'Z' {
		io.WriteString(e.Conn, "HTTP/1.0 400 Bad Request\r\nConnection: close\r\n\r\nThis server speaks HTTPS.\n")
	}
	c.log.Debug("TLS handshake failed", "client", c.RemoteAddr(), "err", err)
	return io.EOF // the server writes nothing
}
