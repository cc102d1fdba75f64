// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/text"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// taggedMarker handles the marker of role r that ended a run of text or reasoning in layout grammar.Tagged.
// A marker that is data needs nothing: pos is behind it and start before it.
func (p *Parser) taggedMarker(r role) {
	t := p.c.tag
	switch r {
	case roleReasonOpen:
		switch {
		case !p.reasoning:
			p.settle()
			p.openReasoning(t.Reasoning)
		case p.echoable && p.untouched():
			p.start, p.echoable = p.pos, false
			p.trim, p.label = t.Reasoning.Lead, t.Reasoning.Label
		}
	case roleReasonClose:
		switch {
		case p.reasoning:
			p.closeReasoning(t.Reasoning.After)
		case p.thought, t.Reasoning.Close.Token && !p.opt.Policy.KeepOrphans:
			p.strip()
		}
	case roleBreak:
		p.pos = p.mark
		p.breakOut()
		p.newRun()
	case roleTurn:
		p.settle()
		p.start = p.pos
		p.newRun()
	case roleWrapClose, roleCallClose:
		if !p.opt.Policy.KeepOrphans && !p.closesText() {
			p.strip()
		}
	case roleBare:
		if p.off(p.mark) < p.dead || p.pos < len(p.win) && !blank(p.win[p.pos]) && !nameStart(p.win[p.pos]) {
			return // most brackets
		}
		p.holdOpener()
		p.beginBareList()
	case roleWrapOpen, roleCallOpen:
		p.holdOpener()
		p.in.wrapper = r == roleWrapOpen
		p.state = stOpened
	}
}

// holdOpener holds what stands at mark, since it may begin a call.
func (p *Parser) holdOpener() {
	if !p.untouched() {
		p.flush(p.beforeBlock(p.mark), true)
	}
	p.openAt, p.openEnd, p.lit = p.mark, p.pos, 0
	p.call.name, p.call.id = p.call.name[:0], p.call.id[:0]
}

// closesText reports whether the closing marker at mark ends something that was left as text: an opening tag that no
// call followed, or a call whose own opening tag was lost. It stays with what it closes then.
func (p *Parser) closesText() bool {
	last := p.last
	if at := p.beforeBlock(p.mark); at > p.start {
		last = p.win[at-1]
	}
	if !p.reasoning && p.c.tag.Body.Call != nil && (last == '}' || last == ']') {
		p.quoting = true
	}
	return p.quoting
}

// untouched reports whether the run before mark is empty, or white space that was not emitted.
func (p *Parser) untouched() bool {
	p.trimLead(p.mark)
	return !p.runOpen && (p.start >= p.mark || p.blankRun(p.mark))
}

// beforeBlock returns the end of the text before a block whose marker is at window position at, less the structural
// white space between them.
func (p *Parser) beforeBlock(at int) int {
	if p.reasoning {
		return at
	}
	return p.unpadded(at)
}

// commit accepts the markup at openAt as a call: the run before it ends. It reports false at the call limit.
func (p *Parser) commit() bool {
	name := append(p.spare[:0], p.call.name...)
	p.spare = name
	p.endRun()
	ok := p.beginCall(p.openAt)
	p.call.name = append(p.call.name, name...)
	return ok
}

// endRun ends the run before the markup at openAt.
func (p *Parser) endRun() {
	p.mark = p.openAt
	p.dropBlanks(p.mark)
	p.flush(p.beforeBlock(p.mark), true)
	if p.reasoning && (p.c.tag.Reasoning.CallEnds || p.opt.Policy.BreakOut) {
		p.breakOut()
	}
	p.start = max(p.start, p.mark)
	p.newRun()
}

// breakOut ends reasoning at mark, where a call begins instead of the closing tag.
func (p *Parser) breakOut() {
	at := p.pos
	p.pos = p.mark
	p.closeReasoning("")
	p.pos = at
}

// opened decides, behind an opening tag, whether a call follows. Until it knows, the tag may be prose.
func (p *Parser) opened() bool {
	if p.want && p.node == 0 && p.openGuided() {
		return true
	}
	t := p.c.tag
	m, st := -1, scan.No
	if p.in.wrapper && t.Open.Text != "" {
		m, st = p.expect(p.c.callOpen)
	} else {
		p.skipBlanks()
		p.anchor = p.pos
		if p.pos < len(p.win) && t.Open.Text != "" && t.Open.Text[0] == '[' && p.win[p.pos] == '[' { // the tag again, or a list
			again, at := scan.Match(p.win, p.pos+p.lit, t.Open.Text, &p.lit)
			if again == scan.More && !p.final {
				return false
			}
			if p.lit = 0; again == scan.Yes && at-p.openAt <= p.c.g.MaxHold {
				p.pos = at
				return true
			}
		}
		switch {
		case p.pos == len(p.win):
			st = scan.More
		case t.Body.Call != nil && t.Body.Call.Python:
			if p.win[p.pos] == '[' && p.pos-p.openAt <= p.c.g.MaxHold {
				p.openLiteral()
				return true
			}
		case p.pos-p.openAt > p.c.g.MaxHold:
		case t.Body.Call != nil && p.win[p.pos] == '[' && t.Body.Codec != nil: // either kind of list
			if st = p.listOfObjects(p.pos); st == scan.No {
				p.in.list = true
				p.pos++
				p.beginName()
				return true
			}
		case t.Body.Call != nil && (p.win[p.pos] == '{' || p.win[p.pos] == '['):
			st = scan.Yes
		case t.Name != nil:
			if p.in.wrapper && p.win[p.pos] == '[' { // a list of calls without tags of their own
				p.in.list = true
				p.pos++
			}
			p.beginName()
			p.from = p.pos
			return true
		}
	}
	if p.anchor-p.openAt > p.c.g.MaxHold {
		p.pos, p.node, st = p.anchor, 0, scan.No
	}
	switch st {
	case scan.More:
		if !p.final {
			return false
		}
		if !p.in.wrapper && !t.Open.Token && (t.Quoted || t.Name != nil) {
			return p.doubt(p.pos)
		}
		return p.truncatedOpener() // the stream ends in or behind the opening tag
	case scan.No:
		return p.doubt(p.pos)
	}
	if m < 0 && t.Quoted && p.win[p.pos] == '[' { // a word that is prose too: a list of objects must follow
		i := p.pos + 1
		for i < len(p.win) && blank(p.win[i]) && i-p.pos < p.c.g.MaxHold {
			i++
		}
		switch {
		case i == len(p.win) && !p.final:
			return false
		case i == len(p.win) && t.Open.Token:
			return p.truncatedOpener()
		case i == len(p.win) || p.win[i] != '{' && !(p.win[i] == ']' && t.Open.Token):
			return p.doubt(p.pos)
		}
	}
	if m < 0 && p.c.tag.Body.Call.Strict {
		switch p.peekCall(p.pos) {
		case scan.More:
			if !p.final {
				return false
			}
		case scan.No:
			return p.doubt(p.pos)
		}
	}
	if !p.commit() {
		return false
	}
	p.start = p.pos
	if m >= 0 {
		p.beginName()
		return true
	}
	p.beginCalls()
	return true
}

// beginCalls begins to read the call object, or the list of them, at pos.
func (p *Parser) beginCalls() {
	if p.in.list = p.win[p.pos] == '['; p.in.list {
		p.pos++
		p.state, p.step = stList, listFirst
		return
	}
	p.beginJSON()
}

// doubt looks on, from window position from, behind an opening tag that no call follows.
func (p *Parser) doubt(from int) bool {
	if p.in.block { // in a message to a tool nothing is prose
		return p.commit() && p.broken(event.BadStructure)
	}
	if p.in.list {
		from = min(from, p.anchor) // the bracket may begin something else
	}
	p.suspected = p.in.wrapper && p.c.tag.Wrapper.Open.Token || !p.in.wrapper && p.c.tag.Open.Token
	p.in.wrapper, p.in.list = false, false
	p.call.name, p.call.id = p.call.name[:0], p.call.id[:0]
	p.pos, p.node = from, 0
	p.state = stSuspect
	if p.c.tag.Quoted {
		p.quoting = true
		p.from = p.start
		p.state = stText
	}
	return true
}

// suspect looks on behind an opening tag that no call follows. If its closing tag comes soon it was a broken call,
// whose markup nobody should see; otherwise it was prose.
func (p *Parser) suspect() bool {
	s := p.textSet()
	m := p.find(s)
	if m < 0 {
		p.mark = p.free(s)
	}
	far := p.mark-p.openAt > p.c.g.MaxHold
	if m >= 0 && !far && s.markers[m].role == roleBare {
		return true
	}
	if m >= 0 && !far && (s.markers[m].role == roleCallClose || s.markers[m].role == roleWrapClose) {
		end := p.pos
		if s.markers[m].role == roleWrapClose && p.mark == p.anchor { // an empty block
			p.mark = p.openAt
			p.dropBlanks(p.mark)
			p.flush(p.beforeBlock(p.mark), true)
			p.newRun()
			p.pos = end
			p.afterBlock()
			return true
		}
		if !p.commit() {
			return false
		}
		p.abort(event.BadStructure, end)
		p.afterBlock()
		return true
	}
	if r := roleNone; m >= 0 && !far {
		if r = s.markers[m].role; (r == roleCallOpen || r == roleWrapOpen) && p.suspected && p.blankSince(p.openEnd) {
			p.dropOpener()
			return true
		}
	}
	if m >= 0 || far || p.final {
		if m >= 0 {
			p.pos = p.mark
		}
		p.from = p.start
		p.quoting = true
		p.state = stText
		return true
	}
	return false
}

// blankSince reports whether nothing but white space stands between window position from and mark.
func (p *Parser) blankSince(from int) bool {
	for _, c := range p.win[max(from, 0):p.mark] {
		if !blank(c) {
			return false
		}
	}
	return true
}

// dropOpener drops the opening tag at openAt, behind which another one follows: it was written twice.
func (p *Parser) dropOpener() {
	again := p.mark
	p.mark = p.openAt
	p.dropBlanks(p.mark)
	p.flush(p.mark, true)
	p.start = max(p.start, p.openEnd)
	p.pos, p.node = again, 0
	p.from = p.start
	p.state = stText
}

// afterBlock goes back to the run that a block interrupted: text, or reasoning if the call stood inside it.
func (p *Parser) afterBlock() {
	p.start = p.pos
	p.in.wrapper, p.in.list = false, false
	p.newRun()
	p.state = stText
	if p.in.block { // another block may follow in the message
		p.node, p.state = 0, stMessage
	}
}

// afterCall goes on behind a complete call.
func (p *Parser) afterCall() {
	p.start, p.node = p.pos, 0
	p.state = stClosing
	if p.c.closing == nil && !p.in.list && (p.c.tag.Body.Call == nil || p.c.tag.Body.Call.Sep == "") {
		p.afterBlock()
	}
}

// closing reads on behind a call until its block ends or another call begins. A block that is not closed ends at the
// first thing that cannot belong to it, so that no text is lost.
func (p *Parser) closing() bool {
	if p.node == 0 && p.nextInBlock() {
		waits := p.waiting
		p.waiting = false
		return p.err == nil && !waits
	}
	s := p.c.closing
	if s == nil {
		if p.pos == len(p.win) && !p.final && p.pos-p.start <= p.c.g.MaxHold {
			return false
		}
		p.pos = p.start
		p.afterBlock()
		return true
	}
	m, st := p.expect(s)
	if p.anchor-p.start > p.c.g.MaxHold {
		st = scan.No
	}
	switch st {
	case scan.More:
		if !p.final {
			return false
		}
		if p.node != 0 { // the beginning of a marker
			p.start = len(p.win)
			return false
		}
		fallthrough // what is left is white space
	case scan.No:
		p.node, p.pos = 0, p.anchor
		p.in.wrapper, p.in.list = false, false
		p.newRun()
		p.state = stText
		return true
	}
	switch {
	case s.markers[m].role == roleCallOpen:
		if !p.beginCall(p.mark) {
			return false
		}
		p.start = p.pos
		p.beginName()
	case s.markers[m].role == roleCallClose && p.in.wrapper:
		p.start = p.pos
	default:
		p.afterBlock()
	}
	return true
}

// nextInBlock handles what may stand, besides tags, between calls of one block: separators, the end of a list, the
// next call where calls have no tags. It reports whether the state has changed.
func (p *Parser) nextInBlock() bool {
	t := p.c.tag
	call := t.Body.Call
	for p.pos < len(p.win) {
		c := p.win[p.pos]
		work.Add(1)
		switch {
		case blank(c):
		case p.pos-p.start > p.c.g.MaxHold:
			return false
		case p.in.list && c == ']':
			p.in.list = false
			p.start = p.pos + 1
		case t.Open.Text == "" && c == ',', call != nil && t.Close.Text != "" && (c == ',' || c == '}'),
			call != nil && call.Sep != "" && c == call.Sep[0]:
		case call != nil && c == '{':
			if t.Close.Text == "" && !p.in.list { // nothing but its beginning tells it from text
				switch p.peekCall(p.pos) {
				case scan.More:
					if !p.final {
						p.waiting = true
						return true
					}
					return false
				case scan.No:
					return false
				}
			}
			p.start = p.pos
			if p.beginCall(p.pos) {
				p.beginJSON()
			}
			return true
		case t.Open.Text == "" && p.in.wrapper && nameStart(c):
			p.start = p.pos
			if p.beginCall(p.pos) {
				p.beginName()
			}
			return true
		default:
			return false
		}
		p.pos++
	}
	return false
}

// nameStart reports whether c can begin the name of a function.
func nameStart(c byte) bool { return text.NameStart(c) }

// skip drops markup that cannot be read, up to where a call or block ends or the next one begins.
func (p *Parser) skip() bool {
	if p.c.tag == nil || p.c.layout == channels && !p.in.block {
		return p.skipMessage()
	}
	s := p.c.resync[0]
	if p.reasoning {
		s = p.c.resync[1]
	}
	m := p.find(s)
	if m < 0 {
		p.start = p.free(s)
		if p.final {
			p.start = len(p.win)
		}
		return false
	}
	p.start = p.mark
	p.newRun()
	p.openAt = p.mark
	switch s.markers[m].role {
	case roleReasonClose:
		p.pos, p.state = p.mark, stText
	case roleCallClose:
		p.start = p.pos
		if p.in.wrapper {
			p.state = stClosing
		} else {
			p.afterBlock()
		}
	case roleWrapClose:
		p.afterBlock()
	case roleWrapOpen:
		p.in.wrapper = true
		p.state = stOpened
	case roleCallOpen:
		if p.c.tag.Name == nil || !p.in.wrapper {
			p.state = stOpened
			break
		}
		if !p.beginCall(p.mark) {
			return false
		}
		p.start = p.pos
		p.beginName()
	default: // the message around the block ends
		p.pos, p.state = p.mark, stText
	}
	return true
}

// broken aborts the open call and looks for the next place to go on from.
func (p *Parser) broken(why event.Why) bool {
	p.abort(why, max(p.start, p.pos))
	p.start = max(p.start, p.pos)
	p.node = 0
	p.state = stSkip
	return true
}
