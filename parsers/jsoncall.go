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

// jsonBody reads on in the object. Argument bytes are forwarded as they come, once the name is known.
func (p *tagged) jsonBody() bool {
	m, j := p.machine, &p.json
	for m.pos < len(m.win) {
		c := m.win[m.pos]
		switch j.at {
		case jsonInKey, jsonValue:
			// below
		default:
			work.Add(1)
			if blank(c) {
				m.pos++
				continue
			}
		}
		switch j.at {
		case jsonOpen:
			if c != '{' {
				return p.broken(event.BadArguments)
			}
			m.pos++
			j.at = jsonKey
		case jsonKey:
			if c == '}' && !j.named && !j.begun {
				return p.endJSON()
			}
			if c != '"' {
				return p.broken(event.BadArguments)
			}
			m.start = m.pos
			m.lex.Reset()
			j.at, j.long = jsonInKey, false
		case jsonInKey:
			n, st := m.lex.Scan(m.win[m.pos:])
			m.pos += n
			if m.pos-m.start > 4*m.c.g.MaxHold { // none of the expected keys
				j.long, m.start = true, m.pos
			}
			if st == jsontext.Open {
				return false
			}
			if st != jsontext.Done {
				return p.broken(event.BadArguments)
			}
			if j.field = otherField; !j.long {
				if j.field = p.fieldOf(m.win[m.start:m.pos]); j.field == keyedField && !p.keyed(m.win[m.start:m.pos]) {
					return p.broken(event.BadName)
				}
			}
			m.start = m.pos
			j.at = jsonColon
		case jsonColon:
			if c != ':' {
				return p.broken(event.BadArguments)
			}
			m.pos++
			j.at = jsonBefore
		case jsonBefore:
			m.start = m.pos
			m.lex.Reset()
			if j.field == argsField {
				if j.begun {
					return p.broken(event.Duplicate)
				}
				if c == '[' { // it is read to its end, because tags inside it are data
					p.fail(event.BadArguments, m.pos)
					j.field = otherField
				} else if c != '{' && c != '"' && c != 'n' {
					return p.broken(event.BadArguments)
				}
				j.begun = true
				if j.stream = c == '{' && j.named; j.stream {
					p.startCall(m.pos)
				}
			}
			if j.field == nameField && (c != '"' || j.named) {
				return p.broken(event.BadName)
			}
			j.at = jsonValue
		case jsonValue:
			if !p.jsonMember() {
				return m.state != stJSON
			}
		case jsonAfter:
			switch {
			case c == ',':
				m.pos++
				j.at = jsonKey
			case c == '}':
				m.pos++
				return p.endJSON()
			case j.begun && p.tag.Close.Text != "" && c == p.tag.Close.Text[0]:
				// The outer brace is missing. The closing tag is the delimiter that makes the arguments whole.
				n := 0
				st, end := scan.Match(m.win, m.pos, p.tag.Close.Text, &n)
				if st == scan.More {
					return false
				}
				if st == scan.No || !p.is(p.tag.Close.Text, end) {
					return p.broken(event.BadArguments)
				}
				return p.endJSON()
			default:
				return p.broken(event.BadArguments)
			}
			m.start = m.pos
		}
	}
	if j.at != jsonInKey && j.at != jsonValue {
		m.start = m.pos
	}
	return false
}

// keyed takes the name of a call from the key of its only member.
func (p *tagged) keyed(quoted []byte) bool {
	j := &p.json
	if j.field = argsField; j.named {
		return false
	}
	p.call.name = jsontext.AppendUnquoted(p.call.name[:0], quoted)
	j.named = len(p.call.name) > 0
	return j.named
}

// jsonMember reads on in a value and reports whether it is complete.
func (p *tagged) jsonMember() bool {
	m, j := p.machine, &p.json
	n, st := m.lex.Scan(m.win[m.pos:])
	m.pos += n
	if j.field == idField && m.pos-m.start > m.c.g.MaxHold {
		j.field = otherField // none
	}
	switch {
	case j.field == otherField:
		m.start = m.pos
	case j.field == idField:
	case j.stream:
		to := m.pos
		if st == jsontext.Open {
			to = p.whole(m.start, to)
		}
		p.verbatim(to)
	case m.pos-m.start > m.lim.HeldBytes, j.field == nameField && m.pos-m.start > 4*m.c.g.MaxHold:
		p.fail(event.LimitExceeded, m.pos)
		j.field, m.start = otherField, m.pos
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
	raw := m.win[m.start:m.pos]
	switch {
	case j.field == nameField:
		m.call.name = jsontext.AppendUnquoted(m.call.name[:0], raw)
		if len(m.call.name) == 0 {
			p.broken(event.BadName)
			return false
		}
		j.named = true
		if j.begun && !p.heldArguments(j.args) {
			return false
		}
	case j.field == idField && raw[0] == '"' && j.named: // too late for the start of the call
		m.call.late = jsontext.AppendUnquoted(m.call.late[:0], raw)
	case j.field == idField && raw[0] == '"':
		m.call.id = jsontext.AppendUnquoted(m.call.id[:0], raw)
	case j.field == argsField && !j.stream:
		if j.args = append(j.args[:0], raw...); j.named && !p.heldArguments(j.args) {
			return false
		}
	}
	m.start = m.pos
	j.at, j.stream = jsonAfter, false
	return true
}

// heldArguments starts the call and emits arguments that could not be streamed, because they came before the name, as a
// JSON string that contains the object, or as null.
func (p *tagged) heldArguments(raw []byte) bool {
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

// endJSON completes the call at the end of its object, so that it is dispatched before the closing tag.
func (p *tagged) endJSON() bool {
	j := &p.json
	if !j.named && !p.call.failed {
		if !p.listed {
			return p.broken(event.BadName)
		}
		p.abort(event.BadName, p.pos) // the next one may be a call
	}
	var flags event.Flags
	if !j.begun && p.call.open {
		if p.rules.needArguments {
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
	case p.listed:
		p.call.flags |= flags
		p.state, p.step = stList, listAfter
	case p.tag.NeedClose:
		p.call.flags |= flags
		p.lit, p.state = 0, stEnd
	default:
		p.endCall(p.pos, flags)
		p.afterCall()
	}
	return true
}

func (p *tagged) fieldOf(quoted []byte) jsonField {
	c := p.tag.Body.Call
	if len(c.Name) == 0 {
		return keyedField
	}
	key := string(quoted[1 : len(quoted)-1])
	if slices.Contains(c.Name, key) {
		return nameField
	}
	if slices.Contains(c.Arguments, key) {
		return argsField
	}
	if key == "id" || key == "tool_call_id" {
		return idField
	}
	return otherField
}

// repair appends the missing closing brackets of the arguments, if the closing tag of the call follows.
func (p *tagged) repair() bool {
	switch _, st := p.expect(p.sets.callClose); st {
	case scan.More:
		return false
	case scan.No:
		return p.broken(event.BadArguments)
	}
	n := len(p.out)
	p.out = p.lex.AppendClosers(p.out)
	p.arguments(p.out[n:len(p.out):len(p.out)], p.mark)
	p.endCall(p.pos, event.Recovered|event.Repaired)
	p.layout.afterBlock()
	return true
}
