// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/work"
)

// beginBareList begins to hold what may be a list of calls without a tag, from the bracket at openAt on.
func (p *Parser) beginBareList() {
	p.pos, p.node, p.step = p.openAt, 0, 0
	p.from = p.openAt + 1
	p.lists.Reset()
	p.state = stBareList
}

// bareList holds a list of calls until it is whole, since a list without a tag is text unless all of it can be read.
func (p *Parser) bareList() bool {
	for p.step == 0 { // is there a name and a parenthesis behind the bracket?
		if p.from == len(p.win) {
			if p.final {
				return p.bareText(len(p.win))
			}
			return false
		}
		c := p.win[p.from]
		work.Add(1)
		switch {
		case c == '(' && p.nameBefore(p.from):
			p.step = 1
		case blank(c), nameStart(c), (c >= '0' && c <= '9' || c == '.' || c == '-') && p.nameBefore(p.from):
			if p.from++; p.from-p.openAt > p.c.g.MaxHold {
				return p.bareText(p.from)
			}
		default:
			return p.bareText(p.openAt + 1)
		}
	}
	w := p.win
	if p.tooLong(p.openAt, p.lim.HeldBytes) {
		w = w[:p.openAt+p.lim.HeldBytes]
	}
	n, st := p.lists.Scan(w[p.pos:])
	work.Add(n)
	p.pos += n
	switch {
	case st == grammar.More && !p.final && p.pos-p.openAt < p.lim.HeldBytes:
		return false
	case p.step != 1:
		return p.literal(st)
	case st == grammar.Done:
		if calls, ok := p.pythonCalls(p.win[p.openAt:p.pos]); ok {
			p.emitCalls(calls)
			return true
		}
	}
	return p.bareText(p.pos)
}

func (p *Parser) nameBefore(at int) bool {
	for at > p.openAt+1 && blank(p.win[at-1]) {
		at--
	}
	return at > p.openAt+1
}

// bareText goes back to text behind what was not a list; no list begins before window position to.
func (p *Parser) bareText(to int) bool {
	p.dead = p.off(to)
	p.pos, p.node = p.openAt+1, 0
	p.from = p.start
	p.state = stText
	return true
}

// pythonCalls reads a whole list of calls. The arguments are in p.out.
func (p *Parser) pythonCalls(doc []byte) (calls []heldCall, ok bool) {
	i := 1
	space := func() {
		for i < len(doc) && blank(doc[i]) {
			i++
		}
	}
	for {
		if space(); i == len(doc)-1 {
			return calls, len(calls) > 0
		}
		from := i
		for i < len(doc) && doc[i] != '(' {
			i++
		}
		if i == len(doc) || len(calls) >= int(p.lim.Calls) {
			return nil, false
		}
		work.Add(i - from)
		name := trimmed(doc[from:i])
		for j, c := range name {
			if !nameStart(c) && (j == 0 || !(c >= '0' && c <= '9' || c == '.' || c == '-')) {
				return nil, false
			}
		}
		i++
		p.dec.Begin(p.schemaOf(name))
		at := len(p.out)
		out, n, st := p.dec.Decode(p.out, doc[i:], true)
		p.out = out
		if st != grammar.Done || len(name) == 0 {
			return nil, false
		}
		i += n
		calls = append(calls, heldCall{name: name, args: p.out[at:len(p.out):len(p.out)], from: from, to: i})
		switch space(); {
		case i < len(doc)-1 && doc[i] == ',':
			i++
		case i < len(doc)-1:
			return nil, false
		}
	}
}

func trimmed(b []byte) []byte {
	for len(b) > 0 && blank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// bareObject looks, at the beginning of a run, for a call object, or a list of them, without a tag. It reports whether the state changed.
func (p *Parser) bareObject() bool {
	i := max(p.from, p.start)
	for i < len(p.win) && blank(p.win[i]) {
		work.Add(1)
		i++
	}
	if i == len(p.win) || p.win[i] != '{' && p.win[i] != '[' || p.pos > i || i-p.start > p.c.g.MaxHold {
		return false
	}
	if p.c.tag.Body.Codec != nil { // the bare calls of the family are those of the codec
		return false
	}
	python := p.c.tag.Body.Call.Python
	peek := p.peekCall
	if python {
		peek = p.listOfObjects
	}
	switch peek(i) {
	case scan.No:
		return false
	case scan.More:
		if p.final {
			return false
		}
		p.waiting = true
		return true
	}
	p.openAt = i
	if python {
		p.holdLiteral(literalBare)
		return true
	}
	if !p.commit() {
		return true
	}
	p.start, p.pos = i, i
	p.beginCalls()
	return true
}
