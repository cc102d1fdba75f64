// SPDX-License-Identifier: Apache-2.0

package template

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/internal/jsonval"
)

// The past reasoning that the format chatml can print.
const (
	scopeAll       = "all"        // in all messages
	scopeNone      = "none"       // in no message
	scopeSinceUser = "since_user" // after the last message of the user, as in Qwen3
)

// The forms in which the format chatml can print calls, and ask for them.
const (
	callsJSON = "json" // {"name": …, "arguments": …}, as in Qwen3
	callsXML  = "xml"  // <function=…><parameter=…>, as in Qwen3-Coder and Qwen3.5
	callsNone = "none" // neither tools nor calls
)

type chatMLOptions struct {
	system    string // text if the conversation has none; "" prints no system turn
	reasoning string // since_user, all or none
	calls     string // json, xml or none
	thinking  bool   // enable_thinking, unless the request sets it
}

// chatML is the format of the Qwen family:
//
//	<|im_start|>ROLE
//	TEXT<|im_end|>
//
// with tools listed in the system turn, reasoning between <think> and </think>, calls between <tool_call> and
// </tool_call>, and results between <tool_response> and </tool_response> in a user turn. By default it equals the
// template published with Qwen3-8B (2025-04), and with calls in XML that of Qwen3.5, which lists the tools before the
// system text.
type chatML struct {
	fitting
	opt chatMLOptions
}

func newChatML(v *variables) Template {
	return chatML{opt: chatMLOptions{
		system:    variable(v, "default_system", ""),
		reasoning: v.choice("reasoning_scope", scopeSinceUser, scopeAll, scopeNone),
		calls:     v.choice("calls", callsJSON, callsXML, callsNone),
		thinking:  variable(v, "enable_thinking", true),
	}}
}

// message contains the parts of a message that the template uses.
type message struct {
	role, content string
	reasoning     string
	calls         []jsonval.Value
	path          string
	contentPath   string
	split         bool // reasoning was found in the content
}

const (
	xmlToolsHead = "# Tools\n\nYou have access to the following functions:\n\n<tools>"
	xmlToolsTail = "\n</tools>\n\nIf you choose to call a function ONLY reply in the following format with NO suffix:\n\n<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n<parameter=example_parameter_2>\nThis is the value for the second parameter\nthat can span\nmultiple lines\n</parameter>\n</function>\n</tool_call>\n\n<IMPORTANT>\nReminder:\n- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags\n- Required parameters MUST be specified\n- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after\n- If there is no function call available, answer the question like normal with your current knowledge and do not tell the user about function calls\n</IMPORTANT>"

	toolsHead = "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>"
	toolsTail = "\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>"
)

// Render implements [Template].
func (t chatML) Render(req Request) (*Prompt, error) { return t.render(&input{Request: req}) }

// RenderValues renders a conversation of values; see input.
func (t chatML) RenderValues(req Request, messages, tools []jsonval.Value) (*Prompt, error) {
	return t.render(&input{Request: req, values: true, messages: messages, tools: tools})
}

func (t chatML) render(req *input) (*Prompt, error) {
	if err := req.checkOpen(); err != nil {
		return nil, err
	}
	msgs, err := parseMessages(req)
	if err != nil {
		return nil, err
	}
	tools, err := req.toolList()
	if err != nil {
		return nil, err
	}
	kwargs, err := parseObject(req.Kwargs, "kwargs")
	if err != nil {
		return nil, err
	}
	if t.opt.calls == callsNone {
		tools = nil
		for i := range msgs {
			msgs[i].calls = nil
		}
	}
	b := newBuilder(req)
	if req.ContinueFinalMessage != "" {
		last := &msgs[len(msgs)-1]
		switch {
		case len(last.calls) > 0:
			return nil, &Error{path: last.path, reason: "cannot be continued: it has tool calls"}
		case len(msgs) == 1 && last.role == "system" && len(tools) > 0 && t.opt.calls == callsJSON:
			return nil, &Error{path: last.path, reason: "cannot be continued: the tools follow it"}
		}
	}
	t.system(b, msgs, tools, req.ContinueFinalMessage != "" && len(msgs) == 1)
	lastQuery := lastQuery(msgs)
	for i := range msgs {
		m := &msgs[i]
		open := req.ContinueFinalMessage != "" && i == len(msgs)-1
		switch m.role {
		case "system":
			if i > 0 {
				turn(b, m, kindSystem, open)
			}
		case "user":
			turn(b, m, kindUser, open)
		case "assistant":
			if err := t.assistant(b, m, i > lastQuery, i == len(msgs)-1, open); err != nil {
				return nil, err
			}
		case "tool":
			if i == 0 || msgs[i-1].role != "tool" {
				b.lit("<|im_start|>user")
			}
			b.lit("\n<tool_response>\n")
			b.val(m.content, m.contentPath, kindToolResult)
			if open {
				break
			}
			b.lit("\n</tool_response>")
			if i == len(msgs)-1 || msgs[i+1].role != "tool" {
				b.lit("<|im_end|>\n")
			}
		}
	}
	if req.AddGenerationPrompt {
		b.lit("<|im_start|>assistant\n")
		if !kwargBool(kwargs, "enable_thinking", t.opt.thinking) {
			b.lit("<think>\n\n</think>\n\n")
		}
	}
	return b.prompt(req), nil
}

// system prints the first turn: the system text, the tools, or both. With open it leaves a turn that ends with the system
// text open.
func (t chatML) system(b *builder, msgs []message, tools []jsonval.Value, open bool) {
	first := len(msgs) > 0 && msgs[0].role == "system"
	if len(tools) == 0 && !first && t.opt.system == "" {
		return
	}
	text := func() {
		if first {
			b.val(msgs[0].content, msgs[0].contentPath, kindSystem)
		} else {
			b.lit(t.opt.system)
		}
	}
	b.lit("<|im_start|>system\n")
	switch {
	case len(tools) == 0:
		text()
	case t.opt.calls == callsXML:
		listTools(b, xmlToolsHead, tools, xmlToolsTail)
		if first && strings.TrimSpace(msgs[0].content) != "" || !first && t.opt.system != "" {
			b.lit("\n\n")
			text()
		}
	default:
		text()
		if first || t.opt.system != "" {
			b.lit("\n\n")
		}
		listTools(b, toolsHead, tools, toolsTail)
	}
	if !first || !open {
		b.lit("<|im_end|>\n")
	}
}

// listTools prints a line for each tool between head and tail.
func listTools(b *builder, head string, tools []jsonval.Value, tail string) {
	b.lit(head)
	for i, tool := range tools {
		b.lit("\n")
		b.json(tool, fmt.Sprintf("tools[%d]", i), kindTools, false)
	}
	b.lit(tail)
}

// lastQuery returns the index of the last message that the user wrote, excluding tool results sent in a user turn, or
// the last index if there is no such message.
func lastQuery(msgs []message) int {
	for i := len(msgs) - 1; i >= 0; i-- {
		m := &msgs[i]
		if m.role == "user" && (!strings.HasPrefix(m.content, "<tool_response>") || !strings.HasSuffix(m.content, "</tool_response>")) {
			return i
		}
	}
	return len(msgs) - 1
}

func turn(b *builder, m *message, kind string, open bool) {
	b.lit("<|im_start|>" + m.role + "\n")
	b.val(m.content, m.contentPath, kind)
	if !open {
		b.lit("<|im_end|>\n")
	}
}

func (t chatML) assistant(b *builder, m *message, current, last, open bool) error {
	b.lit("<|im_start|>assistant\n")
	think := false
	switch t.opt.reasoning {
	case scopeSinceUser:
		think = current && (last || m.reasoning != "")
	case scopeAll:
		think = m.reasoning != "" || current && last
	}
	content := m.content
	if think {
		b.lit("<think>\n")
		path := m.path + ".reasoning_content"
		if m.split {
			path = m.contentPath
		}
		b.val(strings.Trim(m.reasoning, "\n"), path, kindReasoning)
		b.lit("\n</think>\n\n")
		content = strings.TrimLeft(content, "\n")
	}
	b.val(content, m.contentPath, kindText)
	if open {
		return nil
	}
	for i, call := range m.calls {
		path := fmt.Sprintf("%s.tool_calls[%d]", m.path, i)
		if f := call.Get("function"); f.True() {
			call = f
			path += ".function"
		}
		name := call.Get("name")
		if name.Kind != jsonval.String {
			return &Error{path: path + ".name", reason: "is not a string"}
		}
		// The XML form asks for content after trimming, and for one more line end. The JSON form tests the content
		// before leading line ends are removed.
		if t.opt.calls == callsXML {
			switch {
			case i > 0:
				b.lit("\n")
			case strings.TrimSpace(content) != "":
				b.lit("\n\n")
			}
			if err := xmlCall(b, call, path); err != nil {
				return err
			}
			continue
		}
		if i > 0 || m.content != "" {
			b.lit("\n")
		}
		b.lit("<tool_call>\n{\"name\": \"")
		b.val(name.Str, path+".name", kindToolCall)
		b.lit("\", \"arguments\": ")
		args := call.Get("arguments")
		text := args.Str
		if args.Kind != jsonval.String {
			text = string(args.AppendJSON(nil))
		}
		b.val(text, path+".arguments", kindToolCall)
		b.lit("}\n</tool_call>")
	}
	b.lit("<|im_end|>\n")
	return nil
}

// xmlCall prints a call in the style of Qwen3-Coder.
func xmlCall(b *builder, call jsonval.Value, path string) error {
	b.lit("<tool_call>\n<function=")
	b.val(call.Get("name").Str, path+".name", kindToolCall)
	b.lit(">\n")
	args := call.Get("arguments")
	if args.Kind == jsonval.String && strings.TrimSpace(args.Str) != "" {
		// OpenAI's form has the arguments as a string of JSON; the template wants the object in it.
		var err error
		if args, err = new(jsonval.Builder).ParseString(args, path+".arguments"); err != nil {
			return fromJSON(err)
		}
	}
	switch args.Kind {
	case jsonval.Object:
	case jsonval.Undefined, jsonval.Null, jsonval.String:
		args = jsonval.Value{}
	default:
		return &Error{path: path + ".arguments", reason: "is not an object"}
	}
	for i, v := range args.List {
		b.lit("<parameter=")
		b.val(args.Keys[i], path+".arguments", kindToolCall)
		b.lit(">\n")
		b.val(v.Text(), path+".arguments."+args.Keys[i], kindToolCall)
		b.lit("\n</parameter>\n")
	}
	b.lit("</function>\n</tool_call>")
	return nil
}

func parseMessages(in *input) ([]message, error) {
	list, err := in.messageList()
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, &Error{path: "messages", reason: "is empty"}
	}
	msgs := make([]message, len(list))
	for i, v := range list {
		m := &msgs[i]
		m.path, m.contentPath = elementPath("messages", i, ".content")
		switch role := v.Get("role"); role.Str {
		case "system", "user", "assistant", "tool":
			m.role = role.Str
		case "developer":
			m.role = "system"
		default:
			return nil, &Error{path: m.path + ".role", reason: fmt.Sprintf("is %q, not system, user, assistant or tool", role.Text())}
		}
		if m.content, err = contentText(v.Get("content"), m.contentPath); err != nil {
			return nil, err
		}
		if m.role != "assistant" {
			continue
		}
		calls := v.Get("tool_calls")
		if calls.True() && calls.Kind != jsonval.Array {
			return nil, &Error{path: m.path + ".tool_calls", reason: "is not an array"}
		}
		m.calls = calls.List
		switch r := v.Get("reasoning_content"); r.Kind {
		case jsonval.String:
			m.reasoning = r.Str
		case jsonval.Null, jsonval.Undefined:
			m.splitReasoning()
		default:
			return nil, &Error{path: m.path + ".reasoning_content", reason: "is not a string"}
		}
	}
	return msgs, nil
}

// splitReasoning separates inline reasoning from the content.
func (m *message) splitReasoning() {
	const end, begin = "</think>", "<think>"
	last := strings.LastIndex(m.content, end)
	if last < 0 {
		return
	}
	r := m.content[:strings.Index(m.content, end)]
	r = strings.TrimRight(r, "\n")
	if i := strings.LastIndex(r, begin); i >= 0 {
		r = r[i+len(begin):]
	}
	m.reasoning = strings.TrimLeft(r, "\n")
	m.content = strings.TrimLeft(m.content[last+len(end):], "\n")
	m.split = true
}

// contentText returns the text of a content.
func contentText(v jsonval.Value, path string) (string, error) {
	switch v.Kind {
	case jsonval.String:
		return v.Str, nil
	case jsonval.Null, jsonval.Undefined:
		return "", nil
	case jsonval.Array:
		var parts []string
		for i, p := range v.List {
			text := p.Get("text")
			if p.Kind == jsonval.String {
				text = p
			}
			if text.Kind != jsonval.String {
				return "", &Error{path: fmt.Sprintf("%s[%d]", path, i), reason: fmt.Sprintf("is not text but %q", p.Get("type").Text())}
			}
			parts = append(parts, text.Str)
		}
		return strings.Join(parts, "\n"), nil
	}
	return "", &Error{path: path, reason: "is neither text nor a list of parts"}
}

// parseList reads an optional array.
func parseList(data []byte, name string) ([]jsonval.Value, error) {
	if len(data) == 0 {
		return nil, nil
	}
	v, err := jsonval.Parse(data, name)
	if err != nil {
		return nil, fromJSON(err)
	}
	switch v.Kind {
	case jsonval.Array:
		return v.List, nil
	case jsonval.Null:
		return nil, nil
	}
	return nil, &Error{path: name, reason: "is not an array"}
}

// parseObject reads an optional object.
func parseObject(data []byte, name string) (jsonval.Value, error) {
	if len(data) == 0 {
		return jsonval.Value{}, nil
	}
	v, err := jsonval.Parse(data, name)
	if err != nil {
		return v, fromJSON(err)
	}
	if v.Kind != jsonval.Object && v.Kind != jsonval.Null {
		return v, &Error{path: name, reason: "is not an object"}
	}
	return v, nil
}

func fromJSON(err error) error {
	if e, ok := errors.AsType[*jsonr.Error](err); ok {
		if e.Offset >= 0 {
			return &Error{path: e.Path, reason: fmt.Sprintf("%s (offset %d)", e.Reason, e.Offset)}
		}
		return &Error{path: e.Path, reason: e.Reason}
	}
	return &Error{reason: err.Error()}
}
