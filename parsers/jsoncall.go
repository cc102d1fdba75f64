// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"bytes"
	"slices"

	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// jsonCall is the state of the codec grammar.JSONCall: one JSON object with the tool's name and its arguments.
type jsonCall struct {
	at     jsonAt
	field  jsonField
	named  bool   // the name is known
	begun  bool   // arguments were seen
	long   bool   // the key is too long to be one that matters
	stream bool   // arguments are being forwarded
	args   []byte // arguments that came before the name
}

type jsonAt uint8

const (
	jsonOpen   jsonAt = iota // before '{'
	jsonKey                  // before a key
	jsonInKey                // in a key
	jsonColon                // before ':'
	jsonBefore               // before a value
	jsonValue                // in a value
	jsonAfter                // behind a value
)

type jsonField uint8

const (
	otherField jsonField = iota
	nameField
	argsField
)

func (p *Parser) beginJSON() {
	p.json = jsonCall{args: p.json.args[:0]}
	p.lex.Reset()
	p.node = 0
	p.state = stJSON
}

// jsonBody reads on in the object. Argument bytes are forwarded as they come, once the name is known.
func (p *Parser) jsonBody() bool {
	j := &p.json
	for p.pos < len(p.win) {
		c := p.win[p.pos]
		switch j.at {
		case jsonInKey, jsonValue:
			// below
		default:
			work.Add(1)
			if blank(c) {
				p.pos++
				continue
			}
		}
		switch j.at {
		case jsonOpen:
			if c != '{' {
				return p.broken(event.BadArguments)
			}
			p.pos++
			j.at = jsonKey
		case jsonKey:
			if c == '}' && !j.named && !j.begun {
				return p.endJSON()
			}
			if c != '"' {
				return p.broken(event.BadArguments)
			}
			p.start = p.pos
			p.lex.Reset()
			j.at, j.long = jsonInKey, false
		case jsonInKey:
			n, st := p.lex.Scan(p.win[p.pos:])
			p.pos += n
			if p.pos-p.start > 4*p.c.g.MaxHold { // nothing that is looked for
				j.long, p.start = true, p.pos
			}
			if st == jsontext.Open {
				return false
			}
			if st != jsontext.Done {
				return p.broken(event.BadArguments)
			}
			if j.field = otherField; !j.long {
				j.field = p.fieldOf(p.win[p.start:p.pos])
			}
			p.start = p.pos
			j.at = jsonColon
		case jsonColon:
			if c != ':' {
				return p.broken(event.BadArguments)
			}
			p.pos++
			j.at = jsonBefore
		case jsonBefore:
			p.start = p.pos
			p.lex.Reset()
			if j.field == argsField {
				if j.begun {
					return p.broken(event.Duplicate)
				}
				if c != '{' && c != '"' && c != 'n' {
					return p.broken(event.BadArguments)
				}
				j.begun = true
				if j.stream = c == '{' && j.named; j.stream {
					p.startCall(p.pos)
				}
			}
			if j.field == nameField && (c != '"' || j.named) {
				return p.broken(event.BadName)
			}
			j.at = jsonValue
		case jsonValue:
			if !p.jsonMember() {
				return p.state != stJSON
			}
		case jsonAfter:
			switch {
			case c == ',':
				p.pos++
				j.at = jsonKey
			case c == '}':
				p.pos++
				return p.endJSON()
			case j.begun && p.c.tag.Close.Text != "" && c == p.c.tag.Close.Text[0]:
				// The outer brace is missing. The closing tag is the delimiter that makes the arguments whole.
				n := 0
				st, end := scan.Match(p.win, p.pos, p.c.tag.Close.Text, &n)
				if st == scan.More {
					return false
				}
				if st == scan.No || !p.is(p.c.tag.Close.Text, end) {
					return p.broken(event.BadArguments)
				}
				return p.endJSON()
			default:
				return p.broken(event.BadArguments)
			}
			p.start = p.pos
		}
	}
	if j.at != jsonInKey && j.at != jsonValue {
		p.start = p.pos
	}
	return false
}

// jsonMember reads on in a value and reports whether it is complete.
func (p *Parser) jsonMember() bool {
	j := &p.json
	n, st := p.lex.Scan(p.win[p.pos:])
	p.pos += n
	switch {
	case j.field == otherField:
		p.start = p.pos
	case j.stream:
		to := p.pos
		if st == jsontext.Open {
			to = p.whole(p.start, to)
		}
		p.verbatim(to)
	case p.pos-p.start > p.lim.HeldBytes, j.field == nameField && p.pos-p.start > 4*p.c.g.MaxHold:
		p.fail(event.LimitExceeded, p.pos)
		j.field, p.start = otherField, p.pos
	}
	switch st {
	case jsontext.Open:
		return false
	case jsontext.Bad:
		if j.stream && p.beginRepair() {
			return false
		}
		p.broken(event.BadArguments)
		return false
	case jsontext.Deep:
		p.broken(event.LimitExceeded)
		return false
	}
	raw := p.win[p.start:p.pos]
	switch {
	case j.field == nameField:
		p.call.name = jsontext.AppendUnquoted(p.call.name[:0], raw)
		if len(p.call.name) == 0 {
			p.broken(event.BadName)
			return false
		}
		j.named = true
		if j.begun && !p.heldArguments(j.args) {
			return false
		}
	case j.field == argsField && !j.stream:
		if j.args = append(j.args[:0], raw...); j.named && !p.heldArguments(j.args) {
			return false
		}
	}
	p.start = p.pos
	j.at, j.stream = jsonAfter, false
	return true
}

// heldArguments starts the call and emits arguments that could not stream: they came before the name, as a JSON string
// that holds the object, or as null.
func (p *Parser) heldArguments(raw []byte) bool {
	if p.call.failed {
		return true
	}
	switch raw[0] {
	case 'n':
		raw = []byte("{}")
		p.call.flags |= event.Recovered
	case '"':
		raw = bytes.TrimSpace(jsontext.AppendUnquoted(nil, raw))
		if len(raw) == 0 || raw[0] != '{' || !jsontext.Valid(raw) {
			p.broken(event.BadArguments)
			return false
		}
	}
	p.startCall(p.pos)
	p.arguments(p.made(raw), p.pos)
	return true
}

// endJSON completes the call at the end of its object, which is the sign to dispatch it: the closing tag adds nothing.
func (p *Parser) endJSON() bool {
	j := &p.json
	if !j.named && !p.call.failed {
		if !p.in.list {
			return p.broken(event.BadName)
		}
		p.abort(event.BadName, p.pos) // the next one may be a call
	}
	var flags event.Flags
	if !j.begun && p.call.open {
		if p.opt.Policy.NeedArguments {
			return p.broken(event.BadArguments)
		}
		p.startCall(p.pos)
		p.arguments(p.made([]byte("{}")), p.pos)
		flags = event.Recovered
	}
	p.start, p.node = p.pos, 0
	switch {
	case !p.call.open:
		p.state, p.step = stList, listAfter
	case p.in.list:
		p.call.flags |= flags
		p.state, p.step = stList, listAfter
	case p.c.tag.NeedClose:
		p.call.flags |= flags
		p.lit, p.state = 0, stEnd
	default:
		p.endCall(p.pos, flags)
		p.afterCall()
	}
	return true
}

func (p *Parser) fieldOf(quoted []byte) jsonField {
	c := p.c.tag.Body.Call
	key := string(quoted[1 : len(quoted)-1])
	if slices.Contains(c.Name, key) {
		return nameField
	}
	if slices.Contains(c.Arguments, key) {
		return argsField
	}
	return otherField
}
