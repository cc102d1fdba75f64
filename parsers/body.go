// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// body opens the arguments behind the name of a tagged call: a JSON object, perhaps in a code fence, or a codec's own
// syntax. Until they begin the tag may be prose.
func (p *Parser) body() bool {
	b := &p.c.tag.Body
	if b.Codec == nil {
		switch p.jsonBegins(b.Args) {
		case scan.More:
			if p.final && !p.call.open {
				return p.truncatedOpener()
			}
			return false
		case scan.No:
			if !p.call.open && !p.c.tag.Open.Token {
				return p.doubt(p.from)
			}
			if !p.call.open && !p.commit() { // the tag and a name are there: no prose
				return false
			}
			return p.broken(event.BadArguments)
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

// truncatedOpener aborts a call that the end of the stream cut before its arguments.
func (p *Parser) truncatedOpener() bool {
	if p.commit() {
		p.abort(event.Truncated, len(p.win))
		p.start = len(p.win)
	}
	return false
}

// jsonBegins looks for the object of arguments. On Yes pos is at its brace.
func (p *Parser) jsonBegins(a *grammar.JSONArgs) scan.Prefix {
	for p.pos < len(p.win) {
		work.Add(1)
		switch c := p.win[p.pos]; {
		case p.lit > 0 && p.lit < len(a.Fence), p.lit == 0 && a.Fence != "" && c == a.Fence[0]:
			st, at := scan.Match(p.win, p.pos, a.Fence, &p.lit)
			p.pos = at
			if st != scan.Yes {
				return st
			}
			continue
		case c == '{':
			p.lit = 0
			return scan.Yes
		case blank(c):
		case p.lit >= len(a.Fence) && p.lit > 0 && p.lit < len(a.Fence)+4 && c == "json"[p.lit-len(a.Fence)]:
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

// codec lets the family's codec read on in the arguments.
func (p *Parser) codec() bool {
	n := len(p.out)
	out, took, st := p.dec.Decode(p.out, p.win[p.start:], p.final)
	p.out = out
	p.pos = p.start + took
	p.start = p.pos
	p.arguments(p.out[n:len(p.out):len(p.out)], p.pos)
	switch st {
	case grammar.More:
		if p.tooLong(p.start, max(p.lim.HeldBytes, p.c.g.MaxHold)) {
			return p.broken(event.LimitExceeded)
		}
		return false
	case grammar.Bad:
		return p.broken(event.BadArguments)
	case grammar.Limit:
		return p.broken(event.LimitExceeded)
	}
	return p.argumentsDone()
}

// argumentsDone goes on behind complete arguments of a tagged call. They complete it unless the family needs the closing
// tag.
func (p *Parser) argumentsDone() bool {
	p.node, p.lit = 0, 0
	if p.c.tag.Body.Params != nil { // an object in place of the parameters
		p.state = stParams
		return true
	}
	if p.c.tag.NeedClose {
		p.state = stEnd
		return true
	}
	p.endCall(p.pos, 0)
	p.afterCall()
	return true
}

// endOfCall waits, behind complete arguments, for the closing tag that the family needs.
func (p *Parser) endOfCall() bool {
	if a := p.c.tag.Body.Args; a != nil && a.Fence != "" && p.lit < len(a.Fence) && p.node == 0 {
		if p.lit == 0 {
			p.skipBlanks()
		}
		at, st := p.pos-p.lit, scan.No
		if st, p.pos = scan.Match(p.win, p.pos, a.Fence, &p.lit); st == scan.More {
			return false
		}
		if st == scan.No {
			p.pos = at
		}
		p.lit = len(a.Fence)
	}
	_, st := p.expect(p.c.callClose)
	if p.anchor-p.start > p.c.g.MaxHold {
		st = scan.No
	}
	switch st {
	case scan.More:
		return false
	case scan.No:
		return p.broken(event.BadStructure)
	}
	p.endCall(p.pos, 0)
	if p.in.wrapper {
		p.start = p.pos
		p.state = stClosing
		return true
	}
	p.afterBlock()
	return true
}

// The places in a list of call objects.
const (
	listFirst uint8 = iota // behind '['
	listNext               // behind ','
	listAfter              // behind an object
)

// list reads between the objects of a list. An object is complete once a comma, the end of the list or the closing tag
// follows it.
func (p *Parser) list() bool {
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
		p.in.list = false
		p.afterCall()
		return true
	}
	if p.step != listAfter || len(p.c.callClose.markers) == 0 {
		if !p.call.open && !p.beginCall(p.pos) {
			return false
		}
		return p.broken(event.BadStructure)
	}
	switch _, st := p.expect(p.c.callClose); st {
	case scan.More:
		return false
	case scan.No:
		return p.broken(event.BadStructure)
	}
	if p.call.open {
		p.endCall(p.pos, event.Recovered)
	}
	p.afterBlock()
	return true
}
