// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// This file decodes responses as harnesses do, and keeps the parts that they return in the next request.

// A part is a part of a response: reasoning, text or a call.
type part struct {
	Kind     string // reasoning, text, call
	Text     string
	ID, Name string // of a call
	Args     string // of a call: exact arguments, or the input of a custom call
	raw      object // the block or item that the client keeps
}

// A reply is one decoded choice.
type reply struct {
	Parts  []part
	Finish string
}

// calls returns the calls of a reply.
func (r *reply) calls() (out []part) {
	for _, p := range r.Parts {
		if p.Kind == "call" {
			out = append(out, p)
		}
	}
	return out
}

// text returns the text of the parts of a kind.
func (r *reply) text(kind string) (s string) {
	for _, p := range r.Parts {
		if p.Kind == kind {
			s += p.Text
		}
	}
	return s
}

// shown returns the parts without ids and raw data, which differ between responses.
func (r *reply) shown() (out []part) {
	for _, p := range r.Parts {
		p.ID, p.raw = "", nil
		out = append(out, p)
	}
	return out
}

// ask sends a request and decodes its choices.
func (a apiCase) ask(t testing.TB, url string, body object, stream bool, header ...string) []reply {
	t.Helper()
	body["stream"] = stream
	status, h, text := send(t, url+a.path, body, header...)
	require.Equal(t, 200, status, text)
	if !stream {
		require.Equal(t, "application/json", h.Get("Content-Type"))
		return a.wholes(t, text)
	}
	require.Equal(t, "text/event-stream", h.Get("Content-Type"))
	if body["n"] == nil {
		a.gather(t, text) // also checks the order and end of the stream
	}
	return a.rebuilt(t, text)
}

// wholes decodes a response that is not a stream.
func (a apiCase) wholes(t testing.TB, body string) (out []reply) {
	t.Helper()
	var w struct {
		Choices []struct {
			Index   int
			Message struct {
				Content, Reasoning string
				ReasoningContent   string     `json:"reasoning_content"`
				ToolCalls          []chatCall `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
		}
		Output     []json.RawMessage
		Content    []json.RawMessage
		Status     string
		StopReason string `json:"stop_reason"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &w), body)
	switch a.name {
	case "chat":
		for i, c := range w.Choices {
			require.Equal(t, i, c.Index)
			out = append(out, chatReply(c.Message.ReasoningContent, c.Message.Content, c.Message.ToolCalls, c.FinishReason))
		}
	case "responses":
		r := reply{Finish: w.Status}
		for _, raw := range w.Output {
			r.Parts = append(r.Parts, itemPart(t, raw))
		}
		out = append(out, r)
	case "messages":
		r := reply{Finish: w.StopReason}
		for _, raw := range w.Content {
			r.Parts = append(r.Parts, blockPart(t, raw, ""))
		}
		out = append(out, r)
	}
	return out
}

type chatCall struct {
	Index    int
	ID, Type string
	Function struct{ Name, Arguments string }
}

// chatReply returns the parts that Chat Completions clients keep: reasoning, text and calls, without their order.
func chatReply(reasoning, text string, calls []chatCall, finish string) reply {
	r := reply{Finish: finish}
	if reasoning != "" {
		r.Parts = append(r.Parts, part{Kind: "reasoning", Text: reasoning})
	}
	if text != "" {
		r.Parts = append(r.Parts, part{Kind: "text", Text: text})
	}
	for _, c := range calls {
		r.Parts = append(r.Parts, part{Kind: "call", ID: c.ID, Name: c.Function.Name, Args: c.Function.Arguments})
	}
	return r
}

// itemPart decodes an output item of the Responses API.
func itemPart(t testing.TB, raw []byte) part {
	t.Helper()
	var it struct {
		Type, Name, Namespace, Arguments, Input string
		CallID                                  string `json:"call_id"`
		Summary, Content                        []struct{ Text string }
	}
	p := part{Kind: "text"}
	require.NoError(t, json.Unmarshal(raw, &it))
	require.NoError(t, json.Unmarshal(raw, &p.raw))
	switch it.Type {
	case "reasoning":
		p.Kind = "reasoning"
	case "function_call", "custom_tool_call":
		p.Kind, p.ID, p.Name, p.Args = "call", it.CallID, it.Name, it.Arguments+it.Input
		if it.Namespace != "" {
			p.Name = it.Namespace + "__" + it.Name
		}
	}
	for _, c := range slices.Concat(it.Summary, it.Content) {
		p.Text += c.Text
	}
	return p
}

// blockPart decodes a content block of the Messages API; args is the input from deltas, if any.
func blockPart(t testing.TB, raw []byte, args string) part {
	t.Helper()
	var b struct {
		Type, Text, Thinking, ID, Name string
		Input                          json.RawMessage
	}
	require.NoError(t, json.Unmarshal(raw, &b))
	p := part{Kind: "text", Text: b.Text + b.Thinking, ID: b.ID, Name: b.Name}
	require.NoError(t, json.Unmarshal(raw, &p.raw))
	switch b.Type {
	case "thinking":
		p.Kind = "reasoning"
	case "tool_use":
		p.Kind, p.Args = "call", string(b.Input)
		if args != "" {
			require.JSONEq(t, "{}", p.Args, "input comes in deltas")
			p.Args = args
		}
		p.raw["input"] = json.RawMessage(compacted(p.Args))
	}
	return p
}

// compacted reprints JSON as JavaScript clients do.
func compacted(s string) string {
	var b strings.Builder
	in := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && in:
			b.WriteByte(c)
			i++
		case c == '"':
			in = !in
		case c <= ' ' && !in:
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// rebuilt decodes the choices of a stream.
func (a apiCase) rebuilt(t testing.TB, stream string) (out []reply) {
	t.Helper()
	switch a.name {
	case "chat":
		type seen struct {
			reasoning, text, finish string
			calls                   []chatCall
		}
		var all []seen
		for _, f := range frames(t, stream) {
			if f.typ == "tool_call_dispatch" || f.data == nil {
				continue
			}
			var w struct {
				Choices []struct {
					Index int
					Delta struct {
						Content          string
						ReasoningContent string     `json:"reasoning_content"`
						ToolCalls        []chatCall `json:"tool_calls"`
					}
					FinishReason string `json:"finish_reason"`
				}
			}
			require.NoError(t, json.Unmarshal([]byte(f.text), &w))
			for _, c := range w.Choices {
				for len(all) <= c.Index {
					all = append(all, seen{})
				}
				s := &all[c.Index]
				s.reasoning += c.Delta.ReasoningContent
				s.text += c.Delta.Content
				s.finish += c.FinishReason
				for _, d := range c.Delta.ToolCalls {
					if d.Index == len(s.calls) {
						s.calls = append(s.calls, d)
						continue
					}
					s.calls[d.Index].Function.Arguments += d.Function.Arguments
				}
			}
		}
		for _, s := range all {
			out = append(out, chatReply(s.reasoning, s.text, s.calls, s.finish))
		}
	case "responses":
		r := reply{}
		for _, f := range frames(t, stream) {
			switch f.typ {
			case "response.output_item.done": // Codex keeps these items
				raw, err := json.Marshal(f.data["item"])
				require.NoError(t, err)
				r.Parts = append(r.Parts, itemPart(t, raw))
			case "response.completed", "response.incomplete":
				resp := f.data["response"].(object)
				r.Finish = resp["status"].(string)
				require.Len(t, resp["output"], len(r.Parts))
			}
		}
		out = append(out, r)
	case "messages":
		r := reply{}
		var block object
		args := ""
		for _, f := range frames(t, stream) {
			switch f.typ {
			case "content_block_start":
				block, args = f.data["content_block"].(object), ""
			case "content_block_delta":
				for key, v := range f.data["delta"].(object) {
					switch key {
					case "text", "thinking", "signature":
						block[key] = fmt.Sprint(block[key], v)
					case "partial_json":
						args += v.(string)
					}
				}
			case "content_block_stop":
				raw, err := json.Marshal(block)
				require.NoError(t, err)
				r.Parts = append(r.Parts, blockPart(t, raw, args))
			case "message_delta":
				r.Finish, _ = f.data["delta"].(object)["stop_reason"].(string)
			}
		}
		out = append(out, r)
	}
	return out
}
