// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/tokenizers/template"
)

// This file tests unusual requests of harnesses and unusual behavior of engines and templates.
// TestPromptsGrowPastToolSearch covers tools that are declared late.

// prompt sends a body and returns the prompt that the engine received.
func (r *rig) prompt(t testing.TB, path string, body any) string {
	t.Helper()
	status, _, text := send(t, r.url+path, body)
	require.Equal(t, 200, status, text)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.prompts[len(r.prompts)-1].Text
}

// A tool call and its result, for the Messages API.
const (
	toolUse    = `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{"a":1}}]}`
	toolResult = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"r"}]}`
)

func messagesBody(msgs ...string) string {
	return `{"model":"m","max_tokens":50,"system":"S","messages":[` + strings.Join(msgs, ",") + `],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`
}

// strict is a template that raises an error for system text after the first turn, as Qwen3.5's does; silent omits such
// text.
type strict struct{ template.Template }

func late(msgs []byte) (kept []json.RawMessage, found bool) {
	var list []json.RawMessage
	if json.Unmarshal(msgs, &list) != nil {
		return nil, false
	}
	for i, m := range list {
		var role struct{ Role string }
		if json.Unmarshal(m, &role) == nil && i > 0 && role.Role == "system" {
			found = true
			continue
		}
		kept = append(kept, m)
	}
	return kept, found
}

func (s strict) Render(r template.Request) (*template.Prompt, error) {
	if _, found := late(r.Messages); found {
		return nil, errors.New("System message must be at the beginning.")
	}
	return s.Template.Render(r)
}

type silent struct{ template.Template }

func (s silent) Render(r template.Request) (*template.Prompt, error) {
	kept, _ := late(r.Messages)
	var err error
	if r.Messages, err = json.Marshal(kept); err != nil {
		return nil, err
	}
	return s.Template.Render(r)
}

// TestSystemInTheMiddle sends system text as the second message and after results: as a list of blocks while it is the
// last message, as a string later. Whether or not the template accepts it, the prompt before it must not change.
func TestSystemInTheMiddle(t *testing.T) {
	for name, template := range map[string]template.Template{"lenient": nil, "strict": strict{lookup("chatml", nil)}, "silent": silent{lookup("chatml", nil)}} {
		t.Run(name, func(t *testing.T) {
			r := start(t, 1, say("fine"), func(o *serve.Options) { o.Prompts = prompts(t, template, "hermes") })
			ask, env := `{"role":"user","content":"go"}`, `{"role":"system","content":"ENV"}`
			blocks := `{"role":"system","content":[{"type":"text","text":"ENV","cache_control":{"type":"ephemeral"}}]}`
			more := `{"role":"system","content":[{"type":"text","text":"MORE"}]}`
			first := r.prompt(t, "/v1/messages", messagesBody(ask, blocks))
			require.Contains(t, first, "ENV")
			second := r.prompt(t, "/v1/messages", messagesBody(ask, env, toolUse, toolResult))
			require.True(t, strings.HasPrefix(second, strings.TrimSuffix(first, "<|im_start|>assistant\n")), "%s\n---\n%s", first, second)
			withThinking := strings.Replace(toolUse, `[`, `[{"type":"thinking","thinking":"HM","signature":"s"},`, 1)
			third := r.prompt(t, "/v1/messages", messagesBody(ask, env, withThinking, toolResult, more))
			require.Contains(t, third, "MORE")
			require.Contains(t, third, "<think>\nHM\n</think>", "it is no new question: reasoning stays")
			if name == "lenient" {
				require.Contains(t, first, "<|im_start|>system\nENV")
			} else {
				require.Contains(t, first, "<system-reminder>\nENV\n</system-reminder>")
				require.Contains(t, third, "<system-reminder>\nMORE\n</system-reminder>")
			}
		})
	}
}

// TestContentShapes checks that the prompt contains the content of each form that harnesses send.
func TestContentShapes(t *testing.T) {
	r := start(t, 1, say("fine"), nil)
	responses := func(items ...string) string {
		return `{"model":"m","store":false,"input":[{"role":"user","content":[{"type":"input_text","text":"go"}]},` + strings.Join(items, ",") + `]}`
	}
	chat := func(msgs ...string) string {
		return `{"model":"m","messages":[{"role":"user","content":"go"},` + strings.Join(msgs, ",") + `]}`
	}
	const ask = `{"role":"user","content":"go"}`
	for _, tt := range []struct {
		name, path, body string
		has              []string
	}{
		{"thinking with signature", "messages", messagesBody(ask, `{"role":"assistant","content":[{"type":"thinking","thinking":"HM","signature":"bW9jay1zaWduYXR1cmU="},{"type":"tool_use","id":"c1","name":"f","input":{}}]}`, toolResult), []string{"<think>\nHM\n</think>"}},
		{"thinking without signature", "messages", messagesBody(ask, `{"role":"assistant","content":[{"type":"thinking","thinking":"HM","signature":""},{"type":"tool_use","id":"c1","name":"f","input":{}}]}`, toolResult), []string{"<think>\nHM\n</think>"}},
		{"redacted thinking", "messages", messagesBody(ask, `{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"},{"type":"tool_use","id":"c1","name":"f","input":{}}]}`, toolResult), []string{"<tool_response>\nr\n"}},
		{"result as list", "messages", messagesBody(ask, toolUse, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}]}`), []string{"<tool_response>\none\ntwo\n</tool_response>"}},
		{"result without content", "messages", messagesBody(ask, toolUse, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1"}]}`), []string{"<tool_response>\n\n</tool_response>"}},
		{"failed tool", "messages", messagesBody(ask, toolUse, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"no such file","is_error":true}]}`), []string{"<tool_response>\nno such file\n</tool_response>"}},
		{"picture in a result", "messages", messagesBody(ask, toolUse, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"see"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aWs="}}]}]}`), []string{"see\n[image left out"}},
		{"picture in a question", "chat", chat(`{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aWs="}}]}`), []string{"see\n[image left out"}},
		{"unknown part alone", "chat", chat(`{"role":"user","content":[{"type":"hologram","x":1}]}`), []string{"<|im_start|>user\n[hologram left out: only text can be read here]<|im_end|>"}},
		{"unknown part", "responses", responses(`{"role":"user","content":[{"type":"input_text","text":"see"},{"type":"hologram","x":1}]}`), []string{"see\n[hologram left out"}},
		{"unknown part", "messages", messagesBody(`{"role":"user","content":[{"type":"text","text":"see"},{"type":"hologram","x":1}]}`), []string{"see\n[hologram left out"}},
		{"unknown part in a result", "messages", messagesBody(ask, toolUse, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"hologram"}]}]}`), []string{"<tool_response>\n[hologram left out"}},
		{"custom call", "responses", responses(`{"type":"custom_tool_call","call_id":"c1","name":"apply_patch","input":"*** é"}`, `{"type":"custom_tool_call_output","call_id":"c1","output":"ok"}`), []string{`{"name": "apply_patch", "arguments": {"input": "*** é"}}`, "<tool_response>\nok\n"}},
		{"output as text", "responses", responses(`{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\": 1}"}`, `{"type":"function_call_output","id":"fco_1","call_id":"c1","output":"ok"}`), []string{`"arguments": {"a": 1}`, "<tool_response>\nok\n"}},
		{"output as pictures", "responses", responses(`{"type":"function_call","call_id":"c1","name":"view_image","arguments":"{}"}`, `{"type":"function_call_output","call_id":"c1","output":[{"type":"input_image","image_url":"data:image/png;base64,aWs="}]}`), []string{"<tool_response>\n[image left out"}},
		{"reasoning with content null", "responses", responses(`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"HM"}],"content":null,"encrypted_content":"bW9jay1lbmNyeXB0ZWQ="}`, `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"c1","output":"ok"}`), []string{"<think>\nHM\n</think>"}},
		{"reasoning without summary", "responses", responses(`{"type":"reasoning","summary":[],"encrypted_content":"x"}`, `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"c1","output":"ok"}`), []string{"<tool_response>\nok\n"}},
		{"developer", "responses", responses(`{"type":"message","role":"developer","content":[{"type":"input_text","text":"DEV"}]}`), []string{"DEV"}},
		{"developer first", "chat", `{"model":"m","messages":[{"role":"developer","content":"DEV"},{"role":"user","content":"go"}]}`, []string{"<|im_start|>system\nDEV"}},
		{"reasoning_content", "chat", chat(`{"role":"assistant","content":null,"reasoning_content":"HM","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"c1","content":"ok"}`), []string{"<think>\nHM\n</think>", "<tool_response>\nok\n"}},
		{"reasoning under its other name", "chat", chat(`{"role":"assistant","content":"","reasoning":"HM","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"ok"}]}`), []string{"<think>\nHM\n</think>", "<tool_response>\nok\n"}},
		{"$schema", "chat", `{"model":"m","messages":[{"role":"user","content":"go"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}}}]}`, []string{`{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}`}},
	} {
		t.Run(tt.path+"/"+tt.name, func(t *testing.T) {
			path := "/v1/" + tt.path
			if tt.path == "chat" {
				path += "/completions"
			}
			got := r.prompt(t, path, tt.body)
			for _, s := range tt.has {
				require.Contains(t, got, s)
			}
		})
	}
}

// TestCacheControl puts cache_control on everything that permits it. The prompt must not depend on it, since it moves
// with each request.
func TestCacheControl(t *testing.T) {
	r := start(t, 1, say("fine"), nil)
	body := func(mark string) string {
		block := func(s string) string { return `[{"type":"text","text":"` + s + `"` + mark + `}]` }
		return `{"model":"m","max_tokens":50,"system":[{"type":"text","text":"a"` + mark + `},{"type":"text","text":"b"` + mark + `}],
			"tools":[{"name":"f","input_schema":{"type":"object"}` + mark + `}],"messages":[{"role":"user","content":` + block("go") + `},
			{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"c1","name":"f","input":{}` + mark + `}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":` + block("r") + mark + `}]}]}`
	}
	plain := r.prompt(t, "/v1/messages", body(""))
	for _, mark := range []string{`{"type":"ephemeral"}`, `{"type":"ephemeral","ttl":"1h"}`, `null`} {
		require.Equal(t, plain, r.prompt(t, "/v1/messages", body(`,"cache_control":`+mark)))
	}
}

// TestThinkingOff pins the behavior of Qwen3's template with reasoning disabled: the next prompt lacks the empty
// reasoning block before the response, so only the prompt before it is found in the cache. KeepEmpty changes that.
func TestThinkingOff(t *testing.T) {
	const output = "Looking.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>"
	r := start(t, 1, say(output), nil)
	off := func(msgs ...string) string {
		return strings.Replace(messagesBody(msgs...), `"model"`, `"thinking":{"type":"disabled"},"model"`, 1)
	}
	const empty = "<think>\n\n</think>\n\n"
	first := r.prompt(t, "/v1/messages", off(`{"role":"user","content":"go"}`))
	require.True(t, strings.HasSuffix(first, "<|im_start|>assistant\n"+empty))
	second := r.prompt(t, "/v1/messages", off(`{"role":"user","content":"go"}`,
		`{"role":"assistant","content":[{"type":"text","text":"Looking."},{"type":"tool_use","id":"c1","name":"f","input":{"a":1}}]}`, toolResult))
	require.True(t, strings.HasPrefix(second, strings.TrimSuffix(first, empty)+output), "%s\n---\n%s", first, second)
}

// TestReasoningNotSentBack checks the common prefix if a client does not return reasoning: the previous prompt, without
// the response.
func TestReasoningNotSentBack(t *testing.T) {
	r := start(t, 1, say("<think>\nHm.\n</think>\n\nYes."), nil)
	ask := `{"role":"user","content":"go"}`
	first := r.prompt(t, "/v1/messages", messagesBody(ask))
	second := r.prompt(t, "/v1/messages", messagesBody(ask, toolUse, toolResult))
	require.True(t, strings.HasPrefix(second, first))
}

// TestStopToken checks that clients never see the stop token, whether or not the engine sends its text and its id.
func TestStopToken(t *testing.T) {
	im, _ := tok().TokenID("<|im_end|>")
	ids := func(text string, more ...uint32) string {
		b, err := json.Marshal(append(tok().AppendEncode(nil, text), more...))
		require.NoError(t, err)
		return string(b)
	}
	const call = "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>"
	quoted, err := json.Marshal(call)
	require.NoError(t, err)
	comma := tok().AppendEncode(nil, ",")
	require.Len(t, comma, 1)
	for _, tt := range []struct{ name, chunk, text, call string }{
		{"id but no text", `"text":"yes","token_ids":` + ids("yes", im) + `,"stop_reason":null`, "yes", ""},
		{"id and text", `"text":"yes<|im_end|>","token_ids":` + ids("yes", im) + `,"stop_reason":null`, "yes", ""},
		{"text but no ids", `"text":"yes<|im_end|>","stop_reason":null`, "yes", ""},
		{"neither", `"text":"yes"`, "yes", ""},
		{"a stop token of the request", `"text":"yes","token_ids":` + ids("yes", comma[0]) + `,"stop_reason":` + fmt.Sprint(comma[0]), "yes", ""},
		{"after a call", `"text":` + strings.TrimSuffix(string(quoted), `"`) + `<|im_end|>"`, "", `read({"path": "a"})`},
		{"the end of a call", `"text":` + strings.TrimSuffix(string(quoted), `\n\u003c/tool_call\u003e"`) + `"`, "", `read({"path": "a"})`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,%s,\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", tt.chunk)
			}))
			defer engine.Close()
			r := start(t, 0, nil, func(o *serve.Options) { o.Engines = []serve.Engine{{URL: engine.URL}} })
			for _, a := range apiCases {
				_, _, text := send(t, r.url+a.path, a.body("x", true))
				got := a.gather(t, text)
				require.Equal(t, tt.text, got.Text)
				require.Equal(t, tt.call, strings.Join(got.Calls, " "))
			}
		})
	}
}

// requestRecorder records the requests that a template renders.
type requestRecorder struct {
	template.Template
	mu    *sync.Mutex
	tools *[]byte
}

func (a requestRecorder) Render(r template.Request) (*template.Prompt, error) {
	a.mu.Lock()
	*a.tools = append([]byte(nil), r.Tools...)
	a.mu.Unlock()
	return a.Template.Render(r)
}

// TestToolsReachTemplate checks that the template gets the tools exactly as the client wrote them, since it selects
// their form in the prompt.
func TestToolsReachTemplate(t *testing.T) {
	var mu sync.Mutex
	var tools []byte
	r := start(t, 1, func(vllm.Prompt) vllm.Reply { return vllm.Reply{Text: "fine"} }, func(o *serve.Options) {
		o.Prompts = prompts(t, requestRecorder{lookup("chatml", nil), &mu, &tools}, "hermes")
	})
	const schema = `{"z":1.50,"type":"object", "a":"\u00e9"}`
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":` + schema + `}}]}`,
		"/v1/responses":        `{"model":"m","input":"x","tools":[{"type":"function","name":"f","parameters":` + schema + `}]}`,
		"/v1/messages":         `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","input_schema":` + schema + `}]}`,
	} {
		r.prompt(t, path, body)
		require.Equal(t, `[{"type":"function","function":{"name":"f","parameters":`+schema+`}}]`, string(tools))
	}
}
