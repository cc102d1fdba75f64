// SPDX-License-Identifier: Apache-2.0

package template

import (
	"slices"
	"sync"
	"time"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/internal/jsonval"
	"github.com/weft-go/weft/tokenizers/template/internal/jinja"
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

// A builder collects a prompt.
type builder struct {
	text  []byte
	segs  []segment
	spans []Span
}

// builders has the builders of earlier prompts, with at most maxText bytes each.
var builders sync.Pool

const maxText = 4 << 20

func newBuilder() *builder {
	if b, ok := builders.Get().(*builder); ok {
		return b
	}
	return &builder{}
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
	start := len(b.text)
	b.text = append(b.text, s...)
	b.cover(start, trusted)
}

// cover adds the text from start on to the segments.
func (b *builder) cover(start int, trusted bool) {
	if k := len(b.segs) - 1; k >= 0 && b.segs[k].trusted == trusted {
		b.segs[k].end = len(b.text)
		return
	}
	b.segs = append(b.segs, segment{start, len(b.text), trusted})
}

// lit adds the template's own text.
func (b *builder) lit(s string) { b.add(s, true) }

// val adds a value of the request at path.
func (b *builder) val(s, path, kind string) {
	if s == "" {
		return
	}
	start := len(b.text)
	b.add(s, false)
	b.spans = append(b.spans, Span{path, kind, start, len(b.text)})
}

// json adds a value of the request as JSON. If open is set, the last byte is left out.
func (b *builder) json(v jsonval.Value, path, kind string, open bool) {
	start := len(b.text)
	b.text = v.AppendJSON(b.text)
	if open {
		b.text = b.text[:len(b.text)-1]
	}
	b.cover(start, false)
	b.spans = append(b.spans, Span{path, kind, start, len(b.text)})
}

// prompt returns the prompt of in. The builder must not be used after it.
func (b *builder) prompt(in *input) *Prompt {
	p := &Prompt{Text: in.textOf(b.text), Segments: make([]tokenizers.Segment, len(b.segs)), Spans: slices.Clone(b.spans)}
	for i, s := range b.segs {
		p.Segments[i] = tokenizers.Segment{Text: p.Text[s.start:s.end], Trusted: s.trusted}
	}
	if cap(b.text) <= maxText && cap(b.spans) <= maxText/64 {
		clear(b.spans) // of paths
		b.text, b.segs, b.spans = b.text[:0], b.segs[:0], b.spans[:0]
		builders.Put(b)
	}
	return p
}
