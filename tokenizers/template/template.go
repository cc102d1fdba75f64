// SPDX-License-Identifier: Apache-2.0

package template

import (
	"sync"
	"time"
	"unsafe"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/internal/jsonval"
	"github.com/weft-go/weft/tokenizers/template/internal/jinja"
	"github.com/weft-go/weft/tokenizers/template/internal/longtext"
)

// A Template renders conversations. Implementations must be safe for concurrent use by multiple goroutines.
type Template interface {
	// Render returns the prompt for a conversation. Errors are [*Error].
	Render(Request) (*Prompt, error)
}

// A Request is a conversation to render.
type Request struct {
	// Messages is a JSON array of messages in OpenAI's chat form: role, content, reasoning_content,
	// tool_calls, tool_call_id. The order of keys is kept wherever it is printed.
	Messages []byte
	// Tools is a JSON array of tool definitions in the same form; nil, null or [] means no tools. Unlike transformers,
	// which passes an empty list on, a template cannot tell them apart: clients send [] for no tools, and Llama 3's
	// template, which tests "tools is not none", would print that it has an environment.
	Tools []byte
	// AddGenerationPrompt opens the assistant's turn at the end.
	AddGenerationPrompt bool
	// ContinueFinalMessage, if not empty, names the field of the last message that the prompt ends with, so that the model
	// continues it: "content", or, in Jinja templates, the reasoning under any of its names or another field, as in
	// transformers. It excludes AddGenerationPrompt. A message whose field does not end its turn, such as the content
	// of one with tool calls, is an error.
	ContinueFinalMessage string
	// Kwargs is a JSON object of further template variables (chat_template_kwargs), or nil. Because they come
	// from the client, text that a template prints of them is not trusted; see [Options.Variables].
	Kwargs []byte
	// Documents is a JSON array of documents for templates that print them; nil or null means none.
	Documents []byte
	// Now is the time that templates may print. If it is zero, [Options.Now] is called.
	Now time.Time
}

// A Prompt is a rendered conversation. It shares no memory with the request.
type Prompt struct {
	Text string
	// Segments cover Text without gaps, as [tokenizers.Tokenizer.AppendEncodeSegments] takes them. Adjacent
	// segments differ in Trusted, which is set for text written by the template.
	Segments []tokenizers.Segment
	// Spans are sorted by Start and do not overlap.
	Spans []Span

	// generations are the parts of Text that the template marks as written by the model, sorted by Start.
	generations []jinja.Range
}

// A Span maps the bytes [Start, End) of the text to the part of the request that they print.
type Span struct {
	Path string // such as messages[2].tool_calls[0].function.arguments or tools[1]
	// Kind is system, tools, user, text (the assistant's), reasoning, tool_call, tool_result, document or
	// option (of Kwargs).
	Kind       string
	Start, End int
}

// Values of [Span.Kind].
const (
	kindSystem     = "system"
	kindTools      = "tools"
	kindUser       = "user"
	kindText       = "text"
	kindReasoning  = "reasoning"
	kindToolCall   = "tool_call"
	kindToolResult = "tool_result"
	kindDocument   = "document"
	kindOption     = "option"
)

// An Error reports a part of a request that cannot be rendered, or a template that cannot be parsed.
type Error struct {
	Raised bool // the template itself refused the request, with raise_exception

	unsafe bool   // no request can be rendered here
	place  string // of the failure in a template, such as chat_template.jinja:12:5; may be empty
	path   string // of the part, such as messages[2].content; empty for the request as a whole
	reason string
}

// Error returns the position in the template if known, such as chat_template.jinja:12:5, the path and the reason in one
// line.
func (e *Error) Error() string {
	s := "template: "
	if e.place != "" {
		s += e.place + ": "
	}
	if e.path != "" {
		s += e.path + ": "
	}
	return s + e.reason
}

// A builder collects a prompt, or what follows the front that was taken over from an earlier one.
type builder struct {
	text  []byte
	segs  []segment
	spans []Span
	spare []byte // the builder's memory for texts, while text has memory that the prompt keeps

	front step // counts of what was taken over; the last segment is the first of segs
}

// builders has the builders of earlier prompts, with at most maxText bytes each.
var builders sync.Pool

const maxText = 4 << 20

// newBuilder returns a builder for the prompt of in. The first prompt of a conversation keeps the memory of its text.
func newBuilder(in *input) *builder {
	b, ok := builders.Get().(*builder)
	if !ok {
		b = &builder{}
	}
	if in.turns != nil && in.turnsBefore == nil {
		b.spare, b.text = b.text, longtext.Room(min(expected(in.turns.messages, in.turns.tools), maxText))
	}
	return b
}

// A segment is the bytes [start, end) of the text.
type segment struct {
	start, end int
	trusted    bool
}

func (b *builder) add(s string, trusted bool) {
	if s == "" {
		return
	}
	start := b.size()
	b.text = append(b.text, s...)
	b.cover(start, trusted)
}

// size returns the length of the prompt's text so far.
func (b *builder) size() int { return b.front.text + len(b.text) }

// cover adds the text from start on to the segments.
func (b *builder) cover(start int, trusted bool) {
	if k := len(b.segs) - 1; k >= 0 && b.segs[k].trusted == trusted {
		b.segs[k].end = b.size()
		return
	}
	b.segs = append(b.segs, segment{start, b.size(), trusted})
}

// lit adds the template's own text.
func (b *builder) lit(s string) { b.add(s, true) }

// val adds a value of the request at path.
func (b *builder) val(s, path, kind string) {
	if s == "" {
		return
	}
	start := b.size()
	b.add(s, false)
	b.spans = append(b.spans, Span{path, kind, start, b.size()})
}

// json adds a value of the request as JSON. If open is set, the last byte is left out.
func (b *builder) json(v jsonval.Value, path, kind string, open bool) {
	start := b.size()
	b.text = v.AppendJSON(b.text)
	if open {
		b.text = b.text[:len(b.text)-1]
	}
	b.cover(start, false)
	b.spans = append(b.spans, Span{path, kind, start, b.size()})
}

// take takes over the turns that an earlier rendering printed, and returns their number. If it is 0, head must be printed.
// steps has the ends and forms of the turns; mark completes them. Without memory it does nothing.
func (b *builder) take(in *input, head string, steps []step) int {
	if in.turns == nil {
		return 0
	}
	in.turns.head, in.turns.steps = head, steps
	n := in.turnsBefore.printed(in.turns, head, steps)
	if n == 0 {
		return 0
	}
	before := in.turnsBefore
	copy(steps[:n], before.steps)
	b.front = steps[n-1]
	if k := b.front.segments - 1; k >= 0 {
		last := &before.prompt.Segments[k] // may have grown after that turn
		start := int(uintptr(unsafe.Pointer(unsafe.StringData(last.Text))) - uintptr(unsafe.Pointer(unsafe.StringData(before.prompt.Text))))
		b.segs = append(b.segs, segment{start, b.front.text, last.Trusted})
	}
	return n
}

// mark records that turn i has been printed.
func (b *builder) mark(in *input, i int) {
	if in.turns == nil {
		return
	}
	s := &in.turns.steps[i]
	s.text, s.segments, s.spans = b.size(), max(b.front.segments-1, 0)+len(b.segs), b.front.spans+len(b.spans)
}

// prompt returns the prompt of in. The builder must not be used after it.
func (b *builder) prompt(in *input) *Prompt {
	p := &Prompt{}
	taken := max(b.front.segments-1, 0)
	p.Segments = make([]tokenizers.Segment, taken+len(b.segs))
	if in.turns == nil {
		p.Text, p.Spans = string(b.text), append([]Span(nil), b.spans...)
	} else {
		b.extend(in, p, taken)
	}
	for i, s := range b.segs {
		p.Segments[taken+i] = tokenizers.Segment{Text: p.Text[s.start:s.end], Trusted: s.trusted}
	}
	if cap(b.text) <= maxText && cap(b.spans) <= maxText/64 {
		clear(b.spans) // of paths
		*b = builder{text: b.text[:0], segs: b.segs[:0], spans: b.spans[:0]}
		builders.Put(b)
	}
	return p
}

// extend sets the text, the spans and the first segments of p, the prompt of in, which has memory.
func (b *builder) extend(in *input, p *Prompt, taken int) {
	before := in.turnsBefore
	if before == nil || before.prompt == nil {
		before = &turnMemory{prompt: &Prompt{}}
	}
	next := in.turns
	next.prompt = p
	if in.turnsBefore == nil {
		next.text, b.text = longtext.Keep(b.text), b.spare
	} else {
		next.text = longtext.Extend(before.text, b.front.text, b.text)
	}
	p.Text = next.text.String()
	next.spans, p.Spans = before.spans.extend(before.prompt.Spans, b.front.spans, b.spans)
	copy(p.Segments, before.prompt.Segments[:taken])
	if unsafe.StringData(p.Text) != unsafe.StringData(before.prompt.Text) {
		at := 0
		for i := range p.Segments[:taken] {
			s := &p.Segments[i]
			s.Text = p.Text[at : at+len(s.Text)]
			at += len(s.Text)
		}
	}
}
