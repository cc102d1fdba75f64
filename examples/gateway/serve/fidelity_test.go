// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
)

// TestFidelity has a row for each requirement of real clients on a server over HTTP. The tests of the same name in
// protocols/chat, /responses and /messages cover stream events. A row that another test of this package covers contains
// its name.
func TestFidelity(t *testing.T) {
	tests := testsHere(t)
	for _, row := range []struct {
		api, name string
		test      func(t *testing.T)
		in        string // name of the test that covers it
	}{
		{"all", "JSON body to stream:true", streamsWhenAsked, ""},
		{"all", "stream:false is part of the contract: clients fall back to it", nil, "TestWholeAnswers"},
		{"all", "cut without end", nil, "TestEngineFailures"},
		{"all", "same tool id reused in later turns", nil, "TestCallIDs"},
		{"all", "HEAD / before the first request", nil, "TestSmallEndpoints"},
		{"all", "404 for an unknown model", nil, "TestRefusedRequests"},
		{"all", "413 for a body that is too large", nil, "TestRefusedRequests"},
		{"all", "401: no credentials are asked for, whatever is sent", anyCredentials, ""},
		{"all", "429/503/529 with retry-after", retryAfter, ""},
		{"all", "500 from the engine", nil, "TestEngineFailures"},
		{"all", "silence before the first token", nil, "TestKeepAlive"},
		{"messages", "?beta=true", nil, "TestStreams"},
		{"messages", "400: unknown beta values and body fields are no reason for one", unknownBetas, ""},
		{"messages", "prompt is too long: N tokens > M maximum", tooLongWording, ""},
		{"messages", "count_tokens", nil, "TestSmallEndpoints"},
		{"messages", "error event mid-stream", nil, "TestEngineFailures"},
		{"messages", "[DONE] leaks", noDone, ""},
		{"responses", "WebSocket", nil, "TestSocket"},
		{"responses", "code context_length_exceeded", contextLengthCode, ""},
		{"responses", "no store, no previous_response_id", nil, "TestStatefulRequestsRefused"},
		{"responses", "keep-alives as comments, no invented event types", nil, "TestKeepAlive"},
		{"responses", "response.failed", nil, "TestEngineFailures"},
		{"responses", "[DONE] leaks", noDone, ""},
		{"chat", "error line mid-stream", nil, "TestEngineFailures"},
		{"chat", "tool_call_dispatch only for those who ask", nil, "TestToolDispatch"},
		{"chat", "a finish reason for each of n answers", nil, "TestChoices"},
	} {
		t.Run(row.api+"/"+row.name, func(t *testing.T) {
			if row.test == nil {
				require.Contains(t, tests, row.in)
				return
			}
			row.test(t)
		})
	}
}

// testsHere returns the names of the tests of this package.
func testsHere(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") {
				out[fn.Name.Name] = true
			}
		}
	}
	return out
}

// streamsWhenAsked: three of four clients fail on a JSON body, and one of them retries forever. An error is JSON with
// an error status.
func streamsWhenAsked(t *testing.T) {
	r := start(t, 1, say(answer), nil)
	for _, a := range apiCases {
		for _, accept := range []string{"application/json", "text/event-stream", "*/*", ""} {
			_, h, text := send(t, r.url+a.path, a.body("x", true), "Accept", accept)
			require.Equal(t, "text/event-stream", h.Get("Content-Type"))
			require.Equal(t, "no-cache", h.Get("Cache-Control"))
			require.Len(t, a.gather(t, text).Calls, 2)
			_, h, _ = send(t, r.url+a.path, a.body("x", false), "Accept", accept)
			require.Equal(t, "application/json", h.Get("Content-Type"))
		}
		bad := a.body("x", true)
		bad["model"] = "nobody"
		status, h, _ := send(t, r.url+a.path, bad)
		require.Equal(t, "application/json", h.Get("Content-Type"))
		require.Equal(t, 404, status)
	}
}

func anyCredentials(t *testing.T) {
	r := start(t, 1, say("fine"), nil)
	for _, a := range apiCases {
		for _, h := range [][]string{nil, {"Authorization", "Bearer dummy"}, {"X-Api-Key", "dummy"}, {"Authorization", "Basic ???"}} {
			status, _, text := send(t, r.url+a.path, a.body("x", true), h...)
			require.Equal(t, 200, status, text)
		}
	}
}

// retryAfter: clients retry after the time in Retry-After.
func retryAfter(t *testing.T) {
	for _, engineStatus := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(engineStatus) }))
		r := start(t, 0, nil, func(o *serve.Options) { o.Engines = []serve.Engine{{URL: engine.URL}} })
		for _, a := range apiCases {
			for _, stream := range []bool{true, false} {
				status, h, text := send(t, r.url+a.path, a.body("x", stream))
				if a.anthropic {
					a.wantError(t, status, text, 529, "overloaded_error", "overloaded")
				} else {
					a.wantError(t, status, text, 503, "server_error", "overloaded")
				}
				require.Equal(t, "1", h.Get("Retry-After"))
			}
		}
		engine.Close()
	}
	r := start(t, 1, say("fine"), func(o *serve.Options) { o.MaxBody = 2000 })
	for _, a := range apiCases { // errors that are not temporary
		status, h, _ := send(t, r.url+a.path, a.body(strings.Repeat("x", 3000), true))
		require.Equal(t, 413, status)
		require.Empty(t, h.Get("Retry-After"))
	}
}

// unknownBetas: after status 400, Claude Code assumes that a beta is not supported and retries without it, up to five
// times.
func unknownBetas(t *testing.T) {
	r := start(t, 1, say("fine"), nil)
	a := apiCases[2]
	body := a.body("x", true)
	body["context_management"] = object{"edits": []any{object{"type": "clear_thinking_20251015", "keep": "all"}, object{"type": "clear_things_20990101"}}}
	body["output_config"], body["thinking"] = object{"effort": "galactic"}, object{"type": "adaptive", "display": "updates"}
	body["something_new"] = object{"a": []any{1}}
	body["container"], body["mcp_servers"], body["metadata"] = nil, []any{}, object{"user_id": "{\"device_id\":\"d\"}", "x": 1}
	body["messages"].([]any)[0].(object)["something_new"] = 1
	status, _, text := send(t, r.url+a.path+"?beta=true&x=y", body,
		"Anthropic-Beta", "claude-code-20250219,interleaved-thinking-2025-05-14,things-nobody-knows-2099-01-01", "Anthropic-Version", "2099-01-01", "X-App", "cli")
	require.Equal(t, 200, status, text)
	require.Equal(t, "fine", a.gather(t, text).Text)
}

// tooLongWording: Claude Code parses the numbers and shortens the conversation or requests less output, also if the
// engine reports the error.
func tooLongWording(t *testing.T) {
	a := apiCases[2]
	long := a.body(strings.Repeat("one two three ", 500), true)
	wording := `"message":"prompt is too long: \d{3,4} tokens > %d maximum"`
	r := start(t, 1, say("x"), func(o *serve.Options) { o.MaxModelLen = 600 })
	status, _, text := send(t, r.url+a.path, long)
	a.wantError(t, status, text, 400, "invalid_request_error", "prompt is too long")
	require.Regexp(t, fmt.Sprintf(wording, 600), text)

	small := vllm.New(tok(), &vllm.Options{Model: "m", MaxModelLen: 500})
	engine := httptest.NewServer(small)
	defer func() { small.Close(); engine.Close() }()
	r = start(t, 0, nil, func(o *serve.Options) { o.Engines = []serve.Engine{{URL: engine.URL}} })
	status, _, text = send(t, r.url+a.path, long)
	a.wantError(t, status, text, 400, "invalid_request_error", "prompt is too long")
	require.Regexp(t, fmt.Sprintf(wording, 500), text)
	for _, a := range apiCases { // the prompt fits, but not with the output
		words := `maximum context length is 500 tokens\. However, you requested \d+ tokens \(\d{3} in the messages, \d+ in the completion\)`
		if a.anthropic {
			words = "input length and `max_tokens` exceed context limit: \\d{3} \\+ 1000 > 500, decrease input length"
		}
		status, _, text = send(t, r.url+a.path, a.body("short", true))
		a.wantError(t, status, text, 400, "invalid_request_error", "")
		require.Regexp(t, words, text)
	}
}

// contextLengthCode: Codex reports the error instead of retrying.
func contextLengthCode(t *testing.T) {
	r := start(t, 1, say("x"), func(o *serve.Options) { o.MaxModelLen = 600 })
	for _, a := range apiCases[:2] {
		status, _, text := send(t, r.url+a.path, a.body(strings.Repeat("one two three ", 500), true))
		a.wantError(t, status, text, 400, "invalid_request_error", "maximum context length is 600 tokens")
		require.Contains(t, text, `"code":"context_length_exceeded"`)
	}
}

// noDone: only the Chat Completions API has [DONE].
func noDone(t *testing.T) {
	r := start(t, 1, say(answer), nil)
	for _, a := range apiCases[1:] {
		_, _, text := send(t, r.url+a.path, a.body("x", true))
		require.NotContains(t, text, "[DONE]")
	}
}
