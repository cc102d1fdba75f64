// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"bytes"

	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/protocols/event"
)

// taggedMarker handles the marker of role r that ended a run of text or reasoning in layout grammar.Tagged.
// A marker that is data needs nothing: pos is behind it and start before it.
func (p *Parser) taggedMarker(r role) {
	t := p.c.g.Tagged
	switch r {
	case roleReasonOpen:
		switch {
		case !p.reasoning:
			p.settle()
			p.openReasoning(t.Reasoning.Lead)
		case p.echoable && p.untouched():
			p.start, p.echoable, p.trim = p.pos, false, t.Reasoning.Lead
		}
	case roleReasonClose:
		switch {
		case p.reasoning:
			p.closeReasoning(t.Reasoning.After)
		case !p.opt.Policy.KeepOrphans:
			p.strip()
		}
	case roleWrapClose, roleCallClose:
		if !p.opt.Policy.KeepOrphans {
			p.strip()
		}
	case roleWrapOpen, roleCallOpen:
		if !p.untouched() {
			p.flush(p.beforeBlock(p.mark), true)
		}
		p.openAt = p.mark
		p.in.wrapper = r == roleWrapOpen
		p.state = stOpened
		if r == roleCallOpen && t.NameEnd != "" {
			p.state, p.from = stName, p.pos
		}
	}
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
	p.mark = p.openAt
	p.dropBlanks(p.mark)
	p.flush(p.beforeBlock(p.mark), true)
	p.start = max(p.start, p.mark)
	p.newRun()
	return p.beginCall(p.openAt)
}

// opened decides, behind an opening tag, whether a call follows. Until it knows, the tag may be prose.
func (p *Parser) opened() bool {
	m, st := -1, scan.No
	if p.want && p.node == 0 && p.openGuided() {
		return true
	}
	if p.c.g.Tagged.Body.Call != nil {
		for p.pos < len(p.win) && blank(p.win[p.pos]) {
			p.pos++
		}
		if p.anchor = p.pos; p.pos == len(p.win) {
			st = scan.More
		} else if p.win[p.pos] == '{' {
			st = scan.Yes
		}
	} else {
		m, st = p.expect(p.c.callOpen)
	}
	if p.anchor-p.openAt > p.c.g.MaxHold {
		p.pos, p.node, st = p.anchor, 0, scan.No
	}
	switch st {
	case scan.More:
		if p.final { // the stream ends in or behind the opening tag
			if p.commit() {
				p.abort(event.Truncated, len(p.win))
				p.start = len(p.win)
			}
		}
		return false
	case scan.No:
		p.state, p.in.wrapper = stSuspect, false
		return true
	}
	if !p.commit() {
		return false
	}
	p.start = p.pos
	if m < 0 {
		p.beginJSON()
	} else {
		p.state, p.from = stName, p.pos
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
	if m >= 0 && !far && (s.markers[m].role == roleCallClose || s.markers[m].role == roleWrapClose) {
		end := p.pos
		if !p.commit() {
			return false
		}
		p.abort(event.BadStructure, end)
		p.afterBlock()
		return true
	}
	if m >= 0 || far || p.final {
		if m >= 0 {
			p.pos = p.mark
		}
		p.from = p.start
		p.state = stText
		return true
	}
	return false
}

// afterBlock goes back to the run that a block interrupted: text, or reasoning if the call stood inside it.
func (p *Parser) afterBlock() {
	p.start = p.pos
	p.in.wrapper = false
	p.newRun()
	p.state = stText
}

// closing reads on behind a call until its block ends or another call begins. A block that is not closed ends at the
// first thing that cannot belong to it, so that no text is lost.
func (p *Parser) closing() bool {
	if p.c.g.Tagged.Body.Call != nil && p.node == 0 {
		for p.pos < len(p.win) && (blank(p.win[p.pos]) || p.win[p.pos] == ',' || p.win[p.pos] == '}') {
			if p.pos++; !blank(p.win[p.pos-1]) {
				p.start = p.pos
			}
		}
		if p.pos < len(p.win) && p.win[p.pos] == '{' && p.pos-p.start <= p.c.g.MaxHold {
			p.start = p.pos
			if !p.beginCall(p.pos) {
				return false
			}
			p.beginJSON()
			return true
		}
	}
	s := p.c.closing
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
		p.in.wrapper = false
		p.newRun()
		p.state = stText
		return true
	}
	if s.markers[m].role == roleCallOpen {
		if !p.beginCall(p.mark) {
			return false
		}
		p.start = p.pos
		p.state, p.from = stName, p.pos
		return true
	}
	p.afterBlock()
	return true
}

// skip drops markup that cannot be read, up to where a call or block ends or the next one begins.
func (p *Parser) skip() bool {
	if p.c.g.Tagged == nil {
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
		if p.c.g.Tagged.NameEnd == "" {
			p.state = stOpened
			break
		}
		if p.in.wrapper {
			if !p.beginCall(p.mark) {
				return false
			}
			p.start = p.pos
		}
		p.state, p.from = stName, p.pos
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

// callName reads the name behind the opening tag of a call. Without a wrapper the tag may still be prose.
func (p *Parser) callName() bool {
	name, st := p.word(p.c.g.Tagged.NameEnd)
	switch {
	case st == scan.More && p.final && !p.call.open: // a bare tag at the end of the stream
		return p.badName()
	case st == scan.More:
		return false
	case st == scan.No || len(name) == 0:
		return p.badName()
	}
	p.call.name = append(p.call.name[:0], name...)
	p.param.reset()
	p.state = stParams
	if p.call.open {
		p.startCall(p.pos)
		p.start = p.pos
	} else {
		p.param.bare = true
	}
	return true
}

// word reads the name or key that begins at from, up to the literal end. On Yes it is a view of the window, without blanks
// around it, and pos is behind end; on No pos is at the byte that cannot belong to it.
func (p *Parser) word(end string) ([]byte, scan.Prefix) {
	for i := max(p.from, p.pos-len(end)+1); i+len(end) <= len(p.win); i++ {
		if string(p.win[i:i+len(end)]) == end {
			p.pos = i + len(end)
			return bytes.TrimSpace(p.win[p.from:i]), scan.Yes
		}
		if c := p.win[i]; c == '<' || c == '\n' || i-p.from > p.c.g.MaxHold {
			p.pos = i
			return nil, scan.No
		}
	}
	p.pos = len(p.win)
	return nil, scan.More
}

func (p *Parser) badName() bool {
	if p.call.open {
		return p.broken(event.BadName)
	}
	p.state, p.pos, p.node = stSuspect, p.from, 0
	return true
}
