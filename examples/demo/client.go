// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/weft-go/weft/protocols/sse"
)

// This file implements a small client for each API.

// A call is a tool call received by the client.
type call struct {
	id, name, args string
}

// A sight is a piece of a response received by the client.
type sight struct {
	kind string // reasoning, text, call (begun), dispatch (complete, may be run)
	text string
	call call
}

// An outcome is the result of one turn.
type outcome struct {
	finish                 string
	prompt, cached, output int
	calls                  []call
}

// A talker is a client of one API. It keeps the conversation in the form of that API.
type talker interface {
	ask(text string)
	answer(c call, result string)
	// turn sends the conversation, reports each sight as it arrives, and adds the model's turn to the conversation.
	turn(ctx context.Context, id string, see func(sight)) (outcome, error)
}

type object = map[string]any

// wire is the connection of a talker to the gateway.
type wire struct {
	base, model string
	header      http.Header
	client      *http.Client
}

// stream posts body and passes every event of the response to each. Its type is the event field.
func (w *wire) stream(ctx context.Context, path, id string, body object, each func(typ string, data []byte) error) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header = w.header.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", id)
	resp, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1000)) // only for the error text
		return fmt.Errorf("%s: %s: %s", path, resp.Status, b)
	}
	for ev, err := range new(sse.Reader).Events(resp.Body) {
		if err != nil {
			return err
		}
		if ev.Comment || ev.Done() {
			continue
		}
		if err := each(string(ev.Type), ev.Data); err != nil {
			return err
		}
	}
	return nil
}

// decode reads data into v, or returns the error that the server reported instead.
func decode(data []byte, v any) error {
	var e struct{ Error *struct{ Message string } }
	if json.Unmarshal(data, &e) == nil && e.Error != nil {
		return fmt.Errorf("server: %s", e.Error.Message)
	}
	return json.Unmarshal(data, v)
}

// chatTalker is a client of /v1/chat/completions.
type chatTalker struct {
	wire
	messages []any
	tools    []any
}

func newChat(w wire, system string) talker {
	w.header.Set("X-Weft-Tool-Dispatch", "1")
	t := &chatTalker{wire: w, messages: []any{object{"role": "system", "content": system}}}
	for i := range tools {
		t.tools = append(t.tools, object{"type": "function", "function": object{
			"name": tools[i].name, "description": tools[i].description, "parameters": tools[i].schema()}})
	}
	return t
}

func (t *chatTalker) ask(text string) {
	t.messages = append(t.messages, object{"role": "user", "content": text})
}

func (t *chatTalker) answer(c call, result string) {
	t.messages = append(t.messages, object{"role": "tool", "tool_call_id": c.id, "content": result})
}

func (t *chatTalker) turn(ctx context.Context, id string, see func(sight)) (out outcome, err error) {
	var reasoning, text string
	err = t.stream(ctx, "/v1/chat/completions", id, object{
		"model": t.model, "stream": true, "stream_options": object{"include_usage": true}, "messages": t.messages, "tools": t.tools,
	}, func(typ string, data []byte) error {
		if typ == "tool_call_dispatch" {
			var d struct {
				ToolCall struct {
					ID       string
					Function struct{ Name, Arguments string }
				} `json:"tool_call"`
			}
			if err := decode(data, &d); err != nil {
				return err
			}
			c := call{d.ToolCall.ID, d.ToolCall.Function.Name, d.ToolCall.Function.Arguments}
			see(sight{kind: "dispatch", call: c})
			return nil
		}
		var c struct {
			Choices []struct {
				Delta struct {
					Content   string
					Reasoning string `json:"reasoning_content"`
					ToolCalls []struct {
						Index    int
						ID       string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				FinishReason string `json:"finish_reason"`
			}
			Usage *struct {
				Prompt     int `json:"prompt_tokens"`
				Completion int `json:"completion_tokens"`
				Details    struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if err := decode(data, &c); err != nil {
			return err
		}
		if u := c.Usage; u != nil {
			out.prompt, out.cached, out.output = u.Prompt, u.Details.Cached, u.Completion
		}
		for _, ch := range c.Choices {
			if d := ch.Delta.Reasoning; d != "" {
				reasoning += d
				see(sight{kind: "reasoning", text: d})
			}
			if d := ch.Delta.Content; d != "" {
				text += d
				see(sight{kind: "text", text: d})
			}
			for _, d := range ch.Delta.ToolCalls {
				if d.ID != "" {
					out.calls = append(out.calls, call{id: d.ID, name: d.Function.Name})
					see(sight{kind: "call", call: out.calls[len(out.calls)-1]})
				}
				if d.Index >= len(out.calls) {
					return fmt.Errorf("call %d was not started", d.Index)
				}
				out.calls[d.Index].args += d.Function.Arguments
			}
			if ch.FinishReason != "" {
				out.finish = ch.FinishReason
			}
		}
		return nil
	})
	msg := object{"role": "assistant", "content": text}
	if reasoning != "" {
		msg["reasoning_content"] = reasoning
	}
	var calls []any
	for _, c := range out.calls {
		calls = append(calls, object{"id": c.id, "type": "function", "function": object{"name": c.name, "arguments": c.args}})
	}
	if calls != nil {
		msg["tool_calls"] = calls
	}
	t.messages = append(t.messages, msg)
	return out, err
}

// responsesTalker is a client of /v1/responses. It returns the items of the response unmodified.
type responsesTalker struct {
	wire
	instructions string
	input        []any
	tools        []any
}

func newResponses(w wire, system string) talker {
	t := &responsesTalker{wire: w, instructions: system}
	for i := range tools {
		t.tools = append(t.tools, object{"type": "function", "name": tools[i].name, "description": tools[i].description,
			"parameters": tools[i].schema()})
	}
	return t
}

func (t *responsesTalker) ask(text string) {
	t.input = append(t.input, object{"type": "message", "role": "user",
		"content": []any{object{"type": "input_text", "text": text}}})
}

func (t *responsesTalker) answer(c call, result string) {
	t.input = append(t.input, object{"type": "function_call_output", "call_id": c.id, "output": result})
}

func (t *responsesTalker) turn(ctx context.Context, id string, see func(sight)) (out outcome, err error) {
	err = t.stream(ctx, "/v1/responses", id, object{
		"model": t.model, "stream": true, "store": false, "instructions": t.instructions, "input": t.input, "tools": t.tools,
	}, func(_ string, data []byte) error {
		var e struct {
			Type  string
			Delta string
			Item  struct {
				Type, Name, Arguments string
				CallID                string `json:"call_id"`
			}
			Response struct {
				Status string
				Usage  struct {
					Input   int `json:"input_tokens"`
					Output  int `json:"output_tokens"`
					Details struct {
						Cached int `json:"cached_tokens"`
					} `json:"input_tokens_details"`
				}
			}
		}
		if err := decode(data, &e); err != nil {
			return err
		}
		switch e.Type {
		case "response.reasoning_text.delta", "response.reasoning_summary_text.delta":
			see(sight{kind: "reasoning", text: e.Delta})
		case "response.output_text.delta":
			see(sight{kind: "text", text: e.Delta})
		case "response.output_item.added":
			if e.Item.Type == "function_call" {
				see(sight{kind: "call", call: call{id: e.Item.CallID, name: e.Item.Name}})
			}
		case "response.output_item.done":
			var raw struct{ Item json.RawMessage }
			if err := json.Unmarshal(data, &raw); err != nil {
				return err
			}
			t.input = append(t.input, raw.Item)
			if e.Item.Type == "function_call" {
				c := call{e.Item.CallID, e.Item.Name, e.Item.Arguments}
				out.calls = append(out.calls, c)
				see(sight{kind: "dispatch", call: c})
			}
		case "response.completed":
			out.finish = e.Response.Status
			u := e.Response.Usage
			out.prompt, out.cached, out.output = u.Input, u.Details.Cached, u.Output
		case "response.failed", "response.incomplete":
			return fmt.Errorf("response status %s: %s", e.Response.Status, data)
		}
		return nil
	})
	return out, err
}

// messagesTalker is a client of /v1/messages. Like Claude Code, it begins the system text with a block that changes
// with each request.
type messagesTalker struct {
	wire
	system   string
	requests int
	messages []any
	tools    []any
}

func newMessages(w wire, system string) talker {
	t := &messagesTalker{wire: w, system: system}
	for i := range tools {
		t.tools = append(t.tools, object{"name": tools[i].name, "description": tools[i].description, "input_schema": tools[i].schema()})
	}
	return t
}

func (t *messagesTalker) ask(text string) {
	t.messages = append(t.messages, object{"role": "user", "content": text})
}

func (t *messagesTalker) answer(c call, result string) {
	block := object{"type": "tool_result", "tool_use_id": c.id, "content": result}
	last := t.messages[len(t.messages)-1].(object)
	if blocks, ok := last["content"].([]any); ok && last["role"] == "user" {
		last["content"] = append(blocks, block)
		return
	}
	t.messages = append(t.messages, object{"role": "user", "content": []any{block}})
}

func (t *messagesTalker) turn(ctx context.Context, id string, see func(sight)) (out outcome, err error) {
	t.requests++
	billing := fmt.Sprintf("x-anthropic-billing-header: cc_version=2.1.119.af2; cc_entrypoint=cli; cch=%05x;", t.requests*7919)
	var blocks []any
	err = t.stream(ctx, "/v1/messages?beta=true", id, object{
		"model": t.model, "max_tokens": 2000, "stream": true, "messages": t.messages, "tools": t.tools,
		"system": []any{object{"type": "text", "text": billing}, object{"type": "text", "text": t.system}},
	}, func(_ string, data []byte) error {
		type usage struct {
			Input  int `json:"input_tokens"`
			Output int `json:"output_tokens"`
			Cached int `json:"cache_read_input_tokens"`
		}
		var e struct {
			Type  string
			Block json.RawMessage `json:"content_block"`
			Delta struct {
				Type, Text, Thinking, Signature string
				PartialJSON                     string `json:"partial_json"`
				StopReason                      string `json:"stop_reason"`
			}
			Usage usage
		}
		if err := decode(data, &e); err != nil {
			return err
		}
		add := func(key, text string) {
			b := blocks[len(blocks)-1].(object)
			s, _ := b[key].(string)
			b[key] = s + text
		}
		switch e.Type {
		case "content_block_start":
			var b object
			if err := json.Unmarshal(e.Block, &b); err != nil {
				return err
			}
			blocks = append(blocks, b)
			if b["type"] == "tool_use" {
				c := call{id: b["id"].(string), name: b["name"].(string)}
				out.calls = append(out.calls, c)
				see(sight{kind: "call", call: c})
			}
		case "content_block_delta":
			switch e.Delta.Type {
			case "text_delta":
				add("text", e.Delta.Text)
				see(sight{kind: "text", text: e.Delta.Text})
			case "thinking_delta":
				add("thinking", e.Delta.Thinking)
				see(sight{kind: "reasoning", text: e.Delta.Thinking})
			case "signature_delta":
				add("signature", e.Delta.Signature)
			case "input_json_delta":
				out.calls[len(out.calls)-1].args += e.Delta.PartialJSON
			}
		case "content_block_stop":
			b := blocks[len(blocks)-1].(object)
			if b["type"] == "tool_use" {
				c := out.calls[len(out.calls)-1]
				b["input"] = json.RawMessage(c.args)
				see(sight{kind: "dispatch", call: c})
			}
		case "message_delta":
			out.finish = e.Delta.StopReason
			out.prompt, out.cached, out.output = e.Usage.Input+e.Usage.Cached, e.Usage.Cached, e.Usage.Output
		}
		return nil
	})
	t.messages = append(t.messages, object{"role": "assistant", "content": blocks})
	return out, err
}
