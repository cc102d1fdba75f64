// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server is an engine that returns scripted output, turn by turn.
type server struct {
	*httptest.Server
	replies []func(*stream)

	mu      sync.Mutex
	prompts []string
}

// A stream writes one response.
type stream struct {
	http.ResponseWriter
	ctx context.Context
}

// say sends a piece of output.
func (s *stream) say(text string) { s.chunk(text, "") }

func (s *stream) chunk(text, finish string) {
	c := map[string]any{"index": 0, "text": text, "finish_reason": nil}
	if finish != "" {
		c["finish_reason"] = finish
	}
	b, _ := json.Marshal(map[string]any{"choices": []any{c}}) // always encodes
	fmt.Fprintf(s, "data: %s\n\n", b)
	s.ResponseWriter.(http.Flusher).Flush()
}

// end sends the last chunk and [DONE].
func (s *stream) end(finish string) {
	s.chunk("", finish)
	io.WriteString(s, "data: [DONE]\n\n")
}

// wait blocks until c is closed or the client disconnects. After 20 seconds it breaks the stream, which fails the test.
func (s *stream) wait(c <-chan struct{}) {
	select {
	case <-c:
	case <-s.ctx.Done():
	case <-time.After(20 * time.Second):
		panic(http.ErrAbortHandler)
	}
}

func reply(text string) func(*stream) {
	return func(s *stream) { s.say(text); s.end("stop") }
}

func calls(name, args string) string {
	return fmt.Sprintf("<tool_call>\n{\"name\": %q, \"arguments\": %s}\n</tool_call>", name, args)
}

// newServer serves each request with the next of turns, and repeats the last one.
func newServer(t *testing.T, turns ...func(*stream)) *server {
	s := &server{replies: turns}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Prompt string
			Stream bool
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || !req.Stream || r.URL.Path != "/v1/completions" {
			http.Error(w, "not what a harness should send", http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		n := len(s.prompts)
		s.prompts = append(s.prompts, req.Prompt)
		s.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		s.replies[min(n, len(s.replies)-1)](&stream{w, r.Context()})
	}))
	t.Cleanup(s.Close)
	return s
}

// agent returns an agent for s, and the notices that it sends.
func (s *server) agent(t *testing.T, tools ...tool) (*agent, *[]notice) {
	m, err := load("", "hermes")
	require.NoError(t, err)
	a, err := newAgent(m, toolbox{tools: append(tools, fileTools()...), dir: fstest.MapFS{
		"a.txt":     {Data: []byte("one\ntwo\n")},
		"sub/b.txt": {Data: []byte("two and more\n")},
	}})
	require.NoError(t, err)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	a.engine = engine{url: s.URL, client: &http.Client{Transport: transport}, maxTokens: 1000}
	var mu sync.Mutex
	var seen []notice
	a.see = func(n notice) { mu.Lock(); seen = append(seen, n); mu.Unlock() }
	return a, &seen
}

// responses returns the tool results in the last prompt.
func (s *server) responses() (out []string) {
	_, text, _ := strings.Cut(s.prompts[len(s.prompts)-1], "<tool_response>\n")
	for text != "" {
		var r string
		r, text, _ = strings.Cut(text, "\n</tool_response>")
		out = append(out, r)
		_, text, _ = strings.Cut(text, "<tool_response>\n")
	}
	return out
}

func act(name string, run func(ctx context.Context, a arguments) (string, error)) tool {
	return tool{name, "", `{"type":"object"}`, func(ctx context.Context, _ fs.FS, a arguments) (string, error) {
		return run(ctx, a)
	}}
}

func TestToolStartsDuringStream(t *testing.T) {
	started := make(chan struct{})
	s := newServer(t, func(w *stream) {
		w.say("<think>\nLook.\n</think>\n\nLooking. " + calls("knock", `{}`))
		w.wait(started) // no more output before the tool runs
		w.say("\nAnd on I go.")
		w.end("stop")
	}, reply("Done."))
	a, seen := s.agent(t, act("knock", func(context.Context, arguments) (string, error) {
		close(started)
		return "who is there", nil
	}))
	require.NoError(t, a.run(t.Context(), "Knock."))

	require.Len(t, a.turns, 2)
	c := a.turns[0].calls[0]
	require.Less(t, c.complete, a.turns[0].ended)
	var kinds []string
	for _, n := range *seen {
		if n.kind != "result" { // at any time
			kinds = append(kinds, n.kind)
		}
	}
	require.Equal(t, []string{"reasoning", "text", "start", "text", "end", "text", "end"}, kinds)
	require.Equal(t, []string{"who is there"}, s.responses())
	require.Contains(t, s.prompts[1], "<|im_start|>assistant\n<think>\nLook.\n</think>\n\nLooking. ")
	require.Contains(t, s.prompts[1], calls("knock", `{}`)+"<|im_end|>")
}

// Two tools wait for each other; the first one ends last.
func TestToolsRunConcurrentlyInOrder(t *testing.T) {
	first, second := make(chan struct{}), make(chan struct{})
	meet := func(ctx context.Context, other <-chan struct{}) (string, error) {
		select {
		case <-other:
			return "met", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	s := newServer(t, reply(calls("a", `{}`)+"\n"+calls("b", `{}`)+"\n"+calls("list_files", `{}`)), reply("Done."))
	a, _ := s.agent(t,
		act("a", func(ctx context.Context, _ arguments) (string, error) {
			close(first)
			return meet(ctx, second)
		}),
		act("b", func(ctx context.Context, _ arguments) (string, error) {
			defer close(second)
			out, err := meet(ctx, first)
			return "well " + out, err
		}))
	require.NoError(t, a.run(t.Context(), "Meet."))
	require.Equal(t, []string{"met", "well met", "a.txt 8 bytes\nsub/"}, trim(s.responses()))
}

func trim(list []string) []string {
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

func TestFailuresBecomeResults(t *testing.T) {
	cut := `<tool_call>` + "\n" + `{"name": "search", "arguments": {"pattern": "tw`
	for _, c := range []struct {
		name, output, finish string
		want                 []string
	}{
		{"cut by the token limit", calls("list_files", `{"path":"sub"}`) + "\n" + cut, "length",
			[]string{"b.txt 13 bytes", `error: the call of "search" was not run: truncated. Nothing happened; write the whole call again.`}},
		{"not JSON", "<tool_call>\n{\"name\": \"search\", \"arguments\": {oops}}\n</tool_call>", "stop",
			[]string{`error: the call of "search" was not run: bad_arguments. Nothing happened; write the whole call again.`}},
		{"unknown tool", calls("fly", `{}`), "stop", []string{`error: unknown tool "fly"`}},
		{"tool error", calls("read_file", `{"path":"nowhere"}`), "stop", []string{"error: open nowhere: file does not exist"}},
		{"arguments of a wrong type", calls("read_file", `{"path":7}`), "stop",
			[]string{"error: json: cannot unmarshal number into Go struct field arguments.Path of type string"}},
		{"outside", calls("read_file", `{"path":"sub/../../x"}`), "stop", []string{"error: ../x is outside the directory"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, func(w *stream) { w.say(c.output); w.end(c.finish) }, reply("I see."))
			a, seen := s.agent(t)
			require.NoError(t, a.run(t.Context(), "Try."))
			require.Equal(t, c.want, trim(s.responses()))
			require.NotContains(t, s.prompts[1], `"tw`, "what was cut does not go back as if it were a call")
			for _, n := range *seen {
				require.False(t, n.kind == "start" && n.call.why != 0)
			}
		})
	}
}

// A call inside reasoning is not run.
func TestCallInReasoningNotRun(t *testing.T) {
	s := newServer(t, reply("<think>\nI could say "+calls("list_files", `{}`)+" here.\n</think>\n\nNo need."))
	a, seen := s.agent(t)
	require.NoError(t, a.run(t.Context(), "Think."))
	require.Len(t, s.prompts, 1)
	for _, n := range *seen {
		require.NotEqual(t, "start", n.kind)
	}
}

func TestStreamBreaks(t *testing.T) {
	abort := func(w *stream) { panic(http.ErrAbortHandler) }
	t.Run("after calls", func(t *testing.T) {
		s := newServer(t, func(w *stream) {
			w.say(calls("list_files", `{}`) + "<tool_call>\n{\"name\": \"sea")
			abort(w)
		}, reply("Fine."))
		a, _ := s.agent(t)
		require.NoError(t, a.run(t.Context(), "Look."))
		require.Len(t, s.responses(), 2)
		require.Equal(t, "a.txt 8 bytes\nsub/\n", s.responses()[0])
		require.Contains(t, s.responses()[1], "was not run: truncated")
	})
	for _, c := range []struct {
		name, want string
		output     func(*stream)
	}{
		{"in text", "turn 1: read stream: sse: read: unexpected EOF after 1 event (70 bytes)", func(w *stream) { w.say("Well, "); abort(w) }},
		{"without a finish", "turn 1: read stream: no finish reason", func(w *stream) { w.say("Well, ") }},
		{"reported", "turn 1: engine: out of memory",
			func(w *stream) { io.WriteString(w, "data: {\"error\":{\"message\":\"out of memory\"}}\n\n") }},
		{"aborted", "turn 1: engine: request aborted", func(w *stream) { w.end("abort") }},
		{"refused", "turn 1: engine: 503 Service Unavailable: later",
			func(w *stream) { http.Error(w, "later", http.StatusServiceUnavailable) }},
		{"nonsense", `turn 1: chunk "{": unexpected end of JSON input`, func(w *stream) { io.WriteString(w, "data: {\n\n") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, c.output)
			a, _ := s.agent(t)
			require.EqualError(t, a.run(t.Context(), "Look."), c.want)
			require.Empty(t, a.turns)
		})
	}
}

// Cancellation while the stream and a tool run; TestMain checks that no goroutine is left.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("that is enough")
	s := newServer(t, func(w *stream) { w.say(calls("sleep", `{}`)); w.wait(nil) })
	ended := false
	a, _ := s.agent(t, act("sleep", func(ctx context.Context, _ arguments) (string, error) {
		cancel(stop)
		<-ctx.Done()
		ended = true // read below without a lock: run must not return earlier
		return "", ctx.Err()
	}))
	require.ErrorIs(t, a.run(ctx, "Sleep."), stop)
	require.True(t, ended)
	require.Len(t, s.prompts, 1)
}

func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name, want string
		output     func(*stream)
	}{
		{"never", "no answer after 3 turns", reply(calls("list_files", `{}`))},
		{"cut", "response truncated at the token limit", func(w *stream) { w.say("Well, "); w.end("length") }},
		{"silent", "the model ended without an answer", reply("<think>\nHm.\n</think>\n\n")},
		{"empty", "the model ended without an answer", reply("")},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, c.output)
			a, _ := s.agent(t)
			a.maxTurns = 3
			require.EqualError(t, a.run(t.Context(), "Look."), c.want)
		})
	}
}

// Calls beyond the limit are dropped; complete calls before it run.
func TestRunawayCalls(t *testing.T) {
	s := newServer(t, reply(strings.Repeat(calls("list_files", `{}`), 100)), reply("Sorry."))
	a, _ := s.agent(t)
	require.NoError(t, a.run(t.Context(), "Look."))
	require.Len(t, a.turns[0].calls, 64)
}

func TestXMLFamily(t *testing.T) {
	call := "<tool_call>\n<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=from>\n2\n</parameter>\n" +
		"</function>\n</tool_call>"
	s := newServer(t, reply(call), reply("Done."))
	a, _ := s.agent(t)
	m, err := load("", "qwen3-coder")
	require.NoError(t, err)
	b, err := newAgent(m, a.tools)
	require.NoError(t, err)
	b.engine = a.engine
	require.NoError(t, b.run(t.Context(), "Read."))
	require.Equal(t, []string{"2  two"}, trim(s.responses()))
	require.Contains(t, s.prompts[1], call)

	_, err = load("", "harmony")
	require.ErrorContains(t, err, "set -model-dir")
	_, err = load("", "klingon")
	require.ErrorContains(t, err, "klingon")
}
