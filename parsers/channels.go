// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"bytes"
	"slices"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// headerState is the header of the current message in layout grammar.Channels.
type headerState struct {
	body      bool // inside a message; text outside any is loose
	tool      bool // to a tool: nothing in it is for the user
	field     grammar.Field
	channel   []byte
	recipient []byte
	ctype     []byte
	typed     bool // the content type has a section of its own
}

func (h *headerState) reset() {
	*h = headerState{channel: h.channel[:0], recipient: h.recipient[:0], ctype: h.ctype[:0]}
}

// firstHeader tells whether the output goes on with the header that the prompt began: a recipient or an author may come
// first.
func (p *Parser) firstHeader() bool {
	if len(p.c.g.Channels.Kinds) > 0 {
		p.beginHeader(grammar.Role)
		return true
	}
	for p.lit == 0 && p.pos < len(p.win) && blank(p.win[p.pos]) && p.pos < p.c.g.MaxHold {
		p.pos++
	}
	st, pos := scan.Match(p.win, p.pos, p.c.g.Channels.Recipient, &p.lit)
	if st == scan.More && !p.final {
		p.pos = pos
		return false
	}
	p.lit, p.pos = 0, p.start
	if st == scan.Yes {
		p.header.field, p.from, p.state = grammar.Role, p.start, stHeader
		return true
	}
	p.state = stText
	return true
}

// channelMarker handles the marker that ended a run in layout grammar.Channels.
func (p *Parser) channelMarker(m marker) {
	switch m.role {
	case roleSection:
		p.endMessage()
		p.beginHeader(m.field)
	case roleBody:
		if m.is != 0 {
			p.endMessage()
			if !p.joinable {
				p.endBlock()
			}
			p.start = p.pos
			p.openBody(m.is)
			return
		}
		p.strip() // a body without a header goes on as what it is
	case roleEnd:
		if !p.header.body { // an end without a message
			p.strip()
			return
		}
		p.endMessage()
		p.start = p.pos
		p.newRun()
	}
}

// endMessage ends the run and the message it is in, before the marker at mark.
func (p *Parser) endMessage() {
	p.settle()
	if p.reasoning {
		p.reasoning = false
		p.joinable = p.partKind == event.Reasoning
	} else if p.header.body {
		p.endBlock()
	}
	p.header.body = false
}

func (p *Parser) beginHeader(f grammar.Field) {
	p.start = p.pos
	p.header.reset()
	p.header.field = f
	p.header.typed = f == grammar.Type
	p.from, p.node, p.lit = p.pos, 0, 0
	p.state = stHeader
}

// openBody opens the body of a message behind the marker of its kind. An object says itself where it ends.
func (p *Parser) openBody(is grammar.Content) {
	p.header.body = is != grammar.CallBody
	p.newRun()
	p.node, p.lit = 0, 0
	p.state = stText
	p.reasoning = is == grammar.ReasoningBody
	if is == grammar.CallBody && p.beginCall(p.start) {
		p.beginJSON()
	}
}

// author reads what stands between the marker of a message and that of its kind, which is dropped if it is a name.
// Anything else is text without a frame.
func (p *Parser) author(m int) bool {
	s := p.c.text[0]
	text := p.win[p.from:p.mark]
	ok := p.lit >= len(text) || isName(text[p.lit:])
	p.lit = len(text)
	switch {
	case ok && m < 0 && !p.final && len(text) <= p.c.g.MaxHold:
		return false
	case ok && m >= 0 && len(text) <= p.c.g.MaxHold && s.markers[m].role != roleEnd:
		p.start = p.pos
		if s.markers[m].role == roleSection {
			p.beginHeader(s.markers[m].field)
		} else {
			p.openBody(s.markers[m].is)
		}
		return true
	}
	p.start, p.pos, p.node, p.lit = p.from, p.from, 0, 0
	p.newRun()
	p.state = stText
	return true
}

// headerText reads a section of a header up to the next marker.
func (p *Parser) headerText() bool {
	s := p.c.text[0]
	m := p.find(s)
	h := &p.header
	if m < 0 {
		p.mark = p.free(s)
		if p.final {
			p.mark = len(p.win)
		}
	}
	if len(p.c.g.Channels.Kinds) > 0 {
		return p.author(m)
	}
	if limit := p.from + p.c.g.MaxHold; p.mark > limit { // no header is that long: the rest is body
		p.malformed(limit)
		p.pos, p.node = limit, 0
		return true
	}
	if m < 0 {
		if p.final {
			p.malformed(p.mark)
		}
		return false
	}
	text := p.win[p.from:p.mark]
	switch mk := s.markers[m]; mk.role {
	case roleSection:
		p.section(text)
		h.field = mk.field
		h.typed = h.typed || mk.field == grammar.Type
		p.start, p.from = p.pos, p.pos
		return true
	case roleBody:
		p.section(text)
		p.start = p.pos
		p.route()
		return true
	}
	// The message ends inside its header: what follows the channel's name is its body.
	end := p.pos
	p.malformed(p.mark)
	p.pos, p.node = end, 0
	p.state = stText
	p.endMessage()
	p.start = p.pos
	p.newRun()
	return true
}

// malformed takes a header without a body marker: the channel's name routes what stands behind it, up to window
// position to. A directed message without a body is no call.
func (p *Parser) malformed(to int) {
	h := &p.header
	text := p.win[p.from:to]
	work.Add(len(text))
	n := 0
	for n < len(text) && blank(text[n]) {
		n++
	}
	word := n
	for word < len(text) && !blank(text[word]) {
		word++
	}
	if h.field == grammar.Channel {
		h.channel = append(h.channel[:0], text[n:word]...)
		n = word
		for n < len(text) && blank(text[n]) {
			n++
		}
	}
	p.start = p.from + n
	p.header.body = true
	p.newRun()
	p.state = stText
	if len(h.recipient) > 0 || h.field == grammar.Type || bytes.HasPrefix(text[n:], []byte(p.c.g.Channels.Recipient)) {
		if p.beginCall(p.start) {
			why := event.BadStructure
			if p.final {
				why = event.Truncated
			}
			p.broken(why)
			p.start = to
		}
		return
	}
	if h.field == grammar.Role && p.final { // the stream ends in the author's name
		p.start = to
		return
	}
	p.reasoning = slices.Contains(p.c.g.Channels.Reasoning, string(h.channel))
	p.flush(to, true)
}

// section notes what the text of the current header section says.
func (p *Parser) section(text []byte) {
	h := &p.header
	work.Add(len(text))
	first := true
	for _, w := range bytes.Fields(text) {
		if r, ok := bytes.CutPrefix(w, []byte(p.c.g.Channels.Recipient)); ok {
			h.recipient = append(h.recipient[:0], r...)
			continue
		}
		switch {
		case h.field == grammar.Channel && first:
			h.channel = append(h.channel[:0], w...)
		case h.field == grammar.Type, h.field == grammar.Channel:
			h.ctype = append(h.ctype[:0], w...)
		}
		first = false
	}
}

// route opens the body of a message: a recipient makes it a call, else the channel decides.
func (p *Parser) route() {
	h := &p.header
	c := p.c.g.Channels
	h.body = true
	p.newRun()
	p.node = 0
	switch to := string(h.recipient); {
	case slices.Contains(c.ToReasoning, to):
		p.reasoning = true
		p.state = stText
	case to == "" || slices.Contains(c.ToText, to):
		p.routeChannel()
	case p.c.tag != nil:
		h.tool = true
		p.state, p.in.block = stMessage, true
	default:
		if !p.beginCall(p.start) {
			return
		}
		name, declared := bytes.CutPrefix(h.recipient, []byte(c.ToolPrefix))
		p.call.name = append(p.call.name, name...)
		if len(name) == 0 {
			p.broken(event.BadName)
			return
		}
		p.lex.Reset()
		p.state = stArgs
		if !declared && p.toolNamed(name) == nil && string(h.ctype) != "json" { // a tool of the model's own
			p.call.flags |= event.Custom
		}
		p.startCall(p.start)
		if p.call.flags.Has(event.Custom) {
			p.state = stRaw
		}
	}
}

// routeChannel opens the body of a message without a recipient.
func (p *Parser) routeChannel() {
	h := &p.header
	c := p.c.g.Channels
	switch {
	case h.typed && string(h.ctype) == "json" && !p.want &&
		!slices.Contains(c.Reasoning, string(h.channel)) && !slices.Contains(c.Text, string(h.channel)):
		// Arguments without a recipient: a call to nobody.
		if p.beginCall(p.start) {
			p.broken(event.BadName)
		}
	default:
		p.reasoning = slices.Contains(c.Reasoning, string(h.channel))
		p.state = stText
	}
}

// noObject handles a body of arguments that does not begin with an object: an end marker at once means that there are
// none.
func (p *Parser) noObject() bool {
	if p.c.ends == nil {
		return p.broken(event.BadArguments)
	}
	m, st := p.expect(p.c.ends)
	switch {
	case st == scan.More && !(p.final && p.terse):
		return false
	case st == scan.No:
		return p.broken(event.BadArguments)
	}
	p.arguments(p.made([]byte("{}")), p.anchor)
	p.call.flags |= event.Recovered
	if st == scan.More {
		p.endCall(len(p.win), 0)
		return false
	}
	p.messageEnd(p.c.ends.markers[m])
	return true
}

// endOfMessage waits, behind complete arguments, for the marker that ends the call.
func (p *Parser) endOfMessage() bool {
	switch {
	case p.c.layout == elements:
		return p.elementCall()
	case p.c.tag != nil:
		return p.endOfCall()
	}
	m, st := p.expect(p.c.ends)
	if st == scan.More {
		if p.final && p.terse {
			p.endCall(len(p.win), 0)
			p.start = len(p.win)
			return false
		}
		if p.anchor-p.start > p.c.g.MaxHold {
			p.start = p.anchor
		}
		return false
	}
	if st == scan.No {
		return p.broken(event.BadArguments)
	}
	p.messageEnd(p.c.ends.markers[m])
	return true
}

// messageEnd completes the call whose message the marker before pos ends. A new header ends it too.
func (p *Parser) messageEnd(m marker) {
	p.header.body = false
	p.state = stText
	if m.role == roleSection {
		p.endCall(p.mark, event.Recovered)
		p.beginHeader(m.field)
		return
	}
	p.endCall(p.pos, 0)
	p.start = p.pos
	p.newRun()
}

// rawText forwards arguments that are free text, up to the end of the message.
func (p *Parser) rawText() bool {
	s := p.c.ends
	m := p.find(s)
	to := p.mark
	if m < 0 {
		to = p.whole(p.start, p.free(s))
	}
	p.verbatim(to)
	if m < 0 {
		if p.final && p.terse {
			p.verbatim(len(p.win))
			p.endCall(len(p.win), 0)
		}
		return false
	}
	p.messageEnd(s.markers[m])
	return true
}

// skipMessage drops the rest of a message whose call was aborted.
func (p *Parser) skipMessage() bool {
	if p.c.layout == elements {
		return p.skipElement()
	}
	s := p.c.ends
	m := p.find(s)
	if m < 0 {
		p.start = p.free(s)
		return false
	}
	p.header.body = false
	p.start = p.pos
	p.newRun()
	p.state = stText
	if s.markers[m].role == roleSection {
		p.beginHeader(s.markers[m].field)
	}
	return true
}

// messageBody opens the block of calls in a message to a tool, in families that write one there.
func (p *Parser) messageBody() bool {
	if p.want && p.node == 0 && p.beginGuided() {
		p.in.block = false
		return true
	}
	m, st := p.expect(p.c.body)
	switch {
	case st == scan.More && !p.final:
		return false
	case st == scan.More:
		p.mark = p.anchor
	}
	at := p.mark
	if st == scan.No {
		at = p.pos
	}
	if st != scan.Yes {
		p.in.block = false
		p.start = at
		if p.lastCall { // there was a call: what follows is for nobody
			p.newRun()
			p.state = stText
			return st == scan.No
		}
		if p.beginCall(at) {
			why := event.BadStructure
			if st == scan.More {
				why = event.Truncated
			}
			p.call.name = append(p.call.name, p.header.recipient...)
			p.abort(why, at)
			p.state = stSkip
		}
		return st == scan.No
	}
	p.start, p.openAt = p.mark, p.mark
	p.in.wrapper = p.c.body.markers[m].role == roleWrapOpen
	p.state = stOpened
	if !p.in.wrapper {
		p.beginName()
	}
	return true
}
