// SPDX-License-Identifier: Apache-2.0

package template

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/internal/jsonval"
	"github.com/weft-go/weft/tokenizers/template/internal/jinja"
	"github.com/weft-go/weft/tokenizers/template/internal/longtext"
)

// memory is what a rendering leaves for the next one of the same session. It is never modified afterward, so any number
// of renderings may use it.
type memory struct {
	messages, tools []*jsonval.Part
	dicts           []*jinja.Dict // of the messages, as adapted; nil if it was changed further
	roles           []string
	toolList        *jinja.List
	kwargs          string // JSON
	kwargsDict      *jinja.Dict
	tpl             *jinja.Template
	memo            *jinja.Memo
	segs            []jinja.Segment // of the output; nil if it was cut
	prompt          *Prompt         // of the output
	spans           *spanList       // has the prompt's
}

// memoOf returns the memo of a rendering of tpl, or nil.
func (m *memory) memoOf(tpl *jinja.Template) *jinja.Memo {
	if m == nil || m.tpl != tpl {
		return nil
	}
	return m.memo
}

// bytes returns about how much memory m takes, without the parts.
func (m *memory) bytes() int {
	n := 24*len(m.dicts) + len(m.kwargs) + m.memo.Bytes()
	n += int(unsafe.Sizeof(Span{}))*cap(m.prompt.Spans) + int(unsafe.Sizeof(tokenizers.Segment{}))*cap(m.prompt.Segments)
	for _, p := range m.messages {
		n += p.Bytes() // of the dict
	}
	for _, p := range m.tools {
		n += p.Bytes()
	}
	return n
}

// RenderParts renders a conversation of parts. before is what an earlier call for this template returned, or nil: what
// the conversations have in common is taken from it. The prompt is the same with and without. RenderParts also returns
// about how much memory the result that is to be kept takes in bytes, without the parts.
func (t *compiled) RenderParts(req Request, messages, tools []*jsonval.Part, before any) (p *Prompt, keep any, size int, err error) {
	in := &input{Request: req, next: &memory{messages: messages, tools: tools}}
	in.before, _ = before.(*memory)
	if p, err = t.render(in); err != nil {
		return nil, nil, 0, err
	}
	return p, in.next, in.next.bytes(), nil
}

// expected returns about how long the text of a prompt with the given parts is, in bytes.
func expected(messages, tools []*jsonval.Part) int {
	n := 0
	for _, list := range [2][]*jsonval.Part{messages, tools} {
		for _, p := range list {
			n += p.Texts() + p.Texts()/16 + 64 // escape sequences in JSON, and what the template prints
		}
	}
	return n
}

// readParts is read for parts.
func (t *compiled) readParts(req *input) (v arguments, err error) {
	if len(req.next.messages) == 0 {
		return v, errNoMessages
	}
	var b jinja.Builder
	next, before := req.next, req.before
	if before == nil {
		before = &memory{}
	}
	if slices.Equal(next.tools, before.tools) && before.toolList != nil {
		v.tools = before.toolList
	} else {
		v.tools = rootTools.List(make([]jinja.Value, len(next.tools)))
		for i, p := range next.tools {
			if i < len(before.tools) && before.tools[i] == p {
				v.tools.Items[i] = before.toolList.Items[i]
				continue
			}
			v.tools.Items[i] = b.Value(&p.Value, rootTools.Element(i))
		}
	}
	next.toolList = v.tools
	if len(req.Kwargs) > 0 && string(req.Kwargs) == before.kwargs && len(req.Documents) == 0 {
		v.kwargs, next.kwargs, next.kwargsDict = before.kwargsDict, before.kwargs, before.kwargsDict
	} else {
		if err := v.readOthers(&b, req); err != nil {
			return v, err
		}
		next.kwargs, next.kwargsDict = string(req.Kwargs), v.kwargs
	}
	next.dicts = make([]*jinja.Dict, len(next.messages))
	v.roles = make([]string, len(next.messages))
	v.messages = rootMessages.List(make([]jinja.Value, len(next.messages)))
	for i, p := range next.messages {
		last := i == len(next.messages)-1 && req.ContinueFinalMessage != "" // it will be modified
		if !last && i < len(before.messages) && before.messages[i] == p && before.dicts[i] != nil {
			v.messages.Items[i], v.roles[i], next.dicts[i] = before.dicts[i], before.roles[i], before.dicts[i]
			continue
		}
		v.messages.Items[i] = b.Value(&p.Value, rootMessages.Element(i))
		if v.roles[i], err = t.adaptElement(&b, v.messages, i); err != nil {
			return v, err
		}
		if !last {
			next.dicts[i] = v.messages.Items[i].(*jinja.Dict)
		}
	}
	next.roles = v.roles
	return v, nil
}

// turnMemory is memory for the formats that are written in Go.
type turnMemory struct {
	messages, tools []*jsonval.Part
	turns           []*callTurn // as parsed
	text            *longtext.Text

	// Of the formats that take over what was printed.
	head   string // what was printed before the first turn depends on it, besides the messages and the tools
	steps  []step // one for each turn of the format
	prompt *Prompt
	spans  *spanList // has the prompt's
}

// A step is a turn as it was printed: it consists of the messages before end that no earlier turn has. What was printed
// of it depends on these messages, the turns before, and form. The counts are of the text in bytes and of the segments and
// spans, up to the end of the turn.
type step struct {
	end, form             int
	text, segments, spans int
}

// at returns turn i if next has the same message there, or nil.
func (m *turnMemory) at(i int, next *turnMemory) *callTurn {
	if m == nil || next == nil || i >= len(m.messages) || m.messages[i] != next.messages[i] {
		return nil
	}
	return m.turns[i]
}

// printed returns the number of turns that m printed as they are to be printed after head, in the forms of steps. The
// last turn of either rendering does not count, because what follows depends on it.
func (m *turnMemory) printed(next *turnMemory, head string, steps []step) int {
	if m == nil || next == nil || m.prompt == nil || m.head != head || !slices.Equal(m.tools, next.tools) {
		return 0
	}
	n, messages := 0, 0
	for n < len(m.steps)-1 && n < len(steps)-1 {
		was, is := &m.steps[n], &steps[n]
		if was.end != is.end || was.form != is.form || !slices.Equal(m.messages[messages:is.end], next.messages[messages:is.end]) {
			break
		}
		messages = is.end
		n++
	}
	return n
}

// spanList holds the spans of prompts of which each begins with the spans before it. No reader goes beyond the number
// of its own prompt's.
type spanList struct {
	mu    sync.Mutex
	spans []Span
}

// extend returns the first n spans of front, which is at the beginning of l, and then rest, with the list that holds them.
// l may be nil if n is 0.
func (l *spanList) extend(front []Span, n int, rest []Span) (*spanList, []Span) {
	if more := len(front) - n; l != nil && more <= len(rest) && slices.Equal(front[n:], rest[:more]) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if all := len(front) + len(rest) - more; len(l.spans) == len(front) && cap(l.spans) >= all {
			l.spans = append(l.spans, rest[more:]...)
			return l, l.spans[:all:all]
		}
	}
	if n+len(rest) == 0 {
		return nil, nil
	}
	return newSpanList(append(append(make([]Span, 0, roomForSpans(n+len(rest))), front[:n]...), rest...))
}

// newSpanList returns a list that holds the given spans, and the spans.
func newSpanList(all []Span) (*spanList, []Span) {
	return &spanList{spans: all}, all[:len(all):len(all)]
}

// roomForSpans returns the capacity of a list for n spans and later ones.
func roomForSpans(n int) int { return n + n/8 + 16 }

// renderTurns implements RenderParts for a format whose roles depend on nothing but its options.
func renderTurns(render func(*input) (*Prompt, error), req Request, messages, tools []*jsonval.Part, before any) (p *Prompt, keep any, size int, err error) {
	next := &turnMemory{messages: messages, tools: tools}
	in := &input{Request: req, values: true, tools: jsonval.Values(tools), turns: next}
	in.turnsBefore, _ = before.(*turnMemory)
	if p, err = render(in); err != nil {
		return nil, nil, 0, err
	}
	size = next.text.Bytes() + int(unsafe.Sizeof(callTurn{})+8)*len(messages) + int(unsafe.Sizeof(step{}))*cap(next.steps)
	size += int(unsafe.Sizeof(Span{}))*len(p.Spans)*9/8 + int(unsafe.Sizeof(tokenizers.Segment{}))*len(p.Segments)
	for _, m := range messages {
		size += m.Bytes() // of the calls
	}
	return p, next, size, nil
}

// RenderParts is [compiled.RenderParts].
func (t harmony) RenderParts(req Request, messages, tools []*jsonval.Part, before any) (p *Prompt, keep any, size int, err error) {
	return renderTurns(t.render, req, messages, tools, before)
}

// RenderParts is [compiled.RenderParts].
func (t *deepSeek) RenderParts(req Request, messages, tools []*jsonval.Part, before any) (p *Prompt, keep any, size int, err error) {
	return renderTurns(t.render, req, messages, tools, before)
}

// RenderParts is [compiled.RenderParts].
func (t kimiK3) RenderParts(req Request, messages, tools []*jsonval.Part, before any) (p *Prompt, keep any, size int, err error) {
	return renderTurns(t.render, req, messages, tools, before)
}
