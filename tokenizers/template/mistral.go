// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/jsonval"
)

// mistral is the format of Mistral's models, whose tokenizer files have a version instead of a template:
//
//	<s>[SYSTEM_PROMPT]SYSTEM[/SYSTEM_PROMPT][AVAILABLE_TOOLS][…][/AVAILABLE_TOOLS][INST]TEXT[/INST]TEXT</s>
//
//	v1   [INST] and [/INST] are text with spaces; neither tools nor calls. System text begins the first user message.
//	v2   [TOOL_CALLS][{"name": …, "arguments": …}]</s>[TOOL_RESULTS][{"name": …, "content": …}][/TOOL_RESULTS], both only
//	     after the last user message. Tools come before the last user message, which begins with the system text.
//	v3   calls have an id; results are {"content": …, "call_id": …}; both are kept
//	v7   [SYSTEM_PROMPT], in its position; [TOOL_RESULTS]ID[TOOL_CONTENT]TEXT[/TOOL_RESULTS]; text before calls
//	v11  [TOOL_CALLS]NAME[CALL_ID]ID[ARGS]{…} for each call; results in the order of their calls
//	v13  no ids; tools before the first user message; [THINK]REASONING[/THINK]
//	v15  [MODEL_SETTINGS]{"reasoning_effort": …}[/MODEL_SETTINGS] after the tools
//
// The text equals the tokens of mistral-common 1.13.1 (tokens/tokenizers/instruct.py, protocol/instruct/normalize.py) on
// the conversations that it accepts. Messages of the same role are joined by an empty line, as are text parts before v15.
// Reasoning is printed if the vocabulary has [THINK], from v13 on.
//
// Conversations that mistral-common refuses are accepted if the format can express each part: text before calls in v2
// and v3, several results in v2, an assistant's message without text. System text after a response is an error, as is
// an id of a call in v3 to v11 that is not nine letters and digits.
type mistral struct {
	fitting
	version int
	think   bool
	effort  string   // v15: unless the request has one; "" prints none
	efforts []string // v15: those that the model accepts
}

var mistralVersions = []int{1, 2, 3, 7, 11, 13, 15}

func newMistral(v *variables) Template {
	t := mistral{
		version: variable(v, "version", 15),
		think:   variable(v, "thinking", false),
		effort:  variable(v, "reasoning_effort", ""),
		efforts: slices.Clone(variable(v, "reasoning_efforts", []string(nil))),
	}
	if !slices.Contains(mistralVersions, t.version) {
		v.fail("version", fmt.Sprintf("is %d, not one of %v", t.version, mistralVersions))
	}
	return t
}

// mistralState is the state of one rendering.
type mistralState struct {
	mistral
	*builder
	system      []callTurn // v1 to v3: its text is part of a user message
	tools       []jsonval.Value
	settings    string // the effort
	kwargsPath  string // of the effort; "" if it is an option
	first, last int    // user messages; -1 if absent
}

// Render implements [Template].
func (t mistral) Render(req Request) (*Prompt, error) { return t.render(&input{Request: req}) }

// RenderValues renders a conversation of values; see input.
func (t mistral) RenderValues(req Request, messages, tools []jsonval.Value) (*Prompt, error) {
	return t.render(&input{Request: req, values: true, messages: messages, tools: tools})
}

// RenderParts is [compiled.RenderParts].
func (t mistral) RenderParts(req Request, messages, tools []*jsonval.Part, before any) (p *Prompt, keep any, size int, err error) {
	return renderTurns(t.render, req, messages, tools, before)
}

func (t mistral) render(req *input) (*Prompt, error) {
	parsed, tools, kwargs, err := parseRequest(req, "system", "developer", "user", "assistant", "tool")
	if err != nil {
		return nil, err
	}
	turns := copied(parsed)
	if last := &turns[len(turns)-1]; req.ContinueFinalMessage != "" && last.role != "assistant" {
		return nil, &Error{path: last.path, reason: "cannot be continued: it is not the assistant's"}
	}
	s := &mistralState{mistral: t, builder: newBuilder(req), tools: tools, settings: t.effort, first: -1, last: -1}
	if t.version >= 15 && len(t.efforts) > 0 {
		switch e := kwargs.Get("reasoning_effort"); {
		case e.Kind == jsonval.Undefined || e.Kind == jsonval.Null:
		case e.Kind != jsonval.String || !slices.Contains(t.efforts, e.Str):
			return nil, &Error{path: "kwargs.reasoning_effort", reason: "is none of " + strings.Join(t.efforts, ", ")}
		default:
			s.settings, s.kwargsPath = e.Str, "kwargs.reasoning_effort"
		}
	}
	for i, tool := range tools {
		path := fmt.Sprintf("tools[%d]", i)
		if f := tool.Get("function"); f.True() {
			tool, path = f, path+".function"
		}
		if tool.Get("name").Kind != jsonval.String {
			return nil, &Error{path: path + ".name", reason: "is not a string"}
		}
	}
	list, err := s.collect(turns)
	if err != nil {
		return nil, err
	}
	s.lit("<s>")
	for i, group := range list {
		m := &group[0]
		open := req.ContinueFinalMessage != "" && i == len(list)-1
		switch m.role {
		case "system":
			for k := range group {
				s.lit("[SYSTEM_PROMPT]")
				s.texts(group[k:k+1], kindSystem)
				s.lit("[/SYSTEM_PROMPT]")
			}
		case "user":
			s.user(group, i)
		case "assistant":
			s.assistant(group, i < s.last, open)
		case "tool":
			if s.version == 2 && i < s.last {
				continue
			}
			for k := range group {
				s.result(&group[k])
			}
		}
	}
	return s.builder.prompt(req), nil
}

// collect groups adjacent messages of one role.
func (s *mistralState) collect(turns []callTurn) (list [][]callTurn, err error) {
	var calls []call
	for i := range turns {
		m := &turns[i]
		if m.role == "developer" {
			m.role = "system"
		}
		before := ""
		if i > 0 {
			before = turns[i-1].role
		}
		if m.role == "system" && (before == "assistant" || before == "tool") {
			return nil, &Error{path: m.path, reason: "is system text after a response, for which the format has no place"}
		}
		if s.version == 1 && (m.role == "tool" || len(m.calls) > 0) {
			return nil, &Error{path: m.path, reason: "has calls or results, for which the format v1 has no place"}
		}
		if s.version >= 3 && s.version <= 11 {
			ids := []string{m.v.Get("tool_call_id").Str}
			for k := range m.calls {
				ids = append(ids, m.calls[k].id)
			}
			for _, id := range ids {
				if id != "" && !isMistralID(id) {
					return nil, &Error{path: m.path, reason: fmt.Sprintf("has the id %q of a call, not nine letters and digits", id)}
				}
			}
		}
		if m.role == "system" && s.version < 7 {
			s.system = append(s.system, *m)
			continue
		}
		if k := len(list) - 1; k >= 0 && list[k][0].role == m.role {
			list[k] = append(list[k], *m)
		} else {
			list = append(list, []callTurn{*m})
		}
	}
	if len(list) == 0 || s.version < 7 && list[0][0].role != "user" {
		list = slices.Insert(list, 0, []callTurn{{role: "user"}})
	}
	for i, group := range list {
		switch group[0].role {
		case "user":
			s.last = i
			if s.first < 0 {
				s.first = i
			}
		case "assistant":
			calls = nil
			for k := range group {
				calls = append(calls, group[k].calls...)
			}
		case "tool":
			if s.version < 11 {
				break
			}
			order := make(map[string]int, len(calls))
			for k := range calls {
				order[calls[k].id] = k
			}
			at := func(m callTurn) int {
				if k, ok := order[m.v.Get("tool_call_id").Str]; ok {
					return k
				}
				return len(calls)
			}
			slices.SortStableFunc(group, func(a, b callTurn) int { return at(a) - at(b) })
			calls = nil
		}
	}
	return list, nil
}

// isMistralID reports whether id is one that mistral-common accepts.
func isMistralID(id string) bool {
	return len(id) == 9 && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	})
}

// texts prints the texts of messages of one role, and reports whether there is any.
func (s *mistralState) texts(group []callTurn, kind string) bool {
	some := false
	for i := range group {
		m := &group[i]
		sep := "\n\n" // before the first part
		for _, text := range s.parts(m) {
			if text == "" {
				continue
			}
			if some {
				s.lit(sep)
			}
			s.val(text, m.contentPath, kind)
			some = true
			if sep = "\n\n"; s.version >= 15 {
				sep = ""
			}
		}
	}
	return some
}

// parts returns the text parts of a message.
func (s *mistralState) parts(m *callTurn) []string {
	c := m.v.Get("content")
	if c.Kind != jsonval.Array {
		return []string{m.content}
	}
	parts := make([]string, len(c.List))
	for i, p := range c.List {
		parts[i] = p.Get("text").Str + p.Str
	}
	return parts
}

// user prints the user messages at index i of the list.
func (s *mistralState) user(group []callTurn, i int) {
	system := i == s.last
	if s.version == 1 {
		system = i == s.first
	}
	if (s.version < 13 && i == s.last || s.version >= 13 && i == s.first) && s.version > 1 {
		s.declare()
	}
	s.lit("[INST]")
	if s.version == 1 {
		s.lit(" ")
	}
	if system && s.texts(s.system, kindSystem) {
		s.lit("\n\n")
	}
	s.texts(group, kindUser)
	if s.version == 1 {
		s.lit(" ")
	}
	s.lit("[/INST]")
}

// declare prints the tools and the settings.
func (s *mistralState) declare() {
	if len(s.tools) > 0 {
		s.lit("[AVAILABLE_TOOLS][")
		for i, tool := range s.tools {
			path := fmt.Sprintf("tools[%d]", i)
			if f := tool.Get("function"); f.True() {
				tool, path = f, path+".function"
			}
			if i > 0 {
				s.lit(", ")
			}
			s.lit(`{"type": "function", "function": {"name": `)
			s.json(tool.Get("name"), path+".name", kindTools, false)
			s.lit(`, "description": `)
			if d := tool.Get("description"); d.Kind == jsonval.String {
				s.json(d, path+".description", kindTools, false)
			} else {
				s.lit(`""`)
			}
			s.lit(`, "parameters": `)
			if p := tool.Get("parameters"); p.Kind == jsonval.Object {
				s.json(p, path+".parameters", kindTools, false)
			} else {
				s.lit("{}")
			}
			s.lit("}}")
		}
		s.lit("][/AVAILABLE_TOOLS]")
	}
	if s.version < 15 || s.settings == "" {
		return
	}
	s.lit(`[MODEL_SETTINGS]{"reasoning_effort": "`)
	if s.kwargsPath != "" {
		s.val(s.settings, s.kwargsPath, kindOption)
	} else {
		s.lit(s.settings)
	}
	s.lit(`"}[/MODEL_SETTINGS]`)
}

// assistant prints the assistant's messages. past is set if a user message follows.
func (s *mistralState) assistant(group []callTurn, past, open bool) {
	if s.version == 1 {
		s.lit(" ") // mistral-common encodes each message alone, and the tokenizer begins each text with a space
	}
	var calls []*call
	from := len(s.text)
	thought, rest := false, group // rest are messages whose texts are joined
	for i := range group {
		m := &group[i]
		if s.think && s.version >= 13 && m.reasoning != "" {
			s.texts(rest[:i-(len(group)-len(rest))], kindText)
			rest, thought = group[i:], true
			s.lit("[THINK]")
			s.val(m.reasoning, m.reasoningPath, kindReasoning)
			s.lit("[/THINK]")
		}
		for k := range m.calls {
			calls = append(calls, &m.calls[k])
		}
	}
	s.texts(rest, kindText)
	if s.version > 1 && !thought {
		s.trimSpaces(from)
	}
	switch {
	case len(calls) == 0:
	case s.version >= 11:
		for _, c := range calls {
			s.lit("[TOOL_CALLS]")
			s.val(c.name, c.namePath, kindToolCall)
			if s.version == 11 && c.id != "" {
				s.lit("[CALL_ID]")
				s.val(c.id, strings.TrimSuffix(c.namePath, ".function.name")+".id", kindToolCall)
			}
			s.lit("[ARGS]")
			s.arguments(c)
		}
	case s.version > 2 || !past:
		s.lit("[TOOL_CALLS][")
		for i, c := range calls {
			if i > 0 {
				s.lit(", ")
			}
			s.lit(`{"name": `)
			s.json(str(c.name), c.namePath, kindToolCall, false)
			s.lit(`, "arguments": `)
			s.arguments(c)
			if s.version > 2 && c.id != "" {
				s.lit(`, "id": "`)
				s.val(c.id, strings.TrimSuffix(c.namePath, ".function.name")+".id", kindToolCall)
				s.lit(`"`)
			}
			s.lit("}")
		}
		s.lit("]")
	case len(s.text) == from:
		return // calls alone, which v2 forgets
	}
	if !open {
		s.lit("</s>")
	}
}

// trimSpaces removes spaces from the end of the text, which begins at from.
func (s *mistralState) trimSpaces(from int) {
	n := from + len(strings.TrimRight(string(s.text[from:]), " "))
	for len(s.text) > n {
		k, j := len(s.segs)-1, len(s.spans)-1
		at := max(n, s.segs[k].start)
		s.text, s.segs[k].end = s.text[:at], at
		if at == s.segs[k].start {
			s.segs = s.segs[:k]
		}
		for ; j >= 0 && s.spans[j].End > at; j-- {
			if s.spans[j].End = at; s.spans[j].Start >= at {
				s.spans = s.spans[:j]
			}
		}
	}
}

// arguments prints the arguments of a call as JSON.
func (s *mistralState) arguments(c *call) {
	if !c.valid {
		s.json(str(c.raw), c.argsPath, kindToolCall, false)
		return
	}
	s.json(c.args, c.argsPath, kindToolCall, false)
}

// result prints the result of a call.
func (s *mistralState) result(m *callTurn) {
	s.lit("[TOOL_RESULTS]")
	id := m.v.Get("tool_call_id").Str
	switch {
	case s.version >= 13:
		s.texts([]callTurn{*m}, kindToolResult)
	case s.version >= 7:
		s.val(id, m.path+".tool_call_id", kindToolResult)
		s.lit("[TOOL_CONTENT]")
		s.texts([]callTurn{*m}, kindToolResult)
	default:
		v := str(strings.Join(slices.DeleteFunc(s.parts(m), func(p string) bool { return p == "" }), "\n\n"))
		if v.Str == "" {
			v = jsonval.Value{Kind: jsonval.Object}
		} else if parsed, err := jsonval.Parse([]byte(v.Str), ""); err == nil {
			v = parsed
		}
		if s.version == 2 {
			s.lit(`[{"name": `)
			s.json(m.v.Get("name"), m.path+".name", kindToolResult, false)
			s.lit(`, "content": `)
			s.json(v, m.contentPath, kindToolResult, false)
			s.lit("}]")
		} else {
			s.lit(`{"content": `)
			s.json(v, m.contentPath, kindToolResult, false)
			s.lit(`, "call_id": "`)
			s.val(id, m.path+".tool_call_id", kindToolResult)
			s.lit(`"}`)
		}
	}
	s.lit("[/TOOL_RESULTS]")
}
