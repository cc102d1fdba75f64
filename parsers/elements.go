// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"bytes"

	"github.com/weft-go/weft/parsers/args"
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// elem is the element that the machine is in, in layout grammar.Elements. Tools and calls interrupt reasoning, which
// goes on behind them.
type elem uint8

const (
	elemNone elem = iota
	elemText
	elemReasoning
)

// elementMarker handles the marker that ended a run.
func (p *Parser) elementMarker(r role) {
	switch r {
	case roleOpen:
		p.holdTag(stOpen)
	case roleClose:
		p.holdTag(stClose)
	case roleTurn:
		p.endElement()
		p.start = p.pos
		p.newRun()
	default:
		p.strip()
	}
}

// holdTag begins to read a tag whose first marker was just found.
func (p *Parser) holdTag(s state) {
	if !p.untouched() {
		p.flush(p.mark, true)
		p.start = max(p.start, p.mark)
	}
	p.openAt = p.mark
	p.from, p.node = p.pos, 0
	p.state = s
}

// tag reads up to the marker that ends a tag. It reports whether that is the separator; done is false while more is
// needed. The text of the tag is win[from:mark].
func (p *Parser) tag() (sep, done bool) {
	s := p.c.elements
	m := p.find(s)
	if m < 0 {
		p.mark = p.free(s)
		if p.final {
			p.mark = len(p.win)
		}
	}
	if limit := p.from + p.c.g.MaxHold; p.mark > limit || m < 0 && p.final {
		p.mark = min(p.mark, limit)
		p.pos, p.node = p.mark, 0
		return false, true
	}
	if m >= 0 {
		return s.markers[m].role == roleSep, true
	}
	return false, false
}

// elementOpen reads an opening tag and enters its element.
func (p *Parser) elementOpen() bool {
	sep, done := p.tag()
	if !done {
		return false
	}
	e := p.c.g.Elements
	name, attrs := cutName(p.win[p.from:p.mark])
	tagEnd := p.pos
	if !sep && p.final && string(name) == e.Call { // the stream ends in it
		p.settleAt(p.openAt)
		if p.beginCall(p.openAt) {
			p.abort(event.Truncated, len(p.win))
			p.start = len(p.win)
		}
		return false
	}
	if !sep && p.final && p.isElement(name) {
		p.settleAt(p.openAt)
		p.start = len(p.win)
		return false
	}
	if !sep { // not a tag: the marker goes, the text stays
		text, next := p.from, p.mark
		p.settleAt(p.openAt)
		p.runOpen = true // the text goes on
		p.start, p.pos = text, next
		p.state = stText
		return true
	}
	switch string(name) {
	case e.Reasoning, e.Text:
		if p.in.elem == elemReasoning && p.echoable && !p.runOpen && string(name) == e.Reasoning {
			p.start, p.echoable = tagEnd, false // the prompt opened it already
			p.newRun()
			p.state = stText
			return true
		}
		p.settleAt(p.openAt)
		p.endElement()
		p.start = tagEnd
		p.newRun()
		p.in.elem = elemText
		if string(name) == e.Reasoning {
			p.in.elem, p.reasoning = elemReasoning, true
		}
		p.state = stText
	case e.Call:
		p.settleAt(p.openAt)
		if !p.beginCall(p.openAt) {
			return false
		}
		p.start = tagEnd
		p.param.reset()
		p.call.name = append(p.call.name, attr(attrs, e.ToolAttr)...)
		if len(p.call.name) == 0 {
			return p.broken(event.BadName)
		}
		p.startCall(tagEnd)
		p.state = stCall
	default: // tools, and elements that mean nothing here
		p.settleAt(p.openAt)
		p.start = tagEnd
		p.newRun()
		p.state = stText
	}
	return true
}

// isElement reports whether name is that of an element of the family.
func (p *Parser) isElement(name []byte) bool {
	e := p.c.g.Elements
	for _, n := range []string{e.Reasoning, e.Text, e.Tools, e.Call, e.Argument, e.Object} {
		if string(name) == n {
			return true
		}
	}
	return false
}

// settleAt is settle with the marker at window position at.
func (p *Parser) settleAt(at int) {
	p.mark = at
	p.settle()
}

// endElement leaves the element of text or reasoning.
func (p *Parser) endElement() {
	p.settleAt(p.mark)
	p.reasoning = false
	p.in.elem = elemNone
	p.endBlock()
}

// elementClose reads a closing tag. Its separator gets lost at times; the name of the open element is enough then.
func (p *Parser) elementClose() bool {
	sep, done := p.tag()
	if !done {
		return false
	}
	e := p.c.g.Elements
	text := p.win[p.from:p.mark]
	open := ""
	switch p.in.elem {
	case elemText:
		open = e.Text
	case elemReasoning:
		open = e.Reasoning
	}
	trimmed := bytes.TrimLeft(text, " \n\t\r")
	next := p.pos
	if !sep {
		next = p.from // an orphan: the marker goes, the text stays
		if open != "" && bytes.HasPrefix(trimmed, []byte(open)) {
			next = p.mark - len(trimmed) + len(open)
		}
	}
	p.mark = p.openAt
	if open != "" && (sep && string(bytes.TrimSpace(text)) == open || !sep && next > p.from) {
		p.endElement()
	} else if sep && string(bytes.TrimSpace(text)) == e.Turn {
		p.endElement()
	} else {
		p.flush(p.mark, true)
	}
	p.start, p.pos, p.node = next, next, 0
	if p.in.elem == elemNone {
		p.newRun()
	}
	p.state = stText
	return true
}

// inner is what innerTag came to.
type inner uint8

const (
	innerMore inner = iota // more is needed
	innerNone              // something that is no tag was dropped
	innerTurn              // the end of the turn, around mark and pos
	innerRead              // a tag; shut says whether it is a closing one
)

// innerTag reads the next tag inside a call and drops what stands before it. at is where the tag begins; name and attrs
// are views of the window.
func (p *Parser) innerTag() (name, attrs []byte, at int, r inner) {
	if p.openAt < p.start { // no tag is open
		s := p.c.elements
		m := p.find(s)
		if m < 0 {
			p.start = p.free(s)
			return nil, nil, 0, innerMore
		}
		p.start = p.mark
		switch s.markers[m].role {
		case roleOpen, roleClose:
			p.openAt, p.from = p.mark, p.pos
			p.shut = s.markers[m].role == roleClose
		case roleTurn:
			return nil, nil, 0, innerTurn
		default:
			p.start, p.openAt = p.pos, -1
			return nil, nil, 0, innerNone
		}
	}
	sep, done := p.tag()
	if !done {
		return nil, nil, 0, innerMore
	}
	at, p.openAt = p.openAt, -1
	if !sep {
		p.start, p.pos = p.mark, p.mark
		return nil, nil, 0, innerNone
	}
	name, attrs = cutName(p.win[p.from:p.mark])
	return name, attrs, at, innerRead
}

// elementCall reads inside a call, between its arguments. What is not a tag there is dropped.
func (p *Parser) elementCall() bool {
	e := p.c.g.Elements
	p.state = stCall
	name, attrs, at, r := p.innerTag()
	switch r {
	case innerMore:
		return false
	case innerNone:
		return true
	case innerTurn:
		return p.endElementCall(p.mark, event.Recovered)
	}
	tagEnd := p.pos
	p.start = tagEnd
	if p.shut {
		switch string(name) {
		case e.Call:
			return p.endElementCall(tagEnd, 0)
		case e.Tools, e.Turn, e.Reasoning, e.Text: // the call's own closing tag is missing
			return p.endElementCall(at, event.Recovered)
		}
		return true
	}
	switch string(name) {
	case e.Argument:
		key := attr(attrs, e.KeyAttr)
		types := args.Any &^ args.String
		p.param.schema = false
		switch t := attr(attrs, e.TypeAttr); {
		case string(t) == e.StringType:
			types = args.String
		case t == nil:
			types, p.param.schema = p.call.schema.Of(key), true
		}
		p.beginValue(key, types, false)
		return true
	case e.Object:
		if !p.param.empty() {
			p.fail(event.Duplicate, p.pos)
		}
		p.param.object = true
		p.lex.Reset()
		p.state = stArgs
		return true
	default: // another call or frame begins
		return p.endElementCall(at, event.Recovered)
	}
}

// endElementCall completes the call; its markup ends at window position to, where reading goes on.
func (p *Parser) endElementCall(to int, flags event.Flags) bool {
	p.start, p.pos, p.node = to, to, 0
	p.openAt = -1
	p.arguments(p.made(p.param.end()), to)
	p.endCall(to, flags)
	p.newRun()
	p.state = stText
	return true
}

// confirmElement decides, behind a closing marker inside a value, whether the value ends there: the closing tag must be
// that of an argument, or of the call, and behind it must stand what may follow one.
func (p *Parser) confirmElement() bool {
	for {
		s := p.c.behindElem[p.step]
		m, st := p.expect(s)
		if p.anchor-p.closeAt > p.c.g.MaxHold {
			st = scan.No // too much white space
		}
		if st == scan.Yes && p.param.closer == 1 && m == 0 && p.step >= elemOpens {
			st = scan.No // what follows an argument does not follow a call
		}
		switch st {
		case scan.More:
			if !p.final || p.step < elemBehind {
				return false
			}
			p.step = elemBehind // nothing follows: the value is whole
		case scan.No:
			p.node, p.pos = 0, p.closeEnd
			p.state = stValue
			return true
		}
		switch p.step {
		case elemName:
			p.param.closer = uint8(m)
			p.step = elemSep
			continue
		case elemSep:
			p.nextAt = p.pos
			p.step = elemBehind
			continue
		case elemBehind:
			if st == scan.Yes && s.markers[m].role == roleOpen {
				p.step = elemOpens
				continue
			}
			if st == scan.Yes && s.markers[m].role == roleClose {
				p.step = elemCloses
				continue
			}
		}
		p.closeEnd = p.nextAt
		if p.param.closer == 1 { // the tag is read again as that of the call
			p.closeEnd = p.closeAt
			p.call.flags |= event.Recovered
		}
		p.endValue()
		p.openAt = -1
		p.state = stCall
		return true
	}
}

// skipElement drops the rest of a call that was aborted, up to the end of its element or block or the next call.
func (p *Parser) skipElement() bool {
	e := p.c.g.Elements
	name, _, at, r := p.innerTag()
	switch r {
	case innerMore:
		return false
	case innerNone:
		return true
	case innerTurn:
		p.start = p.pos
		return true
	}
	p.start = p.pos
	n := string(name)
	switch {
	case p.shut && (n == e.Call || n == e.Tools):
		p.newRun()
		p.state = stText
	case p.shut && n == e.Turn, !p.shut && (n == e.Call || n == e.Reasoning || n == e.Text || n == e.Tools):
		p.start, p.pos, p.node = at, at, 0
		p.newRun()
		p.state = stText
	}
	return true
}

// cutName splits the text of a tag into the element's name and its attributes.
func cutName(text []byte) (name, attrs []byte) {
	work.Add(len(text))
	text = bytes.TrimSpace(text)
	for i, c := range text {
		if blank(c) {
			return text[:i], text[i:]
		}
	}
	return text, nil
}

// attr returns the value of attribute key, with &quot; and &amp; decoded, or nil.
func attr(attrs []byte, key string) []byte {
	work.Add(len(attrs))
	for len(attrs) > 0 {
		attrs = bytes.TrimLeft(attrs, " \n\t\r")
		eq := bytes.IndexByte(attrs, '=')
		if eq < 0 {
			return nil
		}
		k := bytes.TrimSpace(attrs[:eq])
		attrs = bytes.TrimLeft(attrs[eq+1:], " \n\t\r")
		if len(attrs) == 0 || attrs[0] != '"' {
			return nil
		}
		end := bytes.IndexByte(attrs[1:], '"')
		if end < 0 {
			return nil
		}
		v := attrs[1 : 1+end]
		attrs = attrs[2+end:]
		if string(k) == key {
			if bytes.IndexByte(v, '&') >= 0 {
				v = bytes.ReplaceAll(bytes.ReplaceAll(v, []byte("&quot;"), []byte(`"`)), []byte("&amp;"), []byte("&"))
			}
			return append([]byte{}, v...)
		}
	}
	return nil
}
