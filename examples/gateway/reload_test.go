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
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A logSink collects log lines and sends them to a channel.
type logSink struct {
	mu    sync.Mutex
	text  bytes.Buffer
	lines chan string
}

func (s *logSink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.lines <- string(b):
	default:
	}
	return s.text.Write(b)
}

// await returns the next line that contains text.
func (s *logSink) await(t *testing.T, text string) string {
	t.Helper()
	for {
		select {
		case line := <-s.lines:
			if strings.Contains(line, text) {
				return line
			}
		case <-time.After(time.Minute):
			t.Fatalf("no %q in the log: %s", text, s.text.String())
		}
	}
}

// startProgram runs the program and returns its address once it listens. stop ends it as SIGTERM does, and ended then
// gets the result.
func startProgram(t *testing.T, stdout, log io.Writer, args ...string) (addr string, stop func(), ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- run(ctx, args, stdout, log, func(a string) { ready <- a }) }()
	select {
	case addr = <-ready:
	case err := <-done:
		t.Fatal("the program ended: ", err)
	}
	return addr, cancel, done
}

// TestReload checks that SIGHUP applies the configuration without losing a stream, that a bad one changes nothing, and
// that the end waits for running requests of all configurations.
func TestReload(t *testing.T) {
	next := make(chan string)
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // it does not tell what it serves
			w.WriteHeader(map[bool]int{true: 200, false: 404}[r.URL.Path == "/health"])
			return
		}
		w.(http.Flusher).Flush()
		for text := range next {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"text\":%q,\"finish_reason\":null}]}\n\n", text)
			w.(http.Flusher).Flush()
			if text == "end" {
				fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
				return
			}
		}
	}))
	defer engine.Close()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	configure := func(keys string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "model: m\nlisten: 127.0.0.1:0\nkeep_alive: 0.01\nengines: [{kind: vllm, url: %q}]\n%s", engine.URL, keys), 0o600))
	}
	configure("tenants: [{name: a, keys: [one]}]\n")

	sink := &logSink{lines: make(chan string, 1000)}
	addr, cancel, ended := startProgram(t, io.Discard, sink, "-config", file)
	url := "http://" + addr
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	post := func(key string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := client.Do(req)
		require.NoError(t, err)
		return resp
	}
	hangUp := func() {
		t.Helper()
		self, err := os.FindProcess(os.Getpid())
		require.NoError(t, err)
		require.NoError(t, self.Signal(syscall.SIGHUP))
	}
	begun := func(key, text string) *http.Response {
		t.Helper()
		got := make(chan *http.Response)
		go func() { got <- post(key) }()
		select {
		case next <- text:
			return <-got
		case resp := <-got: // a comment that keeps the connection alive may come before the engine reads next
			require.Equal(t, 200, resp.StatusCode)
			select {
			case next <- text:
			case <-time.After(10 * time.Second):
				t.Fatal("the engine has no request")
			}
			return resp
		}
	}
	old := begun("one", "before")
	defer old.Body.Close()

	configure("tenants: [{name: a, keys: [two]}]\n")
	hangUp()
	sink.await(t, "configuration reloaded")
	refused := post("one")
	refused.Body.Close()
	require.Equal(t, 401, refused.StatusCode)
	now := begun("two", "after")
	defer now.Body.Close()
	require.Equal(t, 200, now.StatusCode)

	configure("nonsense: 1\n")
	hangUp()
	require.Contains(t, sink.await(t, "configuration not reloaded"), "nonsense")

	cancel() // as SIGTERM does
	sink.await(t, "gateway draining")
	select {
	case err := <-ended:
		t.Fatal("the gateway ended before its requests: ", err)
	default:
	}
	next <- "end"
	next <- "end"
	for _, resp := range []*http.Response{old, now} {
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Contains(t, string(body), `"end"`)
		require.Contains(t, string(body), "[DONE]")
	}
	require.NoError(t, <-ended)
	_, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.Error(t, err)
}

// TestLog checks the format and the level of the log, and that SIGHUP changes the level.
func TestLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	configure := func(level string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte("model: m\nlisten: 127.0.0.1:0\ntool_call_parser: hermes\nengines: [{kind: embedded, url: local}]\nlog_format: json\nlog_level: "+level), 0o600))
	}
	configure("warn")
	sink := &logSink{lines: make(chan string, 1000)}
	addr, cancel, ended := startProgram(t, io.Discard, sink, "-config", file)
	url := "http://" + addr
	ask := func() {
		t.Helper()
		resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`))
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, 200, resp.StatusCode)
	}
	ask()
	require.Empty(t, sink.lines, "nothing to warn of")
	configure("info")
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	require.NoError(t, self.Signal(syscall.SIGHUP))
	sink.await(t, "configuration reloaded")
	ask()
	var line struct {
		Level, Msg string
		Output     int
	}
	require.NoError(t, json.Unmarshal([]byte(sink.await(t, "request done")), &line))
	require.Equal(t, "INFO", line.Level)
	require.Equal(t, "request done", line.Msg)
	require.Equal(t, 1, line.Output)
	http.DefaultClient.CloseIdleConnections()
	cancel()
	require.NoError(t, <-ended)
	require.Contains(t, sink.await(t, "gateway draining"), `"grace":"30s"`)
}

// TestReloadKeepsResponses checks that SIGHUP keeps stored responses, as many as the new limit permits.
func TestReloadKeepsResponses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	configure := func(size int) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "model: m\nlisten: 127.0.0.1:0\ntool_call_parser: hermes\nengines: [{kind: embedded, url: local}]\nstore_mb: %d\n", size), 0o600))
	}
	configure(1)
	sink := &logSink{lines: make(chan string, 1000)}
	addr, cancel, ended := startProgram(t, io.Discard, sink, "-config", file)
	url := "http://" + addr + "/v1/responses"
	resp, err := http.Post(url, "application/json", strings.NewReader(`{"model":"m","max_output_tokens":1,"input":"x"}`))
	require.NoError(t, err)
	var response struct{ ID string }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&response))
	resp.Body.Close()
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	for _, tt := range []struct{ size, want int }{{2, 200}, {0, 404}, {1, 404}} {
		configure(tt.size)
		require.NoError(t, self.Signal(syscall.SIGHUP))
		sink.await(t, "configuration reloaded")
		resp, err := http.Get(url + "/" + response.ID)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, tt.want, resp.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	require.NoError(t, <-ended)
}
