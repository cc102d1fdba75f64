// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
)

// A transport is a way in which clients speak to the server.
type transport struct {
	name   string
	server *serve.ServerOptions
	client func() *http.Transport
	scheme string
	major  int
}

// transports returns the ways that a server has besides HTTP/1.1 without TLS.
func transports(t testing.TB) []transport {
	s := httptest.NewTLSServer(nil)
	s.Close()
	trust := s.Client().Transport.(*http.Transport).TLSClientConfig
	secure := &serve.ServerOptions{TLS: &tls.Config{Certificates: s.TLS.Certificates}}
	speak := func(set func(p *http.Protocols)) func() *http.Transport {
		return func() *http.Transport {
			c := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: trust.Clone(), HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}}
			set(c.Protocols)
			return c
		}
	}
	return []transport{
		{name: "h2c", server: &serve.ServerOptions{H2C: true}, client: speak(func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }), scheme: "http", major: 2},
		{name: "h2 over TLS", server: secure, client: speak(func(p *http.Protocols) { p.SetHTTP2(true) }), scheme: "https", major: 2},
		{name: "HTTP/1.1 over TLS", server: secure, client: speak(func(p *http.Protocols) { p.SetHTTP1(true) }), scheme: "https", major: 1},
		{name: "HTTP/1.1, with h2c", server: &serve.ServerOptions{H2C: true}, client: speak(func(p *http.Protocols) { p.SetHTTP1(true) }), scheme: "http", major: 1},
	}
}

// dial returns a client whose connections come from an address.
func (tr *transport) dial(l *pipeListener, from string) *http.Client {
	c := tr.client()
	c.DialContext = func(context.Context, string, string) (net.Conn, error) { return l.dialFrom(from), nil }
	return &http.Client{Transport: c}
}

// post sends a request of a to the server.
func (tr *transport) post(t testing.TB, c *http.Client, a apiCase, body io.Reader) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, tr.scheme+"://example.com"+a.path, body)
	require.NoError(t, err)
	return c.Do(r)
}

func bodyOf(a apiCase, stream bool) io.Reader {
	field := `"messages":[{"role":"user","content":"x"}]`
	if a.name == "responses" {
		field = `"input":"x"`
	}
	return strings.NewReader(fmt.Sprintf(`{"model":"m","max_tokens":9,"stream":%v,%s}`, stream, field))
}

// TestTransports checks that the APIs are served over HTTP/2, without TLS and with it, and over HTTP/1.1 with TLS.
func TestTransports(t *testing.T) {
	for _, tr := range transports(t) {
		t.Run(tr.name, func(t *testing.T) {
			servedWith(t, tr.server, hello(), nil, func(t *testing.T, _ *serve.Server, l *pipeListener) {
				c := tr.dial(l, "192.0.2.1")
				defer c.CloseIdleConnections()
				for _, a := range apiCases {
					resp, err := tr.post(t, c, a, bodyOf(a, true))
					require.NoError(t, err)
					body, err := io.ReadAll(resp.Body)
					require.NoError(t, err)
					resp.Body.Close()
					require.Equal(t, tr.major, resp.ProtoMajor)
					require.Equal(t, "Hello.", a.gather(t, string(body)).Text)
				}
			})
		})
	}
}

// TestH2CIsOptional checks that HTTP/2 without TLS is refused by default.
func TestH2CIsOptional(t *testing.T) {
	tr := transports(t)[0]
	served(t, hello(), nil, func(t *testing.T, _ *serve.Server, l *pipeListener) {
		c := tr.dial(l, "192.0.2.1")
		defer c.CloseIdleConnections()
		_, err := tr.post(t, c, apiCases[0], bodyOf(apiCases[0], true))
		require.Error(t, err)
	})
}

// TestTransportLimits checks that the limits for slow clients hold over every transport.
func TestTransportLimits(t *testing.T) {
	long := chunkOf(strings.Repeat("word ", 200_000), "null") + chunkOf("", "stop") + "data: [DONE]\n\n"
	quiet := func(o *serve.Options) { o.KeepAlive = time.Hour } // a bubble's time stops while a keep-alive waits for a lock
	for _, tr := range transports(t) {
		run := func(name string, s *stub, test func(t *testing.T, c *http.Client, l *pipeListener)) {
			t.Run(tr.name+"/"+name, func(t *testing.T) {
				servedWith(t, tr.server, s, quiet, func(t *testing.T, _ *serve.Server, l *pipeListener) {
					c := tr.dial(l, "192.0.2.1")
					defer c.CloseIdleConnections()
					test(t, c, l)
				})
			})
		}
		run("nothing is sent", hello(), func(t *testing.T, _ *http.Client, l *pipeListener) {
			conn, begun := l.dialFrom("192.0.2.1"), time.Now()
			io.Copy(io.Discard, conn)
			require.LessOrEqual(t, time.Since(begun), 20*time.Second)
		})
		run("idle", hello(), func(t *testing.T, c *http.Client, l *pipeListener) {
			var conn net.Conn
			c.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
				conn = l.dialFrom("192.0.2.1")
				return conn, nil
			}
			resp, err := tr.post(t, c, apiCases[0], bodyOf(apiCases[0], false))
			require.NoError(t, err)
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			time.Sleep(time.Minute)
			_, err = conn.Write(nil)
			require.NoError(t, err)
			time.Sleep(2 * time.Minute)
			_, err = conn.Write([]byte("x"))
			require.ErrorIs(t, err, io.ErrClosedPipe)
		})
		run("large header", hello(), func(t *testing.T, c *http.Client, l *pipeListener) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, tr.scheme+"://example.com/v1/messages", bodyOf(apiCases[2], false))
			require.NoError(t, err)
			r.Header.Set("X-Long", strings.Repeat("x", 200<<10))
			resp, err := c.Do(r)
			if err == nil {
				resp.Body.Close()
				require.Equal(t, 431, resp.StatusCode)
			}
		})
		run("slow body", hello(), func(t *testing.T, c *http.Client, l *pipeListener) {
			in, out := io.Pipe()
			defer out.Close()
			begun := time.Now()
			go out.Write([]byte(`{"model`))
			resp, err := tr.post(t, c, apiCases[2], in)
			if err == nil {
				resp.Body.Close()
				require.Equal(t, 408, resp.StatusCode)
			}
			require.Equal(t, time.Minute, time.Since(begun))
		})
		for _, stream := range []bool{false, true} {
			slow := &stub{answer: func(string, *http.Request) (*http.Response, error) {
				return streamed(func(w *io.PipeWriter) {
					time.Sleep(5 * time.Minute)
					io.WriteString(w, chunkOf("Hel", "null"))
					time.Sleep(5 * time.Minute)
					io.WriteString(w, chunkOf("lo.", "null")+chunkOf("", "stop")+"data: [DONE]\n\n")
				}), nil
			}}
			run(fmt.Sprint("slow engine, stream=", stream), slow, func(t *testing.T, c *http.Client, l *pipeListener) {
				resp, err := tr.post(t, c, apiCases[2], bodyOf(apiCases[2], stream))
				require.NoError(t, err)
				defer resp.Body.Close()
				got, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Regexp(t, `(?s)Hel.*lo\.`, string(got))
			})
			s := &stub{answer: func(string, *http.Request) (*http.Response, error) { return answerOf(200, long), nil }}
			run(fmt.Sprint("response is not read, stream=", stream), s, func(t *testing.T, c *http.Client, l *pipeListener) {
				body := strings.NewReader(fmt.Sprintf(`{"model":"m","stream":%v,"max_tokens":100000,"messages":[{"role":"user","content":"x"}]}`, stream))
				resp, err := tr.post(t, c, apiCases[0], body)
				require.NoError(t, err)
				defer resp.Body.Close()
				time.Sleep(35 * time.Second)
				got, err := io.ReadAll(resp.Body)
				require.Error(t, err)
				require.Less(t, len(got), 600_000)
			})
		}
	}
}

// TestClosedWindow checks that an HTTP/2 request is reset if the client does not accept the end of its response, which the
// server writes when the handler has returned.
func TestClosedWindow(t *testing.T) {
	servedWith(t, &serve.ServerOptions{H2C: true}, hello(), nil, func(t *testing.T, _ *serve.Server, l *pipeListener) {
		c, begun := l.dialFrom("192.0.2.1"), time.Now()
		defer c.Close()
		head := "\x82\x86\x44\x0a/v1/models\x41\x09localhost"
		_, err := io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+
			"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00"+ // SETTINGS: a window of 0 bytes
			"\x00\x00"+string(rune(len(head)))+"\x01\x05\x00\x00\x00\x01"+head) // HEADERS of the whole request
		require.NoError(t, err)
		for {
			var frame [9]byte
			_, err := io.ReadFull(c, frame[:])
			require.NoError(t, err)
			_, err = io.CopyN(io.Discard, c, int64(frame[0])<<16|int64(frame[1])<<8|int64(frame[2]))
			require.NoError(t, err)
			if frame[3] == 3 { // RST_STREAM
				break
			}
		}
		require.Equal(t, 30*time.Second, time.Since(begun))
	})
}

// TestTransportShutdown checks that running requests end in order, and that the server ends in time although another
// client does not.
func TestTransportShutdown(t *testing.T) {
	for _, tr := range transports(t) {
		t.Run(tr.name, func(t *testing.T) {
			takes := make(chan time.Duration, 2)
			s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
				return streamed(func(w *io.PipeWriter) {
					time.Sleep(<-takes)
					io.WriteString(w, whole)
				}), nil
			}}
			servedWith(t, tr.server, s, nil, func(t *testing.T, server *serve.Server, l *pipeListener) {
				c := tr.dial(l, "192.0.2.1")
				defer c.CloseIdleConnections()
				var got sync.Map
				var running sync.WaitGroup
				for i, d := range []time.Duration{5 * time.Second, time.Minute} {
					takes <- d
					running.Go(func() {
						resp, err := tr.post(t, c, apiCases[2], bodyOf(apiCases[2], true))
						if err != nil {
							got.Store(i, err.Error())
							return
						}
						body, _ := io.ReadAll(resp.Body)
						resp.Body.Close()
						got.Store(i, string(body))
					})
					synctest.Wait()
				}
				begun := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				server.Shutdown(ctx)
				require.LessOrEqual(t, time.Since(begun), 15*time.Second)
				running.Wait()
				first, _ := got.Load(0)
				require.Contains(t, first, "message_stop")
				second, _ := got.Load(1)
				require.Contains(t, second, `"overloaded_error"`)
				time.Sleep(time.Minute)
			})
		})
	}
}

// TestPerAddress checks that each address has a limit of connections and requests, apart from this machine.
func TestPerAddress(t *testing.T) {
	var log bytes.Buffer
	o := &serve.ServerOptions{H2C: true, PerAddress: 3, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	open := func(l *pipeListener, from string) (c net.Conn, ok bool) {
		c = l.dialFrom(from)
		go io.WriteString(c, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		return c, err == nil && resp.StatusCode == 200
	}
	servedWith(t, o, hello(), nil, func(t *testing.T, _ *serve.Server, l *pipeListener) {
		for _, from := range []string{"192.0.2.%d", "2001:db8:0:%d::1"} {
			one, other := fmt.Sprintf(from, 1), fmt.Sprintf(from, 2)
			var conns []net.Conn
			for range 3 {
				c, ok := open(l, one)
				require.True(t, ok)
				conns = append(conns, c)
			}
			_, ok := open(l, one)
			require.False(t, ok)
			c, ok := open(l, other)
			require.True(t, ok)
			c.Close()
			conns[0].Close()
			synctest.Wait()
			c, ok = open(l, one)
			require.True(t, ok)
			for _, c := range append(conns, c) {
				c.Close()
			}
		}
		var conns []net.Conn
		for i := range 4 {
			c, ok := open(l, fmt.Sprintf("2001:db8:1:1::%d", i))
			require.Equal(t, i < 3, ok, "they are of one network")
			conns = append(conns, c)
		}
		for range 10 {
			c, ok := open(l, "127.0.0.1")
			require.True(t, ok)
			conns = append(conns, c)
		}
		for _, c := range conns {
			c.Close()
		}
		require.Equal(t, 1, strings.Count(log.String(), "connections refused"), "a flood is not logged line by line")
		require.Contains(t, log.String(), "192.0.2.1/32")
	})

	s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
		return streamed(func(w *io.PipeWriter) {
			time.Sleep(time.Second)
			io.WriteString(w, whole)
		}), nil
	}}
	tr := transports(t)[0]
	servedWith(t, o, s, nil, func(t *testing.T, _ *serve.Server, l *pipeListener) {
		c := tr.dial(l, "192.0.2.1") // one connection
		defer c.CloseIdleConnections()
		ask := func() {
			resp, err := tr.post(t, c, apiCases[2], bodyOf(apiCases[2], false))
			require.NoError(t, err)
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			require.Equal(t, 200, resp.StatusCode)
		}
		ask() // the client would open a connection for each request until one is there
		codes := make(chan int, 5)
		for range 5 {
			go func() {
				resp, err := tr.post(t, c, apiCases[2], bodyOf(apiCases[2], false))
				if err != nil {
					codes <- 0
					return
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if codes <- resp.StatusCode; resp.StatusCode != 200 {
					apiCases[2].wantError(t, resp.StatusCode, string(body), 429, "rate_limit_error", "Too many requests of your address")
				}
			}()
		}
		n := map[int]int{}
		for range 5 {
			n[<-codes]++
		}
		require.Equal(t, map[int]int{200: 3, 429: 2}, n)
		ask()
	})
}

// TestTLSErrors checks that clients without TLS get a reason, and that old versions of TLS are refused.
func TestTLSErrors(t *testing.T) {
	var log bytes.Buffer
	tr := transports(t)[1]
	o := *tr.server
	o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	servedWith(t, &o, hello(), nil, func(t *testing.T, _ *serve.Server, l *pipeListener) {
		c := l.dial()
		go io.WriteString(c, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Contains(t, string(got), "400 Bad Request")
		require.Contains(t, string(got), "HTTPS")

		old := tls.Client(l.dial(), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})
		require.ErrorContains(t, old.Handshake(), "protocol version")
		old.Close()
		synctest.Wait()
		require.Equal(t, 2, strings.Count(log.String(), "TLS handshake failed"), log.String())
	})
}
