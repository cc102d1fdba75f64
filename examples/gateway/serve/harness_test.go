// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// This file defines the forms in which harnesses return a response with the results of its calls.

// A harness is a client program of the gateway.
type harness struct {
	name   string
	api    apiCase
	header []string
	first  func(t testing.TB) object // the body of the first request
	// turn returns the messages or items that the harness appends for a response and the results of its calls, in the
	// order in which the tools ended.
	turn func(r reply, done []result) []any
	// tail is a message at the end of each request.
	tail string
	// final changes a request before it is sent.
	final func(msgs []any)
}

// A result is the result of a tool.
type result struct {
	call part
	text string
}

// key returns the name of the field that contains the conversation.
func (a apiCase) key() string {
	if a.name == "responses" {
		return "input"
	}
	return "messages"
}

// The turns of each harness.

// anthropicTurn returns the form of Claude Code: unmodified blocks with reprinted input, and the results in one
// message.
func anthropicTurn(r reply, done []result) []any {
	var blocks, results []any
	for _, p := range r.Parts {
		blocks = append(blocks, p.raw)
	}
	for _, d := range done {
		results = append(results, object{"tool_use_id": d.call.ID, "type": "tool_result", "content": d.text, "is_error": false})
	}
	out := []any{object{"role": "assistant", "content": blocks}}
	if len(results) > 0 {
		out = append(out, object{"role": "user", "content": results})
	}
	return out
}

// markLast puts cache_control on the last block of the last message, as Claude Code does in each request. Its system
// message is a list of blocks only while it is the last.
func markLast(msgs []any) {
	for i, m := range msgs {
		m, ok := m.(object)
		if !ok {
			continue
		}
		blocks, ok := m["content"].([]any)
		if !ok || len(blocks) == 0 {
			continue
		}
		last, ok := blocks[len(blocks)-1].(object)
		if delete(last, "cache_control"); ok && i == len(msgs)-1 {
			last["cache_control"] = object{"type": "ephemeral"}
		}
		if m["role"] == "system" && i < len(msgs)-1 && len(blocks) == 1 {
			m["content"] = last["text"]
		}
	}
}

// codexTurn returns the form of Codex: the done items, null content in reasoning without content, and outputs with its
// own ids.
func codexTurn(r reply, done []result) []any {
	var out []any
	for _, p := range r.Parts {
		if p.Kind == "reasoning" {
			p.raw["content"] = nil
			delete(p.raw, "status")
		}
		out = append(out, p.raw)
	}
	for _, d := range done {
		typ := "function_call_output"
		if d.call.raw["type"] == "custom_tool_call" {
			typ = "custom_tool_call_output"
		}
		out = append(out, object{"type": typ, "id": "fco_" + d.call.ID, "call_id": d.call.ID, "output": d.text})
	}
	return out
}

// sdkTurn returns the form of the AI SDK for the Responses API: reprinted arguments, and outputs as lists of parts.
func sdkTurn(r reply, done []result) []any {
	var out []any
	for _, p := range r.Parts {
		switch p.Kind {
		case "reasoning":
			out = append(out, object{"type": "reasoning", "id": p.raw["id"], "summary": p.raw["summary"], "encrypted_content": p.raw["encrypted_content"]})
		case "text":
			out = append(out, object{"role": "assistant", "id": p.raw["id"], "content": []any{object{"type": "output_text", "text": p.Text}}})
		case "call":
			out = append(out, object{"type": "function_call", "call_id": p.ID, "name": p.Name, "arguments": compacted(p.Args), "id": p.raw["id"]})
		}
	}
	for _, d := range done {
		out = append(out, object{"type": "function_call_output", "call_id": d.call.ID, "output": []any{object{"type": "input_text", "text": d.text}}})
	}
	return out
}

// chatTurn returns the form of Chat Completions clients; respell specifies whether they reprint arguments.
func chatTurn(respell bool) func(r reply, done []result) []any {
	return func(r reply, done []result) []any {
		m := object{"role": "assistant", "content": r.text("text")}
		if r.text("text") == "" {
			m["content"] = nil
		}
		if s := r.text("reasoning"); s != "" {
			m["reasoning_content"] = s
		}
		var calls []any
		for _, c := range r.calls() {
			if respell {
				c.Args = compacted(c.Args)
			}
			calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Args}})
		}
		if calls != nil {
			m["tool_calls"] = calls
		}
		out := []any{m}
		for _, d := range done {
			out = append(out, object{"role": "tool", "tool_call_id": d.call.ID, "content": d.text})
		}
		return out
	}
}

// captured returns a harness whose first request is a recorded one. name is the directory of the recording.
func captured(t testing.TB, file, name string) harness {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var c struct {
		Path    string
		Headers [][2]string
		Body    json.RawMessage
	}
	require.NoError(t, json.Unmarshal(data, &c))
	h := harness{name: name + "/" + filepath.Base(file)}
	h.api = apiCases[slices.IndexFunc(apiCases, func(a apiCase) bool { return a.path == c.Path })]
	for _, kv := range c.Headers {
		switch strings.ToLower(kv[0]) {
		case "content-length", "connection", "host", "accept-encoding":
		default:
			h.header = append(h.header, kv[0], kv[1])
		}
	}
	h.first = func(t testing.TB) object { return decoded(t, c.Body, h.api.key()) }
	shape(&h, name)
	return h
}

// shape sets the behavior of the program called name.
func shape(h *harness, name string) {
	switch name {
	case "claude-code":
		h.turn, h.final = anthropicTurn, markLast
	case "codex":
		h.turn = codexTurn
	case "ai-sdk":
		h.turn = sdkTurn
	case "openclaw":
		h.turn, h.tail = chatTurn(false), "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>"
	default: // opencode, pi
		h.turn = chatTurn(true)
	}
}

// decoded decodes only the conversation of a body and keeps the other fields raw, since the key order in tool
// declarations affects the prompt.
func decoded(t testing.TB, raw []byte, key string) object {
	t.Helper()
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &fields))
	body := object{}
	for k, v := range fields {
		body[k] = v
	}
	var msgs []any
	require.NoError(t, json.Unmarshal(fields[key], &msgs))
	body[key] = msgs
	return body
}

// own holds small requests in the form of each harness, with the content of the recorded ones.
var own = []struct{ name, shape, api, body string }{
	{"claude-code", "claude-code", "messages", `{"model":"m","max_tokens":32000,"stream":true,
		"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.330.1ad; cc_entrypoint=sdk-cli;"},
			{"type":"text","text":"You are an agent.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],
		"messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>\nA repository.\n</system-reminder>"},{"type":"text","text":"Look around."}]},
			{"role":"system","content":[{"type":"text","text":"# Environment\nLinux","cache_control":{"type":"ephemeral"}}]}],
		"tools":[{"name":"Bash","description":"runs","input_schema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"command":{"type":"string"},"description":{"type":"string"}},"required":["command"],"additionalProperties":false}},
			{"name":"Read","input_schema":{"type":"object","properties":{"file_path":{"type":"string"},"limit":{"type":"integer"}},"required":["file_path"]}},
			{"name":"DeferredToolPlaceholder","description":"-","input_schema":{"type":"object"},"defer_loading":true}],
		"thinking":{"type":"adaptive","display":"updates"},"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},
		"output_config":{"effort":"high"},"metadata":{"user_id":"{\"device_id\":\"d\",\"session_id\":\"s\"}"}}`},
	{"codex", "codex", "responses", `{"model":"m","stream":true,"store":false,"include":["reasoning.encrypted_content"],"tool_choice":"auto","parallel_tool_calls":true,
		"reasoning":{"summary":"auto"},"prompt_cache_key":"k","client_metadata":{"x":"y"},
		"input":[{"type":"message","id":"msg_a","role":"developer","content":[{"type":"input_text","text":"You are an agent."}]},
			{"type":"message","id":"msg_b","role":"user","content":[{"type":"input_text","text":"<environment_context>\n</environment_context>"}]},
			{"type":"message","id":"msg_c","role":"user","content":[{"type":"input_text","text":"Look around."}]}],
		"tools":[{"type":"function","name":"exec_command","description":"runs","strict":false,"parameters":{"type":"object","properties":{"cmd":{"type":"string"}},"required":["cmd"],"additionalProperties":false}},
			{"type":"namespace","name":"agents","description":"others","tools":[{"type":"function","name":"spawn","strict":false,"parameters":{"type":"object","properties":{"task":{"type":"string"}},"required":["task"]}}]},
			{"type":"web_search","external_web_access":false}]}`},
	{"codex with a custom tool", "codex", "responses", `{"model":"m","stream":true,"store":false,"include":["reasoning.encrypted_content"],"text":{"verbosity":"low"},"instructions":"You are an agent.",
		"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Look around."}],"internal_chat_message_metadata_passthrough":{"a":1}}],
		"tools":[{"type":"custom","name":"apply_patch","description":"patches","format":{"type":"grammar","syntax":"lark","definition":"start: \"x\""}},
			{"type":"function","name":"shell","strict":false,"parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}},{"type":"tool_search"}]}`},
	{"ai sdk on responses", "ai-sdk", "responses", `{"model":"m","stream":true,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"k",
		"input":[{"role":"developer","content":"You are an agent."},{"role":"user","content":[{"type":"input_text","text":"Look around."}]}],
		"tools":[{"type":"function","name":"bash","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}},
			{"type":"function","name":"read","parameters":{"type":"object","properties":{"filePath":{"type":"string"}},"required":["filePath"]}}]}`},
	{"opencode", "opencode", "chat", `{"model":"m","max_tokens":8192,"stream":true,"stream_options":{"include_usage":true},"tool_choice":"auto",
		"messages":[{"role":"system","content":"You are an agent."},{"role":"user","content":"Look around."}],
		"tools":[{"type":"function","function":{"name":"bash","description":"runs","parameters":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"command":{"type":"string"},"description":{"type":"string"}},"required":["command","description"],"additionalProperties":false}}},
			{"type":"function","function":{"name":"read","parameters":{"type":"object","properties":{"filePath":{"type":"string"}},"required":["filePath"]}}}]}`},
	{"openclaw", "openclaw", "chat", `{"model":"m","max_completion_tokens":8192,"stream":true,"stream_options":{"include_usage":true},"tool_choice":"auto",
		"messages":[{"role":"system","content":"You are an agent."},{"role":"user","content":"[Sat 2026-11-21 11:08 UTC] Look around."},
			{"role":"user","content":[{"type":"text","text":"<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nnone\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"}]}],
		"tools":[{"type":"function","function":{"name":"exec","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}},
			{"type":"function","function":{"name":"read","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}]}`},
	{"pi", "pi", "chat", `{"model":"m","max_completion_tokens":8192,"stream":true,"stream_options":{"include_usage":true},"store":false,"reasoning_effort":"medium",
		"messages":[{"role":"developer","content":"You are an agent."},{"role":"user","content":[{"type":"text","text":"Look around."}]}],
		"tools":[{"type":"function","function":{"name":"bash","strict":false,"parameters":{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"number"}},"required":["command"]}}},
			{"type":"function","function":{"name":"read","strict":false,"parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}]}`},
}

// ownHarnesses returns the harnesses with the requests in own.
func ownHarnesses() (out []harness) {
	for _, o := range own {
		h := harness{name: o.name, api: apiCases[slices.IndexFunc(apiCases, func(a apiCase) bool { return a.name == o.api })]}
		h.first = func(t testing.TB) object { return decoded(t, []byte(o.body), h.api.key()) }
		shape(&h, o.shape)
		out = append(out, h)
	}
	return out
}

// capturedHarnesses returns the harnesses with recorded first requests, or nil if the directory of shared test data is
// absent.
func capturedHarnesses(t testing.TB) (out []harness) {
	t.Helper()
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = "../../../../shared"
	}
	files, err := filepath.Glob(filepath.Join(dir, "captures", "*", "*.json"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("no captures in " + dir + ": set WEFT_SHARED")
	}
	for _, f := range files {
		out = append(out, captured(t, f, filepath.Base(filepath.Dir(f))))
	}
	return out
}

// A usable is a tool that a request declares, with the name that the model sees and the names of its required
// arguments.
type usable struct {
	name   string
	args   []string
	custom bool
}

// usables returns the tools of a request whose arguments are strings or free text.
func usables(t testing.TB, body object) (out []usable) {
	t.Helper()
	type tool struct {
		Type, Name   string
		DeferLoading bool `json:"defer_loading"`
		Function     *struct {
			Name       string
			Parameters json.RawMessage
		}
		Parameters  json.RawMessage
		InputSchema json.RawMessage `json:"input_schema"`
		Tools       []json.RawMessage
	}
	var add func(raw json.RawMessage, namespace string)
	add = func(raw json.RawMessage, namespace string) {
		var d tool
		require.NoError(t, json.Unmarshal(raw, &d))
		name, schema := d.Name, slices.Concat(d.Parameters, d.InputSchema)
		if d.Function != nil {
			name, schema = d.Function.Name, d.Function.Parameters
		}
		switch {
		case d.Type == "custom":
			out = append(out, usable{name: name, args: []string{"input"}, custom: true})
			return
		case d.Type == "namespace":
			for _, in := range d.Tools {
				add(in, d.Name+"__")
			}
			return
		case d.DeferLoading || len(schema) == 0:
			return
		}
		var s struct {
			Properties map[string]struct{ Type any }
			Required   []string
		}
		if json.Unmarshal(schema, &s) != nil {
			return
		}
		for _, arg := range s.Required {
			if s.Properties[arg].Type != "string" {
				return
			}
		}
		out = append(out, usable{name: namespace + name, args: s.Required})
	}
	raw, _ := body["tools"].(json.RawMessage)
	var tools []json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &tools))
	for _, r := range tools {
		add(r, "")
	}
	require.GreaterOrEqual(t, len(out), 2, "two tools to call")
	return out
}

// write returns a call in the form of the family, and the part that a client must decode from it.
func (u usable) write(family, value string) (string, part) {
	p := part{Kind: "call", Name: u.name}
	args := make([]string, len(u.args))
	for i, a := range u.args {
		args[i] = fmt.Sprintf("%q: %q", a, fmt.Sprint(value, " ", a))
	}
	p.Args = "{" + strings.Join(args, ", ") + "}"
	text := fmt.Sprintf("<tool_call>\n{\"name\": \"%s\", \"arguments\": %s}\n</tool_call>", u.name, p.Args)
	if family == "qwen3_coder" {
		text, p.Args = "<tool_call>\n<function="+u.name+">\n", compacted(p.Args)
		for i, a := range u.args {
			args[i] = fmt.Sprintf("%q:%q", a, fmt.Sprint(value, " ", a))
			text += fmt.Sprint("<parameter=", a, ">\n", value, " ", a, "\n</parameter>\n")
		}
		text += "</function>\n</tool_call>"
		p.Args = "{" + strings.Join(args, ",") + "}"
	}
	if u.custom {
		p.Args = value + " input"
	}
	return text, p
}
