// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"github.com/weft-go/weft/parsers/args"
	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/parsers/internal/keys"
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// What may end a value, and with it the rest of what is open. The numbers are indices of compiled.behind; behind closerBlock
// a second step follows.
const (
	closerOwn   uint8 = iota // the parameter's own closing tag
	closerCall               // that of the call
	closerBlock              // that of the block, when another block with a call begins
	_                        // and the call in it
	closerNext               // the next parameter
)

// paramState is the state of arguments that are written one by one as raw text, in tags or elements, and typed by
// the tool's schema. Strings stream as JSON string fragments; other values are held until they close.
type paramState struct {
	bare    bool // the call has no wrapper and may still be prose
	lead    bool // the structural newline before the value may follow
	stray   bool // something else than parameters stands in the call
	quoting bool // the opening tag of a call was seen in the value
	opened  bool // of a string: its opening quote was emitted
	tagged  bool // something that is no object stands behind the name
	closer  uint8
	types   args.Types
	schema  bool // types are those of the schema, which may know more
	key     []byte
	seen    keys.Set // keys of this call
	object  bool     // one object holds all the arguments
}

func (s *paramState) reset() {
	s.seen.Reset()
	*s = paramState{key: s.key[:0], seen: s.seen}
}

// params reads up to the next parameter or the end of the call. Anything else there is markup and dropped.
func (p *Parser) params() bool {
	s := p.c.between
	var m int
	if p.param.bare {
		var st scan.Prefix
		m, st = p.expect(s)
		if p.anchor-p.openAt > 2*p.c.g.MaxHold {
			st = scan.No
		}
		if st == scan.More {
			if !p.final {
				return false
			}
			if p.c.tag.Open.Token {
				return p.truncatedOpener()
			}
		}
		if st == scan.No && p.c.tag.Body.Params.Object && p.pos-p.openAt <= 2*p.c.g.MaxHold && p.win[p.pos] == '{' {
			return p.bareCallOfObject()
		}
		if st != scan.Yes || s.markers[m].role != roleParamOpen && s.markers[m].role != roleCallClose {
			return p.doubt(p.from)
		}
		p.param.bare = false
		end := p.pos
		if !p.commit() {
			return false
		}
		p.startCall(end)
		p.pos = end
	} else {
		if p.c.tag.Body.Params.Object && !p.param.tagged && p.param.empty() && p.node == 0 && p.objectBegins() {
			return true
		}
		if m = p.find(s); m < 0 {
			to := p.free(s)
			p.param.stray = p.param.stray || p.stray(to)
			p.start = to
			return false
		}
		p.param.stray = p.param.stray || p.stray(p.mark)
	}
	p.start = p.pos
	switch s.markers[m].role {
	case roleParamClose: // one too many, or that of a parameter whose opening tag is lost
		if p.param.stray {
			return p.broken(event.BadStructure)
		}
	case roleParamOpen:
		p.state, p.from, p.lit = stKey, p.pos, 0
	case roleCallClose:
		p.endParams(p.pos, 0)
	case roleSection, roleEnd: // the message around the block ends
		p.pos, p.start = p.mark, p.mark
		p.endParams(p.mark, event.Recovered)
		p.afterBlock()
	default:
		if p.c.tag.NeedClose {
			p.pos, p.start = p.mark, p.mark
			return p.broken(event.BadStructure)
		}
		// The block ends or another begins: every value was closed, only the call's own tag is missing.
		p.pos, p.start = p.mark, p.mark
		p.endParams(p.mark, event.Recovered)
	}
	return true
}

// stray reports whether something other than white space stands before window position to, where a parameter or the end of
// the call is due.
func (p *Parser) stray(to int) bool {
	for _, c := range p.win[p.start:max(to, p.start)] {
		if !blank(c) {
			return true
		}
	}
	return false
}

// objectBegins enters one JSON object that stands in place of the parameters.
func (p *Parser) objectBegins() bool {
	i := p.pos
	for i < len(p.win) && blank(p.win[i]) {
		work.Add(1)
		i++
	}
	if i == len(p.win) {
		return false
	}
	if p.win[i] != '{' {
		p.param.tagged = true
		return false
	}
	p.start, p.pos = i, i
	p.param.object = true
	p.lex.Reset()
	p.state = stArgs
	return true
}

// bareCallOfObject starts a call without a wrapper whose arguments are the object at pos.
func (p *Parser) bareCallOfObject() bool {
	at := p.pos
	p.param.bare = false
	if !p.commit() {
		return false
	}
	p.startCall(at)
	p.pos = at
	return p.objectBegins()
}

// endParams completes a call whose markup ends at window position to.
func (p *Parser) endParams(to int, flags event.Flags) {
	if p.param.stray {
		if flags |= event.Recovered; p.param.empty() { // perhaps the arguments, in some other form
			p.fail(event.BadStructure, to)
		}
	}
	p.arguments(p.made(p.param.end()), to)
	p.endCall(to, flags)
	p.node = 0
	if p.in.wrapper {
		p.state = stClosing
		return
	}
	p.newRun()
	p.state = stText
}

// end returns what ends the object of arguments.
func (s *paramState) end() []byte {
	switch {
	case s.empty():
		return []byte("{}")
	case s.object:
		return nil
	}
	return []byte("}")
}

// paramKey reads the key of a parameter.
func (p *Parser) paramKey() bool {
	c := p.c.tag.Body.Params
	key, st := p.word(p.c.keyEnds, "")
	switch st {
	case scan.More:
		return false
	case scan.No:
		return p.broken(event.BadStructure)
	}
	p.param.key = append(p.param.key[:0], key...)
	p.param.types, p.param.schema = p.call.schema.Of(key), true
	if c.Value == "" {
		p.beginValue(p.param.key, p.param.types, c.Newline)
		return true
	}
	p.from, p.lit = p.pos, 0
	p.state = stAttr
	return true
}

// attribute reads what stands between the key of a parameter and its value: white space, and perhaps the attribute
// that says whether the value is raw text.
func (p *Parser) attribute() bool {
	c := p.c.tag.Body.Params
	if c.Attr == "" {
		for p.lit == 0 && p.pos < len(p.win) && blank(p.win[p.pos]) && p.pos-p.from < p.c.g.MaxHold {
			work.Add(1)
			p.pos++
		}
		st, at := scan.Match(p.win, p.pos, c.Value, &p.lit)
		if p.pos = at; st == scan.No {
			p.pos = p.from
			return p.broken(event.BadStructure)
		}
		if st == scan.More {
			return false
		}
		if p.lit = 0; !p.is(c.Value, at) {
			p.pos = p.from
			return p.broken(event.BadStructure)
		}
	} else {
		text, st := p.word(p.c.valueOpens, "")
		if st == scan.No {
			return p.broken(event.BadStructure)
		}
		if st == scan.More {
			return false
		}
		switch v := attr(text, c.Attr); string(v) {
		case "true":
			p.param.types, p.param.schema = args.String, false
		case "false":
			p.param.types, p.param.schema = args.Any&^args.String, false
		default: // the model left it out
			if !p.call.schema.Knows(p.param.key) {
				p.param.types, p.param.schema = args.Any, false
			}
		}
	}
	p.beginValue(p.param.key, p.param.types, c.Newline)
	return true
}

// beginValue opens the value of key behind window position pos.
func (p *Parser) beginValue(key []byte, types args.Types, newline bool) {
	v := &p.param
	switch {
	case p.call.failed:
	case v.object:
		p.fail(event.Duplicate, p.pos)
	default:
		switch v.seen.Add(key, p.lim.Parameters) {
		case keys.Known:
			p.fail(event.Duplicate, p.pos)
		case keys.Full:
			p.fail(event.LimitExceeded, p.pos)
		default:
			v.key = append(v.key[:0], key...)
		}
	}
	v.types, v.lead, v.opened, v.quoting = types, newline, false, false
	p.start, p.node = p.pos, 0
	p.state = stValue
}

// has reports whether key was seen, or the call has no separate arguments because one object holds them all.
func (s *paramState) has(key []byte) bool { return s.object || s.seen.Has(key) }

// empty reports whether no argument was seen.
func (s *paramState) empty() bool { return !s.object && s.seen.Len() == 0 }

// value reads on in a value.
func (p *Parser) value() bool {
	v := &p.param
	if v.lead {
		if p.start == len(p.win) {
			return false
		}
		if v.lead = false; p.win[p.start] == '\n' {
			p.start++
			p.pos = max(p.pos, p.start)
		}
	}
	s := p.valueSet()
	m := p.find(s)
	if m < 0 {
		p.growValue(p.free(s))
		return false
	}
	switch s.markers[m].role {
	case roleCallOpen: // a call is quoted: its closing tags are data too
		v.quoting = true
		return true
	case roleParamOpen:
		if v.quoting || p.mark <= p.start || p.win[p.mark-1] != '\n' {
			return true
		}
		v.closer = closerNext
	case roleCallClose:
		v.closer = closerCall
	case roleWrapClose:
		v.closer = closerBlock
	default:
		v.closer = closerOwn
	}
	p.growValue(p.mark)
	p.closeAt, p.closeEnd = p.mark, p.pos
	p.from = p.pos
	p.step, p.lit, p.node = 0, 0, 0
	p.state = stConfirm
	return true
}

func (p *Parser) valueSet() *markerSet {
	if p.c.elemClose != nil {
		return p.c.elemClose
	}
	return p.c.value
}

// growValue passes on what of the value cannot belong to its end, or checks what is held.
func (p *Parser) growValue(to int) {
	if p.param.types != args.String && !p.call.failed {
		if to-p.start <= p.lim.HeldBytes {
			return
		}
		p.fail(event.LimitExceeded, to)
	}
	if to = p.whole(p.start, p.unlined(to)); to > p.start {
		p.stringPart(to)
	}
}

// unlined returns the window position before the structural newline that ends a value at to, if the family writes one.
func (p *Parser) unlined(to int) int {
	if t := p.c.tag; t != nil && t.Body.Params.Newline && to > p.start && p.win[to-1] == '\n' {
		to--
	}
	return to
}

// stringPart emits win[start:to] as part of a JSON string.
func (p *Parser) stringPart(to int) {
	if p.call.failed {
		p.start = to
		return
	}
	n := len(p.out)
	p.openString()
	p.out = jsontext.AppendEscaped(p.out, p.win[p.start:to])
	p.start = to
	p.arguments(p.out[n:len(p.out):len(p.out)], to)
}

// openString appends to out what comes before the first byte of a string value, once.
func (p *Parser) openString() {
	if !p.param.opened {
		p.param.opened = true
		p.member()
		p.out = append(p.out, '"')
	}
}

// member appends to out what comes before the value of key.
func (p *Parser) member() {
	c := byte('{')
	if p.param.seen.Len() > 1 {
		c = ','
	}
	p.out = append(p.out, c)
	p.out = append(jsontext.AppendQuoted(p.out, p.param.key), ':')
}

// endValue emits the rest of a value that ends at closeAt and goes on behind its closer, at closeEnd.
func (p *Parser) endValue() {
	v := &p.param
	if p.call.failed {
		p.start, p.pos, p.node = p.closeEnd, p.closeEnd, 0
		return
	}
	to := p.unlined(p.closeAt)
	n := len(p.out)
	if v.types == args.String {
		p.openString()
		p.out = append(jsontext.AppendEscaped(p.out, p.win[p.start:to]), '"')
	} else {
		p.member()
		if raw := p.win[p.start:to]; v.schema {
			p.out = p.call.schema.Param(v.key).AppendValue(p.out, raw)
		} else {
			p.out = args.AppendValue(p.out, raw, v.types)
		}
	}
	p.start, p.pos, p.node = p.closeEnd, p.closeEnd, 0
	p.arguments(p.out[n:len(p.out):len(p.out)], p.closeEnd)
}

// confirmParam decides, behind what looks like the end of a value, whether it is: the next parameter or the end of the
// call must follow.
func (p *Parser) confirmParam() bool {
	v := &p.param
	if v.quoting && v.closer != closerOwn {
		return p.notTheEnd()
	}
	if v.closer == closerNext {
		return p.confirmNext()
	}
	_, st := p.expect(p.c.behind[v.closer+p.step])
	if p.anchor-p.closeAt > p.c.g.MaxHold {
		st = scan.No // too much white space
	}
	switch {
	case st == scan.More && !(p.final && v.closer != closerOwn):
		return false // at the end of the stream the closing tag of the call or block is enough
	case st == scan.No:
		return p.notTheEnd()
	case st == scan.Yes && v.closer == closerBlock && p.step == 0:
		p.step = 1
		return true
	}
	if v.closer == closerBlock { // params reads the tag again
		p.closeEnd = p.closeAt
	}
	p.endValue()
	p.state = stParams
	if v.closer == closerCall {
		p.endParams(p.closeEnd, event.Recovered)
	}
	return true
}

// notTheEnd goes on in a value behind what only looked like its end.
func (p *Parser) notTheEnd() bool {
	p.node, p.pos, p.lit = 0, p.closeEnd, 0
	p.state = stValue
	return true
}

// confirmNext decides whether the opening tag of a parameter at the beginning of a line ends a value whose own closing
// tag is missing: its key must be one that the tool declares and the call does not have yet. vLLM's qwen3_coder parser
// has the same rule.
func (p *Parser) confirmNext() bool {
	key, st := p.word(p.c.keyEnds, "")
	switch {
	case st == scan.More && !p.final:
		return false
	case st != scan.Yes || !p.call.schema.Knows(key) || p.param.has(key):
		return p.notTheEnd()
	}
	p.closeEnd = p.closeAt
	p.endValue()
	p.call.flags |= event.Recovered
	p.state = stParams
	return true
}
