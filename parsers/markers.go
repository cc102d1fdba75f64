// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"slices"
	"sync"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/scan"
)

// compiled is a compiled grammar. It is immutable and shared. Its marker sets compile plain runs when a parser needs them.
type compiled struct {
	g            *grammar.Grammar
	tags         bool   // calls and reasoning are in tags inside plain text: Policy controls white space around them
	frames       bool   // output may be in frames
	hasReasoning bool   // the output may begin inside reasoning
	tail         string // structural white space before the end of reasoning, one character, or empty
	before       string // structural white space between text and a block of calls

	text      [4]*markerSet // what ends a run of text, by variant
	reasoning [4]*markerSet // what ends a run of reasoning, by variant
	braced    [4]*markerSet // text, with the brace of a call object without a tag; nil where there are none
	quoted    *markerSet    // the same where tool markup in reasoning is text; nil for layouts without such
	leaving   *markerSet    // the same where the header of another message ends reasoning; nil for layouts without such

	markers []grammar.Marker // of g

	newLayout  func(*machine) layout
	startAfter func(prompt string) Start // where generation begins after prompt, whose end is not blank
}

// A variant of a marker set specifies which structure its markers belong to.
const (
	withReasoning = 1 << iota
	withCalls
)

// newCompiled returns a grammar of which text and reasoning end at the markers of set, in all variants.
func newCompiled(g *grammar.Grammar, set *markerSet) *compiled {
	c := &compiled{g: g}
	for v := range c.text {
		c.text[v], c.reasoning[v] = set, set
	}
	return c
}

// role is the function of a marker. Each layout has its own roles.
type role uint8

const roleNone role = 0

type marker struct {
	text  string
	token bool
	role  role
	data  uint8 // further information for the layout
}

// markerSet is a scan.Set whose markers have roles.
type markerSet struct {
	set     *scan.Set
	markers []marker
	longest int
	runs    sync.Map // edge to *plainRun
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

// spelled returns the markers of role r with all their spellings.
func spelled(r role, m grammar.Marker) []marker {
	if m.Text == "" {
		return nil
	}
	out := []marker{mk(m, r)}
	for _, a := range m.Also {
		out = append(out, mk(a, r))
	}
	return out
}

// tokens returns the markers of ms that are tokens: an inner closing tag without an opener that is ordinary text may
// well be prose.
func tokens(ms []marker) []marker {
	return slices.DeleteFunc(slices.Clone(ms), func(m marker) bool { return !m.token })
}

// sets returns the markers that apply in text and in reasoning under opt, and those in text where calls without a tag may
// begin anywhere, if the family has such.
func (c *compiled) sets(opt *Options, rules *rules) (text, reasoning, braced *markerSet) {
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
	if rules.quoteInReasoning && c.quoted != nil && r&withReasoning != 0 {
		return c.text[t], c.quoted, c.braced[t]
	}
	if rules.breakOut && c.leaving != nil {
		return c.text[t], c.leaving, c.braced[t]
	}
	return c.text[t], c.reasoning[r], c.braced[t]
}
