// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// The flags of a frame.
const (
	more    = 1
	long    = 2
	command = 4
)

// Limits of what a peer may send.
const (
	maxFrames  = 64       // of a message
	maxCommand = 64 << 10 // bytes
)

// ErrIdle is returned if no message began to arrive in time.
var ErrIdle = errors.New("no message")

// A PeerError reports a peer that does not follow the protocol, or not the part of it that this package implements.
type PeerError struct {
	reason string
}

// Error returns the reason.
func (e *PeerError) Error() string { return e.reason }

func fault(format string, args ...any) error { return &PeerError{fmt.Sprintf(format, args...)} }

// A Conn is a connection after its handshake. Only [Conn.Close] may be called concurrently with other methods.
type Conn struct {
	conn    net.Conn
	r       *bufio.Reader
	opt     *Options
	minor   byte      // minor version of the peer
	pings   int       // sent since anything was received
	quiet   time.Time // of the last of these, or when anything was received
	buf     []byte    // frames of the current message
	ends    []int     // of frames in buf
	frames  [][]byte
	scratch []byte // for output
}

// Close closes the connection.
func (c *Conn) Close() error { return c.conn.Close() }

// RemoteAddr returns the address of the peer.
func (c *Conn) RemoteAddr() net.Addr { return c.conn.RemoteAddr() }

// Receive returns the frames of the next message, which are valid until the next call. It responds to heartbeats
// and sends its own while nothing arrives. If no message begins within wait, the error is [ErrIdle], after which Receive
// may be called again. After any other error the connection cannot be used.
func (c *Conn) Receive(wait time.Duration) ([][]byte, error) {
	until := time.Now().Add(wait)
	if cap(c.buf) > 1<<20 && len(c.buf) < cap(c.buf)/8 {
		c.buf = nil // a single large message does not occupy memory forever
	}
	c.buf, c.ends = c.buf[:0], c.ends[:0]
	for {
		if len(c.ends) == 0 {
			if err := c.await(until); err != nil {
				return nil, err
			}
		}
		c.setReadDeadline(c.opt.timeout()) // for each frame, so that a peer cannot send one byte at a time forever
		flags, n, err := c.header()
		if err != nil {
			return nil, err
		}
		if flags&command != 0 {
			start := len(c.buf)
			if n > maxCommand {
				return nil, fault("command of %d bytes (limit %d)", n, maxCommand)
			}
			if err := c.body(n); err != nil {
				return nil, err
			}
			err := c.command(c.buf[start:])
			c.buf = c.buf[:start]
			if err != nil {
				return nil, err
			}
			continue
		}
		if limit := c.opt.maxMessage() - uint64(len(c.buf)); n > limit {
			return nil, fault("message exceeds %d bytes", c.opt.maxMessage())
		}
		if len(c.ends) == maxFrames {
			return nil, fault("message of more than %d frames", maxFrames)
		}
		if err := c.body(n); err != nil {
			return nil, err
		}
		c.ends = append(c.ends, len(c.buf))
		if flags&more == 0 {
			break
		}
	}
	c.frames = c.frames[:0]
	start := 0
	for _, end := range c.ends {
		c.frames = append(c.frames, c.buf[start:end:end])
		start = end
	}
	return c.frames, nil
}

// await waits for the first byte of a frame, and sends PINGs meanwhile.
func (c *Conn) await(until time.Time) error {
	for {
		if c.r.Buffered() == 0 {
			deadline := until
			if ping := c.quiet.Add(c.opt.heartbeat()); c.minor > 0 && ping.Before(until) {
				deadline = ping
			}
			c.conn.SetReadDeadline(later(deadline, time.Now().Add(time.Millisecond))) // so that bytes that have arrived are always read
			_, err := c.r.Peek(1)
			now := time.Now()
			switch {
			case err == nil:
			case !errors.Is(err, os.ErrDeadlineExceeded):
				return err
			case deadline.Equal(until):
				return ErrIdle
			case c.pings == maxPings:
				return fault("no heartbeat in %v", (maxPings+1)*c.opt.heartbeat())
			default:
				if err := c.ping(); err != nil {
					return err
				}
				c.pings++
				c.quiet = now
				continue
			}
		}
		c.pings, c.quiet = 0, time.Now()
		return nil
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// header reads flags and length of a frame.
func (c *Conn) header() (flags byte, n uint64, err error) {
	flags, err = c.r.ReadByte()
	if err != nil {
		return 0, 0, received(err)
	}
	if flags&^(more|long|command) != 0 || flags&command != 0 && flags&more != 0 {
		return 0, 0, fault("invalid flags of a frame: %#02x", flags)
	}
	if flags&long == 0 {
		size, err := c.r.ReadByte()
		return flags, uint64(size), received(err)
	}
	size, err := c.r.Peek(8)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, 0, received(err)
	}
	n = binary.BigEndian.Uint64(size)
	c.r.Discard(8) // cannot fail
	if n>>63 != 0 {
		return 0, 0, fault("invalid length of a frame: %#x", n)
	}
	return flags, n, nil
}

// body appends n bytes to c.buf. Memory grows with the bytes received, not with the length that was declared.
func (c *Conn) body(n uint64) error {
	for n > 0 {
		part := min(n, max(64<<10, uint64(len(c.buf)))) // doubles
		start := len(c.buf)
		if free := cap(c.buf) - start; uint64(free) < part {
			grown := make([]byte, start, uint64(start)+part)
			copy(grown, c.buf)
			c.buf = grown
		}
		c.buf = c.buf[:start+int(part)]
		if part > 64<<10 {
			c.setReadDeadline(c.opt.timeout())
		}
		if _, err := io.ReadFull(c.r, c.buf[start:]); err != nil {
			return received(err)
		}
		n -= part
	}
	return nil
}

// command executes a command that arrived after the handshake.
func (c *Conn) command(b []byte) error {
	name, data, err := parseCommand(b)
	if err != nil {
		return err
	}
	switch name {
	case "PING": // time to live in 2 bytes, then a context of up to 16 bytes, which is returned
		if len(data) < 2 || len(data) > 18 {
			return fault("invalid PING of %d bytes", len(data))
		}
		c.scratch = appendCommand(c.scratch[:0], "PONG", data[2:])
		return c.write(c.scratch)
	case "ERROR":
		return fault("error from the peer: %s", errorReason(data))
	}
	return nil // PONG, and commands of other sockets and future versions
}

func (c *Conn) ping() error {
	ttl := min(maxPings*c.opt.heartbeat()/(100*time.Millisecond), 0xffff) // in tenths of a second
	c.scratch = appendCommand(c.scratch[:0], "PING", binary.BigEndian.AppendUint16(nil, uint16(ttl)))
	return c.write(c.scratch)
}

// Send sends a message.
func (c *Conn) Send(frames ...[]byte) error {
	c.scratch = c.scratch[:0]
	for i, f := range frames {
		flags := byte(0)
		if i < len(frames)-1 {
			flags = more
		}
		c.scratch = appendFrame(c.scratch, flags, f)
	}
	return c.write(c.scratch)
}

func (c *Conn) write(b []byte) error {
	c.conn.SetWriteDeadline(time.Now().Add(c.opt.timeout()))
	_, err := c.conn.Write(b)
	return err
}

func (c *Conn) setReadDeadline(d time.Duration) { c.conn.SetReadDeadline(time.Now().Add(d)) }

// received returns the error of a read within a frame.
func received(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fault("timeout within a message")
	}
	return err
}

func appendFrame(dst []byte, flags byte, body []byte) []byte {
	if len(body) > 255 {
		dst = binary.BigEndian.AppendUint64(append(dst, flags|long), uint64(len(body)))
	} else {
		dst = append(dst, flags, byte(len(body)))
	}
	return append(dst, body...)
}

func appendCommand(dst []byte, name string, data []byte) []byte {
	body := append(append([]byte{byte(len(name))}, name...), data...)
	return appendFrame(dst, command, body)
}

func parseCommand(b []byte) (name string, data []byte, err error) {
	if len(b) == 0 || b[0] == 0 || int(b[0]) > len(b)-1 {
		return "", nil, fault("invalid command of %d bytes", len(b))
	}
	n := 1 + int(b[0])
	return string(b[1:n]), b[n:], nil
}

// errorReason returns the text of an ERROR command.
func errorReason(data []byte) string {
	if len(data) > 0 && int(data[0]) <= len(data)-1 {
		return fmt.Sprintf("%q", data[1:1+int(data[0])])
	}
	return "no reason"
}
