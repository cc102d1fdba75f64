// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// body opens the arguments after the name of a tagged call: a JSON object, perhaps in a code fence, or a codec's own
// syntax. Until they begin the tag may be prose.
func (p *tagged) body() bool {
	b := &p.tag.Body
	if b.Codec == nil {
		switch p.jsonBegins(b.Fence) {
		case scan.More:
			if p.final && !p.call.open {
				return p.truncatedOpener()
			}
			return false
		case scan.No:
			if !p.call.open && !p.tag.Open.Token {
				return p.doubt(p.from)
			}
			if at := p.pos; !p.call.open { // a tag and a name cannot be prose
				if !p.commit() {
					return false
				}
				p.pos = at
			}
			return p.noArguments() || p.broken(event.BadArguments)
		}
	}
	if !p.call.open {
		at, id := p.pos, append([]byte(nil), p.call.id...)
		if !p.commit() {
			return false
		}
		p.pos = at
		p.call.id = append(p.call.id, id...)
	}
	p.startCall(p.pos)
	p.start, p.node = p.pos, 0
	if b.Codec != nil {
		p.dec.Begin(p.call.schema)
		p.state = stCodec
		return true
	}
	p.lex.Reset()
	p.state = stArgs
	return true
}

// jsonBegins looks for the object of arguments. On Yes pos is at its brace.
func (p *tagged) jsonBegins(fence string) scan.Prefix {
	for p.pos < len(p.win) {
		work.Add(1)
		switch c := p.win[p.pos]; {
		case p.lit > 0 && p.lit < len(fence), p.lit == 0 && fence != "" && c == fence[0]:
			st, at := scan.Match(p.win, p.pos, fence, &p.lit)
			p.pos = at
			if st != scan.Yes {
				return st
			}
			continue
		case c == '{':
			p.lit = 0
			return scan.Yes
		case blank(c):
		case p.lit >= len(fence) && p.lit > 0 && p.lit < len(fence)+4 && c == "json"[p.lit-len(fence)]:
			p.lit++
		default:
			return scan.No
		}
		if p.pos++; p.pos-p.from > 2*p.c.g.MaxHold {
			return scan.No
		}
	}
	return scan.More
}

// codec continues to read the arguments with the family's codec.
func (p *tagged) codec() bool {
	m := p.machine
	n := len(m.out)
	out, took, st := p.dec.Append(m.out, m.win[m.start:], m.final)
	m.out = out
	m.pos = m.start + took
	m.start = m.pos
	m.arguments(m.out[n:len(m.out):len(m.out)], m.pos)
	switch st {
	case grammar.More:
		if m.tooLong(m.start, max(m.lim.HeldBytes, m.c.g.MaxHold)) {
			return m.broken(event.LimitExceeded)
		}
		return false
	case grammar.Bad:
		return m.broken(event.BadArguments)
	case grammar.Limit:
		return m.broken(event.LimitExceeded)
	}
	return p.argumentsDone()
}

// argumentsDone continues after complete arguments of a tagged call. They complete it unless the family needs the closing
// tag.
func (p *tagged) argumentsDone() bool {
	p.node, p.lit = 0, 0
	if p.tag.Body.Params != nil { // an object instead of the parameters
		p.state = stParams
		return true
	}
	if p.tag.NeedClose {
		p.state = stEnd
		return true
	}
	p.endCall(p.pos, 0)
	p.afterCall()
	return true
}

// endOfCall waits for the closing tag, after complete arguments, if the family requires it.
func (p *tagged) endOfCall() bool {
	if fence := p.tag.Body.Fence; p.lit < len(fence) && p.node == 0 {
		if p.lit == 0 {
			p.skipBlanks()
		}
		at, st := p.pos-p.lit, scan.No
		if st, p.pos = scan.Match(p.win, p.pos, fence, &p.lit); st == scan.More {
			return false
		}
		if st == scan.No {
			p.pos = at
		}
		p.lit = len(fence)
	}
	_, st := p.expect(p.sets.callClose)
	if p.anchor-p.start > p.c.g.MaxHold {
		st = scan.No
	}
	switch st {
	case scan.More:
		return false
	case scan.No:
		if !p.rules.unclosed {
			return p.broken(event.BadStructure)
		}
		p.pos, p.node = p.anchor, 0
		p.endCall(p.pos, event.Recovered)
		p.afterCall()
		return true
	}
	p.endCall(p.pos, 0)
	if p.wrapper {
		p.start = p.pos
		p.state = stClosing
		return true
	}
	p.layout.afterBlock()
	return true
}

// list reads between the objects of a list. An object is complete once a comma, the end of the list or the closing tag
// follows it.
func (p *tagged) list() bool {
	if p.node == 0 {
		p.skipBlanks()
		p.start = p.pos
	}
	if p.pos == len(p.win) {
		return false
	}
	switch c := p.win[p.pos]; {
	case p.node != 0: // in a closing tag
	case c == '{' && p.step != listAfter:
		if !p.call.open && !p.beginCall(p.pos) {
			return false
		}
		p.start = p.pos
		p.beginJSON()
		return true
	case c == '{' && p.call.open: // the comma is missing
		switch p.peekCall(p.pos) {
		case scan.More:
			if !p.final {
				return false
			}
		case scan.Yes:
			p.endCall(p.pos, event.Recovered)
			p.start, p.step = p.pos, listNext
			return true
		}
	case c == ',' && p.step == listNext: // one too many
		p.pos++
		return true
	case c == ',' && p.step == listAfter:
		if p.call.open {
			p.endCall(p.pos, 0)
		}
		p.pos++
		p.start, p.step = p.pos, listNext
		return true
	case c == ']':
		switch p.pos++; {
		case p.call.open && p.step == listAfter:
			p.endCall(p.pos-1, 0)
		case p.call.open: // an empty list
			p.cancelCall()
		}
		p.listed = false
		p.afterCall()
		return true
	}
	if p.step != listAfter || len(p.sets.callClose.markers) == 0 {
		if !p.call.open && !p.beginCall(p.pos) {
			return false
		}
		return p.broken(event.BadStructure)
	}
	switch _, st := p.expect(p.sets.callClose); st {
	case scan.More:
		return false
	case scan.No:
		return p.broken(event.BadStructure)
	}
	if p.call.open {
		p.endCall(p.pos, event.Recovered)
	}
	p.layout.afterBlock()
	return true
}
