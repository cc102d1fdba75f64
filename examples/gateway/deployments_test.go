// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDeployments serves two models of one file, replaces one of them by a reload during a stream of the other, and checks
// the metrics of both.
func TestDeployments(t *testing.T) {
	next := map[string]chan string{"one": make(chan string), "two": make(chan string), "three": make(chan string)}
	engine := func(model string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/v1/models":
				fmt.Fprintf(w, `{"data":[{"id":%q,"owned_by":"vllm","root":"/nowhere","max_model_len":4096}]}`, model)
			case "/v1/completions":
				w.(http.Flusher).Flush()
				for text := range next[model] {
					fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"text\":%q,\"finish_reason\":null}]}\n\n", text+" of "+model)
					w.(http.Flusher).Flush()
					if text == "end" {
						fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
						return
					}
				}
			case "/health":
			default:
				w.WriteHeader(404)
			}
		}))
		t.Cleanup(s.Close)
		return s
	}
	one, two, three := engine("one"), engine("two"), engine("three")
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	configure := func(last string, url string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "listen: 127.0.0.1:0\nkeep_alive: 0.01\ndeployments:\n"+
			"  - {model_dir: mini, tool_call_parser: hermes, engines: [{url: %q}]}\n"+
			"  - {model: %s, aliases: [%[2]s-alias], model_dir: mini, tool_call_parser: qwen3_coder, engines: [{url: %[3]q}]}\n", one.URL, last, url), 0o600))
	}
	configure("two", two.URL)

	var checked bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-config", file, "-check"}, &checked, io.Discard, nil))
	require.Equal(t, "The configuration is valid: one, two\n", checked.String())

	sink := &logSink{lines: make(chan string, 1000)}
	addr, cancel, ended := startProgram(t, io.Discard, sink, "-config", file)
	url := "http://" + addr
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	post := func(model, engine, first string) *http.Response {
		t.Helper()
		got := make(chan *http.Response)
		go func() {
			resp, err := client.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"`+model+`","stream":true,"messages":[{"role":"user","content":"x"}]}`))
			if err != nil {
				t.Error(err)
			}
			got <- resp
		}()
		next[engine] <- first
		return <-got
	}
	rest := func(resp *http.Response) string {
		t.Helper()
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(body)
	}
	require.Contains(t, rest(post("gpt-5", "one", "end")), "end of one", "the first model serves unknown names")
	old := post("two-alias", "two", "begin")

	configure("three", three.URL)
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	require.NoError(t, self.Signal(syscall.SIGHUP))
	sink.await(t, "configuration reloaded")
	require.Contains(t, rest(post("three-alias", "three", "end")), "end of three")
	next["two"] <- "end"
	stream := rest(old)
	require.Contains(t, stream, "begin of two")
	require.Contains(t, stream, "end of two")
	require.Contains(t, stream, "[DONE]")

	resp, err := client.Get(url + "/metrics")
	require.NoError(t, err)
	metrics := rest(resp)
	for _, model := range []string{"one", "two", "three"} {
		require.Contains(t, metrics, `weft_requests_total{api="chat",model="`+model+`",outcome="stop"} 1`)
	}
	require.Contains(t, metrics, `weft_worker_up{model="three",worker="vllm-0"} 1`)
	cancel()
	require.NoError(t, <-ended)
}

// TestCheck checks that -check has all that is wrong, with the model it belongs to.
func TestCheck(t *testing.T) {
	wrong := httptest.NewServer(&told{models: `{"data":[{"id":"other","owned_by":"vllm","root":"/nowhere","max_model_len":100}]}`})
	defer wrong.Close()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	write := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	write(fmt.Sprintf("deployments:\n"+
		"  - {model: a, model_dir: mini, tool_call_parser: hermes, engines: [{kind: vllm, url: \"http://127.0.0.1:1\"}, {kind: vllm, url: %q}]}\n"+
		"  - {model: b, model_dir: nowhere, engines: [{kind: embedded, url: local}]}\n"+
		"  - {model: c, engines: []}\n  - {model: d, engines: [{kind: embedded, url: local}], placement: best}\n", wrong.URL))
	var out bytes.Buffer
	err := run(t.Context(), []string{"-config", file, "-check"}, &out, io.Discard, nil)
	require.Empty(t, out.String())
	require.ErrorContains(t, err, "model 1 (a): ")
	require.ErrorContains(t, err, "127.0.0.1:1")
	require.ErrorContains(t, err, "serves other, not a")
	require.ErrorContains(t, err, "model 2 (b): ")
	require.ErrorContains(t, err, "nowhere")
	require.ErrorContains(t, err, "model 3 (c): no engine")
	require.ErrorContains(t, err, "model 4 (d): placement")

	for text, has := range map[string]string{
		"model: m\ndeployments: [{model: a, engines: [{kind: embedded, url: local}]}]\n":                                          "no engine there",
		"deployments: [{model: a, engines: [{kind: embedded, url: local}], placement: best}]\n":                                   "model 1 (a): placement",
		"deployments: [{model: a, engines: [{kind: vllm, url: x, dialect: klingon}]}]\n":                                          "model 1 (a): config: engine \"x\": ",
		"deployments: [{model: a, engines: [{kind: embedded, url: local}]}, {model: a, engines: [{kind: embedded, url: local}]}]": "duplicate",
		"deployments: [{model: a, engines: []}]\n":                                                                                "no engine",
		"deployments: [{model: a, engine: []}]\n":                                                                                 "unknown field",
	} {
		write(text)
		require.ErrorContains(t, run(t.Context(), []string{"-config", file, "-check"}, io.Discard, io.Discard, nil), has)
	}
}
