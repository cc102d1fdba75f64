// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"github.com/weft-go/weft/parsers/codec"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/event"
)

// tagged is layout grammar.Tagged: blocks of calls and reasoning in tags inside plain text. Layout channels embeds it for
// the blocks of calls in its messages.
type tagged struct {
	*machine
	tag  *grammar.Tagged
	sets *tagSets

	wrapper   bool // inside the wrapper of a block
	listed    bool // inside a list of calls
	inMessage bool // inside a message to a tool, where nothing is prose
	inTags    bool // there was a block in tags, and the family needs them: calls without tags repeat it
	suspected bool // the opening tag that no call followed is a token
	noisy     bool // it opens a block in which the tag of a call is a token too
	waiting   bool // for more, to tell whether a call begins
	ahead     peekState
	dead      int64 // stream offset before which no list of calls begins
	lists     codec.ListScanner
	dec       grammar.Decoder
	passer    grammar.Passing // dec, if it is one
	json      jsonCall
	spare     []byte // scratch
}

// tagSets are the marker sets of the states of layout tagged.
type tagSets struct {
	callOpen            *markerSet    // what must follow the opening tag of a wrapper
	callClose           *markerSet    // the closing tag of a call
	closing             *markerSet    // what may follow a call inside its block; nil for nothing
	resync              [2]*markerSet // where unreadable markup ends: in text, in reasoning
	between             *markerSet    // what may come between parameters
	value               *markerSet    // what may end a parameter
	section             *markerSet    // what ends a CDATA section; nil if there are none
	values              *markerSet    // all of value and section; nil if there are no sections
	following           [6]*markerSet // what must follow the end of a parameter, by closer
	opens               *markerSet    // what opens a block
	keyEnds, valueOpens []string
}

// The roles of markers.
const (
	roleReasonOpen role = roleNone + 1 + iota
	roleReasonClose
	roleWrapOpen
	roleWrapClose
	roleCallOpen
	roleCallClose
	roleParamOpen
	roleParamClose
	roleSectionClose // ends a CDATA section
	roleTurn
	roleCiteOpen
	roleCiteClose
	roleBare   // may begin a list of calls without a tag
	roleBrace  // may begin a call object without a tag
	roleItem   // may begin the next object of a list after one that cannot be read
	roleBreak  // the beginning of a call that is not looked for, but ends reasoning
	roleAround // ends the message that a block of calls is in
)

// The states of layout tagged.
const (
	stOpened   state = stLayout + iota // after the opener of a block: is it one?
	stSuspect                          // it is not; is it prose or a broken call?
	stClosing                          // after a call inside a block
	stName                             // the name of a call
	stBody                             // after the name of a call, before its arguments
	stJSON                             // the body of a call: one JSON object
	stList                             // between the call objects of a list
	stParams                           // between parameters
	stKey                              // the key of a parameter
	stAttr                             // between the key of a parameter and its value
	stCodec                            // in arguments that a codec reads
	stEnd                              // after the arguments, before the closing tag
	stRepair                           // after arguments that lack closing brackets
	stBrace                            // at what may be a call object without a tag
	stBareList                         // in what may be a list of calls without a tag
	stCite                             // in the closing tag of a citation
	stTagged                           // the first that is free
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
	jsonAfter                // after a value
)

// The positions in a list of call objects.
const (
	listFirst uint8 = iota // after '['
	listNext               // after ','
	listAfter              // after an object
)

// beginName begins to read the name of a call at pos.
func (p *tagged) beginName() {
	p.from, p.node, p.step, p.lit = p.pos, 0, 0, 0
	p.state = stName
}

func (p *tagged) beginJSON() {
	p.json = jsonCall{args: p.json.args[:0]}
	p.lex.Reset()
	p.node = 0
	p.state = stJSON
}

// beginCalls begins to read the call object, or the list of them, at pos.
func (p *tagged) beginCalls() {
	if p.listed = p.win[p.pos] == '['; p.listed {
		p.pos++
		p.state, p.step = stList, listFirst
		return
	}
	p.beginJSON()
}

// commit accepts the markup at openAt as a call: the run before it ends. It reports false at the call limit.
func (p *tagged) commit() bool {
	name := append(p.spare[:0], p.call.name...)
	p.spare = name
	p.endRun()
	ok := p.beginCall(p.openAt)
	p.call.name = append(p.call.name, name...)
	p.inTags = p.inTags || p.wrapper && !p.tag.Wrapper.Optional && !p.reasoning
	return ok
}

// endRun ends the run before the markup at openAt.
func (p *tagged) endRun() {
	p.mark = p.openAt
	p.dropBlanks(p.mark)
	p.flush(p.beforeBlock(p.mark), true)
	if p.reasoning && (p.tag.Reasoning.CallEnds || p.rules.breakOut) {
		p.breakOut()
	}
	p.start = max(p.start, p.mark)
	p.newRun()
}

// breakOut ends reasoning at mark, where a call begins instead of the closing tag.
func (p *tagged) breakOut() {
	at := p.pos
	p.pos = p.mark
	p.closeReasoning("")
	p.pos = at
}

// doubt looks on, from window position from, after an opening tag that no call follows.
func (p *tagged) doubt(from int) bool {
	if p.inMessage { // in a message to a tool nothing is prose
		return p.commit() && p.broken(event.BadStructure)
	}
	if p.listed {
		from = min(from, p.anchor) // the bracket may begin something else
	}
	p.suspected = p.wrapper && p.tag.Wrapper.Open.Token || !p.wrapper && p.tag.Open.Token
	p.noisy = p.wrapper && p.suspected && p.tag.Open.Token
	p.wrapper, p.listed = false, false
	p.call.name, p.call.id = p.call.name[:0], p.call.id[:0]
	p.pos, p.node = from, 0
	p.state = stSuspect
	if p.tag.Quoted {
		p.quoting = true
		p.from = p.start
		p.state = stText
	}
	return true
}

// truncatedOpener aborts a call that the end of the stream cut before its arguments.
func (p *tagged) truncatedOpener() bool {
	if p.commit() {
		p.abort(event.Truncated, len(p.win))
		p.start = len(p.win)
	}
	return false
}

// afterBlock goes back to the run that a block interrupted: text, or reasoning if the call was inside it.
func (p *tagged) afterBlock() {
	p.start = p.pos
	p.wrapper, p.listed = false, false
	p.newRun()
	p.state = stText
	if p.bracedMarkers != nil && !p.reasoning { // the model writes calls without a tag
		p.setTextMarkers(p.bracedMarkers)
	}
}

// afterCall continues after a complete call.
func (p *tagged) afterCall() {
	p.start, p.node = p.pos, 0
	p.state = stClosing
	if p.sets.closing == nil && !p.listed && (p.tag.Body.Call == nil || p.tag.Body.Call.Sep == "") {
		p.layout.afterBlock()
	}
}

// beginRepair reports whether the JSON arguments, which end at pos with something that is not JSON, may only lack closing
// brackets. repair then looks for the closing tag.
func (p *tagged) beginRepair() bool {
	if !p.rules.repair || len(p.sets.callClose.markers) == 0 || !p.lex.Closable() {
		return false
	}
	p.node, p.state = 0, stRepair
	return true
}
