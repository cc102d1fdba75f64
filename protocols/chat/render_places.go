// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weft-go/weft/protocols/block"
)

// Position is the position of a block of a request in the messages of [AppendMessages], or of a tool in the list of
// [AppendTools].
type Position struct {
	// At is the block or tool in the request. For a system message from the middle of a turn, it is the block that
	// contained the system text.
	At block.Ref
	// Tool is the index in the list of tools, or -1 for positions in the messages. Tools that are not in the list have
	// no position, except that a deferred tool has the position of the first reference to it.
	Tool int
	// Message is the index in the list of messages, or -1 for a tool.
	Message int
	// Member is the field of the message: content, tool_calls or reasoning_content.
	Member string
	// Index is the index in a list of parts, calls, or segments of reasoning, or -1 if the field is a single text.
	Index int
	// Text is the complete, decoded text that contains the block, and Offset is the number of its bytes up to the end
	// of the block. For a call, Text is its arguments. For tools, and for parts that were made from blocks other than
	// text, Text is empty.
	Text   string
	Offset int
}

// Path returns the position in the form that package tokenizers/chat uses in its spans, for example
// messages[2].content.
func (p *Position) Path() string {
	if p.Tool >= 0 {
		return "tools[" + strconv.Itoa(p.Tool) + "]"
	}
	s := "messages[" + strconv.Itoa(p.Message) + "]." + p.Member
	if p.Index >= 0 {
		s += "[" + strconv.Itoa(p.Index) + "]"
	}
	return s
}

// put adds a position in the current message.
func (w *renderer) put(at block.Ref, p Position) {
	if w.opt.Places != nil && at != (block.Ref{}) {
		p.At, p.Tool, p.Message = at, -1, w.n-1
		*w.opt.Places = append(*w.opt.Places, p)
	}
}

// reserve makes room for the positions of the turns and tools.
func (w *renderer) reserve(turns []block.Turn) {
	if w.opt.Places == nil {
		return
	}
	n := len(w.r.Tools())
	for i := range turns {
		if i < w.same && !w.walked.turns[i].system {
			continue // most of these are not written
		}
		n += len(turns[i].Blocks) + 1
		for k := range turns[i].Blocks {
			n += len(turns[i].Blocks[k].Content)
		}
	}
	*w.opt.Places = slices.Grow(*w.opt.Places, n)
}

// putTools adds the positions of the tools.
func (w *renderer) putTools() {
	if w.opt.Places == nil {
		return
	}
	n := 0
	for i := range w.r.Tools() {
		if t := &w.r.Tools()[i]; listed(t) {
			*w.opt.Places = append(*w.opt.Places, Position{At: t.At, Tool: n, Message: -1, Index: -1})
			n++
		}
	}
}

// putText adds the positions of the blocks of list, whose joined text is s. w.ends contains the offsets of their ends.
func (w *renderer) putText(list []block.Block, s string) {
	if w.opt.Places == nil {
		return
	}
	start := 0
	w.places = w.places[:0]
	for i := range list {
		b := &list[i]
		p := Position{Member: "content", Index: -1, Text: s, Offset: w.ends[i]}
		if b.Kind == block.Text {
			w.putInner(b, p)
		} else { // a position before the block's note
			for k := range b.Content {
				w.put(b.Content[k].At, Position{Member: p.Member, Index: p.Index, Text: s, Offset: start})
			}
		}
		for len(w.declared) > 0 && w.declared[0].block == i {
			w.put(w.r.Tools()[w.declared[0].tool].At, p)
			w.declared = w.declared[1:]
		}
		w.put(b.At, p)
		w.places = append(w.places, p)
		start = w.ends[i]
	}
	w.declared = nil
}

// putInner adds the positions of the blocks from which the renderer made the text b, for example a reminder from system
// text. p is the position of b.
func (w *renderer) putInner(b *block.Block, p Position) {
	end, last := p.Offset, 0
	for i := range b.Content {
		in := &b.Content[i]
		if in.Text != "" && last == 0 { // after the tag
			last = end - len(b.Text) + max(strings.Index(b.Text, in.Text), 0) + len(in.Text)
		} else if in.Text != "" {
			last += len(separator) + len(in.Text)
		}
		p.Offset = min(last, end)
		w.put(in.At, p)
	}
}

// putEnd adds the position after the first n of the blocks that were written last.
func (w *renderer) putEnd(at block.Ref, n int) {
	switch {
	case w.opt.Places == nil:
	case n > 0 && n <= len(w.places):
		w.put(at, w.places[n-1])
	case len(w.places) > 0:
		p := w.places[0]
		p.Offset = 0
		w.put(at, p)
	default:
		w.put(at, Position{Member: "content", Index: -1})
	}
}

// putReasoning adds the positions of reasoning in text, a text of the reasoning field.
func (w *renderer) putReasoning(list []*block.Block, index int, text string) {
	if w.opt.Places == nil || len(list) == 0 {
		return
	}
	p := Position{Member: reasoningField, Index: index, Text: text}
	for i, b := range list {
		if i > 0 {
			p.Offset += len(separator)
		}
		p.Offset += len(b.Text)
		w.put(b.At, p)
	}
}

// putCalls adds the positions of the calls.
func (w *renderer) putCalls() {
	for i := range w.calls {
		w.put(w.calls[i].At, Position{Member: "tool_calls", Index: i, Text: w.calls[i].Args, Offset: len(w.calls[i].Args)})
	}
}

// putParts adds the positions of the blocks of a content that is a list. w.ends contains the number of parts after each
// block.
func (w *renderer) putParts(list []block.Block) {
	if w.opt.Places == nil {
		return
	}
	w.places = w.places[:0]
	p := Position{Member: "content", Index: -1}
	for i := range list {
		if n := w.ends[i] - 1; n != p.Index {
			p.Index, p.Text = n, ""
			if list[i].Kind == block.Text {
				p.Text = list[i].Text
			}
			p.Offset = len(p.Text)
		}
		if list[i].Kind == block.Text {
			w.putInner(&list[i], p)
		}
		w.put(list[i].At, p)
		w.places = append(w.places, p)
	}
}

// declared is a deferred tool and the index of the block that declares it.
type declared struct{ block, tool int }
