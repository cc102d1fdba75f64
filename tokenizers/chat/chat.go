// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"fmt"
	"time"

	"github.com/weft-go/weft/tokenizers"
)

// Request is a conversation to be rendered.
type Request struct {
	// Messages is a JSON array of messages in OpenAI's chat form: role, content, reasoning_content,
	// tool_calls, tool_call_id. The order of keys is kept wherever it shows.
	Messages []byte
	// Tools is a JSON array of tool definitions in the same form; nil, null or [] for none.
	Tools []byte
	// AddGenerationPrompt opens the assistant's turn at the end.
	AddGenerationPrompt bool
	// ContinueFinalMessage leaves the last message open, for the model to go on with it. It excludes
	// AddGenerationPrompt. A message whose text is not the end of its turn, as one with tool calls, is an error.
	ContinueFinalMessage bool
	// Kwargs is a JSON object of further template variables (chat_template_kwargs), or nil. Text that a
	// template prints of them is not trusted: they come with the request.
	Kwargs []byte
	// Documents is a JSON array of documents for templates that know them; nil or null for none.
	Documents []byte
	// Now is the time that templates may print. With the zero Time, [Options.Now] is asked.
	Now time.Time
}

// Prompt is a rendered conversation. It shares nothing with the request.
type Prompt struct {
	Text string
	// Segments cover Text from start to end without gaps; neighbours differ in Trusted.
	Segments []Segment
	// Spans are sorted by Start and do not overlap.
	Spans []Span
	// Generations are the bytes that the template marks as written by the model, sorted by Start. It is
	// nil for templates without generation tags.
	Generations []Range
}

// Range is the bytes [Start, End) of the text.
type Range struct{ Start, End int }

// Segment is the bytes [Start, End) of the text.
type Segment struct {
	Start, End int
	Trusted    bool // written by the template, not taken from the request
}

// Span says that the bytes [Start, End) of the text print the part of the request at Path, such as
// messages[2].tool_calls[0].function.arguments or tools[1].
type Span struct {
	Path       string
	Kind       string
	Start, End int
}

// Kinds of spans.
const (
	KindSystem     = "system"
	KindTools      = "tools"
	KindUser       = "user"
	KindText       = "text" // what the assistant said
	KindReasoning  = "reasoning"
	KindToolCall   = "tool_call"
	KindToolResult = "tool_result"
	KindDocument   = "document"
	KindOption     = "option" // of Kwargs
)

// AppendSegments appends the segments as package tokenizers encodes them.
func (p *Prompt) AppendSegments(dst []tokenizers.Segment) []tokenizers.Segment {
	for _, s := range p.Segments {
		dst = append(dst, tokenizers.Segment{Text: p.Text[s.Start:s.End], Trusted: s.Trusted})
	}
	return dst
}

// Template renders conversations. Implementations are safe for concurrent use.
type Template interface {
	// Render returns the prompt. Errors are [*Error].
	Render(Request) (*Prompt, error)
}

// Error says which part of a request cannot be rendered, and by which line of a template.
type Error struct {
	Path   string // of the part, such as messages[2].content; empty for the request as a whole
	Offset int64  // bytes into Messages, Tools or Kwargs if their JSON is malformed, else -1
	Reason string

	// Template, Line and Col are the place in a Jinja template that failed; Line is 0 if there is none.
	Template  string
	Line, Col int
	// Raised reports that the template itself refused the request, with raise_exception.
	Raised bool
}

// Error returns place, path and reason.
func (e *Error) Error() string {
	s := "chat: "
	if e.Line > 0 {
		s += fmt.Sprintf("%s:%d:%d: ", e.Template, e.Line, e.Col)
	} else if e.Template != "" {
		s += e.Template + ": "
	}
	switch {
	case e.Path == "":
		return s + e.Reason
	case e.Offset >= 0:
		return fmt.Sprintf("%s%s: %s (offset %d)", s, e.Path, e.Reason, e.Offset)
	}
	return s + e.Path + ": " + e.Reason
}

// builder collects a prompt.
type builder struct {
	text  []byte
	segs  []Segment
	spans []Span
}

func (b *builder) add(s string, trusted bool) {
	if s == "" {
		return
	}
	start := len(b.text)
	b.text = append(b.text, s...)
	if k := len(b.segs) - 1; k >= 0 && b.segs[k].Trusted == trusted {
		b.segs[k].End = len(b.text)
		return
	}
	b.segs = append(b.segs, Segment{start, len(b.text), trusted})
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

func (b *builder) prompt() *Prompt {
	return &Prompt{Text: string(b.text), Segments: b.segs, Spans: b.spans}
}
