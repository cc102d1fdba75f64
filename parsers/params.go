// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"github.com/weft-go/weft/parsers/internal/args"
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// What may end a value, and with it the rest of what is open. The numbers are indices of tagSets.following; after closerBlock
// and closerSection a second step follows.
const (
	closerOwn     uint8 = iota // the parameter's own closing tag
	closerCall                 // the call's
	closerBlock                // the block's, if another block with a call begins
	_                          // and the call in it
	closerSection              // the end of a CDATA section, if the parameter's own closing tag follows
	_                          // and what may follow that
	closerNext                 // the next parameter
)

// cdata opens a CDATA section.
const cdata = "<![CDATA["

// params reads up to the next parameter or the end of the call. Anything else there is markup and dropped.
func (p *tagged) params() bool {
	s := p.sets.between
	var m int
	if p.param.closed {
		end := p.pos
		if p.param.bare {
			if !p.commit() {
				return false
			}
			p.startCall(end)
		}
		p.start, p.pos = end, end
		p.endParams(end, 0)
		return true
	}
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
			if p.tag.Open.Token {
				return p.truncatedOpener()
			}
		}
		if st == scan.No && p.tag.Body.Params.Object && p.pos-p.openAt <= 2*p.c.g.MaxHold && p.win[p.pos] == '{' {
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
		if p.tag.Body.Params.Object && !p.param.tagged && p.param.empty() && p.node == 0 && p.objectBegins() {
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
	case roleParamClose: // a duplicate, or the tag of a parameter whose opening tag is missing
		if p.param.stray {
			return p.broken(event.BadStructure)
		}
	case roleParamOpen:
		p.state, p.from, p.lit = stKey, p.pos, 0
	case roleCallClose:
		p.endParams(p.pos, 0)
	case roleAround: // the message around the block ends
		p.pos, p.start = p.mark, p.mark
		p.endParams(p.mark, event.Recovered)
		p.layout.afterBlock()
	default:
		if p.tag.NeedClose && !(p.param.empty() && !p.param.stray && s.markers[m].role == roleWrapClose) {
			p.pos, p.start = p.mark, p.mark
			return p.broken(event.BadStructure)
		}
		// The block ends or another begins: every value was closed, only the call's own tag is missing.
		p.pos, p.start = p.mark, p.mark
		p.endParams(p.mark, event.Recovered)
	}
	return true
}

// stray reports whether anything but white space comes before window position to, where a parameter or the end of the
// call is expected.
func (p *tagged) stray(to int) bool {
	for _, c := range p.win[p.start:max(to, p.start)] {
		if !blank(c) {
			return true
		}
	}
	return false
}

// objectBegins enters one JSON object that replaces the parameters.
func (p *tagged) objectBegins() bool {
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
func (p *tagged) bareCallOfObject() bool {
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
func (p *tagged) endParams(to int, flags event.Flags) {
	if p.param.stray {
		if flags |= event.Recovered; p.param.empty() { // possibly the arguments, in another form
			p.fail(event.BadStructure, to)
		}
	}
	p.arguments(p.made(p.param.end()), to)
	p.endCall(to, flags)
	p.node = 0
	switch {
	case p.wrapper:
		p.state = stClosing
	case p.inMessage:
		p.layout.afterBlock()
	default:
		p.newRun()
		p.state = stText
	}
}

// paramKey reads the key of a parameter.
func (p *tagged) paramKey() bool {
	c := p.tag.Body.Params
	key, st := p.word(p.sets.keyEnds, "")
	switch st {
	case scan.More:
		return false
	case scan.No:
		return p.broken(event.BadStructure)
	}
	key = unquoted(key)
	p.param.key = append(p.param.key[:0], key...)
	p.param.types, p.param.schema = p.call.schema.Of(key), true
	if p.rules.untypedJSON && !p.call.schema.Knows(key) {
		p.param.types, p.param.schema = args.Any, false
	}
	if c.Value == "" {
		p.beginValue(p.param.key, p.param.types)
		return true
	}
	p.from, p.lit = p.pos, 0
	p.state = stAttr
	return true
}

// attribute reads the bytes between the key of a parameter and its value: white space, and possibly the attribute that
// specifies whether the value is raw text.
func (p *tagged) attribute() bool {
	c := p.tag.Body.Params
	if c.Attr == "" {
		for p.lit == 0 && p.pos < len(p.win) && blank(p.win[p.pos]) && p.pos-p.from < p.c.g.MaxHold {
			work.Add(1)
			p.pos++
		}
	}
	if c.Value == cdata {
		st, at := scan.Match(p.win, p.pos, c.Value, &p.lit)
		if st == scan.More && !p.final {
			p.pos = at
			return false
		}
		if p.param.set = p.sets.section; st != scan.Yes {
			p.param.set, at = p.sets.value, p.from
		}
		p.pos, p.lit = at, 0
		p.beginValue(p.param.key, p.param.types)
		return true
	}
	if c.Attr == "" {
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
		text, st := p.word(p.sets.valueOpens, "")
		if st == scan.No {
			return p.broken(event.BadStructure)
		}
		if st == scan.More {
			return false
		}
		known := p.call.schema.Knows(p.param.key)
		switch v := attr(text, c.Attr); {
		case known && p.rules.typedBySchema:
		case p.rules.unwrap && !known && p.param.empty() && (string(p.param.key) == "arguments" || string(p.param.key) == "input"):
			p.param.types, p.param.schema, p.param.unwrap = args.Any&^args.String, false, true
		case string(v) == "true":
			p.param.types, p.param.schema = args.String, false
		case string(v) == "false":
			p.param.types, p.param.schema = args.Any&^args.String, false
		default: // the model omitted it
			if !known {
				p.param.types, p.param.schema = args.Any, false
			}
		}
	}
	p.beginValue(p.param.key, p.param.types)
	return true
}

// mayEndValue implements layout.
func (p *tagged) mayEndValue(r role) bool {
	v := &p.param
	switch r {
	case roleCallOpen: // a call is quoted: its closing tags are data too
		v.quoting = true
		return false
	case roleParamOpen:
		if v.quoting || v.newline && (p.mark <= p.start || p.win[p.mark-1] != '\n') {
			return false
		}
		v.closer = closerNext
	case roleCallClose:
		v.closer = closerCall
	case roleWrapClose:
		v.closer = closerBlock
	case roleSectionClose:
		v.closer = closerSection
	default:
		v.closer = closerOwn
	}
	return true
}

// endsJSON implements layout. What follows the value does not matter: params reads it.
func (p *tagged) endsJSON(r role) bool {
	if r != roleParamClose && r != roleSectionClose { // params reads the tag again
		p.closeEnd = p.closeAt
		p.call.flags |= event.Recovered
	}
	p.endValue()
	p.state = stParams
	return true
}

// confirmParam determines whether a tag ends a value: the next parameter or the end of the call must follow.
func (p *tagged) confirmParam() bool {
	v := &p.param
	if v.quoting && v.closer != closerOwn {
		return p.notTheEnd()
	}
	if v.closer == closerNext {
		return p.confirmNext()
	}
	following := p.sets.following[v.closer+p.step]
	if v.closer <= closerCall && p.step > 0 {
		following = p.sets.following[closerBlock+1]
	}
	m, st := p.expect(following)
	if p.anchor-p.closeAt > p.c.g.MaxHold {
		st = scan.No // too much white space
	}
	switch {
	case st == scan.More && (!p.final || p.cut || v.closer == closerOwn || v.closer == closerSection):
		return false // at the end of output that was not cut, the closing tag of the call or block is enough
	case st == scan.No:
		return p.notTheEnd()
	case st == scan.Yes && v.closer <= closerCall && following.markers[m].role == roleWrapOpen: // a block, if a call begins in it
		p.step = 1
		return true
	case st == scan.Yes && (v.closer == closerBlock || v.closer == closerSection) && p.step == 0:
		if p.step = 1; v.closer == closerSection {
			p.closeEnd = p.pos
		}
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

// confirmNext decides whether the opening tag of a parameter at the beginning of a line ends a value whose own closing
// tag is missing: its key must be one that the tool declares and the call does not have yet. vLLM's qwen3_coder parser
// has the same rule.
func (p *tagged) confirmNext() bool {
	key, st := p.word(p.sets.keyEnds, "")
	key = unquoted(key)
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

// cutCall implements layout.
func (p *tagged) cutCall() bool {
	if p.rules.unclosed && p.tag != nil && p.state == stEnd && !p.call.failed {
		p.endCall(len(p.win), event.Recovered)
		return true
	}
	if !p.rules.emitTruncated || p.tag == nil || p.call.failed || p.state != stValue && p.state != stConfirm ||
		p.param.types != args.String {
		return false
	}
	if p.closeEnd = len(p.win); p.state == stValue {
		p.closeAt = len(p.win)
	}
	p.endValue()
	p.endParams(len(p.win), event.Recovered|event.Repaired)
	return true
}
