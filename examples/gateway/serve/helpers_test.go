// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/sse"
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/mini"
	"github.com/weft-go/weft/tokenizers/prompt"
	"github.com/weft-go/weft/tokenizers/template"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var tok = sync.OnceValue(func() *tokenizers.Tokenizer { return mini.Load() })

// prompts returns a model with the small tokenizer, a template (nil means ChatML) and a family.
func prompts(t testing.TB, tpl template.Template, family string) *prompt.Model {
	t.Helper()
	m, err := prompt.New(tpl, &prompt.Options{Tokenizer: tok(), Family: family})
	require.NoError(t, err)
	return m
}

// hermesModel is the model of most tests.
var hermesModel = sync.OnceValue(func() *prompt.Model {
	m, err := prompt.New(nil, &prompt.Options{Tokenizer: tok(), Family: "hermes"})
	if err != nil {
		panic(err)
	}
	return m
})

// answer is raw output in the form of hermes with reasoning, text and calls.
const answer = "<think>\nI need two looks.\n</think>\n\nLooking.\n" +
	"<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.go\"}}\n</tool_call>\n" +
	"<tool_call>\n{\"name\": \"grep\", \"arguments\": {\"pattern\": \"x+\"}}\n</tool_call>"

// A rig is a gateway with engines, on loopback.
type rig struct {
	url     string
	gateway *serve.Gateway
	engines []*vllm.Engine
	servers []*httptest.Server

	mu      sync.Mutex
	records []serve.Record
	prompts []vllm.Prompt
}

// start serves a gateway in front of n embedded engines that use script.
func start(t testing.TB, n int, script vllm.Script, change func(*serve.Options)) *rig {
	t.Helper()
	r := &rig{}
	opt := serve.Options{Model: "m", Prompts: hermesModel(), OnDone: func(rec serve.Record) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.records = append(r.records, rec)
	}}
	for i := range n {
		e := vllm.New(tok(), &vllm.Options{Model: "m", Adapters: []string{"sql", "law"}, Speed: math.Inf(1), Script: func(p vllm.Prompt) vllm.Reply {
			r.mu.Lock()
			r.prompts = append(r.prompts, p)
			r.mu.Unlock()
			return script(p)
		}})
		s := httptest.NewServer(e)
		t.Cleanup(func() { e.Close(); s.Close() })
		r.engines, r.servers = append(r.engines, e), append(r.servers, s)
		opt.Engines = append(opt.Engines, serve.Engine{Name: fmt.Sprint("e", i), URL: s.URL, Events: e.Events})
	}
	if change != nil {
		change(&opt)
	}
	g, err := serve.New(&opt)
	require.NoError(t, err)
	s := httptest.NewServer(g)
	t.Cleanup(func() {
		g.Close()
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	r.url, r.gateway = s.URL, g
	return r
}

// done waits until n requests have ended and returns their records.
func (r *rig) done(t testing.TB, n int) []serve.Record {
	t.Helper()
	for {
		r.mu.Lock()
		recs := append([]serve.Record(nil), r.records...)
		r.mu.Unlock()
		if len(recs) >= n {
			return recs
		}
		if t.Context().Err() != nil {
			t.Fatal("the request never ended")
		}
		time.Sleep(time.Millisecond)
	}
}

func say(text string) vllm.Script {
	return func(vllm.Prompt) vllm.Reply { return vllm.Reply{Text: text} }
}

// The three APIs, with the same request in each.
type apiCase struct {
	name, path string
	anthropic  bool
}

var apiCases = []apiCase{
	{"chat", "/v1/chat/completions", false},
	{"responses", "/v1/responses", false},
	{"messages", "/v1/messages", true},
}

type object = map[string]any

// body returns a request with one question and two tools.
func (a apiCase) body(question string, stream bool) object {
	schema := func(name string) string {
		return `{"type":"object","properties":{"` + name + `":{"type":"string"}}}`
	}
	tools := func(format string) json.RawMessage { // raw, since the key order affects the prompt
		return json.RawMessage("[" + fmt.Sprintf(format, "read", schema("path")) + "," + fmt.Sprintf(format, "grep", schema("pattern")) + "]")
	}
	b := object{"model": "m", "stream": stream}
	switch a.name {
	case "chat":
		b["messages"] = []any{object{"role": "system", "content": "Be brief."}, object{"role": "user", "content": question}}
		b["tools"] = tools(`{"type":"function","function":{"name":"%s","parameters":%s}}`)
		if stream {
			b["stream_options"] = object{"include_usage": true}
		}
	case "responses":
		b["instructions"], b["input"] = "Be brief.", question
		b["tools"] = tools(`{"type":"function","name":"%s","parameters":%s}`)
	case "messages":
		b["system"], b["max_tokens"] = "Be brief.", 1000
		b["messages"] = []any{object{"role": "user", "content": question}}
		b["tools"] = tools(`{"name":"%s","input_schema":%s}`)
	}
	return b
}

// send posts a body, JSON text or a value to encode, and returns the status, header and body of the response.
func send(t testing.TB, url string, body any, header ...string) (int, http.Header, string) {
	t.Helper()
	text, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		require.NoError(t, err)
		text = string(b)
	}
	resp, answer := do(t, http.MethodPost, url, text, append([]string{"Content-Type", "application/json"}, header...)...)
	return resp.StatusCode, resp.Header, answer
}

// do sends a request and returns the response and its body. header holds names and values in turn.
func do(t testing.TB, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(b)
}

// A frame is one event of a stream.
type frame struct {
	typ  string
	text string
	data object // nil for [DONE]
}

// frames splits a stream. Each frame must be complete, and its type must equal the type in its data, if present.
func frames(t testing.TB, stream string) (out []frame) {
	t.Helper()
	for ev, err := range new(sse.Reader).Events(strings.NewReader(stream)) {
		require.NoError(t, err)
		if ev.Comment {
			continue
		}
		f := frame{typ: string(ev.Type), text: string(ev.Data)}
		if !ev.Done() {
			require.NoError(t, json.Unmarshal(ev.Data, &f.data), "%s", ev.Data)
		}
		out = append(out, f)
	}
	return out
}

// gathered is a response in terms that all APIs share.
type gathered struct {
	Reasoning, Text string
	Calls           []string // name(arguments)
	Finish          string
	Prompt, Cached  int
	Output          int
	Error           string // type of the error event
}

// gather decodes a stream of the API as a client would.
func (a apiCase) gather(t testing.TB, stream string) (w gathered) {
	t.Helper()
	var names, args []string
	num := func(o any, key string) int { n, _ := o.(object)[key].(float64); return int(n) }
	fs := frames(t, stream)
	require.NotEmpty(t, fs, "%q", stream)
	for i, f := range fs {
		last := i == len(fs)-1
		d := f.data
		if e, ok := d["error"].(object); ok && a.name != "responses" {
			require.True(t, last, "the error is the last thing sent")
			w.Error, _ = e["type"].(string)
			break
		}
		str := func(key string) string { s, _ := d[key].(string); return s }
		switch a.name {
		case "chat":
			if f.text == "[DONE]" {
				require.True(t, last)
				break
			}
			require.False(t, last, "the stream ends with [DONE]")
			if f.typ == "tool_call_dispatch" {
				continue
			}
			if u, ok := d["usage"].(object); ok {
				w.Prompt, w.Output, w.Cached = num(u, "prompt_tokens"), num(u, "completion_tokens"), num(u["prompt_tokens_details"], "cached_tokens")
			}
			for _, c := range d["choices"].([]any) {
				c := c.(object)
				delta := c["delta"].(object)
				s, _ := delta["content"].(string)
				w.Text += s
				s, _ = delta["reasoning_content"].(string)
				w.Reasoning += s
				calls, _ := delta["tool_calls"].([]any)
				for _, tc := range calls {
					tc := tc.(object)
					fn := tc["function"].(object)
					if id, _ := tc["id"].(string); id != "" {
						names, args = append(names, fn["name"].(string)), append(args, "")
					}
					s, _ := fn["arguments"].(string)
					args[num(tc, "index")] += s
				}
				if s, ok := c["finish_reason"].(string); ok {
					w.Finish = s
				}
			}
		case "responses":
			require.Equal(t, f.typ, d["type"])
			require.Equal(t, i, num(d, "sequence_number"))
			switch f.typ {
			case "response.reasoning_text.delta", "response.reasoning_summary_text.delta":
				w.Reasoning += str("delta")
			case "response.output_text.delta":
				w.Text += str("delta")
			case "response.output_item.done":
				if item := d["item"].(object); item["type"] == "function_call" {
					names, args = append(names, item["name"].(string)), append(args, item["arguments"].(string))
				}
			case "response.completed", "response.incomplete", "response.failed":
				require.True(t, last)
				r := d["response"].(object)
				w.Finish = r["status"].(string)
				if e, ok := r["error"].(object); ok {
					w.Error, _ = e["code"].(string)
				}
				if u, ok := r["usage"].(object); ok {
					w.Prompt, w.Output, w.Cached = num(u, "input_tokens"), num(u, "output_tokens"), num(u["input_tokens_details"], "cached_tokens")
				}
			}
		case "messages":
			require.Equal(t, f.typ, d["type"])
			switch f.typ {
			case "content_block_start":
				if b := d["content_block"].(object); b["type"] == "tool_use" {
					names, args = append(names, b["name"].(string)), append(args, "")
				}
			case "content_block_delta":
				delta := d["delta"].(object)
				s, _ := delta["text"].(string)
				w.Text += s
				s, _ = delta["thinking"].(string)
				w.Reasoning += s
				if s, ok := delta["partial_json"].(string); ok {
					args[len(args)-1] += s
				}
			case "message_delta":
				w.Finish, _ = d["delta"].(object)["stop_reason"].(string)
				u := d["usage"].(object)
				w.Cached, w.Output = num(u, "cache_read_input_tokens"), num(u, "output_tokens")
				w.Prompt = num(u, "input_tokens") + w.Cached
			}
			require.Equal(t, last, f.typ == "message_stop")
		}
	}
	for i := range names {
		w.Calls = append(w.Calls, names[i]+"("+args[i]+")")
	}
	return w
}

// wantError checks an HTTP error in the form of the API.
func (a apiCase) wantError(t testing.TB, status int, body string, wantStatus int, wantType, has string) {
	t.Helper()
	require.Equal(t, wantStatus, status, body)
	var e struct {
		Type  string
		Error struct {
			Type, Message string
			Param, Code   *string
		}
		RequestID string `json:"request_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &e), body)
	require.Equal(t, wantType, e.Error.Type, body)
	require.Contains(t, e.Error.Message, has)
	if a.anthropic {
		require.Equal(t, "error", e.Type)
		require.NotEmpty(t, e.RequestID)
		return
	}
	require.Contains(t, body, `"param":`)
	require.Contains(t, body, `"code":`)
}

// engineOf serves an engine whose handler is answer and returns its URL.
func engineOf(t testing.TB, answer func(w http.ResponseWriter)) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
	t.Cleanup(s.Close)
	return s.URL
}

// lookup returns a format that is implemented in Go.
func lookup(name string, v variables) template.Template {
	t, err := template.Lookup(name, &template.Options{Variables: v})
	if err != nil {
		panic(err)
	}
	return t
}

type variables = map[string]any
