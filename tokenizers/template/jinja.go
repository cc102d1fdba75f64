// SPDX-License-Identifier: Apache-2.0

package template

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/internal/calltext"
	"github.com/weft-go/weft/tokenizers/internal/jsonval"
	"github.com/weft-go/weft/tokenizers/template/internal/jinja"
)

// Options configures [Parse], [Load] and [Lookup].
type Options struct {
	// Variables are template variables with a string, bool, int or []string, such as bos_token or reasoning_effort. A
	// request's Kwargs take precedence. Text that a template prints of these is trusted. Jinja templates accept any
	// name; [Lookup] lists the names of each format.
	Variables map[string]any
	// Now returns the current time for strftime_now and for harmony's date. If it is nil and the request has
	// no time, strftime_now is an error and harmony prints no date. It must be safe for concurrent use.
	Now func() time.Time
	// By default, the arguments of past calls are converted between a string of JSON, which is OpenAI's form,
	// and an object only if the template prints only the other. Arguments "raw" leaves them unchanged, as
	// transformers does; "object" makes all of them objects, as vLLM and SGLang do.
	Arguments string
}

// Values of [Options.Arguments].
const (
	rawArguments    = "raw"
	objectArguments = "object"
)

// compiled is a Jinja template, or several by name. It renders byte for byte what apply_chat_template of
// transformers (4.5x, and 5.x where these differ) does with tokenize=False, under jinja2 3.1.6. The names of
// common roles (system, user, assistant, tool, developer, function) are trusted wherever a template prints
// them; everything else from the request is not.
type compiled struct {
	fitting
	opt     Options
	raw     bool // pass messages unchanged, as transformers does; by default they are adapted
	main    *jinja.Template
	toolUse *jinja.Template // for requests with tools; may be nil

	emptyTools bool // with raw: the list of tools is empty if the request has none; otherwise, if probing found that main needs it
	source     string
	toolSrc    string
	fixed      []jinja.Var
	calls      calltext.Writer // writes past calls into the content; may be nil
	caps       func() *Capabilities
}

// Parse parses a Jinja template. name is used in errors, which are [*Error]. It takes microseconds per line; keep the
// result.
func Parse(name, source string, opt *Options) (Template, error) {
	t := &compiled{source: source}
	if opt != nil {
		t.opt = *opt
	}
	var err error
	if t.main, err = jinja.Compile(name, source); err != nil {
		return nil, fromJinja(err)
	}
	if err := t.prepare(); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *compiled) prepare() error {
	switch t.opt.Arguments {
	case "", rawArguments, objectArguments:
	default:
		return &Error{reason: fmt.Sprintf("option Arguments is %q, not empty, raw or object", t.opt.Arguments)}
	}
	for name, value := range t.opt.Variables {
		v := jinja.Var{Name: name}
		switch x := value.(type) {
		case string:
			v.Value = jinja.NewStr(x, nil)
		case bool:
			v.Value = x
		case int:
			v.Value = int64(x)
		case []string:
			l := jinja.NewList()
			for _, s := range x {
				l.Items = append(l.Items, jinja.NewStr(s, nil))
			}
			v.Value = l
		default:
			return &Error{path: "variables." + name, reason: fmt.Sprintf("is a %T, not a string, bool, int or []string", value)}
		}
		t.fixed = append(t.fixed, v)
	}
	t.setCaps()
	return nil
}

// setCaps sets caps to a function that probes t on its first call.
func (t *compiled) setCaps() {
	t.caps = sync.OnceValue(func() *Capabilities {
		plain := *t
		plain.raw, plain.opt.Arguments = true, rawArguments
		c := probe(&plain)
		return &c
	})
}

var (
	rootMessages  = jinja.Root("messages")
	rootTools     = jinja.Root("tools")
	rootDocuments = jinja.Root("documents")
	rootKwargs    = jinja.Root("kwargs")
)

// continueTag is the mark that transformers appends to the final message to find its end in the prompt.
const continueTag = "CONTINUE_FINAL_MESSAGE_TAG "

// Render implements [Template].
func (t *compiled) Render(req Request) (*Prompt, error) { return t.render(&input{Request: req}) }

// RenderValues renders a conversation of values; see input.
func (t *compiled) RenderValues(req Request, messages, tools []jsonval.Value) (*Prompt, error) {
	return t.render(&input{Request: req, values: true, messages: messages, tools: tools})
}

// arguments are the parts of a request as values of the template language.
type arguments struct {
	messages, tools, documents *jinja.List
	kwargs                     *jinja.Dict
	roles                      []string // of the messages
}

// read reads a request.
func (t *compiled) read(req *input) (v arguments, err error) {
	var b jinja.Builder
	if v.messages, err = listOf(&b, req, req.messages, req.Messages, "messages", rootMessages); err != nil {
		return v, err
	}
	if v.messages == nil || len(v.messages.Items) == 0 {
		return v, errNoMessages
	}
	if v.tools, err = listOf(&b, req, req.tools, req.Tools, "tools", rootTools); err != nil {
		return v, err
	}
	if err := v.readOthers(&b, req); err != nil {
		return v, err
	}
	v.roles = make([]string, len(v.messages.Items))
	for i := range v.messages.Items {
		if v.roles[i], err = t.adaptElement(&b, v.messages, i); err != nil {
			return v, err
		}
	}
	return v, nil
}

var errNoMessages = &Error{path: "messages", reason: "is empty"}

// readOthers reads the parts of the request besides the conversation.
func (v *arguments) readOthers(b *jinja.Builder, req *input) (err error) {
	if v.documents, err = parseValue[*jinja.List](b, req.Documents, "documents", rootDocuments, "an array"); err != nil {
		return err
	}
	v.kwargs, err = parseValue[*jinja.Dict](b, req.Kwargs, "kwargs", rootKwargs, "an object")
	return err
}

// adaptElement adapts message i and returns its role.
func (t *compiled) adaptElement(b *jinja.Builder, messages *jinja.List, i int) (string, error) {
	d, ok := messages.Items[i].(*jinja.Dict)
	if !ok {
		return "", &Error{path: fmt.Sprintf("messages[%d]", i), reason: "is not an object"}
	}
	return t.adapt(b, d)
}

func (t *compiled) render(req *input) (*Prompt, error) {
	if req.AddGenerationPrompt && req.ContinueFinalMessage != "" {
		return nil, errContinue
	}
	var v arguments
	var err error
	if req.next != nil {
		v, err = t.readParts(req)
	} else {
		v, err = t.read(req)
	}
	if err != nil {
		return nil, err
	}
	messages, tools, documents, kwargs, roles := v.messages, v.tools, v.documents, v.kwargs, v.roles
	final := ""
	var open []string // the fields that are continued
	if req.ContinueFinalMessage != "" {
		if final, open, err = tag(messages.Items[len(messages.Items)-1].(*jinja.Dict), req.ContinueFinalMessage, len(messages.Items)-1); err != nil {
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
	} else if t.emptyTools || !t.raw && t.caps().emptyTools {
		vars[1].Value = jinja.NewList()
	}
	if documents != nil {
		vars[2].Value = documents
	}
	vars = append(vars, t.fixed...)
	if kwargs != nil {
		for k, v := range kwargs.All() {
			switch k {
			case "messages", "tools", "documents", "add_generation_prompt", "conversation", "chat_template", "tokenize", "continue_final_message":
				return nil, &Error{path: "kwargs." + k, reason: "is not a template variable of its own"}
			}
			vars = append(vars, jinja.Var{Name: k, Value: v})
		}
	}
	if len(open) > 0 && !slices.ContainsFunc(open, func(field string) bool { return strings.Contains(t.sourceOf(tpl), field) }) {
		return nil, &Error{reason: "the template does not print the field " + req.ContinueFinalMessage + ", which is to be continued"}
	}
	now := t.opt.Now
	if !req.Now.IsZero() {
		now = func() time.Time { return req.Now }
	}
	in := jinja.Input{Vars: vars, Now: now}
	if req.next != nil {
		in.Remember, in.Memo, in.Expect = true, req.before.memoOf(tpl), expected(req.next.messages, req.next.tools)
	}
	out, err := tpl.Render(in)
	if err != nil {
		return nil, fromJinja(err)
	}
	if req.next != nil {
		req.next.tpl, req.next.memo = tpl, out.Memo
	}
	if len(open) > 0 {
		if err := cut(out, final, len(messages.Items)-1); err != nil {
			return nil, err
		}
	}
	if req.next == nil {
		return toPrompt(out, roles, nil, nil), nil
	}
	if len(open) == 0 {
		req.next.segs = out.Segs
	}
	return toPrompt(out, roles, req.next, req.before), nil
}

func (t *compiled) sourceOf(tpl *jinja.Template) string {
	if tpl == t.toolUse {
		return t.toolSrc
	}
	return t.source
}

// listOf returns a list of the request.
func listOf(b *jinja.Builder, req *input, values []jsonval.Value, data []byte, name string, root *jinja.Origin) (*jinja.List, error) {
	if req.values {
		return b.Value(&jsonval.Value{Kind: jsonval.Array, List: values}, root).(*jinja.List), nil
	}
	return parseValue[*jinja.List](b, data, name, root, "an array")
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
		return out, &Error{path: name, reason: "is not " + what}
	}
	return out, nil
}

// tag marks the end of a field of the final message and returns its text and the names of the field. Reasoning has
// several names, and a template may read any of them.
func tag(m *jinja.Dict, field string, i int) (text string, fields []string, err error) {
	fail := func(reason string) (string, []string, error) {
		return "", nil, &Error{path: fmt.Sprintf("messages[%d]", i), reason: "cannot be continued: " + reason}
	}
	v, _ := m.Get(field)
	fields = []string{field}
	if slices.Contains(reasoningKeys[:], field) {
		fields = nil
		for _, k := range reasoningKeys {
			s, ok := get[*jinja.Str](m, k)
			if ok && (len(fields) == 0 || s.String() == text) {
				v, text, fields = s, s.String(), append(fields, k)
				m.Set(jinja.NewStr(k, m.Source()), jinja.Concat(s, jinja.NewStr(continueTag, s.Source())))
			}
		}
		if len(fields) == 0 {
			return fail("it has no reasoning")
		}
		return text, fields, nil
	}
	switch c := v.(type) {
	case *jinja.Str:
		m.Set(jinja.NewStr(field, m.Source()), jinja.Concat(c, jinja.NewStr(continueTag, c.Source())))
		return c.String(), fields, nil
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
				return s.String(), fields, nil
			}
		}
		return fail("no part of it has text")
	case nil:
		return fail("it has no " + field)
	}
	return fail("its " + field + " is not text")
}

// cut drops the output after the final message's text.
func cut(out *jinja.Output, final string, i int) error {
	k := strings.LastIndex(out.Text, strings.TrimSpace(continueTag))
	if k < 0 || !strings.Contains(out.Text, jinja.Trim(final)) {
		return &Error{path: fmt.Sprintf("messages[%d]", i), reason: "cannot be continued: the template does not print its text as it is"}
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
			out.Segs = slices.Clone(out.Segs[:j+1]) // the memo has them too
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

// toPrompt turns origins into segments and spans. With next, which may be nil, the origins belong to parts that are kept,
// and the output may begin like the one before, which also may be nil.
func toPrompt(out *jinja.Output, roles []string, next, before *memory) *Prompt {
	p := &Prompt{Text: out.Text, generations: out.Generations}
	segs, at, start, front := out.Segs, 0, 0, 0 // the end of the last segment of out, the beginning of the last one in p, and the spans before it
	p.Segments = make([]tokenizers.Segment, 0, len(segs))
	if next != nil {
		next.prompt = p
		if before != nil && before.tpl == next.tpl {
			var n int
			n, at, start, front = p.startLike(before, segs)
			segs = segs[n:]
		}
	}
	spans := 0
	for i := range segs {
		if segs[i].Origin != nil {
			spans++
		}
	}
	if spans > 0 {
		n := spans
		if next != nil && before == nil {
			n = roomForSpans(n) // for newSpanList
		}
		p.Spans = make([]Span, 0, n) // those after the front
	}
	begin := at
	paths, ends := make([]byte, 0, 64*spans), make([]int, 0, spans) // of spans whose origin has no path yet
	for _, s := range segs {
		if s.End == at {
			continue
		}
		trusted := s.Origin == nil
		if k := len(p.Segments) - 1; k >= 0 && p.Segments[k].Trusted == trusted {
			p.Segments[k].Text = out.Text[start:s.End]
		} else {
			start = at
			p.Segments = append(p.Segments, tokenizers.Segment{Text: out.Text[at:s.End], Trusted: trusted})
		}
		if !trusted {
			span := Span{"", kind(s.Origin, roles), at, s.End}
			if kept := s.Origin.Kept(); kept != nil {
				span.Path = *kept
			} else {
				paths = s.Origin.AppendPath(paths)
				ends = append(ends, len(paths))
			}
			p.Spans = append(p.Spans, span)
		}
		at = s.End
	}
	p.setPaths(string(paths), ends, segs, begin, next != nil)
	switch {
	case next == nil:
	case before == nil:
		next.spans, p.Spans = newSpanList(p.Spans)
	default:
		next.spans, p.Spans = before.spans.extend(before.prompt.Spans, front, p.Spans)
	}
	return p
}

// setPaths sets the paths of the spans that have none, which are in one text with the given ends. The spans are the segments
// that have an origin and are not empty; the first segment begins at the given position. If keep is set, origins keep the
// paths for later prompts.
func (p *Prompt) setPaths(paths string, ends []int, segs []jinja.Segment, at int, keep bool) {
	if len(ends) == 0 {
		return
	}
	list := make([]string, len(ends))
	k, from, i := 0, 0, 0
	for _, s := range segs {
		empty := s.End == at
		at = s.End
		if s.Origin == nil || empty {
			continue
		}
		if p.Spans[i].Path == "" {
			list[k], from = paths[from:ends[k]], ends[k]
			p.Spans[i].Path = list[k]
			if keep {
				s.Origin.Keep(&list[k])
			}
			k++
		}
		i++
	}
}

// startLike sets the segments of the beginning of the output that it shares with before. It returns the number of those in
// segs, where they end, where the last of p's segments begins, and the number of spans.
func (p *Prompt) startLike(before *memory, segs []jinja.Segment) (n, at, start, spans int) {
	last, segments := false, 0
	for n < len(segs) && n < len(before.segs) && segs[n] == before.segs[n] {
		s := &segs[n]
		n++
		if s.End == at {
			continue
		}
		if trusted := s.Origin == nil; segments == 0 || trusted != last {
			start, last = at, trusted
			segments++
		}
		if !last {
			spans++
		}
		at = s.End
	}
	p.Segments = append(p.Segments, before.prompt.Segments[:segments]...)
	if segments == 0 {
		return n, at, start, spans
	}
	p.Segments[segments-1].Text = p.Text[start:at]
	if unsafe.StringData(p.Text) != unsafe.StringData(before.prompt.Text) {
		end := 0
		for i := range p.Segments[:segments-1] {
			from := end
			end += len(p.Segments[i].Text)
			p.Segments[i].Text = p.Text[from:end]
		}
	}
	return n, at, start, spans
}

// kind returns the kind of a path in the request.
func kind(o *jinja.Origin, roles []string) string {
	var list, field *jinja.Origin
	for ; o.Parent() != nil; o = o.Parent() {
		field, list = list, o
	}
	switch o {
	case rootTools:
		return kindTools
	case rootDocuments:
		return kindDocument
	case rootKwargs:
		return kindOption
	}
	if list == nil {
		return kindUser
	}
	if field != nil {
		switch field.Key() {
		case "reasoning_content", "reasoning", "thinking":
			return kindReasoning
		case "tool_calls", "function_call":
			return kindToolCall
		case "tools":
			return kindTools
		}
	}
	switch roles[list.Index()] {
	case "system", "developer":
		return kindSystem
	case "assistant", "model":
		return kindText
	case "tool", "function", "ipython", "observation":
		return kindToolResult
	}
	return kindUser
}

func fromJinja(err error) error {
	e, ok := errors.AsType[*jinja.Error](err)
	if !ok {
		return err
	}
	place := e.Name
	if e.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", e.Name, e.Line, e.Col)
	}
	return &Error{path: e.Origin, reason: e.Reason, place: place, Raised: e.Raised, unsafe: e.Unsafe}
}
