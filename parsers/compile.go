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
	layout       layout
	tag          *grammar.Tagged // of layout tagged, and of calls inside channels
	hasReasoning bool
	tail         byte   // structural white space before the end of reasoning; 0 for none
	before       string // structural white space between text and a block of calls
	join         string // between adjacent spans of reasoning

	text      [4]*markerSet // by variant
	reasoning [4]*markerSet
	quoted    *markerSet // in reasoning whose tool markup is text

	// grammar.Tagged
	callOpen            *markerSet    // what must follow the opening tag of a wrapper
	callClose           *markerSet    // the closing tag of a call
	closing             *markerSet    // what may follow a call inside its block; nil for nothing
	resync              [2]*markerSet // where unreadable markup ends: in text, in reasoning
	between             *markerSet    // what may stand between parameters
	value               *markerSet    // what may end a parameter
	behind              [4]*markerSet
	keyEnds, valueOpens []string

	// grammar.Channels
	ends *markerSet
	body *markerSet // what may open a call at the beginning of a message to a tool; nil for the bare arguments

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
	roleBare  // may begin a list of calls without a tag
	roleBreak // the beginning of a call that is not looked for, but ends reasoning
)

type layout uint8

const (
	tagged layout = iota
	channels
	elements
)

type marker struct {
	text  string
	token bool
	role  role
	field grammar.Field
	is    grammar.Content
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
		c.tagged(g.Tagged, nil)
	case g.Channels != nil:
		c.layout = channels
		c.channels(g.Channels)
	default:
		c.layout = elements
		c.elems(g.Elements)
	}
	return c, nil
}

// spelled returns the markers of role r with all their spellings.
func spelled(r role, m grammar.Marker, also []grammar.Marker) []marker {
	if m.Text == "" {
		return nil
	}
	out := []marker{mk(m, r)}
	for _, a := range also {
		out = append(out, mk(a, r))
	}
	return out
}

// tokens returns those of ms that are tokens: an inner closing tag without an opener that is ordinary text may well be prose.
func tokens(ms []marker) []marker {
	return slices.DeleteFunc(slices.Clone(ms), func(m marker) bool { return !m.token })
}

// tagged compiles t. around are the markers that end the message which t is in, if it is in one.
func (c *compiled) tagged(t *grammar.Tagged, around []marker) {
	c.tag = t
	var rOpen, rClose, wOpen, wClose []marker
	c.before = t.Before
	r := t.Reasoning
	if r != nil {
		c.hasReasoning, c.join = true, r.Join
		if r.Tail != "" {
			c.tail = r.Tail[0]
		}
		if !r.Inline {
			rOpen, rClose = spelled(roleReasonOpen, r.Open, r.OpenAlso), spelled(roleReasonClose, r.Close, r.CloseAlso)
		}
	}
	if w := t.Wrapper; w != nil {
		wOpen, wClose = spelled(roleWrapOpen, w.Open, w.OpenAlso), spelled(roleWrapClose, w.Close, w.CloseAlso)
	}
	cOpen, cClose := spelled(roleCallOpen, t.Open, t.OpenAlso), spelled(roleCallClose, t.Close, t.CloseAlso)
	var ends, bare []marker
	for _, e := range t.Ends {
		ends = append(ends, mk(e, roleTurn))
	}
	if t.Bare && t.Body.Codec != nil {
		bare = []marker{{text: "[", role: roleBare}}
	}
	opens := wOpen
	if t.Wrapper == nil || t.Wrapper.Optional {
		opens = slices.Concat(wOpen, cOpen)
	}
	set := func(ms ...[]marker) *markerSet { return newSet(slices.Concat(ms...)...) }
	calls := slices.Concat(opens, wClose, cClose)
	if t.Wrapper != nil {
		calls = slices.Concat(opens, wClose, tokens(cClose))
	}
	for v := range c.text {
		text, reason := ends, ends
		if v&withReasoning != 0 {
			text = slices.Concat(text, rOpen, rClose)
			reason = slices.Concat(reason, rOpen, rClose)
		}
		switch {
		case v&withCalls != 0:
			text, reason = slices.Concat(text, calls, bare), slices.Concat(reason, calls)
		case r != nil && r.CallEnds:
			for _, m := range opens {
				m.role = roleBreak
				reason = append(slices.Clip(reason), m)
			}
		}
		if around == nil {
			c.text[v], c.reasoning[v] = newSet(text...), newSet(reason...)
		}
	}
	c.quoted = set(ends, rOpen, rClose)
	c.callOpen, c.callClose = set(cOpen), set(cClose)
	c.resync[0] = set(cClose, wClose, cOpen, wOpen, around)
	c.resync[1] = set(cClose, wClose, cOpen, wOpen, rClose, around)
	switch {
	case t.Wrapper != nil:
		c.closing = set(cOpen, wClose, cClose[min(1, len(cClose)):])
	case len(cClose) > 0:
		c.closing = set(cClose)
	}
	if p := t.Body.Params; p != nil {
		pOpen := []marker{{text: p.Open, role: roleParamOpen}}
		pClose := []marker{{text: p.Close, role: roleParamClose}}
		c.keyEnds, c.valueOpens = []string{p.KeyEnd}, []string{p.Value}
		c.between = set(pOpen, pClose, cClose, wClose, cOpen, wOpen, around)
		next := pOpen
		if !p.Newline { // where values stand on lines of their own, a parameter at the beginning of one may be the next
			next = nil
		}
		c.value = set(pClose, cClose, cOpen, wClose, next)
		c.behind[0] = set(pOpen, cClose, wClose, cOpen, around)
		c.behind[1] = set(wClose, cOpen, around)
		c.behind[2] = set(wOpen)
		c.behind[3] = set(cOpen)
	}
	if around != nil {
		c.body = set(opens)
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
	for _, k := range g.Kinds {
		m := mk(k.Marker, roleBody)
		m.is = k.Is
		all = append(all, m)
	}
	for _, e := range g.Ends {
		all = append(all, mk(e, roleEnd))
		ends = append(ends, mk(e, roleEnd))
	}
	set := newSet(all...)
	for v := range c.text {
		c.text[v], c.reasoning[v] = set, set
	}
	c.ends = newSet(ends...)
	if g.Calls != nil {
		c.tagged(g.Calls, ends)
	}
	if g.Object != nil {
		c.tag = &grammar.Tagged{Close: g.Ends[0], Body: grammar.Body{Call: g.Object}}
		c.callClose = newSet()
	}
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
	if opt.Policy.QuoteInReasoning && c.layout == tagged && r&withReasoning != 0 {
		return c.text[t], c.quoted
	}
	return c.text[t], c.reasoning[r]
}
