// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"slices"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/scan"
)

// compiled is a grammar made ready for the machine: the marker sets of its states. It is immutable and shared.
type compiled struct {
	g            *grammar.Grammar
	hasReasoning bool
	tail         byte   // structural white space before the end of reasoning; 0 for none
	before       string // structural white space between text and a block of calls
	join         string // between adjacent spans of reasoning

	text      [4]*markerSet // by variant
	reasoning [4]*markerSet

	// grammar.Tagged
	callOpen *markerSet    // what must follow the opening tag of a wrapper
	closing  *markerSet    // what may follow a call inside its block
	resync   [2]*markerSet // where unreadable markup ends: in text, in reasoning
	between  *markerSet    // what may stand between parameters
	value    *markerSet    // what may end a parameter
	behind   [2]*markerSet

	// grammar.Channels
	ends *markerSet

	// grammar.Elements
	elements, elemClose *markerSet
	behindElem          [elemCloses + 1]*markerSet // what confirms the end of an argument, by step
}

// The steps of the confirmation that an argument of an element ends.
const (
	elemName   uint8 = iota // the name of the argument, or of the call if the argument's own closing tag is missing
	elemSep                 // the separator
	elemBehind              // the marker of the next tag
	elemOpens               // the name of what opens
	elemCloses              // the name of what closes
)

// A variant of a marker set: which structure is looked for.
const (
	withReasoning = 1 << iota
	withCalls
)

// role says what a marker does; its meaning depends on the layout.
type role uint8

const (
	roleNone role = iota
	roleReasonOpen
	roleReasonClose
	roleWrapOpen
	roleWrapClose
	roleCallOpen
	roleCallClose
	roleParamOpen
	roleParamClose
	roleSection
	roleBody
	roleEnd
	roleOpen
	roleSep
	roleClose
	roleTurn
)

type marker struct {
	text  string
	token bool
	role  role
	field grammar.Field
}

// markerSet is a scan.Set whose markers have roles.
type markerSet struct {
	set     *scan.Set
	markers []marker
	longest int
}

func newSet(ms ...marker) *markerSet {
	s := &markerSet{}
	var texts []string
	for _, m := range ms {
		if m.text == "" {
			continue
		}
		s.markers = append(s.markers, m)
		texts = append(texts, m.text)
		s.longest = max(s.longest, len(m.text))
	}
	s.set = scan.New(texts...)
	return s
}

func mk(m grammar.Marker, r role) marker { return marker{text: m.Text, token: m.Token, role: r} }

func compile(g *grammar.Grammar) (*compiled, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	c := &compiled{g: g}
	switch {
	case g.Tagged != nil:
		c.tagged(g.Tagged)
	case g.Channels != nil:
		c.channels(g.Channels)
	default:
		c.elems(g.Elements)
	}
	return c, nil
}

func (c *compiled) tagged(t *grammar.Tagged) {
	var rOpen, rClose, wOpen, wClose marker
	c.before = t.Before
	if r := t.Reasoning; r != nil {
		c.hasReasoning, c.join = true, r.Join
		if r.Tail != "" {
			c.tail = r.Tail[0]
		}
		rOpen, rClose = mk(r.Open, roleReasonOpen), mk(r.Close, roleReasonClose)
	}
	if w := t.Wrapper; w != nil {
		wOpen, wClose = mk(w.Open, roleWrapOpen), mk(w.Close, roleWrapClose)
	}
	cOpen, cClose := mk(t.Open, roleCallOpen), mk(t.Close, roleCallClose)
	bareOpen := cOpen
	if t.Wrapper != nil && !t.Wrapper.Optional {
		bareOpen = marker{}
	}
	orphan := cClose // a closing tag that is ordinary text may well be prose
	if !orphan.token {
		orphan = marker{}
	}
	for v := range c.text {
		var text, reason []marker
		if v&withReasoning != 0 {
			text = append(text, rOpen, rClose)
			reason = append(reason, rOpen, rClose)
		}
		if v&withCalls != 0 {
			text = append(text, wOpen, wClose, bareOpen, orphan)
			reason = append(reason, wOpen, wClose, bareOpen, orphan)
		}
		c.text[v], c.reasoning[v] = newSet(text...), newSet(reason...)
	}
	c.callOpen = newSet(cOpen)
	c.resync[0] = newSet(cClose, wClose, cOpen, wOpen)
	c.resync[1] = newSet(cClose, wClose, cOpen, wOpen, rClose)
	if t.Wrapper != nil {
		c.closing = newSet(cOpen, wClose)
	} else {
		c.closing = newSet(cClose)
	}
	if p := t.Body.Params; p != nil {
		pOpen, pClose := marker{text: p.Open, role: roleParamOpen}, marker{text: p.Close, role: roleParamClose}
		c.between = newSet(pOpen, cClose, wClose, cOpen, wOpen)
		c.value = newSet(pClose, cClose)
		c.behind[0] = newSet(pOpen, cClose, wClose, cOpen)
		c.behind[1] = newSet(wClose, cOpen)
	}
}

func (c *compiled) channels(g *grammar.Channels) {
	c.hasReasoning, c.join = true, g.Join
	var all, ends []marker
	for _, s := range g.Sections {
		m := mk(s.Marker, roleSection)
		m.field = s.Field
		all = append(all, m)
	}
	ends = append(ends, all...)
	all = append(all, mk(g.Body, roleBody))
	for _, e := range g.Ends {
		all = append(all, mk(e, roleEnd))
		ends = append(ends, mk(e, roleEnd))
	}
	set := newSet(all...)
	for v := range c.text {
		c.text[v], c.reasoning[v] = set, set
	}
	c.ends = newSet(ends...)
}

func (c *compiled) elems(g *grammar.Elements) {
	c.hasReasoning = true
	all := []marker{mk(g.Open, roleOpen), mk(g.Sep, roleSep), mk(g.Close, roleClose)}
	for _, e := range g.EndOfTurn {
		all = append(all, mk(e, roleTurn))
	}
	c.elements = newSet(all...)
	for v := range c.text {
		c.text[v], c.reasoning[v] = c.elements, c.elements
	}
	c.elemClose = newSet(mk(g.Close, roleClose))
	name := func(names ...string) *markerSet {
		var ms []marker
		for _, n := range names {
			ms = append(ms, marker{text: n})
		}
		return newSet(ms...)
	}
	c.behindElem = [...]*markerSet{
		elemName:   name(g.Argument, g.Call),
		elemSep:    newSet(mk(g.Sep, roleSep)),
		elemBehind: newSet(slices.DeleteFunc(slices.Clone(all), func(m marker) bool { return m.role == roleSep })...),
		elemOpens:  name(g.Argument, g.Call),
		elemCloses: name(g.Call, g.Tools, g.Turn),
	}
}

// sets returns the markers that matter in text and in reasoning under opt.
func (c *compiled) sets(opt *Options) (text, reasoning *markerSet) {
	v := withReasoning | withCalls
	if opt.Channels == OnlyTools {
		v &^= withReasoning
	}
	if opt.Channels == OnlyReasoning || opt.NoCalls {
		v &^= withCalls
	}
	t, r := v, v
	if opt.Start == StartResponse {
		t &^= withReasoning
	}
	if opt.Policy.QuoteInReasoning {
		r &^= withCalls
	}
	return c.text[t], c.reasoning[r]
}
