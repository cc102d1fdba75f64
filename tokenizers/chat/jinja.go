// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weft-go/weft/tokenizers/chat/internal/jinja"
)

// ArgumentsMode says in which form a template gets the arguments of past tool calls. OpenAI's chat form has
// them as a string that holds JSON; many templates want the object in it.
type ArgumentsMode uint8

// Choices of [Options.Arguments].
const (
	// ArgumentsAuto leaves them as they are if the template prints that form, and converts them if it only
	// prints the other, as [Capabilities] has it. A string that is printed keeps the model's own bytes.
	ArgumentsAuto ArgumentsMode = iota
	// ArgumentsAsIs never touches them, as transformers.
	ArgumentsAsIs
	// ArgumentsObject makes all of them objects, as vLLM and SGLang do.
	ArgumentsObject
)

// MessagesMode says whether messages are adapted to what a template can print.
type MessagesMode uint8

// Choices of [Options.Messages].
const (
	// MessagesAuto adapts what the template is known not to print (see [Capabilities]), and nothing else:
	// text parts are joined by line ends where it wants a string, images, audio and video of the
	// OpenAI form become {"type": "image"} and so on where it wants a list, content that is null or
	// missing becomes an empty string, reasoning moves to the key that is read, and calls lose their
	// "function" level where only that is read.
	MessagesAuto MessagesMode = iota
	// MessagesAsIs gives the template the messages of the request, as transformers does.
	MessagesAsIs
)

// Options configures [Compile] and [Load]. The zero value is ready.
type Options struct {
	// SpecialTokens are variables that the model's files define, such as bos_token. What is printed of
	// them is trusted.
	SpecialTokens map[string]string
	// AdditionalSpecialTokens is the variable additional_special_tokens; nil for none.
	AdditionalSpecialTokens []string
	// Now is the clock of strftime_now. With nil, and no time in the request, that function is an error.
	Now       func() time.Time
	Arguments ArgumentsMode
	Messages  MessagesMode
	// MaxBytes bounds the prompt, and every text on the way to it; 0 means 64 MiB.
	MaxBytes int
}

// Jinja is a compiled chat template, or several by name. It is safe for concurrent use.
//
// It renders byte for byte what apply_chat_template of transformers (4.5x, and 5.x where these differ) does
// with tokenize=False, under jinja2 3.1.6: see [Options.Messages] and [Options.Arguments] for where it gives
// templates other messages than those of the request. The names of roles that everybody uses (system, user,
// assistant, tool, developer, function) are trusted wherever a template prints them; all else that comes
// from the request is not.
type Jinja struct {
	opt     Options
	main    *jinja.Template
	toolUse *jinja.Template // for requests with tools; nil if there is none
	source  string
	toolSrc string
	fixed   []jinja.Var
	caps    func() *Capabilities
}

// Compile compiles a template. name stands in errors, which are [*Error] with a line. nil options are the
// defaults. Compiling costs microseconds per line; the result is meant to be kept.
func Compile(name, source string, opt *Options) (*Jinja, error) {
	t := &Jinja{source: source}
	if opt != nil {
		t.opt = *opt
	}
	var err error
	if t.main, err = jinja.Compile(name, source); err != nil {
		return nil, fromJinja(err)
	}
	t.prepare()
	return t, nil
}

func (t *Jinja) prepare() {
	for name, text := range t.opt.SpecialTokens {
		t.fixed = append(t.fixed, jinja.Var{Name: name, Value: jinja.NewStr(text, nil)})
	}
	if t.opt.AdditionalSpecialTokens != nil {
		l := jinja.NewList()
		for _, s := range t.opt.AdditionalSpecialTokens {
			l.Items = append(l.Items, jinja.NewStr(s, nil))
		}
		t.fixed = append(t.fixed, jinja.Var{Name: "additional_special_tokens", Value: l})
	}
	t.caps = sync.OnceValue(func() *Capabilities {
		plain := *t
		plain.opt.Arguments, plain.opt.Messages = ArgumentsAsIs, MessagesAsIs
		c := probe(&plain)
		return &c
	})
}

// Capabilities returns what [Probe] finds. It is found once, when it is first asked for or needed.
func (t *Jinja) Capabilities() Capabilities { return *t.caps() }

// HasGenerationTags reports whether prompts have [Prompt.Generations].
func (t *Jinja) HasGenerationTags() bool { return t.main.HasGeneration() }

var (
	rootMessages  = jinja.Root("messages")
	rootTools     = jinja.Root("tools")
	rootDocuments = jinja.Root("documents")
	rootKwargs    = jinja.Root("kwargs")
)

// continueTag is what transformers appends to the final message to find its end again.
const continueTag = "CONTINUE_FINAL_MESSAGE_TAG "

// Render implements [Template].
func (t *Jinja) Render(req Request) (*Prompt, error) {
	if req.AddGenerationPrompt && req.ContinueFinalMessage {
		return nil, &Error{Offset: -1, Reason: "the final message cannot be continued and a new one begun"}
	}
	var b jinja.Builder
	messages, err := parseValue[*jinja.List](&b, req.Messages, "messages", rootMessages, "an array")
	if err != nil {
		return nil, err
	}
	if messages == nil || len(messages.Items) == 0 {
		return nil, &Error{Path: "messages", Offset: -1, Reason: "is empty"}
	}
	tools, err := parseValue[*jinja.List](&b, req.Tools, "tools", rootTools, "an array")
	if err != nil {
		return nil, err
	}
	documents, err := parseValue[*jinja.List](&b, req.Documents, "documents", rootDocuments, "an array")
	if err != nil {
		return nil, err
	}
	kwargs, err := parseValue[*jinja.Dict](&b, req.Kwargs, "kwargs", rootKwargs, "an object")
	if err != nil {
		return nil, err
	}
	roles := make([]string, len(messages.Items))
	for i, m := range messages.Items {
		d, ok := m.(*jinja.Dict)
		if !ok {
			return nil, &Error{Path: fmt.Sprintf("messages[%d]", i), Offset: -1, Reason: "is not an object"}
		}
		if roles[i], err = t.adapt(&b, d); err != nil {
			return nil, err
		}
	}
	final := ""
	if req.ContinueFinalMessage {
		if final, err = t.tag(messages.Items[len(messages.Items)-1].(*jinja.Dict), len(messages.Items)-1); err != nil {
			return nil, err
		}
	}
	tpl := t.main
	vars := make([]jinja.Var, 0, 8+len(t.fixed))
	vars = append(vars, jinja.Var{Name: "messages", Value: messages}, jinja.Var{Name: "tools"}, jinja.Var{Name: "documents"},
		jinja.Var{Name: "add_generation_prompt", Value: req.AddGenerationPrompt})
	if tools != nil && len(tools.Items) > 0 {
		vars[1].Value = tools
		if t.toolUse != nil {
			tpl = t.toolUse
		}
	}
	if documents != nil {
		vars[2].Value = documents
	}
	vars = append(vars, t.fixed...)
	if kwargs != nil {
		for k, v := range kwargs.All() {
			switch k {
			case "messages", "tools", "documents", "add_generation_prompt", "conversation", "chat_template", "tokenize", "continue_final_message":
				return nil, &Error{Path: "kwargs." + k, Offset: -1, Reason: "is not a template variable of its own"}
			}
			vars = append(vars, jinja.Var{Name: k, Value: v})
		}
	}
	if req.ContinueFinalMessage && !strings.Contains(t.sourceOf(tpl), "content") {
		return nil, &Error{Offset: -1, Reason: "the template does not print content that could be continued"}
	}
	now := t.opt.Now
	if !req.Now.IsZero() {
		now = func() time.Time { return req.Now }
	}
	out, err := tpl.Render(jinja.Input{Vars: vars, Now: now, MaxText: t.opt.MaxBytes})
	if err != nil {
		return nil, fromJinja(err)
	}
	if req.ContinueFinalMessage {
		if err := cut(out, final, len(messages.Items)-1); err != nil {
			return nil, err
		}
	}
	return toPrompt(out, roles), nil
}

func (t *Jinja) sourceOf(tpl *jinja.Template) string {
	if tpl == t.toolUse {
		return t.toolSrc
	}
	return t.source
}

// parseValue reads an optional JSON value of type T.
func parseValue[T jinja.Value](b *jinja.Builder, data []byte, name string, root *jinja.Origin, what string) (out T, err error) {
	if len(data) == 0 {
		return out, nil
	}
	v, err := b.Parse(data, name, root)
	if err != nil {
		return out, fromJSON(err)
	}
	if v == nil {
		return out, nil
	}
	out, ok := v.(T)
	if !ok {
		return out, &Error{Path: name, Offset: -1, Reason: "is not " + what}
	}
	return out, nil
}

// tag marks the end of the final message's text and returns the text.
func (t *Jinja) tag(m *jinja.Dict, i int) (string, error) {
	fail := func(reason string) (string, error) {
		return "", &Error{Path: fmt.Sprintf("messages[%d]", i), Offset: -1, Reason: "cannot be continued: " + reason}
	}
	v, _ := m.Get("content")
	switch c := v.(type) {
	case *jinja.Str:
		m.Set(jinja.NewStr("content", m.Source()), jinja.Concat(c, jinja.NewStr(continueTag, c.Source())))
		return c.String(), nil
	case *jinja.List:
		for k := len(c.Items) - 1; k >= 0; k-- {
			d, ok := c.Items[k].(*jinja.Dict)
			if !ok {
				continue
			}
			if x, ok := d.Get("text"); ok {
				s, ok := x.(*jinja.Str)
				if !ok {
					break
				}
				d.Set(jinja.NewStr("text", d.Source()), jinja.Concat(s, jinja.NewStr(continueTag, s.Source())))
				return s.String(), nil
			}
		}
		return fail("no part of it has text")
	case nil:
		return fail("it has no content")
	}
	return fail("its content is not text")
}

// cut drops what follows the final message's text.
func cut(out *jinja.Output, final string, i int) error {
	k := strings.LastIndex(out.Text, strings.TrimSpace(continueTag))
	if k < 0 || !strings.Contains(out.Text, jinja.Trim(final)) {
		return &Error{Path: fmt.Sprintf("messages[%d]", i), Offset: -1, Reason: "cannot be continued: the template does not print its text as it is"}
	}
	if strings.HasPrefix(out.Text[k:], continueTag) {
		out.Text = out.Text[:k]
	} else {
		// The template trimmed the text, so that white space before the tag would not have been printed.
		out.Text = jinja.TrimRight(out.Text[:k])
	}
	n := len(out.Text)
	for j, s := range out.Segs {
		if s.End >= n {
			out.Segs = out.Segs[:j+1]
			out.Segs[j].End = n
			break
		}
	}
	for len(out.Segs) > 0 && n == 0 {
		out.Segs = nil
	}
	for j, g := range out.Generations {
		if g.End > n {
			out.Generations = out.Generations[:j]
			if g.Start < n {
				out.Generations = append(out.Generations, jinja.Range{Start: g.Start, End: n})
			}
			break
		}
	}
	return nil
}

// toPrompt turns origins into segments and spans.
func toPrompt(out *jinja.Output, roles []string) *Prompt {
	p := &Prompt{Text: out.Text}
	spans := 0
	for _, s := range out.Segs {
		if s.Origin != nil {
			spans++
		}
	}
	p.Segments = make([]Segment, 0, min(len(out.Segs), 2*spans+1))
	p.Spans = make([]Span, 0, spans)
	at := 0
	for _, s := range out.Segs {
		if s.End == at {
			continue
		}
		trusted := s.Origin == nil
		if k := len(p.Segments) - 1; k >= 0 && p.Segments[k].Trusted == trusted {
			p.Segments[k].End = s.End
		} else {
			p.Segments = append(p.Segments, Segment{at, s.End, trusted})
		}
		if !trusted {
			p.Spans = append(p.Spans, Span{s.Origin.Path(), kind(s.Origin, roles), at, s.End})
		}
		at = s.End
	}
	for _, g := range out.Generations {
		p.Generations = append(p.Generations, Range(g))
	}
	return p
}

// kind returns what a place in the request is.
func kind(o *jinja.Origin, roles []string) string {
	var list, field *jinja.Origin
	for ; o.Parent() != nil; o = o.Parent() {
		field, list = list, o
	}
	switch o {
	case rootTools:
		return KindTools
	case rootDocuments:
		return KindDocument
	case rootKwargs:
		return KindOption
	}
	if list == nil {
		return KindUser
	}
	if field != nil {
		switch field.Key() {
		case "reasoning_content", "reasoning", "thinking":
			return KindReasoning
		case "tool_calls", "function_call":
			return KindToolCall
		case "tools":
			return KindTools
		}
	}
	switch roles[list.Index()] {
	case "system", "developer":
		return KindSystem
	case "assistant", "model":
		return KindText
	case "tool", "function", "ipython", "observation":
		return KindToolResult
	}
	return KindUser
}

func fromJinja(err error) error {
	e, ok := errors.AsType[*jinja.Error](err)
	if !ok {
		return err
	}
	return &Error{Path: e.Origin, Offset: -1, Reason: e.Reason, Template: e.Name, Line: e.Line, Col: e.Col, Raised: e.Raised}
}
