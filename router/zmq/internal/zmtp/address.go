// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// An Address is a parsed endpoint.
type Address struct {
	Listen  bool
	Network string // tcp or unix
	Host    string // as for package net
}

// ParseAddress parses tcp://HOST:PORT and ipc://PATH, after "@" for an address to listen on.
func ParseAddress(s string) (Address, error) {
	rest, listen := strings.CutPrefix(s, "@")
	scheme, host, ok := strings.Cut(rest, "://")
	a := Address{Listen: listen, Host: host}
	switch {
	case !ok:
		return a, fmt.Errorf("invalid address %q: want tcp://HOST:PORT or ipc://PATH", s)
	case scheme == "ipc" && host != "":
		a.Network = "unix" // a name that begins with @ is abstract, in libzmq and in package net
		return a, nil
	case scheme != "tcp":
		return a, fmt.Errorf("invalid address %q: the transport is %q; want tcp or ipc", s, scheme)
	}
	a.Network = "tcp"
	name, port, err := net.SplitHostPort(host)
	if n, e := strconv.ParseUint(port, 10, 16); err != nil || e != nil || n == 0 && !listen {
		return a, fmt.Errorf("invalid address %q: want tcp://HOST:PORT", s)
	}
	switch {
	case listen && name == "*":
		a.Host = net.JoinHostPort("", port)
	case name == "*" || name == "":
		return a, fmt.Errorf("invalid address %q: want the host of the engine, or @%s to listen", s, rest)
	}
	return a, nil
}

// Offset returns the address with n added to the port. It is an error if the address has no port.
func (a Address) Offset(n int) (Address, error) {
	if n == 0 {
		return a, nil
	}
	host, port, err := net.SplitHostPort(a.Host)
	p, e := strconv.Atoi(port)
	if a.Network != "tcp" || err != nil || e != nil || p+n < 1 || p+n > 65535 {
		return a, fmt.Errorf("address %s has no port for rank %d", a, n)
	}
	a.Host = net.JoinHostPort(host, strconv.Itoa(p+n))
	return a, nil
}

// String returns the address in the form that ParseAddress accepts.
func (a Address) String() string {
	s := a.Network + "://" + a.Host
	if a.Network == "unix" {
		s = "ipc://" + a.Host
	}
	if a.Listen {
		if strings.HasPrefix(a.Host, ":") && a.Network == "tcp" {
			s = "tcp://*" + a.Host
		}
		return "@" + s
	}
	return s
}

// Dial connects and performs the handshake.
func Dial(ctx context.Context, a Address, o *Options) (*Conn, error) {
	d := net.Dialer{Timeout: o.timeout()}
	conn, err := d.DialContext(ctx, a.Network, a.Host)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	return Handshake(conn, o)
}

// Listen listens on the address. The socket file of a process that has ended is replaced, as by libzmq.
func Listen(ctx context.Context, a Address) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, a.Network, a.Host)
	if a.Network != "unix" || !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	if conn, e := net.Dial("unix", a.Host); e == nil {
		conn.Close()
		return nil, err // in use
	} else if !errors.Is(e, syscall.ECONNREFUSED) {
		return nil, err
	}
	if os.Remove(a.Host) != nil {
		return nil, err
	}
	return lc.Listen(ctx, a.Network, a.Host)
}
