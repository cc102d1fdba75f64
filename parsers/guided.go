// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"bytes"

	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// beginGuided enters a guided document if one begins at the start of a run. It returns false if more input is needed,
// or if the run begins with other text, which is then parsed as usual.
func (p *machine) beginGuided() bool {
	p.trimLead(len(p.win))
	i := max(p.from, p.start)
	for i < len(p.win) && blank(p.win[i]) {
		work.Add(1)
		i++
	}
	if i == len(p.win) || p.pos > i || i-p.start > p.c.g.MaxHold {
		return false
	}
	switch c := p.win[i]; {
	case p.opt.Output == GuidedNamed && c == '{':
		p.mark = i
		p.closeRun()
		if !p.beginCall(i) {
			return true
		}
		p.call.name = append(p.call.name, p.opt.Allow[0]...)
		p.startCall(i)
		p.start, p.pos, p.node = i, i, 0
		p.lex.Reset()
		p.want, p.state = false, stNamed
		return true
	case p.opt.Output == GuidedRequired && (c == '{' || c == '[') && p.off(i) >= p.native:
		p.openAt, p.pos, p.node = i, i, 0
		p.lex.Reset()
		p.want, p.state = false, stGuided
		return true
	}
	return false
}

// guided holds a document of calls until it is complete, then emits all of its calls. A document that is cut off, is
// not JSON or contains anything but calls is text: part of an invalid document must not be executed.
func (p *machine) guided() bool {
	w := p.win
	if p.tooLong(p.openAt, p.lim.HeldBytes) {
		w = w[:p.openAt+p.lim.HeldBytes]
	}
	n, st := p.lex.Scan(w[p.pos:])
	p.pos += n
	if st == jsontext.Open && !p.final && p.pos-p.openAt < p.lim.HeldBytes {
		return false
	}
	if st == jsontext.Done {
		if calls, ok := p.guidedCalls(p.win[p.openAt:p.pos]); ok {
			for i := range calls {
				calls[i].args = p.made(calls[i].args)
			}
			p.emitCalls(calls)
			return true
		}
	}
	p.cutOff = p.cutOff || st == jsontext.Open && p.final && p.pos == len(p.win)
	p.state = stText
	if len(bytes.TrimSpace(p.win[p.openAt+1:p.pos])) == 0 && st == jsontext.Bad {
		// Only the bracket matched: it begins a marker, or calls in the family's own form.
		p.want, p.native = true, p.off(p.pos)
		p.pos, p.node, p.from = p.openAt, 0, p.start
		return true
	}
	p.put(event.Text, p.pos)
	return true
}

// heldCall is one call of a document that was held until it was complete.
type heldCall struct {
	name, args []byte
	from, to   int // within the document
}

// emitCalls emits the calls of the document win[openAt:pos], whose arguments live as long as the events.
func (p *machine) emitCalls(calls []heldCall) {
	end := p.pos
	p.mark = p.openAt
	if p.c.tags {
		p.dropBlanks(p.mark)
		p.flush(p.beforeBlock(p.mark), true)
		p.start = max(p.start, p.mark)
	}
	p.closeRun()
	for i, c := range calls {
		to := p.openAt + c.to
		if i == len(calls)-1 {
			to = end
		}
		from := p.openAt
		if i > 0 {
			from += c.from
		}
		if !p.beginCall(from) {
			return
		}
		p.call.name = append(p.call.name, c.name...)
		p.startCall(to)
		p.arguments(c.args, to)
		p.endCall(to, 0)
	}
	p.pos = end
	p.layout.afterBlock()
}

// guidedCalls reads one call object or an array of them. The keys are OpenAI's for tool calls, regardless of the
// family.
func (p *machine) guidedCalls(doc []byte) (calls []heldCall, ok bool) {
	ok = true
	one := func(obj []byte) bool {
		// obj is a slice of doc, so the difference of their capacities is where it begins.
		c := heldCall{from: cap(doc) - cap(obj)}
		c.to = c.from + len(obj)
		ok = ok && obj[0] == '{'
		if !ok {
			return false
		}
		ok = c.read(obj, guidedField)
		calls = append(calls, c)
		return ok && len(calls) <= int(p.lim.Calls)
	}
	if doc[0] == '[' {
		jsontext.Elements(doc, one)
	} else {
		one(doc)
	}
	return calls, ok && len(calls) > 0
}

type jsonField uint8

const (
	otherField jsonField = iota
	nameField
	argsField
	idField
	keyedField // arguments, whose key is the name
)

// guidedField returns the meaning of a key of a guided call.
func guidedField(quoted []byte) jsonField {
	switch string(quoted[1 : len(quoted)-1]) {
	case "name":
		return nameField
	case "arguments", "parameters":
		return argsField
	}
	return otherField
}

// read extracts the name and the arguments from the JSON object obj. It reports whether they form a call.
func (c *heldCall) read(obj []byte, field func(quoted []byte) jsonField) bool {
	ok, n := true, 0
	c.args = []byte("{}")
	jsontext.Members(obj, func(key, value []byte) bool {
		switch field(key) {
		case nameField:
			if ok = value[0] == '"' && c.name == nil; ok {
				c.name = jsontext.AppendUnquoted(nil, value)
			}
		case argsField:
			n++
			ok = value[0] == '{'
			c.args = value
		}
		return ok
	})
	return ok && len(c.name) > 0 && n <= 1
}
