// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/router/sim"
	"github.com/weft-go/weft/tokenizers/mini"
)

// TestRequestTrace plays conversations through the program and repeats its trace in the simulator, where the same part of the
// prompts is cached.
func TestRequestTrace(t *testing.T) {
	engine := vllm.New(mini.Load(), &vllm.Options{Model: "m", Speed: math.Inf(1), Script: func(p vllm.Prompt) vllm.Reply {
		return vllm.Reply{Text: strings.Repeat(fmt.Sprintf("Answer to %d tokens. ", len(p.IDs)), 20)}
	}})
	defer engine.Close()
	server := httptest.NewServer(engine)
	defer server.Close()
	name := filepath.Join(t.TempDir(), "trace.jsonl")
	addr, cancel, ended := startProgram(t, io.Discard, io.Discard, "-listen", "127.0.0.1:0", "-model", "m", "-engine", "embedded="+server.URL, "-tool-call-parser", "hermes", "-trace", name)
	defer http.DefaultClient.CloseIdleConnections()
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	chats := make([][]message, 3)
	for turn := range 4 {
		for i := range chats {
			if i == 0 && turn > 0 {
				continue
			}
			chats[i] = append(chats[i], message{"user", strings.Repeat(fmt.Sprintf("Zqsecret question %d. ", turn), 30+20*i*turn)})
			body, err := json.Marshal(map[string]any{"model": "m", "messages": append([]message{{"system", strings.Repeat("Be brief. ", 40)}}, chats[i]...)})
			require.NoError(t, err)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/v1/chat/completions", bytes.NewReader(body))
			require.NoError(t, err)
			r.Header.Set("X-Request-Id", "Zqsecret")
			if i > 0 {
				r.Header.Set("X-Dynamo-Session-Id", fmt.Sprint("Zqsecret-", i))
			}
			if i == 2 {
				r.Header.Set("X-Dynamo-Parent-Session-Id", "Zqsecret-1")
			}
			resp, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			var got struct{ Choices []struct{ Message message } }
			require.NoError(t, json.NewDecoder(resp.Body).Decode(&got))
			resp.Body.Close()
			chats[i] = append(chats[i], got.Choices[0].Message)
		}
	}
	cancel()
	require.NoError(t, <-ended)

	data, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NotContains(t, string(data), "Zqsecret")
	var lines []traceRecord
	for d := json.NewDecoder(bytes.NewReader(data)); d.More(); {
		var l traceRecord
		require.NoError(t, d.Decode(&l))
		lines = append(lines, l)
	}
	require.Equal(t, 9, len(lines))
	require.Nil(t, lines[0].Context)
	require.Equal(t, lines[1].Context.ID, lines[3].Context.ID)
	require.Equal(t, lines[1].Context.ID, lines[2].Context.Parent)
	require.NotEqual(t, lines[1].Context.ID, lines[2].Context.ID)

	var slower bytes.Buffer
	var cached, prompt int64
	for i, l := range lines {
		q := &l.Request
		require.Equal(t, q.Input, q.Replay.Length)
		require.Len(t, q.Replay.Hashes, int(q.Input+15)/16)
		require.NotNil(t, q.Cached)
		require.Positive(t, q.Between)
		require.InDelta(t, q.TTFT, q.Wait+q.Prefill, 0.01)
		require.Less(t, q.TTFT, q.Total)
		require.Equal(t, lines[0].Request.Replay.Hashes[0], q.Replay.Hashes[0], "the common instructions")
		if i > 8/3 { // the rest is not measured
			cached += *q.Cached
			prompt += q.Input
		}
		if i > 0 {
			require.GreaterOrEqual(t, q.Received, lines[i-1].Request.Received)
		}
		q.Received = int64(1000 * i) // several were in the same millisecond
		require.NoError(t, json.NewEncoder(&slower).Encode(l))
	}
	res, err := sim.Run(&sim.Options{Trace: slower.Bytes(), Workers: 1, Load: 0.01})
	require.NoError(t, err)
	require.Equal(t, 6, res.Requests())
	require.Greater(t, res.Hit(), 0.5)
	require.InDelta(t, float64(cached)/float64(prompt), res.Hit(), 1e-9)
	_, _, _, err = sim.Calibrate(data)
	require.NoError(t, err)
}

// TestRequestTraceEnds checks what is not in a trace, and that a file that cannot be written is reported once.
func TestRequestTraceEnds(t *testing.T) {
	var out, log bytes.Buffer
	tr := newRequestTrace(&out, slog.New(slog.NewTextHandler(&log, nil)))
	tr.add(serve.Record{BlockSize: 16, FirstByte: 1})
	tr.add(serve.Record{FirstByte: 1, Usage: event.Tokens{Output: 1}})
	require.Empty(t, out.String(), "no output; a managed endpoint")
	r := serve.Record{BlockSize: 16, FirstByte: 1, Usage: event.Tokens{Prompt: 16, Output: 1, CachedEstimated: true}, Hashes: []uint64{7}}
	tr.add(r)
	require.Contains(t, out.String(), `"output_tokens":1,"request_received_ms"`, "the cached tokens are unknown")
	require.NotContains(t, out.String(), `"input_sequence_hashes":[7]`)
	tr.to = writerFunc(func([]byte) (int, error) { return 0, errors.New("disk full") })
	tr.add(r)
	tr.add(r)
	require.Equal(t, 1, strings.Count(log.String(), "disk full"))
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
