// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Options configure a Conn.
type Options struct {
	Dealer     bool          // the socket is a DEALER; otherwise it is a SUB
	Topics     []string      // prefixes of topics to subscribe to (SUB)
	MaxMessage int           // bytes; 0 means 64 MiB
	Heartbeat  time.Duration // interval of PINGs while nothing arrives; 0 means 5 s
	Timeout    time.Duration // for the handshake, a frame in progress, and output; 0 means 10 s
}

// maxPings is the number of PINGs without any response after which a connection is lost.
const maxPings = 3

func (o *Options) maxMessage() uint64 {
	if o.MaxMessage > 0 {
		return uint64(o.MaxMessage)
	}
	return 64 << 20
}

func (o *Options) heartbeat() time.Duration {
	if o.Heartbeat > 0 {
		return o.Heartbeat
	}
	return 5 * time.Second
}

func (o *Options) timeout() time.Duration {
	if o.Timeout > 0 {
		return o.Timeout
	}
	return 10 * time.Second
}

// Handshake performs the handshake on a new connection and subscribes to the topics. If it fails, it closes the
// connection. Both peers send the same, so it does not matter which one connected.
func Handshake(conn net.Conn, o *Options) (*Conn, error) {
	c := &Conn{conn: conn, r: bufio.NewReaderSize(conn, 64<<10), opt: o, quiet: time.Now()}
	if err := c.handshake(); err != nil {
		conn.Close()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) { // as libzmq does
			err = fmt.Errorf("the peer ended the handshake; it must be a socket of the kind %s, without security: %w", strings.Join(peers[o.Dealer], " or "), err)
		}
		return nil, err
	}
	return c, nil
}

func (c *Conn) handshake() error {
	c.setReadDeadline(c.opt.timeout())
	greeting := make([]byte, 64)
	greeting[0], greeting[9], greeting[10], greeting[11] = 0xff, 0x7f, 3, 1
	copy(greeting[12:], "NULL")
	kind := "SUB"
	if c.opt.Dealer {
		kind = "DEALER"
	}
	ready := appendProperty(nil, "Socket-Type", kind)
	if c.opt.Dealer {
		ready = appendProperty(ready, "Identity", "")
	}
	// The peer compares versions before it reads more, so everything may leave at once.
	if err := c.write(appendCommand(greeting, "READY", ready)); err != nil {
		return err
	}
	if err := c.readGreeting(); err != nil {
		return err
	}
	if err := c.readReady(); err != nil {
		return err
	}
	if c.opt.Dealer {
		return nil
	}
	c.scratch = c.scratch[:0]
	for _, topic := range c.opt.Topics {
		if c.minor > 0 {
			c.scratch = appendCommand(c.scratch, "SUBSCRIBE", []byte(topic))
		} else {
			c.scratch = appendFrame(c.scratch, 0, append([]byte{1}, topic...))
		}
	}
	return c.write(c.scratch)
}

func (c *Conn) readGreeting() error {
	var g [64]byte
	// Part by part, because older peers send less and wait.
	if _, err := io.ReadFull(c.r, g[:1]); err != nil {
		return received(err)
	}
	if g[0] != 0xff {
		return c.stranger(g[0])
	}
	if _, err := io.ReadFull(c.r, g[1:10]); err != nil {
		return received(err)
	}
	if g[9]&1 == 0 {
		return fault("the peer uses ZMTP 1 (libzmq 2); want 3")
	}
	if _, err := io.ReadFull(c.r, g[10:11]); err != nil {
		return received(err)
	}
	if g[10] < 3 {
		return fault("the peer uses ZMTP 2 (libzmq 3); want 3")
	}
	if _, err := io.ReadFull(c.r, g[11:]); err != nil {
		return received(err)
	}
	c.minor = g[11]
	if g[10] > 3 {
		c.minor = 1 // a newer peer uses the lower version, which is 3.1
	}
	name := g[12:32]
	if i := bytes.IndexByte(name, 0); i >= 0 {
		name = name[:i]
	}
	if string(name) != "NULL" {
		return fault("the peer requires the security mechanism %q; want NULL", name)
	}
	return nil
}

// stranger returns an error that shows how a peer of another protocol begins.
func (c *Conn) stranger(first byte) error {
	n := min(c.r.Buffered(), 31)
	rest, _ := c.r.Peek(n)
	return fault("the peer does not use ZMTP; it begins with %q", append([]byte{first}, rest...))
}

// peers are the kinds of sockets that may be at the other end of SUB and DEALER.
var peers = map[bool][]string{
	false: {"PUB", "XPUB"},
	true:  {"ROUTER", "REP", "DEALER"},
}

func (c *Conn) readReady() error {
	flags, n, err := c.header()
	if err != nil {
		return err
	}
	if flags&command == 0 || n > maxCommand {
		return fault("a frame of %d bytes with flags %#02x instead of READY", n, flags)
	}
	if err := c.body(n); err != nil {
		return err
	}
	name, data, err := parseCommand(c.buf)
	if err != nil {
		return err
	}
	switch name {
	case "READY":
	case "ERROR":
		return fault("handshake: error from the peer: %s", errorReason(data))
	default:
		return fault("command %q instead of READY", name)
	}
	kind := ""
	for len(data) > 0 {
		var key, value []byte
		if key, value, data, err = property(data); err != nil {
			return err
		}
		if strings.EqualFold(string(key), "Socket-Type") {
			kind = string(value)
		}
	}
	if want := peers[c.opt.Dealer]; !slices.Contains(want, kind) {
		return fault("the peer is a %q socket; want %s", kind, strings.Join(want, " or "))
	}
	return nil
}

func appendProperty(dst []byte, name, value string) []byte {
	dst = append(append(dst, byte(len(name))), name...)
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(value))), value...)
}

func property(b []byte) (name, value, rest []byte, err error) {
	n := 1 + int(b[0])
	if n == 1 || len(b) < n+4 {
		return nil, nil, nil, fault("invalid property in READY")
	}
	name = b[1:n]
	size := uint64(binary.BigEndian.Uint32(b[n:]))
	b = b[n+4:]
	if size > uint64(len(b)) {
		return nil, nil, nil, fault("invalid property %q in READY", name)
	}
	return name, b[:size], b[size:], nil
}
