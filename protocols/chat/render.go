// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"slices"
	"strings"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// SystemMode specifies how system text after the first other turn is rendered. Many templates reject it.
type SystemMode uint8

// The modes for late system text.
const (
	SystemKeep   SystemMode = iota // stays a system message
	SystemAsUser                   // becomes a user message in <system-reminder> tags, or a reminder after tool results
	SystemMerge                    // moves to the end of the first system message, which changes the start of the prompt
)

// Arguments specifies which call arguments are written as a JSON object, byte for byte. Others, and all that are not a
// JSON object, are written as a string.
type Arguments uint8

// The forms of call arguments.
const (
	ArgumentsText      Arguments = iota // all are strings
	ArgumentsRespelled                  // objects if they have no white space outside strings: most clients' JSON libraries print them so, and the model did not
	ArgumentsObject                     // all are objects
)

// RenderOptions specifies the form of the messages for a chat template. nil means defaults.
type RenderOptions struct {
	// ReasoningSegments writes reasoning between calls as a list, with one entry before each call and one after the
	// last. Otherwise all reasoning of a turn is one string.
	ReasoningSegments bool
	// Past returns, for an assistant turn, an index of [block.Request.Turns], whether its reasoning is written, and
	// whether a newline is written as its reasoning if it has none: some templates print empty reasoning tags only
	// then. nil keeps all reasoning and writes no newlines.
	Past func(turn int) (keep, blank bool)
	// Separators contains the text between the text parts of one message by role: system, developer, user, assistant
	// and tool. A role without an entry has a newline, as in vLLM for templates that read only strings.
	Separators map[string]string
	// Inline writes the reasoning of a turn into its content, before the text, for templates that have no field for it.
	Inline *Tags
	// KeepDeveloper keeps the role developer. Otherwise it becomes system.
	KeepDeveloper bool
	// Arguments specifies the form of call arguments.
	Arguments Arguments
	// Call, if not nil, returns the id and the arguments to write for a call, or the id for a result, whose args are
	// empty. It is called in the order in which they are written. If own is true, the arguments are the text that the
	// model generated, which is written as a string.
	Call func(id, args string) (newID, newArgs string, own bool)
	// TextOnly replaces images, audio, files without text and unknown parts by a note in brackets, for templates that
	// accept only text. Harnesses read images with their tools, and rejecting the request would end the session.
	TextOnly bool
	// System specifies what later system messages become.
	System SystemMode
	// Places, if not nil, receives the positions of the tools and blocks of the request, in the order in which they are
	// written. If a block has several positions, the first is the relevant one. Blocks that are not written have no
	// position.
	Places *[]Position
}

const (
	separator      = "\n"                // of the runs of reasoning, and of text parts by default
	reasoningField = "reasoning_content" // of past reasoning
)

// Tags are the delimiters of reasoning inside the content, including the white space that the model writes there.
type Tags struct{ Open, Close string }

// AppendMessages appends the conversation of r, of any API, as the ordered JSON list of messages that chat templates
// read, and returns a list of what it omits.
//
// A message has the fields role and content, then reasoning_content and tool_calls for the assistant, or tool_call_id
// and name for a tool. Content without media is one string, with opt.Separators between its parts; with media it is a
// list of parts. One assistant turn is one
// message. Arguments are strings with the bytes of the request. Tool results directly follow the assistant message with
// the calls, in the order of the calls. They include calls and results of tools that the Responses API defines and the
// client runs. Fields of Chat messages that this package does not know are written after the others.
func AppendMessages(dst []byte, r *block.Request, opt *RenderOptions) ([]byte, []block.Loss) {
	w := renderer{r: r, out: values{dst: append(dst, '[')}}
	if opt != nil {
		w.opt = *opt
	}
	w.messages()
	return append(w.out.dst, ']'), w.losses
}

// messages writes the messages, without the brackets of their list.
func (w *renderer) messages() {
	turns := w.r.Turns()
	if w.instructed(turns) {
		turns, w.opt.Past = codec.SplitInstructions(w.kept(turns)), nil
		w.walked, w.same = nil, 0
	}
	w.reserve(turns)
	w.putTools()
	w.merge(turns)
	for i := 0; i < len(turns); {
		if next := w.skip(turns, i); next > i {
			i = next
			continue
		}
		switch turns[i].Role {
		case block.RoleAssistant:
			w.assistant(w.keptTurn(turns, i))
			i++
		case block.RoleSystem, block.RoleDeveloper:
			w.system(turns, i)
			i++
		case block.RoleUser, block.RoleTool:
			n := 1
			if turns[i].Kind == block.ToolContinuation {
				for k := i + 1; k < len(turns) && (continues(&turns[k]) || between(&turns[k])); k++ {
					if continues(&turns[k]) || w.reminds(&turns[k]) {
						n = k + 1 - i
					}
				}
			}
			w.users(turns, i, i+n)
			i += n
		default:
			w.lose(turns[i].At, "a turn of an unknown role")
			i++
		}
	}
	if w.walked != nil {
		last := &w.walked.turns[len(turns)]
		last.messages, last.losses = int32(w.n), int32(len(w.losses))
	}
}

// instructed reports whether a turn contains an instruction.
func (w *renderer) instructed(turns []block.Turn) bool {
	for i := range turns {
		if i < w.same && !w.walked.turns[i].system {
			continue // the earlier request had none
		}
		for k := range turns[i].Blocks {
			if turns[i].Blocks[k].Kind == block.Instruction {
				return true
			}
		}
	}
	return false
}

// continues reports whether a turn contains tool results or reminders after them.
func continues(t *block.Turn) bool { return t.Kind == block.ToolContinuation }

// between reports whether a turn may occur among continuing turns.
func between(t *block.Turn) bool {
	return t.Role == block.RoleSystem || t.Role == block.RoleDeveloper || t.Role == block.RoleUnknown
}

// kept returns the turns without the reasoning that Past excludes and with the blanks that it requires.
func (w *renderer) kept(turns []block.Turn) []block.Turn {
	if w.opt.Past == nil {
		return turns
	}
	out := slices.Clone(turns)
	for i := range turns {
		if turns[i].Role == block.RoleAssistant {
			out[i] = *w.keptTurn(turns, i)
		}
	}
	return out
}

// keptTurn is kept for one turn of the assistant.
func (w *renderer) keptTurn(turns []block.Turn, i int) *block.Turn {
	t := &turns[i]
	if w.opt.Past == nil {
		return t
	}
	has := false
	for k := range t.Blocks {
		has = has || isThought(&t.Blocks[k])
	}
	keep, blank := w.opt.Past(i)
	blank = blank && !has
	if !blank && (keep || !has) {
		return t
	}
	out := *t
	if blank {
		out.Blocks = slices.Concat([]block.Block{{Kind: block.Reasoning, Text: "\n"}}, t.Blocks)
	} else {
		out.Blocks = slices.DeleteFunc(slices.Clone(t.Blocks), func(b block.Block) bool { return isThought(&b) })
	}
	return &out
}

// isThought reports whether a block is reasoning that can be written.
func isThought(b *block.Block) bool { return b.Kind == block.Reasoning && b.Text != "" }

// renderer writes messages for templates.
type renderer struct {
	r      *block.Request
	opt    RenderOptions
	out    values
	n      int            // messages written
	role   string         // of the last message
	others bool           // a message with a role other than system was written
	late   []block.Block  // system text that moves to the first system message
	lead   int            // the turn that receives it, -1: none
	calls  []block.Block  // of the last assistant message
	index  map[string]int // call ID → ordinal, if there are many calls
	losses []block.Loss

	walked *Walked // what is written, for WalkNext; nil if nothing is recorded
	before *Walked // of an earlier request, or nil
	same   int     // number of turns at the beginning that have not changed since then

	deferred map[string][]int // name → deferred tools that are not declared yet; nil before the first reference

	// Reused memory.
	content   []block.Block
	reasoning []*block.Block
	results   []*block.Block
	rest      [][]block.Block
	scanner   jsonscan.Scanner

	// Used only with RenderOptions.Places.
	ends     []int      // end offsets of the blocks in the last text
	declared []declared // deferred tools declared in that text
	places   []Position // positions of the blocks of the last content
}

func (w *renderer) lose(at block.Ref, why string) {
	w.losses = append(w.losses, block.Loss{Path: at.Path(), Why: why})
}

// loseField reports the loss of a field of an object that is written.
func (w *renderer) loseField(at block.Ref, field, why string) {
	w.lose(at, why)
	if l := &w.losses[len(w.losses)-1]; l.Path != "" {
		l.Path += "." + field
	}
}

// open starts a message.
func (w *renderer) open(role string) {
	w.n++
	w.role = role
	w.out.begin('{')
	w.out.member("role", role)
}

// message writes a message with a role and a content.
func (w *renderer) message(role string, content []block.Block) {
	w.open(role)
	w.putContent(content)
	w.out.end('}')
}

// asSystem reports whether a turn is written as a system message.
func (w *renderer) asSystem(t *block.Turn) bool {
	return t.Role == block.RoleSystem || t.Role == block.RoleDeveloper && !w.opt.KeepDeveloper
}

// reminds reports whether a turn is system text that is rendered as a reminder, because a user message after tool
// results would look like a new question.
func (w *renderer) reminds(t *block.Turn) bool {
	return w.opt.System == SystemAsUser && w.asSystem(t)
}

// asReminder converts the system text of a turn to a reminder.
func (w *renderer) asReminder(t *block.Turn) block.Block {
	w.role = "" // separated by newlines
	text := "<system-reminder>\n" + w.text(t.Blocks, true) + "\n</system-reminder>"
	return block.Block{Kind: block.Text, Text: text, Content: t.Blocks, At: t.At}
}

// merge collects late system text if it must move to the start, and writes it there if the conversation has no system
// message.
func (w *renderer) merge(turns []block.Turn) {
	w.lead = -1
	if w.opt.System != SystemMerge {
		return
	}
	others := false
	for i := range turns {
		switch t := &turns[i]; {
		case !w.asSystem(t):
			others = others || t.Role != block.RoleDeveloper
		case others:
			w.late = append(w.late, t.Blocks...)
			w.lose(t.At, "the position of system text, moved to the start")
		case w.lead < 0:
			w.lead = i
		}
	}
	if w.lead < 0 && len(w.late) > 0 {
		w.message("system", w.late)
	}
}

func (w *renderer) system(turns []block.Turn, i int) {
	t := &turns[i]
	role := "system"
	if !w.asSystem(t) {
		role = "developer"
	}
	list := t.Blocks
	if role == "system" {
		switch {
		case i == w.lead:
			list = slices.Concat(list, w.late)
		case w.others && w.opt.System == SystemMerge:
			return // already merged into the first message
		case w.others && w.opt.System == SystemAsUser:
			w.message("user", []block.Block{w.asReminder(t)})
			return
		}
	}
	w.open(role)
	w.putContent(list)
	w.putEnd(t.At, len(t.Blocks))
	w.extra(t)
	w.out.end('}')
}

// users writes one user turn, or a sequence of continuing turns after calls: all[from:to]. Tool results and reminders
// come first, also before system text among them.
func (w *renderer) users(all []block.Turn, from, to int) {
	w.others = true
	turns := all[from:to]
	results := w.results[:0]
	var reminders []block.Block
	for len(w.rest) < len(turns) {
		w.rest = append(w.rest, nil)
	}
	rest := w.rest[:len(turns)]
	for i := range rest {
		rest[i] = rest[i][:0]
	}
	for i := range turns {
		if w.reminds(&turns[i]) {
			reminders = append(reminders, w.asReminder(&turns[i]))
			continue
		}
		if between(&turns[i]) {
			continue
		}
		for k := range turns[i].Blocks {
			b := &turns[i].Blocks[k]
			switch {
			case b.Kind == block.ToolResult:
				results = append(results, b)
			case turns[i].Role == block.RoleTool:
				results = append(results, w.rawResult(b))
			case turns[i].Kind == block.ToolContinuation && (b.Kind == block.Unknown || b.Kind == block.ServerItem):
				w.lose(b.At, "a block that templates do not know: "+cmpOr(b.Type, b.Kind.String()))
				if w.opt.TextOnly {
					reminders = append(reminders, block.Block{Kind: block.Text, Text: leftOut(cmpOr(b.Type, b.Kind.String())), At: b.At})
				}
			case b.Kind == block.Text && len(turns)+len(results) > 0 &&
				turns[i].Kind == block.ToolContinuation && block.IsReminder(b.Text):
				reminders = append(reminders, *b)
			default:
				rest[i] = append(rest[i], *b)
			}
		}
	}
	w.results = results
	slices.SortStableFunc(results, func(a, b *block.Block) int { return w.order(a) - w.order(b) })
	for i, b := range results {
		content := b.Content
		if i == len(results)-1 {
			content = append(slices.Clip(content), reminders...) // do not modify the request's slice
			reminders = nil
		}
		w.result(b, content)
	}
	for _, b := range reminders { // no result to append them to
		w.message("user", []block.Block{b})
	}
	for i, list := range rest {
		switch {
		case turns[i].Role == block.RoleUnknown:
			w.lose(turns[i].At, "a turn of an unknown role")
			continue
		case between(&turns[i]):
			if !w.reminds(&turns[i]) {
				w.system(all, from+i)
			}
			continue
		}
		if len(list) == 0 && (len(turns[i].Blocks) > 0 || len(turns) > 1) {
			continue
		}
		w.open("user")
		w.putContent(list)
		w.extra(&turns[i])
		w.out.end('}')
	}
	w.calls, w.index = w.calls[:0], nil
}

// order returns the ordinal of the call that a result belongs to, or the number of calls if no call matches.
func (w *renderer) order(b *block.Block) int {
	if w.index != nil {
		if i, ok := w.index[b.CallID]; ok {
			return i
		}
		return len(w.calls)
	}
	for i := range w.calls {
		if w.calls[i].CallID == b.CallID {
			return i
		}
	}
	return len(w.calls)
}

func (w *renderer) result(b *block.Block, content []block.Block) {
	if b.IsError {
		w.loseField(b.At, "is_error", "the mark of a failed tool")
	}
	name := b.Name
	if i := w.order(b); i < len(w.calls) {
		name = w.modelName(&w.calls[i])
	} else {
		w.loseField(b.At, w.link(b), "the call of a tool result, which is not right before it")
	}
	id := b.CallID
	if w.opt.Call != nil {
		id, _, _ = w.opt.Call(id, "")
	}
	w.open("tool")
	w.out.member("tool_call_id", id)
	if name != "" {
		w.out.member("name", name)
	}
	w.putContent(content)
	w.putEnd(b.At, len(b.Content))
	w.out.end('}')
}

// link returns the field of a tool result that specifies its call.
func (w *renderer) link(b *block.Block) string {
	switch {
	case w.r.API() == block.Responses:
		return "call_id"
	case w.r.API() == block.Messages:
		return "tool_use_id"
	case b.Name != "" && b.Field("tool_call_id") == nil: // a message of a function
		return "name"
	}
	return "tool_call_id"
}

func (w *renderer) assistant(t *block.Turn) {
	w.others = true
	w.calls, w.index = w.calls[:0], nil
	content, reasoning := w.content[:0], w.reasoning[:0]
	var segments [][]*block.Block // with RenderOptions.ReasoningSegments: before each call and after the last
	if w.opt.ReasoningSegments {
		segments = append(segments, nil)
	}
	for i := range t.Blocks {
		b := &t.Blocks[i]
		if b.Kind == block.ServerItem {
			if call, ok := rawCall(b); ok {
				b = &call
			}
		}
		switch b.Kind {
		case block.Reasoning:
			if b.Text == "" {
				w.lose(b.At, "reasoning that only its origin can read")
				continue
			}
			if len(content)+len(w.calls) > 0 && !w.opt.ReasoningSegments {
				w.lose(b.At, "the order of reasoning after text or calls")
			}
			reasoning = append(reasoning, b)
			if segments != nil {
				last := &segments[len(segments)-1]
				*last = append(*last, b)
			}
		case block.ToolCall:
			w.calls = append(w.calls, *b)
			if segments != nil {
				segments = append(segments, nil)
			}
		default:
			if len(w.calls) > 0 {
				w.lose(b.At, "the order of text after calls")
			}
			content = append(content, *b)
		}
	}
	w.content, w.reasoning = content, reasoning
	if w.opt.Inline != nil && len(reasoning) > 0 {
		content = w.inline(content, reasoning)
		reasoning = nil
	}
	w.open("assistant")
	w.putContent(content)
	switch {
	case len(reasoning) == 0:
	case segments != nil && slices.ContainsFunc(segments[1:], func(s []*block.Block) bool { return s != nil }):
		w.out.key(reasoningField)
		w.out.begin('[')
		for i, s := range segments {
			text := w.thoughts(s)
			w.out.str(text)
			w.putReasoning(s, i, text)
		}
		w.out.end(']')
	default:
		text := w.thoughts(reasoning)
		w.out.member(reasoningField, text)
		w.putReasoning(reasoning, -1, text)
	}
	if len(w.calls) > 16 {
		w.index = make(map[string]int, len(w.calls))
		for i := len(w.calls) - 1; i >= 0; i-- {
			w.index[w.calls[i].CallID] = i
		}
	}
	if len(w.calls) > 0 {
		w.out.key("tool_calls")
		w.out.begin('[')
		for i := range w.calls {
			w.call(&w.calls[i])
		}
		w.out.end(']')
		w.putCalls()
	}
	w.extra(t)
	w.out.end('}')
}

// thoughts joins the texts of reasoning.
func (w *renderer) thoughts(list []*block.Block) string {
	if len(list) == 1 {
		return list[0].Text
	}
	texts := make([]string, len(list))
	for i, b := range list {
		texts[i] = b.Text
	}
	return joinNonEmpty(separator, texts...)
}

// inline returns content with reasoning before it, merged into the first block if that is text.
func (w *renderer) inline(content []block.Block, reasoning []*block.Block) []block.Block {
	text := block.Block{Kind: block.Text, Text: w.opt.Inline.Open + w.thoughts(reasoning) + w.opt.Inline.Close}
	for _, b := range reasoning {
		text.Content = append(text.Content, *b)
	}
	if len(content) > 0 && content[0].Kind == block.Text {
		text.Text += content[0].Text
		text.At = content[0].At
		content = content[1:]
	}
	return append([]block.Block{text}, content...)
}

func (w *renderer) call(b *block.Block) {
	id, args, own := b.CallID, argsOf(b), false
	if w.opt.Call != nil {
		id, args, own = w.opt.Call(id, args)
		if !b.Custom {
			b.Args = args // a copy, for putCalls
		}
	}
	w.out.begin('{')
	if id != "" {
		w.out.member("id", id)
	}
	w.out.member("type", "function")
	w.out.key("function")
	w.out.begin('{')
	w.out.member("name", w.modelName(b))
	w.out.key("arguments")
	object := w.opt.Arguments == ArgumentsObject || w.opt.Arguments == ArgumentsRespelled && !jsonscan.Spaced(args)
	switch {
	case own:
		w.out.own(args)
	case object && (scanned(b, args) || codec.ScanObject(&w.scanner, args)):
		w.out.raw(args)
	default:
		w.out.str(args)
	}
	w.out.end('}')
	w.out.end('}')
}

// modelName returns the name by which the model knows the tool of a call.
func (w *renderer) modelName(b *block.Block) string {
	if b.Namespace != "" { // the name depends on the tools
		w.walked = nil
	}
	return codec.ModelName(w.r, b.Namespace, b.Name)
}

// argsOf returns the arguments of a call. Those of a tool with free text are an object.
func argsOf(b *block.Block) string {
	if !b.Custom {
		return b.Args
	}
	c := codec.Open(nil)
	c.Str("input", b.Args)
	return string(c.Close())
}

// scanned reports whether args are the input of a call in a body, which was scanned with it, and an object.
func scanned(b *block.Block, args string) bool {
	in := codec.ValueOf(b.At).Get("input")
	return in.Kind() == jsonscan.Object && in.RawStr() == args
}

// putContent writes the field content: text as one string, or a list of parts if the content includes media.
func (w *renderer) putContent(list []block.Block) {
	w.out.key("content")
	media := false
	for i := range list {
		switch b := &list[i]; b.Kind {
		case block.Image, block.Audio, block.Video:
			media = true
		case block.File, block.Document:
			media = media || b.Media != nil && b.Media.Data != "" && b.Media.MIME != "text/plain"
		}
	}
	if !media || w.opt.TextOnly {
		s := w.text(list, true)
		w.putText(list, s)
		w.out.str(s)
		return
	}
	w.ends = w.ends[:0]
	w.out.begin('[')
	n := 0
	p := reqWriter{Lossy: codec.Lossy{Lose: func(path, why string) { w.losses = append(w.losses, block.Loss{Path: path, Why: why}) }}}
	for i := range list {
		b := &list[i]
		if b.Kind == block.ToolReference { // with the declaration, as in a text
			b = &block.Block{Kind: block.Text, Text: w.reference(b)}
		}
		if raw := p.part(nil, b); len(raw) > 0 {
			n++
			w.out.raw(string(raw))
		}
		w.ends = append(w.ends, n)
	}
	w.putParts(list)
	w.out.end(']')
}

// text joins the blocks that can be written as text. It records losses if note is true.
func (w *renderer) text(list []block.Block, note bool) string {
	if len(list) == 1 && list[0].Kind == block.Text {
		w.ends = append(w.ends[:0], len(list[0].Text))
		return list[0].Text
	}
	parts := make([]string, 0, 2*len(list))
	w.ends, w.declared = w.ends[:0], nil
	end := 0
	for i := range list {
		b := &list[i]
		s := ""
		switch b.Kind {
		case block.Text, block.Refusal:
			s = b.Text
		case block.Compaction, block.Citation, block.Document, block.File:
			s = joinNonEmpty("\n", b.Name, b.Text, codec.JoinText(b.Content, "\n"))
			if b.Media != nil && b.Media.MIME == "text/plain" {
				s = joinNonEmpty("\n", b.Media.Name, s, b.Media.Data)
			}
			if s == "" && note {
				w.lose(b.At, "a "+b.Kind.String()+" without text")
			}
			if s == "" && w.opt.TextOnly {
				s = leftOut(b.Kind.String())
			}
		case block.ToolReference:
			s = w.reference(b)
		default:
			switch {
			case !w.opt.TextOnly:
			case b.Kind == block.Image || b.Kind == block.Audio || b.Kind == block.Video:
				s = leftOut(b.Kind.String())
			case b.Kind == block.Unknown:
				s = leftOut(cmpOr(b.Type, b.Kind.String()))
			}
			if note {
				w.lose(b.At, "a block that templates do not know: "+cmpOr(b.Type, b.Kind.String()))
			}
		}
		if s != "" && end > 0 {
			sep := w.separator(b)
			parts, end = append(parts, sep), end+len(sep)
		}
		parts, end = append(parts, s), end+len(s)
		w.ends = append(w.ends, end)
	}
	return strings.Join(parts, "")
}

// separator returns the text before the text of b in the content of the current message.
func (w *renderer) separator(b *block.Block) string {
	if w.role == "tool" && b.Kind == block.Text && block.IsReminder(b.Text) {
		return separator // not a part of the result: AppendMessages added it
	}
	if s, ok := w.opt.Separators[w.role]; ok {
		return s
	}
	return separator
}

// leftOut returns the note that replaces media and unknown parts.
func leftOut(what string) string { return "[" + what + " left out: only text can be read here]" }

// reference returns the text that announces a deferred tool as available. The first reference includes the declaration,
// because declaring the tool at the start of the prompt would change the prompt before everything else.
func (w *renderer) reference(b *block.Block) string {
	if w.deferred == nil {
		w.deferred = map[string][]int{}
		for i, t := range w.r.Tools() {
			if t.Deferred && t.Kind != block.Hosted {
				w.deferred[t.Name] = append(w.deferred[t.Name], i)
			}
		}
	}
	text := codec.ReferenceText(b.Name)
	list := w.deferred[b.Name]
	if len(list) == 0 {
		return text
	}
	delete(w.deferred, b.Name)                   // another declaration would add nothing, and many would make the prompt unbounded
	s := append([]byte(text[:len(text)-1]), ':') // replaces the final period
	for _, i := range list {
		var tool values
		tool.tool(&w.r.Tools()[i])
		s = append(append(s, '\n'), tool.dst...)
		if w.opt.Places != nil {
			w.declared = append(w.declared, declared{len(w.ends), i})
		}
	}
	return string(s)
}

// extra copies the fields of a Chat message that this package does not model, such as name, partial or a list of tools.
func (w *renderer) extra(t *block.Turn) {
	if w.r.API() != block.Chat {
		if t.Name != "" {
			w.out.member("name", t.Name)
		}
		return
	}
	msg := codec.ValueOf(t.At)
	for m := msg.First(); m.Exists(); m = msg.Next(m) {
		switch key := m.Key(); key {
		case "role", "content", "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "tool_calls", "function_call",
			"tool_call_id", "refusal", "annotations", "audio", "cache_control", "prompt_cache_breakpoint", "id":
		default:
			if !m.IsNull() {
				w.out.key(key)
				w.out.raw(m.RawStr())
			}
		}
	}
}
