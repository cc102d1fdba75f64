// SPDX-License-Identifier: Apache-2.0

package preamble

import (
	"bytes"
	"cmp"
	"unsafe"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Prompt specifies the order of a chat template and what it renders, as far as it affects where prompts diverge. The
// zero Prompt is the order of package chat.
type Prompt struct {
	// SystemFirst reports that the leading system text comes before the tools. Otherwise the tools come first, as for
	// Claude and in most templates that list them in a first system message.
	SystemFirst bool
	// CallIDs reports that the template renders the IDs of calls, as the templates of Kimi and Mistral do.
	CallIDs bool
}

// segment is one part of the canonical prompt.
type segment struct {
	kind  kind
	role  block.Role
	opens bool // it is the first segment of a turn
	text  string
	name  string // of a tool
	at    block.Ref

	// Not in the prompt.
	id, callID string
	form       block.Form
	cache      bool
	spaced     bool // white space was dropped from the declaration of a tool
}

// same reports whether two segments are equal in the prompt.
func (s *segment) same(o *segment) bool { return s.head(o) && s.text == o.text }

func (s *segment) head(o *segment) bool {
	return s.kind == o.kind && s.role == o.role && s.opens == o.opens
}

// reader converts a request to segments.
type reader struct {
	r        *block.Request
	p        Prompt
	raw      bool // tools as their own JSON: the other request is of the same API
	out      []segment
	joined   []byte         // texts that are not in the request as they are; nothing in it is written again while out is used
	deferred map[string]int // name to index of each deferred tool that was not rendered yet
}

// segments returns the canonical prompt of r, as the package comment describes it.
func segments(r *block.Request, p Prompt, raw bool) []segment {
	turns := codec.SplitInstructions(r.Turns())
	n, size := len(r.Tools()), 0
	for i := range turns {
		n += max(len(turns[i].Blocks), 1)
		for k := range turns[i].Blocks {
			b := &turns[i].Blocks[k]
			n += max(len(b.Content)-1, 0)
			if b.Kind == block.ToolCall {
				size += len(codec.ModelName(r, b.Namespace, b.Name)) + 1 + len(b.Args)
				if p.CallIDs {
					size += len(b.CallID) + 1
				}
			}
		}
	}
	s := reader{r: r, p: p, raw: raw, out: make([]segment, 0, n), joined: make([]byte, 0, size)}
	front := 0
	if p.SystemFirst {
		front = leading(turns)
		for i := range front {
			s.turn(&turns[i])
		}
	}
	s.tools()
	for i := front; i < len(turns); i++ {
		s.turn(&turns[i])
	}
	return s.out
}

func (s *reader) tools() {
	tools := s.r.Tools()
	for i := range tools {
		if t := &tools[i]; !t.Deferred {
			s.out = append(s.out, s.toolSegment(t))
		}
	}
}

func (s *reader) toolSegment(t *block.Tool) segment {
	g := segment{kind: toolSegment, name: cmp.Or(t.ModelName, t.Type), at: t.At, cache: t.Cache != nil}
	g.text, g.spaced = s.tool(t)
	return g
}

// tool returns the text of a tool: its JSON without white space and breakpoints or, for a comparison with another API,
// the fields that all APIs have.
func (s *reader) tool(t *block.Tool) (text string, spaced bool) {
	v, raw := codec.ValueOf(t.At), t.JSON
	if v.Exists() {
		raw = v.Raw()
	}
	if s.raw && len(raw) > 0 {
		return squeeze(raw, v)
	}
	if t.Kind == block.Hosted {
		return t.Type, false
	}
	schema, _ := squeeze(t.Schema, jsonscan.Value{})
	return t.ModelName + "\n" + t.Description + "\n" + schema, false
}

// squeeze returns JSON without white space outside of strings and without the breakpoints of v, which is the parsed
// value of raw or absent. The result may share memory with the document of v.
func squeeze(raw []byte, v jsonscan.Value) (string, bool) {
	var skip [4][2]int // of a tool and of its function
	n := 0
	base, _ := v.Span()
	for _, o := range [...]jsonscan.Value{v, v.Get("function")} {
		if o.Kind() != jsonscan.Object {
			continue
		}
		for _, name := range breakpoints {
			if c := o.Get(name); c.Exists() {
				off, end := c.Span()
				skip[n] = [2]int{off - base, end - base}
				n++
			}
		}
	}
	spaced := jsonscan.Spaced(raw)
	switch {
	case spaced || n > 0:
	case v.Exists():
		return v.RawStr(), false
	default:
		return string(raw), false
	}
	out := make([]byte, 0, len(raw))
	for i, in := 0, false; i < len(raw); i++ {
		cut := false
		for _, x := range skip[:n] {
			if i == x[0] && x[1] > x[0] {
				out = cutMember(out)
				i, cut = x[1]-1, true
			}
		}
		if cut {
			continue
		}
		switch c := raw[i]; {
		case c == '"':
			in = !in
			out = append(out, c)
		case c == '\\' && in && i+1 < len(raw):
			out = append(out, c, raw[i+1])
			i++
		case c <= ' ' && !in:
		case c == ',' && !in && len(out) > 0 && out[len(out)-1] == '{': // the first field was removed
		default:
			out = append(out, c)
		}
	}
	return string(out), spaced
}

// cutMember removes the name of a field, and the comma before it, from the end of out.
func cutMember(out []byte) []byte {
	out = bytes.TrimSuffix(out, []byte(`":`))
	out = out[:bytes.LastIndexByte(out, '"')] // these names contain no quotation mark, even in escaped form
	return bytes.TrimSuffix(out, []byte(","))
}

func (s *reader) turn(t *block.Turn) {
	from := len(s.out)
	for i := range t.Blocks {
		s.block(t, &t.Blocks[i], false)
	}
	if len(s.out) == from {
		s.out = append(s.out, segment{kind: s.kind(t, nil), role: roleOf(t), at: t.At})
	}
	s.out[from].opens = true
	if s.out[from].id == "" {
		s.out[from].id = t.ID
	}
	s.out[from].form |= t.Form & (codec.FormString | codec.FormList)
}

func roleOf(t *block.Turn) block.Role {
	if t.Role == block.RoleTool {
		return block.RoleUser
	}
	return t.Role
}

// kind returns the kind of text in a turn.
func (s *reader) kind(t *block.Turn, b *block.Block) kind {
	switch t.Role {
	case block.RoleSystem, block.RoleDeveloper:
		return systemSegment
	case block.RoleAssistant:
		return assistantSegment
	case block.RoleUser:
		if b != nil && block.IsReminder(b.Text) {
			return reminderSegment
		}
		return userSegment
	}
	return otherSegment
}

func (s *reader) block(t *block.Turn, b *block.Block, result bool) {
	g := segment{role: roleOf(t), at: b.At, id: b.ID, cache: b.Cache != nil}
	switch b.Kind {
	case block.Text, block.Refusal:
		g.kind, g.text = s.kind(t, b), b.Text
	case block.Reasoning:
		if b.Text == "" { // encrypted, or redacted
			return
		}
		g.kind, g.text = reasoningSegment, b.Text
	case block.ToolCall:
		g.kind, g.callID = callSegment, b.CallID
		from := len(s.joined)
		if s.p.CallIDs {
			s.joined = append(append(s.joined, b.CallID...), '\n')
		}
		s.joined = append(append(s.joined, codec.ModelName(s.r, b.Namespace, b.Name)...), '\n')
		s.joined = append(s.joined, b.Args...)
		g.text = unsafe.String(unsafe.SliceData(s.joined[from:]), len(s.joined)-from)
	case block.ToolResult:
		from := len(s.out)
		if s.p.CallIDs || len(b.Content) == 0 {
			s.out = append(s.out, segment{kind: resultSegment, role: g.role, at: b.At})
			if s.p.CallIDs {
				s.out[from].text = b.CallID
			}
		}
		for i := range b.Content {
			s.block(t, &b.Content[i], true)
		}
		if len(s.out) == from {
			s.out = append(s.out, segment{kind: resultSegment, role: g.role, at: b.At})
		}
		f := &s.out[from]
		f.callID, f.form, f.cache, f.id = b.CallID, b.Form, b.Cache != nil || f.cache, b.ID
		return
	case block.Image, block.Audio, block.Video, block.File:
		g.kind, g.text = mediaSegment, media(b.Media)
	case block.Document, block.Citation:
		g.kind, g.text = mediaSegment, b.Name+media(b.Media)
		if len(b.Content) > 0 {
			g.text += codec.JoinText(b.Content, "\n")
		}
	case block.Compaction:
		g.kind, g.text = compactionSegment, b.Text
	case block.ToolReference:
		g.kind, g.text = otherSegment, s.reference(b)
	case block.Instruction: // normally split off before
		g.kind, g.text = systemSegment, codec.JoinText(b.Content, "\n")
	default:
		g.kind, g.text = otherSegment, string(b.JSON)
	}
	if result && g.kind != mediaSegment {
		g.kind = resultSegment
	}
	s.out = append(s.out, g)
}

func media(m *block.Media) string {
	switch {
	case m == nil:
		return ""
	case m.Data != "":
		return m.Data
	case m.URL != "":
		return m.URL
	}
	return m.FileID
}

// reference returns the text of a tool reference, followed by the tool if this is the first reference to it.
func (s *reader) reference(b *block.Block) string {
	text := codec.ReferenceText(b.Name)
	tools := s.r.Tools()
	if s.deferred == nil {
		s.deferred = map[string]int{}
		for i := range tools {
			if tools[i].Deferred {
				s.deferred[tools[i].Name] = i
			}
		}
	}
	if i, ok := s.deferred[b.Name]; ok {
		delete(s.deferred, b.Name)
		decl, _ := s.tool(&tools[i])
		text += "\n" + decl
	}
	return text
}

// where returns the kind of rules that apply to a segment.
func (s *segment) where() where {
	switch s.kind {
	case toolSegment:
		return inTools
	case systemSegment:
		return inSystem
	case userSegment, reminderSegment:
		return inUser
	}
	return 0
}

// stableEnd returns the position of the first fragment that is not static.
func stableEnd(r *block.Request, p Prompt, rules Rules) Stable {
	var off int64
	first := true // no system text yet
	list := segments(r, p, true)
	for i := range list {
		g := &list[i]
		if at, ok := unstable(g, rules, first); ok {
			at.Offset += off
			at.Path = g.at.Path()
			return at
		}
		first = first && g.kind != systemSegment
		off += int64(len(g.text))
	}
	return Stable{Offset: off}
}

// unstable returns the position in a segment of the first fragment that is not static, and whether there is one.
func unstable(g *segment, rules Rules, first bool) (Stable, bool) {
	where := g.where()
	if where == 0 {
		return Stable{Class: classTurn, Cause: causeOf(g.kind)}, true
	}
	if first && g.kind == systemSegment && billingLen(g.text) > 0 {
		return Stable{Class: classVolatile, Cause: causeBillingHeader}, true
	}
	s := scanner{rules: rules, where: where}
	list, mark := s.find(nil, g.text)
	for i := range list {
		if f := &list[i]; f.rule.Class != classStatic {
			return Stable{Offset: int64(f.valOff), Class: f.rule.Class, Cause: f.rule.Cause}, true
		}
	}
	switch {
	case mark >= 0:
		return Stable{Offset: int64(mark), Class: classSession, Cause: causeRelocatedText}, true
	case g.kind == userSegment:
		return Stable{Class: classTurn, Cause: causeUserText}, true
	case g.kind == reminderSegment:
		return Stable{Class: classSession, Cause: causeReminder}, true
	}
	return Stable{}, false
}

// causeOf returns the cause of a difference in a segment of kind k.
func causeOf(k kind) string {
	switch k {
	case toolSegment:
		return causeToolChanged
	case systemSegment:
		return causeSystemEdited
	case userSegment:
		return causeUserText
	case reminderSegment:
		return causeReminder
	case assistantSegment:
		return causeAssistantText
	case reasoningSegment:
		return causeReasoningChanged
	case callSegment:
		return causeCallChanged
	case resultSegment:
		return causeResultChanged
	case mediaSegment:
		return causeMediaChanged
	case compactionSegment:
		return causeCompacted
	}
	return causeHistoryRewritten
}
