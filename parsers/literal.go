// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"github.com/weft-go/weft/parsers/codec"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/protocols/event"
)

// The kinds of list that stBareList holds, in step; below them it looks for a Python call.
const (
	literalBare   uint8 = iota + 2 // dicts without a tag: text if they are no calls
	literalTagged                  // dicts behind the opening tag: a broken call then
)

// openLiteral drops the opening tag at openAt, behind which the list at pos stands.
func (p *Parser) openLiteral() {
	at := p.pos
	p.endRun()
	p.start, p.openAt = at, at
	p.newRun()
	p.holdLiteral(literalTagged)
}

// holdLiteral begins to hold the list at openAt.
func (p *Parser) holdLiteral(kind uint8) {
	p.pos, p.node, p.step = p.openAt, 0, kind
	p.lists.Reset()
	if p.dec == nil {
		p.dec = codec.Python{}.NewDecoder()
	}
	p.state = stBareList
}

// literal ends the list of dicts win[openAt:pos]; st is where its scanner stands.
func (p *Parser) literal(st grammar.Status) bool {
	if st == grammar.Done {
		if calls, ok := p.dicts(p.win[p.openAt:p.pos]); ok {
			p.emitCalls(calls)
			return true
		}
	}
	if p.step == literalBare {
		return p.bareText(p.pos)
	}
	why := event.BadArguments
	switch {
	case st == grammar.More && p.pos-p.openAt < p.lim.HeldBytes:
		why = event.Truncated
	case st == grammar.More, st == grammar.Limit:
		why = event.LimitExceeded
	}
	if !p.beginCall(p.openAt) {
		return false
	}
	if st == grammar.Done { // where the list ends is known
		p.abort(why, p.pos)
		p.afterBlock()
		return true
	}
	return p.broken(why)
}

// dicts reads a whole list of dicts that are calls. The arguments are in p.out.
func (p *Parser) dicts(doc []byte) (calls []heldCall, ok bool) {
	for i := 1; ; {
		for i < len(doc) && blank(doc[i]) {
			i++
		}
		if i == len(doc)-1 {
			return calls, len(calls) > 0
		}
		if doc[i] != '{' || len(calls) >= int(p.lim.Calls) {
			return nil, false
		}
		// The codec reads arguments. To it the dict is one, and what follows the comma behind it is Bad.
		p.dec.Begin(noSchema)
		out, _, _ := p.dec.Decode(p.out, []byte("x="), false)
		at := len(out)
		out, n, _ := p.dec.Decode(out, doc[i:], true)
		p.out = out
		c := heldCall{from: i, to: i + len(trimmed(doc[i:i+n]))}
		if doc[c.to-1] == ',' {
			c.to--
		}
		obj := out[at:len(out):len(out)]
		if !jsontext.Valid(obj) || obj[0] != '{' || !c.read(obj, p.fieldOf) { // a set has braces too
			return nil, false
		}
		calls = append(calls, c)
		i += n
	}
}
