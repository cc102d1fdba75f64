// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An engine publishes events as vLLM does: it has a PUB and a ROUTER socket, written from 37/ZMTP without the code under
// test. It keeps all batches for replays.
type engine struct {
	t      testing.TB
	topic  string
	events net.Listener // nil if it connects
	replay net.Listener

	mu     sync.Mutex
	subs   []net.Conn
	all    []net.Conn
	sent   [][][]byte // messages, by number
	first  int        // number of the first message that is still known
	clock  float64
	closed bool
}

func newEngine(t testing.TB, events, replay string) *engine {
	e := &engine{t: t, clock: 1_000_000}
	var err error
	if events != "" {
		e.events, err = net.Listen("tcp", events)
		require.NoError(t, err)
		go e.accept(e.events, e.subscriber)
	}
	if replay != "" {
		e.replay, err = net.Listen("tcp", replay)
		require.NoError(t, err)
		go e.accept(e.replay, e.router)
	}
	t.Cleanup(e.kill)
	return e
}

func (e *engine) addr() string       { return "tcp://" + e.events.Addr().String() }
func (e *engine) replayAddr() string { return "tcp://" + e.replay.Addr().String() }

// kill ends the process of the engine.
func (e *engine) kill() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for _, l := range []net.Listener{e.events, e.replay} {
		if l != nil {
			l.Close()
		}
	}
	e.hangUp()
}

func (e *engine) hangUp() {
	for _, c := range e.all {
		c.Close()
	}
	e.all, e.subs = nil, nil
}

// disconnect closes all connections; subscribers may connect again.
func (e *engine) disconnect() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hangUp()
}

// restarted returns the engine's successor at the same addresses, which has published nothing.
func (e *engine) restarted() *engine {
	e.kill()
	replay := ""
	if e.replay != nil {
		replay = e.replay.Addr().String()
	}
	next := newEngine(e.t, e.events.Addr().String(), replay)
	next.clock = e.clock + 60
	next.topic = e.topic
	return next
}

func (e *engine) accept(l net.Listener, serve func(net.Conn, *bufio.Reader)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go e.serve(c, serve)
	}
}

func (e *engine) serve(c net.Conn, serve func(net.Conn, *bufio.Reader)) {
	defer c.Close()
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return
	}
	e.all = append(e.all, c)
	e.mu.Unlock()
	serve(c, bufio.NewReader(c))
}

// connect connects the PUB socket to a subscriber that listens.
func (e *engine) connect(addr string) {
	c, err := net.Dial("tcp", addr)
	require.NoError(e.t, err)
	go e.serve(c, e.subscriber)
}

// hello does the handshake.
func hello(c net.Conn, r io.Reader, kind string) bool {
	g := make([]byte, 64)
	g[0], g[9], g[10], g[11] = 0xff, 0x7f, 3, 1
	copy(g[12:], "NULL")
	c.Write(g)
	if _, err := io.ReadFull(r, g); err != nil {
		return false
	}
	ready := "\x05READY\x0bSocket-Type\x00\x00\x00" + string(rune(len(kind))) + kind
	c.Write(append([]byte{4, byte(len(ready))}, ready...))
	flags, body, err := readFrame(r)
	return err == nil && flags == 4 && string(body[1:6]) == "READY"
}

func readFrame(r io.Reader) (flags byte, body []byte, err error) {
	var head [9]byte
	if _, err = io.ReadFull(r, head[:2]); err != nil {
		return 0, nil, err
	}
	n := uint64(head[1])
	if head[0]&2 != 0 {
		if _, err = io.ReadFull(r, head[2:9]); err != nil {
			return 0, nil, err
		}
		n = binary.BigEndian.Uint64(head[1:9])
	}
	body = make([]byte, n)
	_, err = io.ReadFull(r, body)
	return head[0], body, err
}

func message(frames ...[]byte) (b []byte) {
	for i, f := range frames {
		flags := byte(2)
		if i < len(frames)-1 {
			flags |= 1
		}
		b = append(binary.BigEndian.AppendUint64(append(b, flags), uint64(len(f))), f...)
	}
	return b
}

// subscriber is a connection of the PUB socket.
func (e *engine) subscriber(c net.Conn, r *bufio.Reader) {
	if !hello(c, r, "PUB") {
		return
	}
	for {
		flags, body, err := readFrame(r)
		if err != nil {
			return
		}
		switch {
		case flags == 4 && bytes.HasPrefix(body[1:], []byte("SUBSCRIBE")):
			e.mu.Lock()
			e.subs = append(e.subs, c)
			e.mu.Unlock()
		case flags == 4 && bytes.HasPrefix(body[1:], []byte("PING")):
			pong := append([]byte("\x04PONG"), body[7:]...)
			c.Write(append([]byte{4, byte(len(pong))}, pong...))
		}
	}
}

// router is a connection of the ROUTER socket. A DEALER sends the empty frame itself.
func (e *engine) router(c net.Conn, r *bufio.Reader) {
	if !hello(c, r, "ROUTER") {
		return
	}
	for {
		flags, body, err := readFrame(r)
		if err != nil || flags != 1 || len(body) != 0 {
			return
		}
		if _, body, err = readFrame(r); err != nil || len(body) != 8 {
			return
		}
		from := int(binary.BigEndian.Uint64(body))
		e.mu.Lock()
		var out []byte
		for i := max(from, e.first); i < len(e.sent); i++ {
			out = append(out, message(nil, e.sent[i][1], e.sent[i][2])...)
		}
		e.mu.Unlock()
		c.Write(append(out, message(nil, binary.BigEndian.AppendUint64(nil, math.MaxUint64), nil)...))
	}
}

// store publishes a batch that stores one block of four tokens, n, n+1, n+2, n+3, with the hash n; parent is its
// predecessor's hash, or 0. It returns the tokens.
func (e *engine) store(n, parent uint32) []uint32 {
	e.publish(e.stored(n, parent), true)
	return []uint32{n, n + 1, n + 2, n + 3}
}

// lose publishes such a batch, which does not reach the subscribers.
func (e *engine) lose(n, parent uint32) []uint32 {
	e.publish(e.stored(n, parent), false)
	return []uint32{n, n + 1, n + 2, n + 3}
}

func (e *engine) stored(n, parent uint32) []byte {
	num := func(n uint32) []byte { return binary.BigEndian.AppendUint32([]byte{0xce}, n) }
	b := append([]byte{0x98, 0xab}, "BlockStored"...)
	b = append(append(b, 0x91), num(n)...)
	if parent == 0 {
		b = append(b, 0xc0)
	} else {
		b = append(b, num(parent)...)
	}
	b = append(b, 0x94)
	for i := range uint32(4) {
		b = append(b, num(n+i)...)
	}
	return append(b, 4, 0xc0, 0xa3, 'G', 'P', 'U', 0xc0) // block size, adapter's id, medium, adapter's name
}

func (e *engine) publish(event []byte, deliver bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clock++
	payload := binary.BigEndian.AppendUint64([]byte{0x93, 0xcb}, math.Float64bits(e.clock))
	payload = append(append(append(payload, 0x91), event...), 0)
	frames := [][]byte{[]byte(e.topic), binary.BigEndian.AppendUint64(nil, uint64(len(e.sent))), payload}
	e.sent = append(e.sent, frames)
	if !deliver {
		return
	}
	for _, c := range slices.Clone(e.subs) {
		c.SetWriteDeadline(time.Now().Add(time.Second))
		c.Write(message(frames...))
		c.SetWriteDeadline(time.Time{})
	}
}

// subscribers waits until n subscribers are connected.
func (e *engine) subscribers(n int) {
	e.t.Helper()
	require.Eventually(e.t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.subs) == n
	}, 5*time.Second, time.Millisecond)
}
