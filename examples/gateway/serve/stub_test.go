// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
)

// stub is an http.RoundTripper whose engines are functions, for tests in a synctest bubble. It has no connections.
type stub struct {
	answer func(host string, r *http.Request) (*http.Response, error)
	asked  sync.Map // requests by host, *atomic.Int64; without probes
	down   sync.Map // hosts whose probes fail
}

func (s *stub) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/health" {
		if _, down := s.down.Load(r.URL.Host); down {
			return answerOf(503, ""), nil
		}
		return answerOf(200, ""), nil
	}
	n, _ := s.asked.LoadOrStore(r.URL.Host, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	if r.Body != nil {
		defer r.Body.Close()
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
	}
	resp, err := s.answer(r.URL.Host, r)
	if err == nil { // as a transport does
		context.AfterFunc(r.Context(), func() { resp.Body.Close() })
	}
	return resp, err
}

// count returns the number of requests to a host, or to all for "".
func (s *stub) count(host string) (n int) {
	s.asked.Range(func(k, v any) bool {
		if host == "" || k == host {
			n += int(v.(*atomic.Int64).Load())
		}
		return true
	})
	return n
}

func answerOf(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// whole is the stream of a complete response.
var whole = chunkOf("Hello.", "null") + chunkOf("", "stop") + "data: [DONE]\n\n"

// streamed returns a response whose body write writes. Closing the body makes writes fail.
func streamed(write func(w *io.PipeWriter)) *http.Response {
	r, w := io.Pipe()
	go func() {
		write(w)
		w.Close()
	}()
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: r}
}

// stubbed returns a gateway with n engines e0, e1, … whose transport is s.
func stubbed(t testing.TB, n int, s *stub, change func(*serve.Options)) *serve.Gateway {
	t.Helper()
	o := serve.Options{Model: "m", Prompts: hermesModel(), Transport: s}
	for i := range n {
		o.Engines = append(o.Engines, serve.Engine{Name: fmt.Sprint("e", i), URL: fmt.Sprint("http://e", i)})
	}
	if change != nil {
		change(&o)
	}
	g, err := serve.New(&o)
	require.NoError(t, err)
	return g
}

// ask passes a request to a gateway, without a connection.
func ask(t testing.TB, g http.Handler, a apiCase, stream bool, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	g.ServeHTTP(w, request(t, a, stream, header...))
	return w
}

// request returns a request with a question.
func request(t testing.TB, a apiCase, stream bool, header ...string) *http.Request {
	t.Helper()
	body, err := json.Marshal(a.body("go", stream))
	require.NoError(t, err)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, a.path, strings.NewReader(string(body)))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// stuckWriter is the response writer of a client that reads nothing: writes fail at their deadline.
type stuckWriter struct {
	header http.Header
	mu     sync.Mutex
	until  time.Time
	moved  chan struct{}
	began  chan struct{} // closed by the first write
	once   sync.Once
}

func newStuckWriter() *stuckWriter {
	return &stuckWriter{header: http.Header{}, moved: make(chan struct{}), began: make(chan struct{})}
}

func (w *stuckWriter) Header() http.Header             { return w.header }
func (w *stuckWriter) WriteHeader(int)                 {}
func (w *stuckWriter) FlushError() error               { return nil }
func (w *stuckWriter) SetReadDeadline(time.Time) error { return nil }

func (w *stuckWriter) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = t
	close(w.moved)
	w.moved = make(chan struct{})
	return nil
}

func (w *stuckWriter) Write([]byte) (int, error) {
	w.once.Do(func() { close(w.began) })
	for {
		w.mu.Lock()
		until, moved := w.until, w.moved
		w.mu.Unlock()
		var late <-chan time.Time
		if !until.IsZero() {
			if d := time.Until(until); d <= 0 {
				return 0, fmt.Errorf("write: deadline exceeded")
			}
			late = time.After(time.Until(until))
		}
		select {
		case <-late:
		case <-moved:
		}
	}
}
