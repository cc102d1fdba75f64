// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/gateway/serve"
)

// A syncBuffer is a bytes.Buffer for concurrent use.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestLogsHaveNoContent sends texts, keys, hints and broken bodies through each kind of success and failure, and checks
// that the log has none of them at any level, but the reasons.
func TestLogsHaveNoContent(t *testing.T) {
	const secret = "Kaleidoscope"
	sse := func(s string) string { return "data: " + s + "\n\n" }
	engines := map[string]func() (*http.Response, error){
		"answers": func() (*http.Response, error) {
			return answerOf(200, chunkOf(secret+" <tool_call>\\n{\\\"name\\\": \\\"read\\\", \\\"arguments\\\": {\\\"path\\\": \\\""+secret+"\\\"}}\\n</tool_call>", "null")+chunkOf("", "stop")+"data: [DONE]\n\n"), nil
		},
		"breaks":     func() (*http.Response, error) { return answerOf(200, sse(`{"`+secret+`": [`)), nil },
		"wrong type": func() (*http.Response, error) { return answerOf(200, sse(`{"choices": "`+secret+`"}`)), nil },
		"fails in a stream": func() (*http.Response, error) {
			return answerOf(200, sse(`{"error":{"message":"failed: {'prompt': '`+secret+`'}"}}`)), nil
		},
		"refuses": func() (*http.Response, error) {
			return answerOf(400, `{"error":{"message":"cannot compile `+secret+`","type":"BadRequestError","code":400}}`), nil
		},
		"fails": func() (*http.Response, error) {
			return answerOf(500, `{"error":{"message":"worker died; input: '`+secret+`'","type":"InternalServerError","code":500}}`), nil
		},
		"fails with text": func() (*http.Response, error) { return answerOf(502, secret), nil },
		"fails with ids": func() (*http.Response, error) {
			return answerOf(500, `{"error":{"message":"failed for [12345, 67890]"}}`), nil
		},
		"does not answer": func() (*http.Response, error) { return nil, errors.New("connection refused") },
		"knows no such": func() (*http.Response, error) {
			return answerOf(404, `{"error":{"message":"The model m does not exist."}}`), nil
		},
		"wrong engine key": func() (*http.Response, error) { return answerOf(401, `{"error":"Unauthorized"}`), nil },
	}
	var log syncBuffer
	wanted := map[string]string{
		"fails": "worker died", "does not answer": "connection refused", "knows no such": "The model m does not exist.", "wrong engine key": "HTTP 401", "refuses": "HTTP 400",
		"breaks": "chunk of 18 bytes", "fails with text": "HTTP 502, 12 bytes",
	}
	for name, answer := range engines {
		log.b.Reset()
		g := stubbed(t, 1, &stub{answer: func(string, *http.Request) (*http.Response, error) { return answer() }}, func(o *serve.Options) {
			o.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			o.Keys, o.Anonymous = []serve.Key{{Secret: "sk-" + secret}}, true
			o.Engines[0].APIKey = "engine-" + secret
			o.ToolDispatch, o.ReasoningDispatch, o.StripPreamble = true, true, true
		})
		send := func(path, body string, header ...string) {
			t.Helper()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			g.ServeHTTP(httptest.NewRecorder(), r)
		}
		for _, a := range apiCases {
			for _, stream := range []bool{false, true} {
				w := httptest.NewRecorder()
				b := a.body(secret, stream)
				if a.name == "responses" {
					b["instructions"] = secret
				}
				text, err := json.Marshal(b)
				require.NoError(t, err)
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, a.path, bytes.NewReader(text))
				r.Header.Set("Authorization", "Bearer sk-"+secret)
				g.ServeHTTP(w, r)
			}
			send(a.path, `{"model":"m","messages":[{"role":"`+secret+`","content":"x"}],"input":[{"role":"`+secret+`","content":"x"}]}`)
			send(a.path, `{"model":"`+secret+`","messages":[{"role":"user","content":"x"}],"input":"x"}`)
			send(a.path, `{"model":"m","messages":"`+secret+`","input":{"a":"`+secret+`"}}`)
			send(a.path, `{"model":"m","messages":[{"role":"user","content":[{"type":"`+secret+`"}]}],"input":[{"type":"`+secret+`"}]}`)
			send(a.path, `{"model":"m","max_tokens":"`+secret+`","max_output_tokens":"`+secret+`"}`)
			tool := `{"type":"function","name":"` + secret + `","input_schema":{"` + secret + `":1},"parameters":{"type":"` + secret + `"},"function":{"name":"` + secret + `","parameters":{"type":"` + secret + `"}}}`
			for _, choice := range []string{`"` + secret + `"`, `{"type":"tool","name":"` + secret + `"}`, `{"type":"function","name":"x` + secret + `","function":{"name":"x` + secret + `"}}`} {
				send(a.path, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"input":"x","tools":[`+tool+`],"tool_choice":`+choice+`}`)
			}
			send(a.path, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:`+secret+`"}},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+secret+`"}}]}],"input":[{"role":"user","content":[{"type":"input_image","image_url":"`+secret+`"}]}]}`)
			send(a.path, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"input":"x","response_format":{"type":"`+secret+`"},"guided_regex":"`+secret+`","text":{"format":{"type":"`+secret+`"}},"stop":["`+secret+`"]}`)
			send(a.path, secret)
			send(a.path, `{"model":"m" `+secret)
			send(a.path, `{"model":"m"}`, "X-Api-Key", "wrong-"+secret)
			send(a.path, `{"model":"m"}`, "Content-Encoding", secret)
			valid := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"%s"}],"input":"%[1]s","tools":[],"cache_control":{"type":"` + secret + `"},"prompt_cache_key":"` + secret + `","nvext":{"agent_hints":{"osl":"` + secret + `"}},"priority":"` + secret + `"}`
			for i := range 2 { // the second diverges
				send(a.path, fmt.Sprintf(valid, strings.Repeat(fmt.Sprint(i, secret, " "), 50)), "X-Session-Id", "session", "X-Dynamo-Request-Priority", secret, "X-Tenant-Id", secret)
			}
			send(a.path, fmt.Sprintf(valid, "x"), "X-Weft-Tool-Call-Parser", secret)
			send(a.path, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"`+secret+`","signature":"`+secret+`"},{"type":"text","text":"`+secret+`"}]},{"role":"user","content":"b"}],`+
				`"input":[{"type":"reasoning","id":"a","summary":[],"encrypted_content":"`+secret+`"},{"role":"user","content":"x"}]}`)
		}
		g.Close()
		require.Contains(t, log.String(), wanted[name], name)
		for line := range strings.Lines(log.String()) {
			require.NotContains(t, line, secret, name)
			require.NotContains(t, line, "12345, 67890", name)
			var v map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &v), line)
		}
		require.Contains(t, log.String(), `"code":"invalid_api_key"`)
		require.Contains(t, log.String(), `"param":"messages[0].role"`)
	}
}
