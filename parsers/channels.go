// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"bytes"
	"slices"
	"strings"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// channels is layout grammar.Channels: messages, each with a header that routes its body. Calls inside a message may be
// blocks in tags.
type channels struct {
	tagged
	marks       channelSets
	header      headerState
	callsBefore int32 // calls before the message to a tool
	owed        bool  // no call was found in it: the open call is the message
}

// channelSets are the marker sets of the states of layout channels.
type channelSets struct {
	all    *markerSet // what ends a run of text
	ends   *markerSet // what ends the body of a message
	routed bool       // each kind of body has its own marker that ends the header

	toReasoning, toText []string // the recipients whose messages are reasoning and text
}

// headerState is the header of the current message.
type headerState struct {
	field     grammar.Field
	author    []byte
	channel   []byte
	recipient []byte
	ctype     []byte
	typed     bool // the content type has a section of its own
}

func (h *headerState) reset() {
	*h = headerState{author: h.author[:0], channel: h.channel[:0], recipient: h.recipient[:0], ctype: h.ctype[:0]}
}

// The roles of markers.
const (
	roleSection role = roleNone + 1 + iota
	roleBody
	roleEnd
	roleRecipient // what comes before a recipient, in reasoning that a header without its first marker may end
)

// The states of layout channels.
const (
	stFirst      state = stTagged + iota // the implied first header
	stHeader                             // a header
	stRaw                                // the body of a call: free text
	stMessage                            // at the beginning of a message to a tool
	stAfter                              // after the arguments, before the end marker
	stBareHeader                         // after what comes before a recipient, in reasoning
)

// begin implements layout.
func (p *channels) begin(start Start) {
	switch start {
	case StartReasoning:
		p.reasoning, p.echoable, p.thought = true, true, true
		p.framed = true
	case StartResponse:
		p.framed = true
	default:
		p.state = stFirst
	}
}

// advance implements layout.
func (p *channels) advance() bool {
	switch p.state {
	case stHeader:
		return p.headerText()
	case stRaw:
		return p.rawText()
	case stMessage:
		return p.messageBody()
	case stAfter:
		return p.endOfMessage()
	case stFirst:
		return p.firstHeader()
	case stBareHeader:
		return p.bareHeader()
	case stSkip:
		if p.tag == nil || !p.inMessage {
			return p.skipMessage()
		}
		return p.skipToCall()
	}
	return p.tagged.advance()
}

// jsonEnded implements layout.
func (p *channels) jsonEnded(how jsonEnd) bool {
	switch {
	case how == jsonNone:
		return p.noObject()
	case p.tag != nil:
		return p.tagged.jsonEnded(how)
	case how == jsonBad:
		return p.broken(event.BadArguments)
	}
	p.state, p.node = stAfter, 0
	return true
}

// afterBlock implements layout. Another block may follow in a message to a tool.
func (p *channels) afterBlock() {
	p.tagged.afterBlock()
	if p.inMessage {
		p.node, p.state = 0, stMessage
	}
}

// reset implements layout.
func (p *channels) reset() {
	p.tagged.reset()
	p.header.reset()
}

// kept implements layout.
func (p *channels) kept() int {
	return p.tagged.kept() + cap(p.header.author) + cap(p.header.channel) + cap(p.header.recipient) + cap(p.header.ctype)
}

// firstHeader reports whether the output continues the header at the end of the prompt: a recipient or an author may
// come first.
func (p *channels) firstHeader() bool {
	if p.marks.routed {
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

// marker implements layout.
func (p *channels) marker(m marker) {
	switch m.role {
	case roleSection:
		p.endMessage()
		p.beginHeader(grammar.Field(m.data))
	case roleBody:
		if m.data != 0 {
			p.endMessage()
			if !p.joinable {
				p.endBlock()
			}
			p.start = p.pos
			p.header.reset()
			p.openBody(grammar.Field(m.data))
			return
		}
		p.strip() // a body without a header continues the current run
	case roleEnd:
		if !p.framed { // the end of a message that was not opened
			p.strip()
			return
		}
		p.endMessage()
		p.start = p.pos
		p.newRun()
	case roleRecipient:
		last := p.last
		if p.mark > p.start {
			last = p.win[p.mark-1]
		}
		if blank(last) || p.mark == p.start && !p.runOpen {
			p.flush(p.mark, true)
			p.openAt, p.from, p.lit = p.mark, p.pos, 0
			p.state = stBareHeader
		}
	}
}

// bareHeader ends reasoning if a recipient and the marker of a body follow: the header of a message whose first marker
// is missing.
func (p *channels) bareHeader() bool {
	for p.lit == 0 && p.pos < len(p.win) && p.win[p.pos] != '<' && !blank(p.win[p.pos]) && p.pos-p.from < p.c.g.MaxHold {
		work.Add(1)
		p.pos++
	}
	body := p.c.g.Channels.Body.Text
	at := p.pos - p.lit
	st, end := scan.Match(p.win, p.pos, body, &p.lit)
	if st == scan.More && !p.final {
		p.pos = end
		return false
	}
	p.lit = 0
	if st != scan.Yes || at == p.from || !p.is(body, end) {
		p.pos, p.node, p.state = at, 0, stText
		return true
	}
	p.header.reset()
	p.header.recipient = append(p.header.recipient, p.win[p.from:at]...)
	p.mark = p.openAt
	p.endMessage()
	p.start, p.pos = end, end
	p.route()
	return true
}

// endMessage ends the run and the message it is in, before the marker at mark.
func (p *channels) endMessage() {
	p.closeRun()
	if p.reasoning {
		p.reasoning = false
		if p.joinable = p.rules.joinThoughts && p.partKind == event.Reasoning; !p.joinable {
			p.endBlock()
		}
	} else if p.framed {
		p.endBlock()
	}
	p.framed = false
}

func (p *channels) beginHeader(f grammar.Field) {
	p.start = p.pos
	p.header.reset()
	p.framed, p.mute = false, false
	p.header.field = f
	p.header.typed = f == grammar.Type
	p.from, p.node, p.lit = p.pos, 0, 0
	p.state = stHeader
}

// openBody opens the body of a message after the marker of its kind. An object determines its own end.
func (p *channels) openBody(is grammar.Field) {
	if is == grammar.TextCallBody && len(p.header.author) == 0 {
		is = grammar.TextBody
	}
	p.framed = is < grammar.CallBody
	p.newRun()
	p.node, p.lit = 0, 0
	p.state = stText
	p.reasoning = is == grammar.ReasoningBody
	switch {
	case is == grammar.CallBody && p.beginCall(p.start):
		p.beginJSON()
	case is == grammar.TextCallBody && p.beginCall(p.start):
		p.call.name = append(p.call.name, p.header.author...)
		p.call.flags |= event.Custom
		p.startCall(p.start)
		p.state = stRaw
	}
}

// author reads the bytes between the marker of a message and the marker of its kind. They are dropped if they are a
// name, and are otherwise text without a frame.
func (p *channels) author(m int) bool {
	s := p.marks.all
	text := p.win[p.from:p.mark]
	ok := p.lit >= len(text) || isName(text[p.lit:])
	p.lit = len(text)
	switch {
	case ok && m < 0 && !p.final && len(text) <= p.c.g.MaxHold:
		return false
	case ok && m >= 0 && len(text) <= p.c.g.MaxHold && s.markers[m].role != roleEnd:
		p.start = p.pos
		if s.markers[m].role == roleSection {
			p.beginHeader(grammar.Field(s.markers[m].data))
		} else {
			p.header.author = append(p.header.author[:0], text...)
			p.openBody(grammar.Field(s.markers[m].data))
		}
		return true
	}
	p.start, p.pos, p.node, p.lit = p.from, p.from, 0, 0
	p.newRun()
	p.state = stText
	return true
}

// headerText reads a section of a header up to the next marker.
func (p *channels) headerText() bool {
	s := p.marks.all
	m := p.find(s)
	h := &p.header
	if m < 0 {
		p.mark = p.free(s)
		if p.final {
			p.mark = len(p.win)
		}
	}
	if p.marks.routed {
		return p.author(m)
	}
	if limit := p.from + p.c.g.MaxHold; p.mark > limit { // headers are shorter: the rest is the body
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
		h.field = grammar.Field(mk.data)
		h.typed = h.typed || h.field == grammar.Type
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

// malformed handles a header without a body marker: the bytes after the channel's name, up to window position to,
// belong to that channel. A message to a recipient without a body is not a call.
func (p *channels) malformed(to int) {
	h := &p.header
	text := p.win[p.from:to]
	work.Add(len(text))
	n := 0
	for n < len(text) && blank(text[n]) {
		n++
	}
	word := n
	for word < len(text) && channelChar(text[word]) {
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
	p.framed = true
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

// channelChar reports whether the name of a channel can have the byte c.
func channelChar(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// section records the text of the current header section.
func (p *channels) section(text []byte) {
	h := &p.header
	work.Add(len(text))
	first := true
	for _, w := range bytes.Fields(text) {
		if r, ok := bytes.CutPrefix(w, []byte(p.c.g.Channels.Recipient)); ok {
			h.recipient = append(h.recipient[:0], r...)
			continue
		}
		switch {
		case h.field == grammar.Role && first:
			h.author = append(h.author[:0], w...)
		case h.field == grammar.Channel && first:
			h.channel = append(h.channel[:0], w...)
		case h.field == grammar.Type, h.field == grammar.Channel:
			h.ctype = append(h.ctype[:0], w...)
		}
		first = false
	}
}

// route opens the body of a message: a recipient makes it a call, else the channel decides.
func (p *channels) route() {
	h := &p.header
	c := p.c.g.Channels
	p.framed = true
	p.newRun()
	p.node = 0
	switch to := string(h.recipient); {
	case c.ToolPrefix != "" && bytes.HasPrefix(h.author, []byte(c.ToolPrefix)): // the model invents a tool's result
		p.mute = true
		p.state = stText
	case slices.Contains(p.marks.toReasoning, to):
		p.reasoning = true
		p.state = stText
	case to == "" || slices.Contains(p.marks.toText, to):
		p.routeChannel()
	case p.tag != nil:
		p.mute = true
		p.state, p.inMessage, p.callsBefore, p.owed = stMessage, true, p.calls, false
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
func (p *channels) routeChannel() {
	h := &p.header
	c := p.c.g.Channels
	switch {
	case h.typed && string(h.ctype) == "json" && !p.want &&
		!slices.Contains(c.Reasoning, string(h.channel)) && !slices.Contains(c.Text, string(h.channel)):
		// Arguments without a recipient: the call has no tool.
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
func (p *channels) noObject() bool {
	m, st := p.expect(p.marks.ends)
	switch {
	case st == scan.More && !(p.final && p.terse):
		return false
	case st == scan.No:
		return p.noArguments() || p.broken(event.BadArguments)
	}
	p.arguments(p.made([]byte("{}")), p.anchor)
	p.call.flags |= event.Recovered
	if st == scan.More {
		p.endCall(len(p.win), 0)
		return false
	}
	p.messageEnd(p.marks.ends.markers[m])
	return true
}

// endOfMessage waits, after complete arguments, for the marker that ends the call.
func (p *channels) endOfMessage() bool {
	m, st := p.expect(p.marks.ends)
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
	p.messageEnd(p.marks.ends.markers[m])
	return true
}

// messageEnd completes the call whose message the marker before pos ends. A new header ends it too.
func (p *channels) messageEnd(m marker) {
	p.framed = false
	p.state = stText
	if m.role == roleSection {
		p.endCall(p.mark, event.Recovered)
		p.beginHeader(grammar.Field(m.data))
		return
	}
	p.endCall(p.pos, 0)
	p.start = p.pos
	p.newRun()
}

// rawText forwards arguments that are free text, up to the end of the message.
func (p *channels) rawText() bool {
	s := p.marks.ends
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
func (p *channels) skipMessage() bool {
	s := p.marks.ends
	m := p.find(s)
	if m < 0 {
		p.start = p.free(s)
		return false
	}
	p.framed = false
	p.start = p.pos
	p.newRun()
	p.state = stText
	if s.markers[m].role == roleSection {
		p.beginHeader(grammar.Field(s.markers[m].data))
	}
	return true
}

// messageBody opens the next block of calls in a message to a tool, in families that write one there. Anything else is
// skipped.
func (p *channels) messageBody() bool {
	if p.want && p.node == 0 && p.beginGuided() {
		p.inMessage = false
		return true
	}
	m, st := p.expect(p.sets.opens)
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
		p.start = at
		if p.calls == p.callsBefore { // a broken call, unless one follows
			if !p.beginCall(at) {
				return false
			}
			p.owed = true
			p.call.name = append(p.call.name[:0], p.header.recipient...)
		}
		p.state = stSkip
		return st == scan.No
	}
	p.foundCall()
	p.start, p.openAt = p.mark, p.mark
	p.wrapper = p.sets.opens.markers[m].role == roleWrapOpen
	p.state = stOpened
	if !p.wrapper {
		p.beginName()
	}
	return true
}

// skipToCall reads on to the next call in a message to a tool. A message without any is a broken call.
func (p *channels) skipToCall() bool {
	again := p.skip()
	switch p.state {
	case stSkip, stMessage:
	case stText: // the message ended
		if p.owed {
			p.owed = false
			p.abort(event.BadStructure, p.mark)
		}
	default:
		p.foundCall()
	}
	return again
}

// foundCall discards the broken call that the message was before a call in it was found.
func (p *channels) foundCall() {
	if p.owed {
		p.owed = false
		p.cancelCall()
	}
	p.call.name = p.call.name[:0]
}

// recipients returns the names of routes that are recipients, which begin with prefix.
func recipients(routes []string, prefix string) (names []string) {
	for _, r := range routes {
		if name, ok := strings.CutPrefix(r, prefix); ok && prefix != "" {
			names = append(names, name)
		}
	}
	return names
}

// compileChannels compiles a grammar of layout channels; nil if g has another one.
func compileChannels(g *grammar.Grammar) *compiled {
	ch := g.Channels
	if ch == nil {
		return nil
	}
	var all, ends, around []marker
	sets := channelSets{toReasoning: recipients(ch.Reasoning, ch.Recipient), toText: recipients(ch.Text, ch.Recipient)}
	for _, s := range ch.Sections {
		m := mk(s.Marker, roleSection)
		m.data = uint8(s.Field)
		if s.Field >= grammar.TextBody {
			m.role, sets.routed = roleBody, true
		} else {
			ends = append(ends, m)
		}
		all = append(all, m)
	}
	all = append(all, mk(ch.Body, roleBody))
	for _, e := range ch.Ends {
		all = append(all, mk(e, roleEnd))
		ends = append(ends, mk(e, roleEnd))
	}
	for _, m := range ends {
		m.role = roleAround
		around = append(around, m)
	}
	sets.all, sets.ends = newSet(all...), newSet(ends...)
	c := newCompiled(g, sets.all)
	c.frames, c.hasReasoning = true, true
	if ch.Calls != nil && ch.Recipient != "" {
		c.leaving = newSet(append(slices.Clip(all), marker{text: ch.Recipient, role: roleRecipient})...)
	}
	var tag *grammar.Tagged
	var tags *tagSets
	switch {
	case ch.Calls != nil:
		tag, tags = ch.Calls, c.compileTags(ch.Calls, around)
	case ch.Object != nil:
		tag, tags = &grammar.Tagged{Close: ch.Ends[0], Body: grammar.Body{Call: ch.Object}}, &tagSets{callClose: newSet()}
	}
	c.newLayout = func(m *machine) layout {
		l := &channels{tagged: tagged{machine: m}, marks: sets}
		if tag != nil {
			l.setTags(tag, tags)
		}
		return l
	}
	c.startAfter = func(prompt string) Start { return startOfMessage(ch, prompt) }
	return c
}

// startOfMessage reads the header that ends a prompt.
func startOfMessage(c *grammar.Channels, prompt string) Start {
	for _, s := range c.Sections {
		if s.Field >= grammar.TextBody && strings.HasSuffix(prompt, s.Marker.Text) {
			switch s.Field {
			case grammar.ReasoningBody:
				return StartReasoning
			case grammar.TextBody:
				return StartResponse
			}
			return StartTurn
		}
	}
	if c.Body.Text == "" {
		return StartTurn
	}
	header, ok := strings.CutSuffix(prompt, c.Body.Text)
	if !ok {
		return StartTurn
	}
	last, field := -1, grammar.Role
	for _, s := range c.Sections {
		if i := strings.LastIndex(header, s.Marker.Text); i >= 0 && i+len(s.Marker.Text) > last {
			last, field = i+len(s.Marker.Text), s.Field
		}
	}
	words := strings.Fields(header[max(last, 0):])
	for _, w := range words {
		if strings.HasPrefix(w, c.Recipient) {
			switch {
			case slices.Contains(c.Reasoning, w):
				return StartReasoning
			case slices.Contains(c.Text, w):
				return StartResponse
			}
			return StartTurn
		}
	}
	if field == grammar.Channel && len(words) > 0 && slices.Contains(c.Reasoning, words[0]) {
		return StartReasoning
	}
	return StartResponse
}
