// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// stubEngines makes http.DefaultTransport, which the gateway clones, connect to engines that do no work: they discard a
// request and respond at once with response. The gateway's HTTP client does what it always does, except that no kernel
// copies the bytes.
func stubEngines(response func() []byte) {
	http.DefaultTransport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		c := &stubConn{response: response}
		c.ready.L = &c.mu
		return c, nil
	}}
}

// stubConn is the connection to a stub engine.
type stubConn struct {
	response func() []byte

	mu     sync.Mutex
	ready  sync.Cond
	head   []byte // of the request being written, until it is complete
	body   int    // bytes of its body still to come
	out    []byte // of responses, still to be read
	closed bool
}

// Write discards a request.
func (c *stubConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		if c.body > 0 {
			k := min(c.body, len(p))
			c.body -= k
			p = p[k:]
		} else {
			from := max(0, len(c.head)-3)
			c.head = append(c.head, p...)
			i := bytes.Index(c.head[from:], []byte("\r\n\r\n"))
			if i < 0 {
				return n, nil
			}
			end := from + i + 4
			p = p[len(p)-(len(c.head)-end):]
			c.body = contentLength(c.head[:end])
			c.head = c.head[:0]
		}
		if c.body == 0 {
			c.out = append(c.out, c.response()...)
			c.ready.Signal()
		}
	}
	return n, nil
}

// contentLength returns the length of the body of a request of the gateway's client.
func contentLength(head []byte) int {
	const name = "\r\nContent-Length: "
	i := bytes.Index(head, []byte(name))
	if i < 0 {
		return 0
	}
	digits, _, _ := bytes.Cut(head[i+len(name):], []byte("\r\n"))
	n, err := strconv.Atoi(string(digits))
	if err != nil {
		panic("turn: request of the gateway: " + err.Error())
	}
	return n
}

// Read reads a response.
func (c *stubConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.out) == 0 && !c.closed {
		c.ready.Wait()
	}
	if c.closed {
		return 0, io.EOF
	}
	n := copy(p, c.out)
	c.out = c.out[:copy(c.out, c.out[n:])]
	return n, nil
}

// Close ends Read.
func (c *stubConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.ready.Broadcast()
	return nil
}

// LocalAddr implements net.Conn.
func (c *stubConn) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr implements net.Conn.
func (c *stubConn) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// SetDeadline implements net.Conn.
func (c *stubConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (c *stubConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (c *stubConn) SetWriteDeadline(time.Time) error { return nil }

// streamOf returns a response of vLLM's completions API that streams ids one by one.
func streamOf(ids []uint32, text func(uint32) string) []byte {
	var b bytes.Buffer
	for i, id := range ids {
		finish := "null"
		if i == len(ids)-1 {
			finish = `"stop"`
		}
		s, err := json.Marshal(text(id))
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, `data: {"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":%s,"logprobs":null,"finish_reason":%s,"stop_reason":null,"token_ids":[%d]}]}`+"\n\n", s, finish, id)
	}
	fmt.Fprintf(&b, `data: {"id":"c","object":"text_completion","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":%d,"total_tokens":1}}`+"\n\ndata: [DONE]\n\n", len(ids))
	return append(fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nContent-Length: %d\r\n\r\n", b.Len()), b.Bytes()...)
}

// discard is a response writer for a client that reads everything at once.
type discard struct {
	header http.Header
	status int
	bytes  int
	keep   *bytes.Buffer // nil unless the response is checked
}

// Header implements http.ResponseWriter.
func (d *discard) Header() http.Header { return d.header }

// WriteHeader implements http.ResponseWriter.
func (d *discard) WriteHeader(status int) { d.status = status }

// Write implements http.ResponseWriter.
func (d *discard) Write(p []byte) (int, error) {
	d.bytes += len(p)
	if d.keep != nil {
		d.keep.Write(p)
	}
	return len(p), nil
}

// Flush implements http.Flusher.
func (d *discard) Flush() {}

// SetReadDeadline is called through http.ResponseController.
func (d *discard) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline is called through http.ResponseController.
func (d *discard) SetWriteDeadline(time.Time) error { return nil }
