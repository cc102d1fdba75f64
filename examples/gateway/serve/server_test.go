// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
)

// A pipeListener has connections in memory, for synctest bubbles.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (l *pipeListener) dial() net.Conn {
	ours, theirs := net.Pipe()
	l.conns <- theirs
	return ours
}

// dialFrom is dial for a client with an address.
func (l *pipeListener) dialFrom(addr string) net.Conn {
	there, back := newBuffer(), newBuffer()
	from := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(addr), 1234))
	l.conns <- &bufferedConn{in: there, out: back, from: from}
	return &bufferedConn{in: back, out: there, from: from}
}

// A bufferedConn is one end of a connection in memory. Unlike net.Pipe's, writes return before the other end reads, up to
// the size of a buffer; HTTP/2 needs that, because both ends hold a lock while they write.
type bufferedConn struct {
	in, out *buffer
	from    net.Addr
}

func (c *bufferedConn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *bufferedConn) Write(p []byte) (int, error) { return c.out.write(p) }
func (c *bufferedConn) LocalAddr() net.Addr         { return &net.TCPAddr{} }
func (c *bufferedConn) RemoteAddr() net.Addr        { return c.from }

func (c *bufferedConn) Close() error {
	c.in.close()
	c.out.close()
	return nil
}

func (c *bufferedConn) SetReadDeadline(t time.Time) error {
	c.in.set(&c.in.readUntil, t)
	return nil
}

func (c *bufferedConn) SetWriteDeadline(t time.Time) error {
	c.out.set(&c.out.writeUntil, t)
	return nil
}

func (c *bufferedConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// A buffer is one direction of a bufferedConn.
type buffer struct {
	mu                    sync.Mutex
	changed               *sync.Cond
	data                  []byte
	readUntil, writeUntil time.Time
	closed                bool
}

const bufferSize = 256 << 10

func newBuffer() *buffer {
	b := &buffer{}
	b.changed = sync.NewCond(&b.mu)
	return b
}

func (b *buffer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.changed.Broadcast()
}

func (b *buffer) set(deadline *time.Time, t time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*deadline = t
	b.changed.Broadcast()
	if !t.IsZero() {
		time.AfterFunc(time.Until(t), b.changed.Broadcast)
	}
}

func (b *buffer) read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.data) == 0 {
		switch {
		case b.closed:
			return 0, io.EOF
		case !b.readUntil.IsZero() && !time.Now().Before(b.readUntil):
			return 0, os.ErrDeadlineExceeded
		}
		b.changed.Wait()
	}
	n := copy(p, b.data)
	b.data = b.data[n:]
	b.changed.Broadcast()
	return n, nil
}

func (b *buffer) write(p []byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		switch room := bufferSize - len(b.data); {
		case b.closed:
			return n, io.ErrClosedPipe
		case n == len(p):
			return n, nil
		case !b.writeUntil.IsZero() && !time.Now().Before(b.writeUntil):
			return n, os.ErrDeadlineExceeded
		case room > 0:
			m := min(room, len(p)-n)
			b.data = append(b.data, p[n:n+m]...)
			n += m
			b.changed.Broadcast()
		default:
			b.changed.Wait()
		}
	}
}

// served runs test with a server in a bubble whose transport to the engine is s.
func served(t *testing.T, s *stub, change func(*serve.Options), test func(t *testing.T, server *serve.Server, l *pipeListener)) {
	servedWith(t, nil, s, change, test)
}

// servedWith is served with options of the server.
func servedWith(t *testing.T, o *serve.ServerOptions, s *stub, change func(*serve.Options), test func(t *testing.T, server *serve.Server, l *pipeListener)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, l := serve.NewServer(stubbed(t, 1, s, change), o), newPipeListener()
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(l) }()
		test(t, server, l)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		server.Shutdown(ctx)
		require.NoError(t, <-ended)
	})
}

func hello() *stub {
	return &stub{answer: func(string, *http.Request) (*http.Response, error) { return answerOf(200, whole), nil }}
}

// readResponse reads a response and its body.
func readResponse(t *testing.T, in *bufio.Reader) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(body)
}

// TestIdleConnections checks that connections without a request, and with half of one, are closed.
func TestIdleConnections(t *testing.T) {
	served(t, hello(), nil, func(t *testing.T, _ *serve.Server, l *pipeListener) {
		for _, tt := range []struct {
			send string
			want time.Duration
		}{
			{"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 2 * time.Minute},
			{"GET /health HTTP/1.1\r\nHo", 10 * time.Second},
		} {
			c, begun := l.dial(), time.Now()
			_, err := io.WriteString(c, tt.send)
			require.NoError(t, err)
			in := bufio.NewReader(c)
			if strings.HasSuffix(tt.send, "\r\n\r\n") {
				resp, _ := readResponse(t, in)
				require.Equal(t, 200, resp.StatusCode)
			}
			io.Copy(io.Discard, in)
			require.Equal(t, tt.want, time.Since(begun))
		}
	})
}

// TestFraming checks that requests with an ambiguous end are refused and end their connection, wherever they are in it.
func TestFraming(t *testing.T) {
	const body = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	post := func(header, body string) string {
		return "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n" + header + "\r\n" + body
	}
	sized := post(fmt.Sprintf("Content-Length: %d\r\n", len(body)), body)
	smuggled := "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for name, tt := range map[string]struct {
		send  string
		codes []int
	}{
		"both":                {post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", chunked), []int{400}},
		"both, reversed":      {post("transfer-encoding: chunked\r\ncontent-length: 5\r\n", chunked), []int{400}},
		"both, bare newlines": {strings.ReplaceAll(post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", ""), "\r\n", "\n") + chunked, []int{400}},
		"after a request":     {sized + post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", chunked), []int{200, 400}},
		"after a small one":   {smuggled + sized + post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", chunked), []int{200, 200, 400}},
		"chunked":             {post("Transfer-Encoding: chunked\r\n", chunked) + smuggled, []int{200}},
		"two lengths":         {post("Content-Length: 5\r\nContent-Length: 71\r\n", body), []int{400}},
		"continued line":      {post("Content-Length:\r\n 71\r\n", body), []int{400}},
		"unknown coding":      {post("Transfer-Encoding: gzip, chunked\r\n", chunked), []int{501}},
		"sized":               {sized + sized + sized, []int{200, 200, 200}},
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			t.Run(fmt.Sprint(name, "/", size), func(t *testing.T) {
				served(t, hello(), nil, func(t *testing.T, _ *serve.Server, l *pipeListener) {
					c := l.dial()
					defer c.Close()
					go func() {
						for rest := tt.send; rest != ""; {
							n := min(size, len(rest))
							if _, err := io.WriteString(c, rest[:n]); err != nil {
								return
							}
							rest = rest[n:]
						}
					}()
					in := bufio.NewReader(c)
					codes := tt.codes
					if last := codes[len(codes)-1]; size > 1000 && last == 400 { // all arrive together, so all are refused
						codes = codes[len(codes)-1:]
					}
					for _, want := range codes {
						resp, text := readResponse(t, in)
						require.Equal(t, want, resp.StatusCode, text)
						if want == 200 {
							continue
						}
						require.True(t, resp.Close)
						if strings.HasPrefix(name, "both") {
							apiCases[2].wantError(t, want, text, 400, "invalid_request_error", "ambiguous")
						}
					}
					if tt.codes[len(tt.codes)-1] != 200 || name == "chunked" {
						_, err := in.ReadByte()
						require.Error(t, err, "closed")
					}
				})
			})
		}
	}
}

// TestShutdown checks that running requests end in order, and those that outlast the grace period with an error, however
// their client behaves.
func TestShutdown(t *testing.T) {
	const grace = 10 * time.Second
	for name, tt := range map[string]struct {
		takes  time.Duration // for the engine
		reads  bool
		stream bool
		most   time.Duration
		has    string
	}{
		"in time":                  {5 * time.Second, true, true, 8 * time.Second, "message_stop"},
		"too long":                 {time.Minute, true, true, grace + 3*time.Second, `"overloaded_error"`},
		"whole, too long":          {time.Minute, true, false, grace + 3*time.Second, `"overloaded_error"`},
		"in time, not read":        {5 * time.Second, false, true, grace + 5*time.Second, ""},
		"whole, in time, not read": {5 * time.Second, false, false, grace + 5*time.Second, ""},
		"too long, not read":       {time.Minute, false, true, grace + 5*time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
				return streamed(func(w *io.PipeWriter) {
					time.Sleep(tt.takes)
					io.WriteString(w, whole)
				}), nil
			}}
			quiet := func(o *serve.Options) { o.KeepAlive = time.Hour } // a bubble's time stops while a keep-alive waits for a lock
			served(t, s, quiet, func(t *testing.T, server *serve.Server, l *pipeListener) {
				c := l.dial()
				defer c.Close()
				body := fmt.Sprintf(`{"model":"m","max_tokens":9,"stream":%v,"messages":[{"role":"user","content":"x"}]}`, tt.stream)
				_, err := fmt.Fprintf(c, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
				require.NoError(t, err)
				synctest.Wait()
				got := make(chan string, 1)
				if tt.reads {
					go func() {
						b, err := io.ReadAll(c)
						if err != nil {
							b = []byte(err.Error())
						}
						got <- string(b)
					}()
				}
				begun := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), grace)
				defer cancel()
				server.Shutdown(ctx)
				require.LessOrEqual(t, time.Since(begun), tt.most)
				if tt.reads {
					require.Contains(t, <-got, tt.has)
				}
				time.Sleep(2 * time.Minute) // the engine ends
			})
		})
	}
}

// TestReplace checks that a request that reaches a gateway when it has just been replaced is served by its successor.
func TestReplace(t *testing.T) {
	s := &stub{answer: func(string, *http.Request) (*http.Response, error) { return answerOf(200, whole), nil }}
	first, second := stubbed(t, 1, s, nil), stubbed(t, 1, s, nil)
	defer second.Close()
	server := serve.NewServer(first, nil)
	require.Equal(t, first, server.Replace(second))
	require.NoError(t, first.Drain(t.Context()))
	require.Equal(t, 200, ask(t, first, apiCases[0], true).Code)
	first.Close()
	require.Equal(t, 200, ask(t, first, apiCases[0], true).Code)
	require.Equal(t, second, server.Replace(second), "a gateway does not replace itself")
	require.NoError(t, second.Drain(t.Context()))
	require.Equal(t, 503, ask(t, first, apiCases[0], true).Code)
}

// TestIdleConnectionsOfEngines checks that a request succeeds whose connection the engine closes as it arrives: llama.cpp
// does after 100 requests, and after 5 idle seconds.
func TestIdleConnectionsOfEngines(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // one request for each connection, without saying so
				defer conn.Close()
				in := bufio.NewReader(conn)
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				io.Copy(io.Discard, r.Body)
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", len(whole), whole)
				in.Peek(1) // until the next one arrives
			}()
		}
	}()
	r := start(t, 0, nil, func(o *serve.Options) {
		o.Engines = []serve.Engine{{URL: "http://" + l.Addr().String()}}
		o.HealthInterval, o.Retries = -1, -1
	})
	for range 5 {
		status, _, body := send(t, r.url+apiCases[0].path, apiCases[0].body("go", false))
		require.Equal(t, http.StatusOK, status, body)
	}
}
