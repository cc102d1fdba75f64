// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"bytes"

	"github.com/weft-go/weft/parsers/codec"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// beginBareList begins to hold what may be a list of calls without a tag, from the bracket at openAt on.
func (p *tagged) beginBareList() {
	p.pos, p.node, p.step = p.openAt, 0, 0
	p.from = p.openAt + 1
	p.lists.Reset()
	p.state = stBareList
}

// bareList holds a list of calls until it is complete, because a list without a tag is text unless all of it is valid.
func (p *tagged) bareList() bool {
	m := p.machine
	if m.step == bareEcho {
		return p.echo()
	}
	for m.step == 0 { // check for a name and a parenthesis after the bracket
		if m.from == len(m.win) {
			if m.final {
				return p.bareText(len(m.win))
			}
			return false
		}
		c := m.win[m.from]
		work.Add(1)
		switch {
		case c == '(' && p.nameBefore(m.from):
			m.step = 1
		case blank(c), nameStart(c), (c >= '0' && c <= '9' || c == '.' || c == '-') && p.nameBefore(m.from):
			if m.from++; m.from-m.openAt > m.c.g.MaxHold {
				return p.bareText(m.from)
			}
		default:
			return p.bareText(m.openAt + 1)
		}
	}
	w := m.win
	if m.tooLong(m.openAt, m.lim.HeldBytes) {
		w = w[:m.openAt+m.lim.HeldBytes]
	}
	n, st := p.lists.Scan(w[m.pos:])
	work.Add(n)
	m.pos += n
	switch {
	case st == grammar.More && !m.final && m.pos-m.openAt < m.lim.HeldBytes:
		return false
	case m.step != 1:
		return p.literal(st)
	case st == grammar.Done:
		calls, ok := p.pythonCalls(m.win[m.openAt:m.pos])
		switch {
		case ok && p.inTags:
			m.step, m.node, m.from = bareEcho, 0, m.pos
			return p.echo()
		case ok:
			p.emitCalls(calls)
			return true
		}
	case st == grammar.More && m.final && m.pos == len(m.win) && m.toolNamed(bytes.TrimSpace(m.win[m.openAt+1:m.from])) != nil:
		m.cutOff = true // otherwise it may be prose
	}
	return p.bareText(m.pos)
}

func (p *tagged) nameBefore(at int) bool {
	for at > p.openAt+1 && blank(p.win[at-1]) {
		at--
	}
	return at > p.openAt+1
}

// echo handles the list of calls win[openAt:from] after calls in tags, which the model repeats. The list is dropped if the
// closing tag of a block follows it, and is text otherwise.
func (p *tagged) echo() bool {
	m, st := p.expect(p.sets.closing)
	switch {
	case st == scan.More && !p.final && p.anchor-p.from <= p.c.g.MaxHold:
		return false
	case st == scan.Yes && p.sets.closing.markers[m].role == roleWrapClose && !p.rules.keepOrphans:
		p.start = p.pos
		p.newRun()
		p.state = stText
		return true
	}
	return p.bareText(p.from)
}

// bareText returns to text after bytes that are not a list; no list begins before window position to.
func (p *tagged) bareText(to int) bool {
	p.dead = p.off(to)
	p.pos, p.node = p.openAt+1, 0
	p.from = p.start
	p.state = stText
	return true
}

// pythonCalls reads a whole list of calls. The arguments are in p.out.
func (p *tagged) pythonCalls(doc []byte) (calls []heldCall, ok bool) {
	m := p.machine
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
		if i == len(doc) || len(calls) >= int(m.lim.Calls) {
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
		p.dec.Begin(m.schemaOf(name))
		at := len(m.out)
		out, n, st := p.dec.Append(m.out, doc[i:], true)
		m.out = out
		if st != grammar.Done || len(name) == 0 {
			return nil, false
		}
		i += n
		calls = append(calls, heldCall{name: name, args: m.out[at:len(m.out):len(m.out)], from: from, to: i})
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

// The kinds of lists that stBareList holds, as values of step; lower values look for a Python call.
const (
	literalBare   uint8 = iota + 2 // dicts without a tag: text unless they are calls
	literalTagged                  // dicts after the opening tag: a broken call unless they are calls
	bareEcho                       // calls after calls in tags, up to from
)

// openLiteral drops the opening tag at openAt, which the list at pos follows.
func (p *tagged) openLiteral() {
	at := p.pos
	p.endRun()
	p.start, p.openAt = at, at
	p.newRun()
	p.holdLiteral(literalTagged)
}

// holdLiteral begins to hold the list at openAt.
func (p *tagged) holdLiteral(kind uint8) {
	p.pos, p.node, p.step = p.openAt, 0, kind
	p.lists.Reset()
	if p.dec == nil {
		p.dec = codec.Python{}.NewDecoder()
	}
	p.state = stBareList
}

// literal ends the list of dicts win[openAt:pos]; st is the state of its scanner.
func (p *tagged) literal(st grammar.Status) bool {
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
	if st == grammar.Done { // the end of the list is known
		p.abort(why, p.pos)
		p.layout.afterBlock()
		return true
	}
	return p.broken(why)
}

// dicts reads a whole list of dicts that are calls. The arguments are in p.out.
func (p *tagged) dicts(doc []byte) (calls []heldCall, ok bool) {
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
		// The codec reads arguments and treats a dict as such. It returns Bad after the comma that follows the dict.
		p.dec.Begin(noSchema)
		out, _, _ := p.dec.Append(p.out, []byte("x="), false)
		at := len(out)
		out, n, _ := p.dec.Append(out, doc[i:], true)
		p.out = out
		c := heldCall{from: i, to: i + len(trimmed(doc[i:i+n]))}
		if doc[c.to-1] == ',' {
			c.to--
		}
		obj := out[at:len(out):len(out)]
		if !jsontext.Valid(obj) || obj[0] != '{' || !c.read(obj, p.fieldOf) { // sets have braces too
			return nil, false
		}
		calls = append(calls, c)
		i += n
	}
}

// bareBrace determines whether a call object begins at openAt.
func (p *tagged) bareBrace() bool {
	st := p.peekCall(p.openAt)
	if st == scan.More && !p.final {
		return false
	}
	if st != scan.Yes {
		p.pos, p.node = p.openAt+1, 0
		p.from = p.start
		p.state = stText
		return true
	}
	at := p.openAt
	if !p.commit() {
		return false
	}
	p.start, p.pos = at, at
	p.beginCalls()
	return true
}

// bareCall implements layout.
func (p *tagged) bareCall() (begun, waits bool) {
	begun = p.bareObject()
	waits, p.waiting = p.waiting, false
	return begun, waits
}

// bareObject detects a call object, or a list of them, without a tag at the beginning of a run. It reports whether the
// state changed.
func (p *tagged) bareObject() bool {
	i := max(p.from, p.start)
	for i < len(p.win) && blank(p.win[i]) {
		work.Add(1)
		i++
	}
	if i == len(p.win) || p.win[i] != '{' && p.win[i] != '[' || p.pos > i || i-p.start > p.c.g.MaxHold {
		return false
	}
	if p.tag.Body.Codec != nil { // the codec reads the bare calls of the family
		return false
	}
	python := p.tag.Body.List == grammar.Dicts
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
