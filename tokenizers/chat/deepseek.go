// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/jsonval"
)

// DeepSeekOptions selects a variant of [DeepSeekV32], [DeepSeekV4] or [DeepSeekV41]. The zero value is chat mode with
// everything else as the published scripts have it.
type DeepSeekOptions struct {
	// Thinking has the model reason first.
	Thinking bool
	// KeepThinking prints the reasoning of earlier turns, which V4 and V4.1 drop in conversations without
	// tools. V3.2 never prints it.
	KeepThinking bool
	// Effort of reasoning. V4: max, or high and "" for no instruction. V4.1: low, high, xhigh, max or a number
	// from 1 to 100; "" means high. V3.2 has none.
	Effort string
	// DeveloperIsSystem makes system messages of developer messages, which is what OpenAI's API means by
	// them. In these formats a developer writes in the place of the user, for DeepSeek's search pipeline.
	DeveloperIsSystem bool
	// CompactTools leaves out the empty lines in the text about tools of V3.2. Two texts are about: without
	// them in the copies of the published script that vLLM and SGLang hold (Python), with them in the
	// renderers of vLLM (Rust), Dynamo, mlx-lm and smg. Which one the model was published with was not seen.
	CompactTools bool
	// NoBOS leaves out <｜begin▁of▁sentence｜>, for an encoder that adds it.
	NoBOS bool
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

// DeepSeekV32 returns the format of DeepSeek-V3.2, which has no Jinja template but a script
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
// Reasoning is printed after the last message of the user or developer, and only in thinking mode. The tools
// of the request stand after the text of a system message at the start, which is made if there is none;
// messages may also have tools and response_format of their own.
//
// It equals the script byte for byte on what that accepts, with these additions: AddGenerationPrompt decides
// whether a last message of the user or of tools is followed by the head of the assistant's turn, which the script
// always writes, and opens a turn after any other message. Where the script fails this one is lenient: an
// answer after the last user message without reasoning has an empty one, a developer message before the
// last one of the user stays, arguments that are no object are one parameter called arguments, a missing
// content is empty, text parts are joined by line ends. As in the script, results are taken in the order of
// the calls, and a block with fewer results than calls is not closed.
//
// Kwargs: thinking or enable_thinking (bool) or thinking_mode ("thinking", "chat").
func DeepSeekV32(opt *DeepSeekOptions) Template { return newDeepSeek(32, opt) }

// DeepSeekV4 returns the format of DeepSeek-V4 (encoding/encoding_dsv4.py of deepseek-ai/DeepSeek-V4-Flash,
// with its four test cases, and SGLang's copy). Against V3.2:
//   - the block of calls is called tool_calls, and the text about tools is another;
//   - results are <tool_result>…</tool_result> in a turn of the user, sorted in the order of the calls by id, and
//     joined with what the user writes next to them;
//   - reasoning of earlier turns is kept if the conversation has tools;
//   - in conversations without tools and in thinking mode, developer messages before the last turn of
//     the user are dropped;
//   - the role latest_reminder (date, place), tasks (a key of a message: action, query, authority, domain,
//     title, read_url) and wo_eos (an assistant's message without end) are there, and an effort of max.
//
// It equals the script as [DeepSeekV32] does its own. Arguments may be an object, which the script would print
// as text; parts of a content that are no text are errors, where the script prints "[Unsupported …]". Efforts
// it does not know are ignored.
//
// Kwargs: also drop_thinking (bool), reasoning_effort.
func DeepSeekV4(opt *DeepSeekOptions) Template { return newDeepSeek(40, opt) }

// DeepSeekV41 returns the format of DeepSeek-V4.1 as SGLang's port of its script prints it
// (encoding_dsv41.py, 2026-10; the script itself and its test cases were not seen, nor was the port run).
// Against V4: the DSML names begin with a space, system messages begin with <｜System｜> and
// count as the user's where they stand in the middle, and the effort is a number, always printed in
// thinking mode. Images are errors.
func DeepSeekV41(opt *DeepSeekOptions) Template { return newDeepSeek(41, opt) }

type deepSeek struct {
	opt     DeepSeekOptions
	version int
	// Names in DSML, and the text about tools around the schemas.
	block, invoke, param string
	head, tail           string
}

func newDeepSeek(version int, opt *DeepSeekOptions) Template {
	t := &deepSeek{version: version}
	if opt != nil {
		t.opt = *opt
	}
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
		if t.opt.CompactTools {
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
	tools  []dsTool
	blocks []dsBlock // of the user in V4: what was said and what tools returned
	task   string
}

type dsTool struct {
	v    jsonval.Value
	path string
}

type dsBlock struct {
	text, path, id string
	result         bool
}

// dsState is a deepSeek at work.
type dsState struct {
	*deepSeek
	*builder
	turns    []dsTurn
	lastUser int // -1 if there is none
	thinking bool
	drop     bool
	prompt   bool
	open     bool // the last turn is to be continued
	before   int  // the last turn that is no tool's, in V3.2; -1 before the first
}

// Render implements [Template].
func (t *deepSeek) Render(req Request) (*Prompt, error) {
	roles := []string{"system", "developer", "user", "assistant", "tool"}
	if t.version > 32 {
		roles = append(roles, "latest_reminder")
	}
	msgs, tools, kwargs, err := parseRequest(req, roles...)
	if err != nil {
		return nil, err
	}
	s := &dsState{deepSeek: t, builder: &builder{}, prompt: req.AddGenerationPrompt, open: req.ContinueFinalMessage, before: -1}
	s.thinking = kwargBool(kwargs, "enable_thinking", kwargBool(kwargs, "thinking", t.opt.Thinking))
	switch v := kwargs.Get("thinking_mode"); v.Kind {
	case jsonval.Undefined, jsonval.Null:
	default:
		if v.Str != "thinking" && v.Str != "chat" {
			return nil, &Error{Path: "kwargs.thinking_mode", Offset: -1, Reason: "is neither thinking nor chat"}
		}
		s.thinking = v.Str == "thinking"
	}
	s.drop = kwargBool(kwargs, "drop_thinking", !t.opt.KeepThinking)
	if err := s.collect(msgs, tools); err != nil {
		return nil, err
	}
	s.lastUser = s.findUser()
	if t.version > 32 {
		s.dropDevelopers()
	}
	if !t.opt.NoBOS {
		s.lit(dsBOS)
	}
	if err := s.effort(kwargs.Get("reasoning_effort")); err != nil {
		return nil, err
	}
	for i := range s.turns {
		if t.version == 32 {
			err = s.turn32(i)
		} else {
			err = s.turn(i)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.builder.prompt(), nil
}

// collect makes turns of messages.
func (s *dsState) collect(msgs []callTurn, tools []jsonval.Value) error {
	var order map[string]int // of the calls of the last assistant's message that has some, by id
	sortResults := func() {
		if k := len(s.turns) - 1; k >= 0 {
			s.turns[k].sort(order)
		}
	}
	for i := range msgs {
		m := &msgs[i]
		if m.role == "developer" && s.opt.DeveloperIsSystem {
			m.role = "system"
		}
		t := dsTurn{callTurn: m}
		if own := m.v.Get("tools"); own.True() {
			if own.Kind != jsonval.Array {
				return &Error{Path: m.path + ".tools", Offset: -1, Reason: "is not an array"}
			}
			t.tools = dsTools(own.List, m.path+".tools")
		}
		if i == 0 && len(tools) > 0 {
			list := dsTools(tools, "tools")
			if m.role == "system" {
				t.tools = append(t.tools, list...)
			} else {
				s.turns = append(s.turns, dsTurn{callTurn: &callTurn{role: "system"}, tools: list})
			}
		}
		if s.version == 32 {
			s.turns = append(s.turns, t)
			continue
		}
		switch task := m.v.Get("task"); {
		case task.Kind == jsonval.Undefined || task.Kind == jsonval.Null || m.role == "tool":
		case task.Kind != jsonval.String || dsTasks[task.Str] == "":
			return &Error{Path: m.path + ".task", Offset: -1, Reason: fmt.Sprintf("is %q, not a task of the format", task.Text())}
		default:
			t.task = task.Str
		}
		if m.role != "user" && m.role != "tool" {
			sortResults()
			if len(m.calls) > 0 {
				order = make(map[string]int, len(m.calls))
				for k, c := range m.calls {
					if c.id != "" {
						order[c.id] = k
					}
				}
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
		k := len(s.turns) - 1
		if k >= 0 && s.turns[k].blocks != nil && (b.result || s.turns[k].task == "") {
			s.turns[k].blocks = append(s.turns[k].blocks, b)
			continue
		}
		t.blocks = []dsBlock{b}
		t.tools = nil // the script keeps only some keys of the user
		s.turns = append(s.turns, t)
	}
	sortResults()
	if k := len(s.turns) - 1; s.open && s.turns[k].blocks != nil {
		if b := s.turns[k].blocks; b[len(b)-1].path != msgs[len(msgs)-1].contentPath {
			return &Error{Path: msgs[len(msgs)-1].path, Offset: -1, Reason: "cannot be continued: another result follows it in the order of the calls"}
		}
	}
	return nil
}

func dsTools(list []jsonval.Value, path string) []dsTool {
	tools := make([]dsTool, len(list))
	for i, v := range list {
		p := fmt.Sprintf("%s[%d]", path, i)
		if f := v.Get("function"); f.True() {
			v, p = f, p+".function"
		}
		tools[i] = dsTool{v, p}
	}
	return tools
}

// sort puts results into the order of their calls. What the user wrote stays in its place; a result whose id is
// not known counts as the first.
func (t *dsTurn) sort(order map[string]int) {
	var results []dsBlock
	for _, b := range t.blocks {
		if b.result {
			results = append(results, b)
		}
	}
	if len(results) < 2 || len(order) == 0 {
		return
	}
	slices.SortStableFunc(results, func(a, b dsBlock) int { return order[a.id] - order[b.id] })
	for i := range t.blocks {
		if t.blocks[i].result {
			t.blocks[i], results = results[0], results[1:]
		}
	}
}

// user reports whether turn i is one that the assistant answers.
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

// dropDevelopers settles whether reasoning is dropped, and drops the developer's messages that go with it.
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

// effort prints what stands before the first turn.
func (s *dsState) effort(v jsonval.Value) error {
	name := s.opt.Effort
	path := ""
	switch v.Kind {
	case jsonval.String, jsonval.Int:
		name, path = v.Str, "kwargs.reasoning_effort"
	case jsonval.Undefined, jsonval.Null:
	default:
		return &Error{Path: "kwargs.reasoning_effort", Offset: -1, Reason: "is neither a string nor an integer"}
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
			return &Error{Path: path, Offset: -1, Reason: "is not within 1 to 100"}
		case err == nil && path != "":
			s.val(strconv.Itoa(n), path, KindSystem)
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

// think opens the reasoning, or closes it before it begins.
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
		for i, tool := range t.tools {
			if i > 0 {
				s.lit("\n")
			}
			s.val(string(tool.v.AppendJSON(nil)), tool.path, KindTools)
		}
		s.lit(s.tail)
	}
	if f := t.v.Get("response_format"); f.True() {
		s.lit("\n\n" + dsFormat)
		s.val(string(f.AppendJSON(nil)), t.path+".response_format", KindSystem)
	}
}

// noExtras is an error if something would follow the content of a turn that is to stay open.
func (s *dsState) noExtras(i int) error {
	t := &s.turns[i]
	if s.open && s.last(i) && (len(t.tools) > 0 || t.v.Get("response_format").True()) {
		return &Error{Path: t.path, Offset: -1, Reason: "cannot be continued: the tools follow it"}
	}
	return nil
}

// turn32 prints a turn as V3.2 has it.
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
		s.val(t.content, t.contentPath, KindSystem)
		s.extras(t)
	case "developer":
		if t.content == "" {
			return &Error{Path: t.contentPath, Offset: -1, Reason: "is empty"}
		}
		s.lit(dsUser)
		s.extras(t)
		s.lit("\n\n# The user's message is: ")
		s.val(t.content, t.contentPath, KindUser)
		header()
		return nil
	case "user":
		s.lit(dsUser)
		s.val(t.content, t.contentPath, KindUser)
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
		return &Error{Path: t.path, Offset: -1, Reason: "is a result without a call before it"}
	}
	if i-k == 1 {
		s.lit("\n\n<function_results>")
	}
	s.lit("\n<result>")
	s.val(t.content, t.contentPath, KindToolResult)
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

// turn prints a turn as V4 and V4.1 have it.
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
		s.val(t.content, t.contentPath, KindSystem)
		s.extras(t)
	case "developer":
		if t.content == "" {
			return &Error{Path: t.contentPath, Offset: -1, Reason: "is empty"}
		}
		if err := s.noExtras(i); err != nil {
			return err
		}
		s.lit(dsUser)
		s.val(t.content, t.contentPath, KindUser)
		s.extras(t)
	case "user", "tool":
		s.lit(dsUser)
		for k, b := range t.blocks {
			if k > 0 {
				s.lit("\n\n")
			}
			if !b.result {
				s.val(b.text, b.path, KindUser)
				continue
			}
			s.lit("<tool_result>")
			s.val(b.text, b.path, KindToolResult)
			if !s.open || !s.last(i) || k < len(t.blocks)-1 {
				s.lit("</tool_result>")
			}
		}
	case "latest_reminder":
		s.lit(dsReminder)
		s.val(t.content, t.contentPath, KindSystem)
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
		s.val(t.reasoning, t.reasoningPath, KindReasoning)
		if open && t.content == "" && t.reasoning != "" {
			return
		}
		s.lit(dsEndThink)
	}
	s.val(t.content, t.contentPath, KindText)
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
	s.val(c.name, c.namePath, KindToolCall)
	s.lit("\">\n")
	param := func(v jsonval.Value, path string) {
		if v.Kind == jsonval.String {
			s.lit("\" string=\"true\">")
			s.val(v.Str, path, KindToolCall)
		} else {
			s.lit("\" string=\"false\">")
			s.val(string(v.AppendJSON(nil)), path, KindToolCall)
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
			s.val(c.args.Keys[i], c.argsPath, KindToolCall)
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
