// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/tokenizers/internal/jsonval"
)

// harmonyEfforts lists the efforts of the format.
var harmonyEfforts = []string{"low", "medium", "high"}

type harmonyOptions struct {
	library  bool             // the style library
	date     string           // such as 2025-06-28; "" means the current date
	now      func() time.Time // may be nil
	identity string
	cutoff   string // knowledge cutoff
	effort   string
	builtin  []string // built-in tools of the model: browser, python
	drop     bool     // past reasoning is dropped by the rule of the style
	sampled  bool     // calls as the model writes them: the channel before the recipient in the header, and arguments as they come
}

// harmony is the format of gpt-oss:
//
//	<|start|>ROLE<|channel|>CHANNEL<|message|>TEXT<|end|>
//
// with a system message of identity, date and effort, the instructions and tools in a developer message, reasoning on
// the channel analysis, calls to functions.NAME on commentary, and the final text on final. The style template equals
// the chat template of openai/gpt-oss-20b in its revision of 2025-08-08 (cbf31f6) on the conversations it accepts, with
// the exceptions below. Earlier versions of it, which are still in use, differ in nearly every line (reasoning: in
// lower case, no <|call|>, no <|return|>) and are not supported.
//
// The style library is the renderer of the openai/harmony repository (oss-harmony 0.0.11), as vLLM and OpenAI's own reference code
// run it. Differences from the template:
//   - tool results are printed as they are, the template prints them as one JSON string;
//   - calls are marked <|constrain|>json, and arguments that came as text keep their bytes; the template writes a bare
//     json and formats the arguments again;
//   - reasoning is dropped only when the last message of the assistant is a final one, and then only what comes before
//     the first final one; the template drops it before every later final message, and always from messages without
//     calls;
//   - the text of a message with calls is a preamble on the commentary channel, where the template makes it analysis if
//     the message has no reasoning of its own;
//   - the types of parameters are written in another layout, with comments inside;
//   - instructions without tools are not followed by an empty line;
//   - a final message never ends with <|return|>.
//
// Conversations on which that template fails or drops content are accepted:
//   - All calls of a message are printed, each as a message of its own. Results are named after the call with
//     their tool_call_id in the last message with calls, else after the call in the same place.
//   - A message with calls may have reasoning and text; the text becomes a preamble on the channel commentary.
//   - System and developer messages after the first message are printed as developer messages.
//   - A missing or null content is empty, text parts are joined by line ends, a missing description prints no
//     comment. Text that holds harmony's marks is text.
//   - thinking, reasoning_content and reasoning mean the same.
//
// Arguments that come as a string of JSON, as OpenAI's form has them, are read and printed as the value; the
// template alone would quote them once more, and engines that run it read them before. A string that is not
// JSON is printed as it is. Text parts of a tool result are joined before they are quoted.
//
// A final message with reasoning and no text is continued in its reasoning.
type harmony struct {
	fitting
	opt harmonyOptions
}

func newHarmony(v *variables) Template {
	return harmony{opt: harmonyOptions{
		library:  v.choice("style", "template", "library") == "library",
		date:     variable(v, "date", ""),
		now:      v.opt.Now,
		identity: variable(v, "model_identity", "You are ChatGPT, a large language model trained by OpenAI."),
		cutoff:   variable(v, "knowledge_cutoff", "2024-06"),
		effort:   variable(v, "reasoning_effort", "medium"),
		builtin:  slices.Clone(variable(v, "builtin_tools", []string(nil))),
		drop:     variable(v, "auto_drop_analysis", true),
		sampled:  variable(v, "sampled_calls", false),
	}}
}

// harmonyState is the state of one rendering.
type harmonyState struct {
	harmony
	*builder
	turns   []*callTurn
	library bool
	keep    bool
	open    bool           // the last message is continued by the model
	prompt  bool           // a generation prompt follows
	date    string         // "" means none
	calls   []call         // of the last message with calls
	byID    map[string]int // indexes in calls, by id
	result  int            // number of results since then
}

// Render implements [Template].
func (t harmony) Render(req Request) (*Prompt, error) { return t.render(&input{Request: req}) }

// RenderValues renders a conversation of values; see input.
func (t harmony) RenderValues(req Request, messages, tools []jsonval.Value) (*Prompt, error) {
	return t.render(&input{Request: req, values: true, messages: messages, tools: tools})
}

func (t harmony) render(req *input) (*Prompt, error) {
	turns, tools, kwargs, err := parseRequest(req, "system", "developer", "user", "assistant", "tool")
	if err != nil {
		return nil, err
	}
	s := &harmonyState{
		harmony: t, builder: newBuilder(req), turns: turns, open: req.ContinueFinalMessage != "", prompt: req.AddGenerationPrompt,
		library: t.opt.library,
		keep:    !kwargBool(kwargs, "auto_drop_analysis", t.opt.drop),
	}
	if s.date = t.opt.date; s.date == "" && t.opt.now != nil {
		s.date = t.opt.now().Format(time.DateOnly)
	}
	first := 0
	if turns[0].role == "system" || turns[0].role == "developer" {
		first = 1
	}
	analysis := s.analysis(first)
	begin := s.take(req, s.date+" "+string(req.Kwargs), harmonySteps(req, analysis))
	if begin == 0 {
		if err := s.system(kwargs, len(tools) > 0); err != nil {
			return nil, err
		}
		if err := s.developer(first > 0, tools); err != nil {
			return nil, err
		}
		if first > 0 {
			s.mark(req, 0)
		}
	}
	s.resume(begin)
	for i := max(first, begin); i < len(turns); i++ {
		m := turns[i]
		open := s.open && i == len(turns)-1
		switch m.role {
		case "system", "developer":
			s.lit("<|start|>developer<|message|># Instructions\n\n")
			s.val(m.content, m.contentPath, kindSystem)
			s.end(open)
		case "user":
			s.lit("<|start|>user<|message|>")
			s.val(m.content, m.contentPath, kindUser)
			s.end(open)
		case "assistant":
			s.assistant(m, analysis[i], i == len(turns)-1)
		case "tool":
			if err := s.tool(m, open); err != nil {
				return nil, err
			}
		}
		s.mark(req, i)
	}
	if s.prompt {
		s.lit("<|start|>assistant")
	}
	return s.builder.prompt(req), nil
}

// harmonySteps returns the steps of a rendering with memory. Each message is one, and its form is whether its reasoning is
// printed.
func harmonySteps(req *input, analysis []bool) []step {
	if req.turns == nil {
		return nil
	}
	steps := make([]step, len(analysis))
	for i, a := range analysis {
		steps[i].end = i + 1
		if a {
			steps[i].form = 1
		}
	}
	return steps
}

// resume sets the state after the first n turns, whose output was taken over.
func (s *harmonyState) resume(n int) {
	for i := n - 1; i >= 0; i-- {
		if m := s.turns[i]; m.role == "tool" {
			s.result++
		} else if m.role == "assistant" && len(m.calls) > 0 {
			s.called(m.calls)
			return
		}
	}
}

// called sets the calls that the next results belong to. It keeps the number of results.
func (s *harmonyState) called(calls []call) {
	s.calls = calls
	if s.byID == nil || len(s.byID) > 32 { // a large map takes long to clear
		s.byID = make(map[string]int, len(calls))
	}
	clear(s.byID)
	for i := range calls {
		if id := calls[i].id; id != "" {
			s.byID[id] = i
		}
	}
}

func (s *harmonyState) end(open bool) {
	if !open {
		s.lit("<|end|>")
	}
}

func (s *harmonyState) system(kwargs jsonval.Value, functions bool) error {
	text := func(key, def string) error {
		switch v := kwargs.Get(key); v.Kind {
		case jsonval.String:
			s.val(v.Str, "kwargs."+key, kindSystem)
		case jsonval.Undefined, jsonval.Null:
			s.lit(def)
		default:
			return &Error{path: "kwargs." + key, reason: "is not a string"}
		}
		return nil
	}
	s.lit("<|start|>system<|message|>")
	if err := text("model_identity", s.opt.identity); err != nil {
		return err
	}
	s.lit("\nKnowledge cutoff: " + s.opt.cutoff + "\n")
	if s.date != "" {
		s.lit("Current date: " + s.date + "\n")
	}
	s.lit("\nReasoning: ")
	if e := kwargs.Get("reasoning_effort"); e.Kind == jsonval.String && !slices.Contains(harmonyEfforts, e.Str) {
		return &Error{path: "kwargs.reasoning_effort", reason: "is none of " + strings.Join(harmonyEfforts, ", ")}
	}
	if err := text("reasoning_effort", s.opt.effort); err != nil {
		return err
	}
	s.lit("\n\n")
	builtin := s.opt.builtin
	switch v := kwargs.Get("builtin_tools"); v.Kind {
	case jsonval.Array:
		builtin = nil
		for i, x := range v.List {
			if x.Kind != jsonval.String {
				return &Error{path: fmt.Sprintf("kwargs.builtin_tools[%d]", i), reason: "is not a string"}
			}
			builtin = append(builtin, x.Str)
		}
	case jsonval.Undefined, jsonval.Null:
	default:
		return &Error{path: "kwargs.builtin_tools", reason: "is not an array"}
	}
	if len(builtin) > 0 {
		s.lit("# Tools\n\n")
		if slices.Contains(builtin, "browser") {
			s.lit(harmonyBrowser)
		}
		if slices.Contains(builtin, "python") {
			s.lit(harmonyPython)
		}
	}
	s.lit("# Valid channels: analysis, commentary, final. Channel must be included for every message.")
	if functions {
		s.lit("\nCalls to these tools must go to the commentary channel: 'functions'.")
	}
	s.lit("<|end|>")
	return nil
}

// developer prints the tools and, if has is set, the instructions of the first message.
func (s *harmonyState) developer(has bool, tools []jsonval.Value) error {
	m := s.turns[0]
	open := has && s.open && len(s.turns) == 1
	has = has && (m.content != "" || open)
	if open && len(tools) > 0 {
		return &Error{path: m.path, reason: "cannot be continued: the tools follow it"}
	}
	if !has && len(tools) == 0 {
		return nil
	}
	s.lit("<|start|>developer<|message|>")
	if has {
		s.lit("# Instructions\n\n")
		s.val(m.content, m.contentPath, kindSystem)
		if !open && (len(tools) > 0 || !s.library) {
			s.lit("\n\n")
		}
	}
	if len(tools) > 0 {
		s.lit("# Tools\n\n## functions\n\nnamespace functions {\n\n")
		for i, tool := range tools {
			path := fmt.Sprintf("tools[%d]", i)
			if f := tool.Get("function"); f.True() {
				tool = f
				path += ".function"
			}
			if err := s.function(tool, path); err != nil {
				return err
			}
		}
		s.lit("} // namespace functions")
	}
	s.end(open)
	return nil
}

// analysis returns the turns whose reasoning is printed.
func (s *harmonyState) analysis(from int) []bool {
	show := make([]bool, len(s.turns))
	firstFinal, last := len(s.turns), -1
	for i := from; i < len(s.turns); i++ {
		if m := s.turns[i]; m.role == "assistant" {
			last = i
			if len(m.calls) == 0 {
				firstFinal = min(firstFinal, i)
			}
		}
	}
	lastIsFinal := last >= 0 && len(s.turns[last].calls) == 0
	laterFinal := false
	for i := last; i >= from; i-- {
		m := s.turns[i]
		if m.role != "assistant" {
			continue
		}
		switch {
		case s.keep:
			show[i] = true
		case s.library:
			show[i] = !lastIsFinal || i > firstFinal
		case len(m.calls) > 0:
			show[i] = !laterFinal
		default:
			show[i] = i == len(s.turns)-1 && !s.prompt // for training, where <|return|> is printed too
		}
		laterFinal = laterFinal || len(m.calls) == 0
	}
	return show
}

// assistant prints an assistant message as one or more messages of harmony.
func (s *harmonyState) assistant(m *callTurn, analysis, last bool) {
	const analysisHead = "<|start|>assistant<|channel|>analysis<|message|>"
	if len(m.calls) == 0 {
		open := last && s.open
		// The template prints reasoning that is present but empty.
		if analysis && (m.reasoning != "" || m.reasoningPath != "" && !s.library) {
			s.lit(analysisHead)
			s.val(m.reasoning, m.reasoningPath, kindReasoning)
			if open && m.content == "" && m.reasoning != "" {
				return
			}
			s.lit("<|end|>")
		}
		s.lit("<|start|>assistant<|channel|>final<|message|>")
		s.val(m.content, m.contentPath, kindText)
		switch {
		case open:
		case last && !s.prompt && !s.library:
			s.lit("<|return|>")
		default:
			s.lit("<|end|>")
		}
		return
	}
	switch {
	case m.reasoning != "" && analysis:
		s.lit(analysisHead)
		s.val(m.reasoning, m.reasoningPath, kindReasoning)
		s.lit("<|end|>")
	case m.reasoning == "" && !s.library && m.content != "" && analysis:
		s.lit(analysisHead)
		s.val(m.content, m.contentPath, kindText)
		s.lit("<|end|>")
	}
	if m.content != "" && (m.reasoning != "" || s.library) {
		s.lit("<|start|>assistant<|channel|>commentary<|message|>")
		s.val(m.content, m.contentPath, kindText)
		s.lit("<|end|>")
	}
	s.result = 0
	s.called(m.calls)
	for i := range m.calls {
		s.call(&m.calls[i])
	}
}

func (s *harmonyState) call(c *call) {
	s.lit("<|start|>assistant")
	if s.opt.sampled {
		s.lit("<|channel|>commentary")
	}
	s.lit(" to=functions.")
	s.val(c.name, c.namePath, kindToolCall)
	if !s.opt.sampled {
		s.lit("<|channel|>commentary")
	}
	kind := c.v.Get("content_type")
	switch {
	case kind.Kind == jsonval.String && !s.library:
		s.lit(" ")
		s.val(kind.Str, strings.TrimSuffix(c.namePath, "name")+"content_type", kindToolCall)
	case s.library || s.opt.sampled:
		s.lit(" <|constrain|>json")
	default:
		s.lit(" json")
	}
	s.lit("<|message|>")
	switch {
	case c.isRaw && (s.library || s.opt.sampled || !c.valid):
		s.val(c.raw, c.argsPath, kindToolCall)
	default:
		s.json(c.args, c.argsPath, kindToolCall, false)
	}
	s.lit("<|call|>")
}

// tool prints the result of a call under the call's name.
func (s *harmonyState) tool(m *callTurn, open bool) error {
	name, path := "", ""
	i, ok := s.byID[m.v.Get("tool_call_id").Str]
	if !ok {
		i = min(s.result, len(s.calls)-1)
	}
	s.result++
	if i >= 0 {
		name, path = s.calls[i].name, s.calls[i].namePath
	} else if n := m.v.Get("name"); n.Kind == jsonval.String {
		name, path = n.Str, m.path+".name"
	} else {
		return &Error{path: m.path, reason: "is a result without a call before it"}
	}
	s.lit("<|start|>functions.")
	s.val(name, path, kindToolResult)
	s.lit(" to=assistant<|channel|>commentary<|message|>")
	if !s.library && m.quoted() {
		s.json(jsonval.Value{Kind: jsonval.String, Str: m.content}, m.contentPath, kindToolResult, open)
	} else {
		s.val(m.content, m.contentPath, kindToolResult)
	}
	s.end(open)
	return nil
}

// quoted reports whether the content is text and not another JSON value.
func (t *callTurn) quoted() bool {
	switch t.v.Get("content").Kind {
	case jsonval.String, jsonval.Array, jsonval.Null, jsonval.Undefined:
		return true
	}
	return false
}
