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

type deepSeekOptions struct {
	thinking bool   // the model reasons first
	drop     bool   // the reasoning of earlier turns is dropped even if the format can keep it
	effort   string // "" means high in V4.1, no instruction in V4; V3.2 has none
	// developerIsSystem treats developer messages as system messages, as OpenAI's API does. In these formats a
	// developer writes in place of the user, for DeepSeek's search pipeline.
	developerIsSystem bool
	// compact omits the empty lines in V3.2's text about tools. Two versions exist: without these lines in vLLM's
	// (Python) and SGLang's copies of the published script, and with them in the renderers of vLLM (Rust), Dynamo,
	// mlx-lm and smg. It is unknown which one was published with the model.
	compact bool
	bos     bool // <｜begin▁of▁sentence｜> is printed
}

const (
	dsBOS       = "<｜begin▁of▁sentence｜>"
	dsEOS       = "<｜end▁of▁sentence｜>"
	dsUser      = "<｜User｜>"
	dsAssistant = "<｜Assistant｜>"
	dsSystem    = "<｜System｜>"
	dsReminder  = "<｜latest_reminder｜>"
	dsThink     = "<think>"
	dsEndThink  = "</think>"
	dsFormat    = "## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n"
	dsMaxEffort = "Reasoning Effort: Absolute maximum with no shortcuts permitted.\n" +
		"You MUST be very thorough in your thinking and comprehensively decompose the problem to resolve the root cause, rigorously stress-testing your logic against all potential paths, edge cases, and adversarial scenarios.\n" +
		"Explicitly write out your entire deliberation process, documenting every intermediate step, considered alternative, and rejected hypothesis to ensure absolutely no assumption is left unchecked.\n\n"
)

// dsTasks are the tokens of V4's quick instructions.
var dsTasks = map[string]string{
	"action": "<｜action｜>", "query": "<｜query｜>", "authority": "<｜authority｜>",
	"domain": "<｜domain｜>", "title": "<｜title｜>", "read_url": "<｜read_url｜>",
}

// deepSeek is the format of DeepSeek-V3.2, which has no Jinja template but a script
// (encoding/encoding_dsv32.py of deepseek-ai/DeepSeek-V3.2, read in the copies of vLLM of 2025-12 and
// SGLang):
//
//	<｜begin▁of▁sentence｜>SYSTEM<｜User｜>TEXT<｜Assistant｜><think>REASONING</think>TEXT
//
//	<｜DSML｜function_calls>
//	<｜DSML｜invoke name="NAME">
//	<｜DSML｜parameter name="KEY" string="true">VALUE</｜DSML｜parameter>
//	</｜DSML｜invoke>
//	</｜DSML｜function_calls><｜end▁of▁sentence｜>
//
// Reasoning is printed after the last message of the user or developer, and only in thinking mode. The tools of the
// request follow the text of a system message at the start, which is added if it is absent. Messages may also have the
// fields tools and response_format.
//
// The output equals the script's byte for byte if the script accepts the request, with one addition:
// AddGenerationPrompt determines whether the head of the assistant's turn, which the script always writes, follows a
// last message of the user or of tools, and opens a turn after any other message. Requests on which the script fails
// are accepted: an assistant message after the last user message has empty reasoning by default, a developer message
// before the last user message is kept, arguments other than an object are one parameter called arguments, a missing
// content is empty, and text parts are joined by line ends. As in the script, results are assigned in the order of the
// calls, and a block with fewer results than calls is not closed.
//
// DeepSeek-V4 is printed as by its script (encoding/encoding_dsv4.py of deepseek-ai/DeepSeek-V4-Flash, with its four
// test cases, and SGLang's copy). Differences from V3.2:
//   - the block of calls is called tool_calls, and the text about tools is another;
//   - results are <tool_result>…</tool_result> in a turn of the user, sorted in the order of the calls by id, and
//     joined with what the user writes next to them;
//   - reasoning of earlier turns is kept if the conversation has tools;
//   - in conversations without tools and in thinking mode, developer messages before the last turn of
//     the user are dropped;
//   - the role latest_reminder (date, location), tasks (a field of a message: action, query, authority, domain, title,
//     read_url), wo_eos (an assistant message without an end) and the effort max are supported.
//
// Its output equals the script's as for V3.2. Arguments may be an object, which the script would print as text. Content
// parts other than text are errors; the script prints "[Unsupported …]". Unknown efforts are ignored.
//
// DeepSeek-V4.1 is printed as SGLang's port of its script prints it (encoding_dsv41.py, 2026-10; the script itself and
// its test cases were not seen, nor was the port run). Differences from V4: DSML names begin with a space, system
// messages begin with <｜System｜> and are treated as user messages between turns, and the effort is a number, which is
// always printed in thinking mode. Images are errors.
type deepSeek struct {
	fitting
	opt     deepSeekOptions
	version int
	// Names in DSML, and the text about tools around the schemas.
	block, invoke, param string
	head, tail           string
}

func newDeepSeek(version int, v *variables) Template {
	t := &deepSeek{version: version, opt: deepSeekOptions{
		thinking:          variable(v, "thinking", false),
		drop:              variable(v, "drop_thinking", true),
		effort:            v.word("reasoning_effort", ""),
		developerIsSystem: variable(v, "developer_is_system", false),
		compact:           variable(v, "compact_tools", false),
		bos:               variable(v, "add_bos", true),
	}}
	switch version {
	case 32:
		t.block, t.invoke, t.param = "function_calls", "invoke", "parameter"
	case 40:
		t.block, t.invoke, t.param = "tool_calls", "invoke", "parameter"
	case 41:
		t.block, t.invoke, t.param = " calls", " invoke", " parameter"
	}
	name := "TOOL_NAME"
	if version == 32 {
		name = "FUNCTION_NAME"
	}
	block := "<｜DSML｜" + t.block + ">\n" +
		"<｜DSML｜" + t.invoke + " name=\"$" + name + "\">\n" +
		"<｜DSML｜" + t.param + " name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE</｜DSML｜" + t.param + ">\n...\n" +
		"</｜DSML｜" + t.invoke + ">\n" +
		"<｜DSML｜" + t.invoke + " name=\"$" + name + "2\">\n...\n" +
		"</｜DSML｜" + t.invoke + ">\n" +
		"</｜DSML｜" + t.block + ">\n"
	if version == 32 {
		t.head = "## Tools\n\nYou have access to a set of tools you can use to answer the user's question.\n" +
			"You can invoke functions by writing a \"<｜DSML｜function_calls>\" block like the following as part of your reply to the user:\n" + block +
			"\nString and scalar parameters should be specified as is without any escaping or quotes, while lists and objects should use JSON format. The \"string\" attribute should be set to \"true\" for string type parameters and \"false\" for other types (numbers, booleans, arrays, objects).\n" +
			"\nIf the thinking_mode is enabled, then after function results you should strongly consider outputting a thinking block. Here is an example:\n" +
			"\n<｜DSML｜function_calls>\n...\n</｜DSML｜function_calls>\n\n<function_results>\n...\n</function_results>\n\n<think>...thinking about results</think>\n" +
			"\nHere are the functions available in JSONSchema format:\n<functions>\n"
		t.tail = "\n</functions>\n"
		if t.opt.compact {
			t.head = strings.ReplaceAll(t.head, "\n\n", "\n")
		}
		return t
	}
	t.head = "## Tools\n\nYou have access to a set of tools to help answer the user's question. You can invoke tools by writing a \"<｜DSML｜" + t.block + ">\" block like the following:\n\n" + block +
		"\nString parameters should be specified as is and set `string=\"true\"`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set `string=\"false\"`.\n" +
		"\nIf thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> BEFORE any tool calls or final response.\n" +
		"\nOtherwise, output directly after </think> with tool calls or final response.\n" +
		"\n### Available Tool Schemas\n\n"
	t.tail = "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n"
	return t
}

// dsTurn is a turn of the format.
type dsTurn struct {
	*callTurn
	tools  []dsTools
	blocks []dsBlock // of a user turn in V4: texts and tool results
	task   string
	end    int // number of messages up to the end of the turn
}

// dsTools is a list of tools that is not empty.
type dsTools struct {
	list []jsonval.Value
	path string
}

type dsBlock struct {
	text, path, id string
	result         bool
}

// dsState is the state of one rendering.
type dsState struct {
	*deepSeek
	*builder
	turns    []dsTurn
	blocks   []dsBlock // of all turns
	lastUser int       // -1 if absent
	thinking bool
	drop     bool
	prompt   bool
	open     bool // the last turn is continued by the model
	before   int  // index of the last turn that is not a tool's, in V3.2; initially -1
}

// Render implements [Template].
func (t *deepSeek) Render(req Request) (*Prompt, error) { return t.render(&input{Request: req}) }

// RenderValues renders a conversation of values; see input.
func (t *deepSeek) RenderValues(req Request, messages, tools []jsonval.Value) (*Prompt, error) {
	return t.render(&input{Request: req, values: true, messages: messages, tools: tools})
}

func (t *deepSeek) render(req *input) (*Prompt, error) {
	roles := []string{"system", "developer", "user", "assistant", "tool"}
	if t.version > 32 {
		roles = append(roles, "latest_reminder")
	}
	msgs, tools, kwargs, err := parseRequest(req, roles...)
	if err != nil {
		return nil, err
	}
	s := &dsState{deepSeek: t, builder: newBuilder(req), prompt: req.AddGenerationPrompt, open: req.ContinueFinalMessage != "", before: -1}
	s.thinking = kwargBool(kwargs, "enable_thinking", kwargBool(kwargs, "thinking", t.opt.thinking))
	switch v := kwargs.Get("thinking_mode"); v.Kind {
	case jsonval.Undefined, jsonval.Null:
	default:
		if v.Str != "thinking" && v.Str != "chat" {
			return nil, &Error{path: "kwargs.thinking_mode", reason: "is neither thinking nor chat"}
		}
		s.thinking = v.Str == "thinking"
	}
	s.drop = kwargBool(kwargs, "drop_thinking", t.opt.drop)
	if err := s.collect(msgs, tools); err != nil {
		return nil, err
	}
	s.lastUser = s.findUser()
	if t.version > 32 {
		s.dropDevelopers()
	}
	begin := s.take(req, string(req.Kwargs), s.steps(req))
	if begin == 0 {
		if t.opt.bos {
			s.lit(dsBOS)
		}
		if err := s.effort(kwargs.Get("reasoning_effort")); err != nil {
			return nil, err
		}
	}
	for i := begin - 1; i >= 0 && s.before < 0; i-- {
		if s.turns[i].role != "tool" {
			s.before = i
		}
	}
	for i := begin; i < len(s.turns); i++ {
		if t.version == 32 {
			err = s.turn32(i)
		} else {
			err = s.turn(i)
		}
		if err != nil {
			return nil, err
		}
		s.mark(req, i)
	}
	return s.builder.prompt(req), nil
}

// steps returns the steps of a rendering with memory. What is printed of a turn also depends on whether it is before the
// last user turn, that turn, or after it, on whether the model responds to it, and on the role of the next turn.
func (s *dsState) steps(req *input) []step {
	if req.turns == nil {
		return nil
	}
	steps := make([]step, len(s.turns))
	for i := range steps {
		steps[i].end = s.turns[i].end
		form := cmp.Compare(i, s.lastUser) + 1
		if s.thinking {
			form |= 4
		}
		if s.drop {
			form |= 8
		}
		if i < len(steps)-1 {
			switch s.turns[i+1].role {
			case "assistant", "latest_reminder":
				form |= 16
			}
		}
		steps[i].form = form
	}
	return steps
}

// collect converts messages to turns.
func (s *dsState) collect(msgs []*callTurn, tools []jsonval.Value) error {
	var calls []call // of the last assistant message with calls
	sortResults := func() {
		if k := len(s.turns) - 1; k >= 0 {
			s.turns[k].sort(calls)
		}
	}
	s.turns = make([]dsTurn, 0, len(msgs)+1)
	if s.version > 32 {
		s.blocks = make([]dsBlock, 0, len(msgs))
	}
	for i, m := range msgs {
		if m.role == "developer" && s.opt.developerIsSystem {
			system := *m
			system.role = "system"
			m = &system
		}
		t := dsTurn{callTurn: m, end: i + 1}
		if own := m.v.Get("tools"); own.True() {
			if own.Kind != jsonval.Array {
				return &Error{path: m.path + ".tools", reason: "is not an array"}
			}
			t.tools = []dsTools{{own.List, m.path + ".tools"}}
		}
		if i == 0 && len(tools) > 0 {
			if list := (dsTools{tools, "tools"}); m.role == "system" {
				t.tools = append(t.tools, list)
			} else {
				s.turns = append(s.turns, dsTurn{callTurn: &callTurn{role: "system"}, tools: []dsTools{list}})
			}
		}
		if s.version == 32 {
			s.turns = append(s.turns, t)
			continue
		}
		switch task := m.v.Get("task"); {
		case task.Kind == jsonval.Undefined || task.Kind == jsonval.Null || m.role == "tool":
		case task.Kind != jsonval.String || dsTasks[task.Str] == "":
			return &Error{path: m.path + ".task", reason: fmt.Sprintf("is %q, not a task of the format", task.Text())}
		default:
			t.task = task.Str
		}
		if m.role != "user" && m.role != "tool" {
			sortResults()
			if len(m.calls) > 0 {
				calls = m.calls
			}
			s.turns = append(s.turns, t)
			continue
		}
		b := dsBlock{text: m.content, path: m.contentPath, result: m.role == "tool", id: m.v.Get("tool_call_id").Str}
		if c := m.v.Get("content"); b.result && c.Kind == jsonval.Array {
			parts := make([]string, len(c.List))
			for k, p := range c.List {
				parts[k] = p.Get("text").Str + p.Str
			}
			b.text = strings.Join(parts, "\n\n")
		}
		s.blocks = append(s.blocks, b)
		k := len(s.turns) - 1
		if k >= 0 && s.turns[k].blocks != nil && (b.result || s.turns[k].task == "") {
			s.turns[k].blocks = s.blocks[len(s.blocks)-1-len(s.turns[k].blocks):]
			s.turns[k].end = i + 1
			continue
		}
		t.blocks = s.blocks[len(s.blocks)-1:]
		t.tools = nil // the script keeps only some keys of the user
		s.turns = append(s.turns, t)
	}
	sortResults()
	if k := len(s.turns) - 1; s.open && s.turns[k].blocks != nil {
		if b := s.turns[k].blocks; b[len(b)-1].path != msgs[len(msgs)-1].contentPath {
			return &Error{path: msgs[len(msgs)-1].path, reason: "cannot be continued: another result follows it in the order of the calls"}
		}
	}
	return nil
}

// sort sorts results in the order of their calls. The user's text does not move; results with unknown ids come first.
func (t *dsTurn) sort(calls []call) {
	if len(t.blocks) < 2 {
		return
	}
	order := orderOf(calls)
	last, sorted := 0, true
	for i := range t.blocks {
		if b := &t.blocks[i]; b.result {
			n := order(b.id)
			sorted, last = sorted && n >= last, n
		}
	}
	if sorted {
		return
	}
	var results []dsBlock
	for _, b := range t.blocks {
		if b.result {
			results = append(results, b)
		}
	}
	slices.SortStableFunc(results, func(a, b dsBlock) int { return order(a.id) - order(b.id) })
	for i := range t.blocks {
		if t.blocks[i].result {
			t.blocks[i], results = results[0], results[1:]
		}
	}
}

// orderOf returns a function that returns the index of the last call with an id, or 0 if there is none.
func orderOf(calls []call) func(id string) int {
	const few = 8
	if len(calls) <= few {
		return func(id string) int {
			for k := len(calls) - 1; k > 0 && id != ""; k-- {
				if calls[k].id == id {
					return k
				}
			}
			return 0
		}
	}
	order := make(map[string]int, len(calls))
	for k := range calls {
		if id := calls[k].id; id != "" {
			order[id] = k
		}
	}
	return func(id string) int { return order[id] }
}

// user reports whether turn i is followed by a response of the assistant.
func (s *dsState) user(i int) bool {
	switch s.turns[i].role {
	case "user", "tool":
		return s.version > 32 || s.turns[i].role == "user"
	case "developer":
		return true
	case "system":
		return s.version == 41 && i > 0
	}
	return false
}

func (s *dsState) findUser() int {
	for i := len(s.turns) - 1; i >= 0; i-- {
		if s.user(i) {
			return i
		}
	}
	return -1
}

// dropDevelopers determines whether reasoning is dropped, and if so also drops developer messages.
func (s *dsState) dropDevelopers() {
	for i := range s.turns {
		if len(s.turns[i].tools) > 0 {
			s.drop = false
		}
	}
	if !s.drop || !s.thinking {
		return
	}
	kept := s.turns[:0]
	for i, t := range s.turns {
		if t.role != "developer" || i >= s.lastUser {
			kept = append(kept, t)
		}
	}
	s.turns = kept
	s.lastUser = s.findUser()
}

// effort prints the instruction before the first turn.
func (s *dsState) effort(v jsonval.Value) error {
	name := s.opt.effort
	path := ""
	switch v.Kind {
	case jsonval.String, jsonval.Int:
		name, path = v.Str, "kwargs.reasoning_effort"
	case jsonval.Undefined, jsonval.Null:
	default:
		return &Error{path: "kwargs.reasoning_effort", reason: "is neither a string nor an integer"}
	}
	switch {
	case s.version == 40 && s.thinking && name == "max":
		s.lit(dsMaxEffort)
	case s.version == 41:
		if s.thinking || s.turns[0].role == "system" {
			s.lit(dsSystem)
		}
		if !s.thinking {
			return nil
		}
		s.lit("Reasoning Effort: ")
		n, err := strconv.Atoi(name)
		switch {
		case err == nil && (n < 1 || n > 100):
			return &Error{path: path, reason: "is not within 1 to 100"}
		case err == nil && path != "":
			s.val(strconv.Itoa(n), path, kindSystem)
		case err == nil:
			s.lit(strconv.Itoa(n))
		case name == "low":
			s.lit("25")
		case name == "xhigh":
			s.lit("75")
		case name == "max":
			s.lit("100")
		default:
			s.lit("50")
		}
		s.lit(" (range 1-100, the higher the value, the more thorough the reasoning)\n\n")
	}
	return nil
}

// think opens the reasoning, or closes it at once.
func (s *dsState) think(open bool) {
	if open {
		s.lit(dsThink)
	} else {
		s.lit(dsEndThink)
	}
}

func (s *dsState) last(i int) bool { return i == len(s.turns)-1 }

// extras prints the tools and the response format of a message, each after an empty line.
func (s *dsState) extras(t *dsTurn) {
	if len(t.tools) > 0 {
		s.lit("\n\n" + s.head)
		n := 0
		for _, tools := range t.tools {
			for i, v := range tools.list {
				if n++; n > 1 {
					s.lit("\n")
				}
				_, path := elementPath(tools.path, i, "")
				if f := v.Get("function"); f.True() {
					v, path = f, path+".function"
				}
				s.json(v, path, kindTools, false)
			}
		}
		s.lit(s.tail)
	}
	if f := t.v.Get("response_format"); f.True() {
		s.lit("\n\n" + dsFormat)
		s.json(f, t.path+".response_format", kindSystem, false)
	}
}

// noExtras returns an error if a turn that remains open has tools or a response format, which would follow its content.
func (s *dsState) noExtras(i int) error {
	t := &s.turns[i]
	if s.open && s.last(i) && (len(t.tools) > 0 || t.v.Get("response_format").True()) {
		return &Error{path: t.path, reason: "cannot be continued: the tools follow it"}
	}
	return nil
}

// turn32 prints a turn in the format of V3.2.
func (s *dsState) turn32(i int) error {
	t := &s.turns[i]
	if t.role != "tool" {
		s.before = i
	}
	header := func() {
		if !s.last(i) || s.prompt {
			s.lit(dsAssistant)
			s.think(s.thinking && i == s.lastUser)
		}
	}
	switch t.role {
	case "system":
		if err := s.noExtras(i); err != nil {
			return err
		}
		s.val(t.content, t.contentPath, kindSystem)
		s.extras(t)
	case "developer":
		if t.content == "" {
			return &Error{path: t.contentPath, reason: "is empty"}
		}
		s.lit(dsUser)
		s.extras(t)
		s.lit("\n\n# The user's message is: ")
		s.val(t.content, t.contentPath, kindUser)
		header()
		return nil
	case "user":
		s.lit(dsUser)
		s.val(t.content, t.contentPath, kindUser)
		header()
		return nil
	case "tool":
		return s.result32(i)
	case "assistant":
		s.assistant(i, s.thinking && i > s.lastUser, false)
	}
	if s.last(i) && s.prompt {
		s.lit(dsAssistant)
		s.think(s.thinking)
	}
	return nil
}

// result32 prints a result of V3.2, and the frame of its block with the first and the last one.
func (s *dsState) result32(i int) error {
	t := &s.turns[i]
	k, n := s.before, 0
	if k >= 0 {
		n = len(s.turns[k].calls)
	}
	if i-k > n {
		return &Error{path: t.path, reason: "is a result without a call before it"}
	}
	if i-k == 1 {
		s.lit("\n\n<function_results>")
	}
	s.lit("\n<result>")
	s.val(t.content, t.contentPath, kindToolResult)
	if s.open && s.last(i) {
		return nil
	}
	s.lit("</result>")
	if i-k == n {
		s.lit("\n</function_results>")
		if !s.last(i) || s.prompt {
			s.lit("\n\n")
			s.think(s.thinking && i >= s.lastUser)
		}
	}
	return nil
}

// turn prints a turn in the format of V4 and V4.1.
func (s *dsState) turn(i int) error {
	t := &s.turns[i]
	switch t.role {
	case "system":
		if err := s.noExtras(i); err != nil {
			return err
		}
		if s.version == 41 && i > 0 {
			s.lit(dsSystem)
		}
		s.val(t.content, t.contentPath, kindSystem)
		s.extras(t)
	case "developer":
		if t.content == "" {
			return &Error{path: t.contentPath, reason: "is empty"}
		}
		if err := s.noExtras(i); err != nil {
			return err
		}
		s.lit(dsUser)
		s.val(t.content, t.contentPath, kindUser)
		s.extras(t)
	case "user", "tool":
		s.lit(dsUser)
		for k, b := range t.blocks {
			if k > 0 {
				s.lit("\n\n")
			}
			if !b.result {
				s.val(b.text, b.path, kindUser)
				continue
			}
			s.lit("<tool_result>")
			s.val(b.text, b.path, kindToolResult)
			if !s.open || !s.last(i) || k < len(t.blocks)-1 {
				s.lit("</tool_result>")
			}
		}
	case "latest_reminder":
		s.lit(dsReminder)
		s.val(t.content, t.contentPath, kindSystem)
	case "assistant":
		answersTask := i > 0 && s.turns[i-1].task != ""
		s.assistant(i, s.thinking && !answersTask && (!s.drop || i > s.lastUser), t.v.Get("wo_eos").True())
	}
	if !s.last(i) {
		if next := s.turns[i+1].role; next != "assistant" && next != "latest_reminder" {
			return nil
		}
	} else if s.open {
		return nil
	}
	switch {
	case t.task == "action":
		s.lit(dsAssistant)
		s.think(s.thinking)
		s.lit(dsTasks[t.task])
	case t.task != "":
		s.lit(dsTasks[t.task])
	case s.user(i) && (!s.last(i) || s.prompt), s.last(i) && s.prompt:
		s.lit(dsAssistant)
		s.think(s.thinking && (!s.drop || i >= s.lastUser))
	}
	return nil
}

// assistant prints a turn of the assistant, after its head.
func (s *dsState) assistant(i int, reasoning, endless bool) {
	t := &s.turns[i]
	open := s.open && s.last(i)
	if reasoning {
		s.val(t.reasoning, t.reasoningPath, kindReasoning)
		if open && t.content == "" && t.reasoning != "" {
			return
		}
		s.lit(dsEndThink)
	}
	s.val(t.content, t.contentPath, kindText)
	if len(t.calls) > 0 {
		s.lit("\n\n<｜DSML｜" + s.block + ">\n")
		for k := range t.calls {
			s.call(&t.calls[k])
		}
		s.lit("</｜DSML｜" + s.block + ">")
	}
	if !open && !endless {
		s.lit(dsEOS)
	}
}

func (s *dsState) call(c *call) {
	s.lit("<｜DSML｜" + s.invoke + " name=\"")
	s.val(c.name, c.namePath, kindToolCall)
	s.lit("\">\n")
	param := func(v jsonval.Value, path string) {
		if v.Kind == jsonval.String {
			s.lit("\" string=\"true\">")
			s.val(v.Str, path, kindToolCall)
		} else {
			s.lit("\" string=\"false\">")
			s.json(v, path, kindToolCall, false)
		}
		s.lit("</｜DSML｜" + s.param + ">")
	}
	head := "<｜DSML｜" + s.param + " name=\""
	if c.valid && c.args.Kind == jsonval.Object {
		for i, v := range c.args.List {
			if i > 0 {
				s.lit("\n")
			}
			s.lit(head)
			s.val(c.args.Keys[i], c.argsPath, kindToolCall)
			param(v, c.argsPath+"."+c.args.Keys[i])
		}
	} else {
		s.lit(head + "arguments")
		v := c.args
		if !c.valid {
			v = jsonval.Value{Kind: jsonval.String, Str: c.raw}
		}
		param(v, c.argsPath)
	}
	s.lit("\n</｜DSML｜" + s.invoke + ">\n")
}
