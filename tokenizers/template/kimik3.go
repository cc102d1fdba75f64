// SPDX-License-Identifier: Apache-2.0

package template

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/jsonval"
)

// kimiK3 is XTML, the format of Kimi K3, which has no Jinja template but a script (encoding_k3.py of
// moonshotai/Kimi-K3, read in vLLM's copy of 2026):
//
//	<|open|>message role="user"<|sep|>TEXT<|close|>message<|sep|><|end_of_msg|>
//
// An assistant's message holds think, response and tools; calls have typed arguments. Tools, the effort of reasoning,
// tool_choice and response_format are system messages of a type. It equals the script on what that accepts. Requests on
// which the script fails or drops content are accepted: developer messages are treated as system messages, and JSON
// arguments other than objects are printed as a json block.
//
// A message that is continued is the last thing printed; tool_choice and response_format, which would
// follow it, are left out then. Images are errors.
//
// The model's tokenizer encodes each piece of a tag by itself: the name, the space and key of an attribute,
// its equals sign with the quote, its value, the closing quote. Encoding the prompt in one go gives the same
// text, and not always the same tokens.
type kimiK3 struct {
	fitting
	thinking bool   // the channel of reasoning is printed, of past turns as well
	effort   string // low, high or max, or none to leave the instruction out
}

func newKimiK3(v *variables) Template {
	return kimiK3{thinking: variable(v, "thinking", true), effort: v.choice("thinking_effort", "max", "low", "high", "none")}
}

type k3State struct {
	*builder
	thinking bool
}

const (
	k3Open  = "<|open|>"
	k3Close = "<|close|>"
	k3Sep   = "<|sep|>"
	k3End   = "<|close|>message<|sep|><|end_of_msg|>"
)

// Render implements [Template].
func (t kimiK3) Render(req Request) (*Prompt, error) { return t.render(&input{Request: req}) }

// RenderValues renders a conversation of values; see input.
func (t kimiK3) RenderValues(req Request, messages, tools []jsonval.Value) (*Prompt, error) {
	return t.render(&input{Request: req, values: true, messages: messages, tools: tools})
}

func (t kimiK3) render(req *input) (*Prompt, error) {
	parsed, tools, kwargs, err := parseRequest(req, "system", "developer", "user", "assistant", "tool")
	if err != nil {
		return nil, err
	}
	s := k3State{newBuilder(req), kwargBool(kwargs, "thinking", t.thinking)}
	if len(tools) > 0 {
		s.lit("<|open|>message role=\"system\" type=\"tool-declare\"<|sep|># Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n")
		s.tools(tools, "tools")
	}
	if s.thinking {
		effort, err := t.effortOf(kwargs)
		if err != nil {
			return nil, err
		}
		if effort != "none" {
			s.internal("thinking-effort", "`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), "+
				"supported values include `low`, `medium`, `high`, and `max`.\nNow the system is invoked with `thinking_effort="+effort+"`.")
			s.lit(k3End)
		}
	}
	turns := copied(parsed)
	k3Sort(turns)
	var calls []call
	result := 0
	for i := range turns {
		m := &turns[i]
		k3Content(m)
		open := req.ContinueFinalMessage != "" && i == len(turns)-1
		switch own := m.v.Get("tools"); {
		case m.role == "tool":
			result++
			if err := s.result(m, calls, result); err != nil {
				return nil, err
			}
		case m.role == "assistant":
			calls, result = m.calls, 0
			s.head("assistant", m)
			if s.assistant(m, open); open {
				return s.prompt(req), nil
			}
		case m.role == "user":
			s.head("user", m)
			s.val(m.content, m.contentPath, kindUser)
		case own.True() && own.Kind == jsonval.Array:
			if open {
				return nil, &Error{path: m.path, reason: "cannot be continued: it lists tools"}
			}
			s.lit("<|open|>message role=\"system\" type=\"tool-declare\"<|sep|>## New Tools Available\nThe system dynamically extends the toolset via lazy-loading.\n" +
				"You have access to all existing and extended tools.\nHere are the specs for the extended tools.\n\n```json\n")
			s.tools(own.List, m.path+".tools")
			continue
		default:
			s.head("system", m)
			s.val(m.content, m.contentPath, kindSystem)
		}
		if open {
			return s.prompt(req), nil
		}
		s.lit(k3End)
	}
	s.requirements(kwargs)
	if req.AddGenerationPrompt {
		s.lit("<|open|>message role=\"assistant\"<|sep|>")
		if s.thinking {
			s.open("think")
		} else {
			s.open("response")
		}
	}
	return s.prompt(req), nil
}

// effort returns the word of the effort, or none.
func (t kimiK3) effortOf(kwargs jsonval.Value) (string, error) {
	known := func(s string) bool { return s == "low" || s == "high" || s == "max" }
	switch v := kwargs.Get("thinking_effort"); {
	case v.Kind == jsonval.Null:
		return "none", nil
	case v.Kind == jsonval.Undefined:
		if e := kwargs.Get("reasoning_effort"); e.Kind == jsonval.String && known(e.Str) {
			return e.Str, nil
		}
		return t.effort, nil
	case v.Kind == jsonval.String && known(v.Str):
		return v.Str, nil
	}
	return "", &Error{path: "kwargs.thinking_effort", reason: "is not low, high or max"}
}

// k3Content joins the parts of a content without anything between them.
func k3Content(m *callTurn) {
	c := m.v.Get("content")
	if c.Kind != jsonval.Array {
		return
	}
	var b strings.Builder
	for _, p := range c.List {
		b.WriteString(p.Str)
		b.WriteString(p.Get("text").Str)
	}
	m.content = b.String()
}

func (s k3State) open(tag string)  { s.lit(k3Open + tag + k3Sep) }
func (s k3State) close(tag string) { s.lit(k3Close + tag + k3Sep) }

// internal opens a system message of a type.
func (s k3State) internal(typ, body string) {
	s.lit("<|open|>message role=\"system\" type=\"" + typ + "\"<|sep|>" + body)
}

// attr prints an attribute whose value is the request's.
func (s k3State) attr(key, value, path, kind string) {
	s.lit(" " + key + "=\"")
	s.val(strings.ReplaceAll(strings.ReplaceAll(value, "&", "&amp;"), "\"", "&quot;"), path, kind)
	s.lit("\"")
}

// head opens a message.
func (s k3State) head(role string, m *callTurn) {
	s.lit("<|open|>message role=\"" + role + "\"")
	if n := m.v.Get("name"); n.True() {
		kind := kindSystem
		switch role {
		case "user":
			kind = kindUser
		case "assistant":
			kind = kindText
		}
		s.attr("name", n.Text(), m.path+".name", kind)
	}
	s.lit(k3Sep)
}

// tools prints the rest of a message that lists tools, keys sorted and without spaces.
func (s k3State) tools(tools []jsonval.Value, path string) {
	s.lit("[")
	for i, t := range tools {
		if i > 0 {
			s.lit(",")
		}
		s.val(string(compactJSON(nil, sortKeys(t))), fmt.Sprintf("%s[%d]", path, i), kindTools)
	}
	s.lit("]\n```" + k3End)
}

// sortKeys returns v with the keys of its objects in order.
func sortKeys(v jsonval.Value) jsonval.Value {
	out := v
	switch v.Kind {
	case jsonval.Array:
		out.List = make([]jsonval.Value, len(v.List))
		for i, x := range v.List {
			out.List[i] = sortKeys(x)
		}
	case jsonval.Object:
		at := make([]int, len(v.Keys))
		for i := range at {
			at[i] = i
		}
		slices.SortFunc(at, func(a, b int) int { return cmp.Compare(v.Keys[a], v.Keys[b]) })
		out.Keys, out.List = make([]string, len(at)), make([]jsonval.Value, len(at))
		for i, k := range at {
			out.Keys[i], out.List[i] = v.Keys[k], sortKeys(v.List[k])
		}
	}
	return out
}

// result prints what a tool returned; n counts the results since the calls, from 1.
func (s k3State) result(m *callTurn, calls []call, n int) error {
	name, path := "", ""
	switch own := m.v.Get("tool"); {
	case m.call != nil:
		name, path = m.call.name, m.call.namePath
	case own.Kind == jsonval.String:
		name, path = own.Str, m.path+".tool"
	case m.v.Get("name").Kind == jsonval.String:
		name, path = m.v.Get("name").Str, m.path+".name"
	case n <= len(calls):
		name, path = calls[n-1].name, calls[n-1].namePath
	default:
		return &Error{path: m.path, reason: "is a result without a call before it"}
	}
	s.lit("<|open|>message role=\"tool\"")
	s.attr("tool", name, path, kindToolResult)
	s.lit(" index=\"" + strconv.Itoa(n) + "\"" + k3Sep)
	s.val(m.content, m.contentPath, kindToolResult)
	return nil
}

func (s k3State) assistant(m *callTurn, open bool) {
	if s.thinking {
		s.open("think")
		if strings.TrimSpace(m.reasoning) != "" {
			s.val(m.reasoning, m.reasoningPath, kindReasoning)
			if open && m.content == "" {
				return
			}
		}
		s.close("think")
	}
	s.open("response")
	s.val(m.content, m.contentPath, kindText)
	if open {
		return
	}
	s.close("response")
	if len(m.calls) == 0 {
		return
	}
	s.open("tools")
	for i := range m.calls {
		c := &m.calls[i]
		s.lit(k3Open + "call")
		s.attr("tool", c.name, c.namePath, kindToolCall)
		s.lit(" index=\"" + strconv.Itoa(i+1) + "\"" + k3Sep)
		if c.valid && c.args.Kind == jsonval.Object {
			for k, v := range c.args.List {
				s.lit(k3Open + "argument")
				s.attr("key", c.args.Keys[k], c.argsPath, kindToolCall)
				s.lit(" type=\"" + k3Type(v) + "\"" + k3Sep)
				text := v.Str
				if v.Kind != jsonval.String {
					text = string(v.AppendJSON(nil))
				}
				s.val(text, c.argsPath+"."+c.args.Keys[k], kindToolCall)
				s.close("argument")
			}
		} else {
			s.lit("<|open|>json type=\"object\"<|sep|>")
			text := c.raw
			if !c.isRaw {
				text = string(c.args.AppendJSON(nil))
			}
			s.val(text, c.argsPath, kindToolCall)
			s.close("json")
		}
		s.close("call")
	}
	s.close("tools")
}

func k3Type(v jsonval.Value) string {
	switch v.Kind {
	case jsonval.Bool:
		return "boolean"
	case jsonval.Int, jsonval.Float:
		return "number"
	case jsonval.String:
		return "string"
	case jsonval.Array:
		return "array"
	case jsonval.Object:
		return "object"
	}
	return "null"
}

// requirements prints tool_choice and response_format.
func (s k3State) requirements(kwargs jsonval.Value) {
	switch kwargs.Get("tool_choice").Str {
	case "required":
		s.internal("tool-choice", "The system is invoked with `tool_choice=required`.\nYou MUST call tools in the next message."+k3End)
	case "none":
		s.internal("tool-choice", "The system is invoked with `tool_choice=none`.\nYou MUST NOT call any tools in the next message."+k3End)
	}
	const raw = "Your response must be raw JSON data without markdown code blocks (```json) or any additional formatting."
	format := kwargs.Get("response_format")
	typ := format.Str
	if format.Kind == jsonval.Object {
		typ = format.Get("type").Str
	}
	switch typ {
	case "json_object":
		s.internal("response-format", "The system is invoked with `response_format=json_object`.\n"+raw+k3End)
	case "json_schema":
		schema, path := kwargs.Get("response_schema"), "kwargs.response_schema"
		if schema.Kind == jsonval.Undefined {
			schema, path = format.Get("json_schema"), "kwargs.response_format.json_schema"
			for _, key := range []string{"schema", "json_schema"} {
				if inner := schema.Get(key); inner.Kind != jsonval.Undefined {
					schema, path = inner, path+"."+key
					break
				}
			}
		}
		s.internal("response-format", "The system is invoked with `response_format=json_schema`.\n"+raw+"\nThe JSON data must match the following schema:\n```json\n")
		s.val(string(compactJSON(nil, sortKeys(schema))), path, kindSystem)
		s.lit("\n```" + k3End)
	}
}

// k3Sort puts each run of results into the order of the calls before it, if all of the run have the id of
// a call, and names them after their calls.
func k3Sort(turns []callTurn) {
	var index map[string]int
	var calls []call
	for i := 0; i < len(turns); i++ {
		switch turns[i].role {
		case "assistant":
			calls, index = turns[i].calls, make(map[string]int, len(turns[i].calls))
			for k := len(calls) - 1; k >= 0; k-- {
				if calls[k].id != "" {
					index[calls[k].id] = k // the first of two with one id
				}
			}
		case "tool":
			end := i
			known := true
			for ; end < len(turns) && turns[end].role == "tool"; end++ {
				id := turns[end].v.Get("tool_call_id")
				if id.Kind == jsonval.Undefined {
					id = turns[end].v.Get("id")
				}
				k, ok := index[id.Str]
				if ok {
					turns[end].place, turns[end].call = k, &calls[k]
				}
				known = known && ok
			}
			if known {
				slices.SortStableFunc(turns[i:end], func(a, b callTurn) int { return cmp.Compare(a.place, b.place) })
			} else {
				for k := i; k < end; k++ {
					turns[k].call = nil
				}
			}
			i = end - 1
		}
	}
}
