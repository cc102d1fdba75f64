// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"bytes"
	"slices"
	"strings"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/args"
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// elements is layout grammar.Elements: named elements with attributes.
type elements struct {
	*machine
	sets *elementSets
	elem elem // current element
	shut bool // the tag being read is a closing one
}

// elementSets are the marker sets of the states of layout elements.
type elementSets struct {
	all       *markerSet                 // the markers that end a run of text, or that are parsed inside a call
	value     *markerSet                 // what may end an argument
	following [elemCloses + 1]*markerSet // what confirms the end of an argument, by step
}

// The names of elements and attributes, and the type of an argument that is raw text.
const (
	nameThink    = "think"
	nameResponse = "response"
	nameTools    = "tools"
	nameCall     = "call"
	nameArgument = "argument"
	nameObject   = "json"
	nameMessage  = "message"

	attrTool = "tool"
	attrKey  = "key"
	attrType = "type"

	typeString = "string"
)

// The roles of markers.
const (
	roleOpen role = roleNone + 1 + iota
	roleSep
	roleClose
	roleEndOfTurn
)

// The states of layout elements.
const (
	stOpen  state = stLayout + iota // the header of an element
	stClose                         // the closing tag of an element
	stCall                          // inside a call element, between arguments
)

// begin implements layout.
func (p *elements) begin(start Start) {
	switch start {
	case StartReasoning:
		p.reasoning, p.echoable, p.thought = true, true, true
		p.enter(elemReasoning)
	case StartResponse:
		p.enter(elemText)
	}
}

// enter makes e the current element.
func (p *elements) enter(e elem) { p.elem, p.framed = e, e == elemText }

// advance implements layout.
func (p *elements) advance() bool {
	switch p.state {
	case stConfirm:
		return p.confirmElement()
	case stCall:
		return p.elementCall()
	case stOpen:
		return p.elementOpen()
	case stClose:
		return p.elementClose()
	case stSkip:
		return p.skipElement()
	}
	return false
}

// jsonEnded implements layout.
func (p *elements) jsonEnded(how jsonEnd) bool {
	switch {
	case how == jsonDone:
		p.state, p.node = stCall, 0
		return true
	case how == jsonNone && p.pos == len(p.win):
		return false
	}
	return p.broken(event.BadArguments)
}

// mayEndValue implements layout.
func (p *elements) mayEndValue(role) bool {
	p.param.closer = 0
	return true
}

// endsJSON implements layout. Only the name after the marker tells whether it closes the argument.
func (p *elements) endsJSON(role) bool {
	p.param.doc = docNot
	p.pos, p.node = p.closeAt, 0
	return true
}

// afterBlock implements layout.
func (p *elements) afterBlock() {
	p.start = p.pos
	p.newRun()
	p.state = stText
}

// bareCall implements layout: every call has a tag.
func (p *elements) bareCall() (begun, waits bool) { return false, false }

// cutCall implements layout. An argument that was cut off is not repaired.
func (p *elements) cutCall() bool { return false }

// passes implements layout.
func (p *elements) passes() *plainRun { return nil }

// reset implements layout.
func (p *elements) reset() { *p = elements{machine: p.machine, sets: p.sets} }

// kept implements layout.
func (p *elements) kept() int { return 0 }

// elem is the element that the machine is in, in layout grammar.Elements. Tools and calls interrupt reasoning, which
// continues after them.
type elem uint8

const (
	elemNone elem = iota
	elemText
	elemReasoning
)

// The steps of the confirmation that an argument of an element ends.
const (
	elemName      uint8 = iota // the name of the argument, or of the call if the argument's own closing tag is missing
	elemSep                    // the separator
	elemFollowing              // the marker of the next tag
	elemOpens                  // the name of what opens
	elemCloses                 // the name of what closes
)

// marker implements layout.
func (p *elements) marker(m marker) {
	switch m.role {
	case roleOpen:
		p.holdTag(stOpen)
	case roleClose:
		p.holdTag(stClose)
	case roleEndOfTurn:
		p.endElement()
		p.start = p.pos
		p.newRun()
	default:
		p.strip()
	}
}

// holdTag begins to read a tag whose first marker was just found.
func (p *elements) holdTag(s state) {
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
func (p *elements) tag() (sep, done bool) {
	s := p.sets.all
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
func (p *elements) elementOpen() bool {
	sep, done := p.tag()
	if !done {
		return false
	}
	name, attrs := cutName(p.win[p.from:p.mark])
	tagEnd := p.pos
	if !sep && p.final && string(name) == nameCall { // the stream ends in it
		p.closeRunAt(p.openAt)
		if p.beginCall(p.openAt) {
			p.abort(event.Truncated, len(p.win))
			p.start = len(p.win)
		}
		return false
	}
	if !sep && p.final && p.isElement(name) {
		p.closeRunAt(p.openAt)
		p.start = len(p.win)
		return false
	}
	if !sep { // not a tag: drop the marker, keep the text
		text, next := p.from, p.mark
		p.closeRunAt(p.openAt)
		p.runOpen = true // the text continues
		p.start, p.pos = text, next
		p.state = stText
		return true
	}
	switch string(name) {
	case nameThink, nameResponse:
		if p.elem == elemReasoning && p.echoable && !p.runOpen && string(name) == nameThink {
			p.start, p.echoable = tagEnd, false // the prompt opened it already
			p.newRun()
			p.state = stText
			return true
		}
		p.closeRunAt(p.openAt)
		p.endElement()
		p.start = tagEnd
		p.newRun()
		p.enter(elemText)
		if string(name) == nameThink {
			p.enter(elemReasoning)
			p.reasoning = true
		}
		p.state = stText
	case nameCall:
		p.closeRunAt(p.openAt)
		if !p.beginCall(p.openAt) {
			return false
		}
		p.start = tagEnd
		p.param.reset()
		p.call.name = append(p.call.name, attr(attrs, attrTool)...)
		if len(p.call.name) == 0 {
			return p.broken(event.BadName)
		}
		p.startCall(tagEnd)
		p.state = stCall
	default: // tools, and elements without a meaning at this position
		p.closeRunAt(p.openAt)
		p.start = tagEnd
		p.newRun()
		p.state = stText
	}
	return true
}

// isElement reports whether name names an element of the family.
func (p *elements) isElement(name []byte) bool {
	for _, n := range []string{nameThink, nameResponse, nameTools, nameCall, nameArgument, nameObject} {
		if string(name) == n {
			return true
		}
	}
	return false
}

// beginsElement reports whether text begins the name of an element, or is one.
func beginsElement(text []byte) bool {
	for _, n := range []string{nameThink, nameResponse, nameTools, nameCall, nameArgument, nameObject, nameMessage} {
		if strings.HasPrefix(n, string(bytes.TrimRight(text, " \n\t\r"))) {
			return true
		}
	}
	return false
}

// endElement leaves the element of text or reasoning.
func (p *elements) endElement() {
	p.closeRunAt(p.mark)
	p.reasoning = false
	p.enter(elemNone)
	p.endBlock()
}

// elementClose reads a closing tag. Models sometimes omit its separator; the name of the open element is then
// sufficient.
func (p *elements) elementClose() bool {
	sep, done := p.tag()
	if !done {
		return false
	}
	text := p.win[p.from:p.mark]
	open := ""
	switch p.elem {
	case elemText:
		open = nameResponse
	case elemReasoning:
		open = nameThink
	}
	trimmed := bytes.TrimLeft(text, " \n\t\r")
	next := p.pos
	if !sep {
		next = p.from // no such element is open: drop the marker, keep the text
		if p.final && p.mark == len(p.win) && beginsElement(trimmed) {
			next = p.mark // the end of the stream cut the tag
		}
		if open != "" && bytes.HasPrefix(trimmed, []byte(open)) {
			next = p.mark - len(trimmed) + len(open)
		}
	}
	p.mark = p.openAt
	if open != "" && (sep && string(bytes.TrimSpace(text)) == open || !sep && next > p.from) {
		p.endElement()
	} else if sep && string(bytes.TrimSpace(text)) == nameMessage {
		p.endElement()
	} else {
		p.flush(p.mark, true)
	}
	p.start, p.pos, p.node = next, next, 0
	if p.elem == elemNone {
		p.newRun()
	}
	p.state = stText
	return true
}

// inner is the result of innerTag.
type inner uint8

const (
	innerMore inner = iota // more is needed
	innerNone              // something other than a tag was dropped
	innerTurn              // the end of the turn, around mark and pos
	innerRead              // a tag; shut reports whether it is a closing one
)

// innerTag reads the next tag inside a call and drops what comes before it. at is where the tag begins; name and attrs
// are views of the window.
func (p *elements) innerTag() (name, attrs []byte, at int, r inner) {
	if p.openAt < p.start { // no tag is open
		s := p.sets.all
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
		case roleEndOfTurn:
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

// elementCall parses the bytes between the arguments of a call. Anything but tags is dropped.
func (p *elements) elementCall() bool {
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
		case nameCall:
			return p.endElementCall(tagEnd, 0)
		case nameTools, nameMessage, nameThink, nameResponse: // the call's own closing tag is missing
			return p.endElementCall(at, event.Recovered)
		}
		return true
	}
	switch string(name) {
	case nameArgument:
		key := attr(attrs, attrKey)
		types := args.Any &^ args.String
		p.param.schema = false
		switch t := attr(attrs, attrType); {
		case string(t) == typeString:
			types = args.String
		case t == nil:
			types, p.param.schema = p.call.schema.Of(key), true
		}
		p.beginValue(key, types)
		return true
	case nameObject:
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

// endElementCall completes the call; its markup ends at window position to, where reading continues.
func (p *elements) endElementCall(to int, flags event.Flags) bool {
	p.start, p.pos, p.node = to, to, 0
	p.openAt = -1
	p.arguments(p.made(p.param.end()), to)
	p.endCall(to, flags)
	p.newRun()
	p.state = stText
	return true
}

// confirmElement decides, after a closing marker inside a value, whether the value ends there: it must be the closing
// tag of an argument, or of the call, followed by something that may follow one.
func (p *elements) confirmElement() bool {
	for {
		s := p.sets.following[p.step]
		m, st := p.expect(s)
		if p.anchor-p.closeAt > p.c.g.MaxHold {
			st = scan.No // too much white space
		}
		if st == scan.Yes && p.param.closer == 1 && m == 0 && p.step >= elemOpens {
			st = scan.No // a tag that may follow an argument, but not a call
		}
		switch st {
		case scan.More:
			if !p.final || p.step < elemFollowing || p.cut && p.param.closer == 1 {
				return false
			}
			p.step = elemFollowing // nothing follows: the value is complete
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
			p.step = elemFollowing
			continue
		case elemFollowing:
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
		if p.param.closer == 1 { // the tag is read again as the call's
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
func (p *elements) skipElement() bool {
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
	case p.shut && (n == nameCall || n == nameTools):
		p.newRun()
		p.state = stText
	case p.shut && n == nameMessage, !p.shut && (n == nameCall || n == nameThink || n == nameResponse || n == nameTools):
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

// compileElements compiles a grammar of layout elements; nil if g has another one.
func compileElements(g *grammar.Grammar) *compiled {
	e := g.Elements
	if e == nil {
		return nil
	}
	all := []marker{mk(e.Open, roleOpen), mk(e.Sep, roleSep), mk(e.Close, roleClose)}
	for _, end := range e.EndOfTurn {
		all = append(all, mk(end, roleEndOfTurn))
	}
	name := func(names ...string) *markerSet {
		var ms []marker
		for _, n := range names {
			ms = append(ms, marker{text: n})
		}
		return newSet(ms...)
	}
	sets := &elementSets{all: newSet(all...), value: newSet(mk(e.Close, roleClose))}
	sets.following = [...]*markerSet{
		elemName:      name(nameArgument, nameCall),
		elemSep:       newSet(mk(e.Sep, roleSep)),
		elemFollowing: newSet(slices.DeleteFunc(slices.Clone(all), func(m marker) bool { return m.role == roleSep })...),
		elemOpens:     name(nameArgument, nameCall),
		elemCloses:    name(nameCall, nameTools, nameMessage),
	}
	c := newCompiled(g, sets.all)
	c.hasReasoning = true
	c.newLayout = func(m *machine) layout {
		m.param.set = sets.value
		return &elements{machine: m, sets: sets}
	}
	c.startAfter = func(prompt string) Start {
		tag, ok := strings.CutSuffix(prompt, e.Sep.Text)
		if i := strings.LastIndex(tag, e.Open.Text); ok && i >= 0 {
			switch strings.TrimSpace(tag[i+len(e.Open.Text):]) {
			case nameThink:
				return StartReasoning
			case nameResponse:
				return StartResponse
			}
		}
		return StartTurn
	}
	return c
}
