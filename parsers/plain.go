// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"bytes"
	"unicode/utf8"

	"github.com/weft-go/weft/parsers/args"
	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// Most chunks only continue what is open: a run of text or reasoning, or a string in the arguments. No marker can begin in
// them, nothing in them needs escaping, and they end with a whole character that cannot be structure. Such a chunk
// leaves the state as it is, so it is passed on at once, as the states would do it. TestPlainPath compares the two.

// plainRun says which chunks are plain in what is open. The tables hold 1 for true, so that lookups can be joined without a
// branch.
type plainRun struct {
	special [256]uint8 // c may begin a marker or must be rewritten
	last    [256]uint8 // c may not be the last byte
	only    byte       // the only special byte; 0 if there are more
	args    bool       // in arguments
}

// plainRuns are the plain runs of a parser.
type plainRuns struct {
	text, reasoning, json, value, codec plainRun

	table *[256]bool // that codec.special is a copy of
}

// plainRuns compiles what is plain.
func (p *Parser) plainRuns() *plainRuns {
	r := new(plainRuns)
	defer func(was bool) { p.reasoning = was }(p.reasoning)
	p.reasoning = false
	r.text.compile(p.textMarkers.set.Starts(), p.structural)
	p.reasoning = true
	r.reasoning.compile(p.reasonMarkers.set.Starts(), p.structural)
	quoted := [256]bool{}
	for c := range quoted {
		quoted[c] = !jsontext.Plain(byte(c))
	}
	r.json.compile(quoted, func(byte) bool { return false })
	if s := p.valueSet(); s != nil {
		for c, start := range s.set.Starts() {
			quoted[c] = quoted[c] || start
		}
		r.value.compile(quoted, func(c byte) bool { return c == '\n' })
	}
	r.json.args, r.value.args, r.codec.args = true, true, true
	return r
}

// compile fills the tables.
func (r *plainRun) compile(special [256]bool, structural func(byte) bool) {
	n := 0
	for i := range 256 {
		c := byte(i)
		r.special[c], r.last[c] = 0, 0
		if special[c] {
			r.special[c], r.only = 1, c
			n++
		}
		if c >= utf8.RuneSelf || structural(c) {
			r.last[c] = 1
		}
	}
	if n != 1 {
		r.only = 0
	}
}

// settlePlain notes, behind a call to Feed that went through the states, whether plain chunks may follow.
func (p *Parser) settlePlain() {
	p.plain = nil
	if len(p.win) != p.start || p.tokNext < len(p.tokEnds) || p.tokDue != 0 || p.err != nil || p.ended || p.rawOn {
		return
	}
	switch p.state {
	case stText:
		if !p.runOpen || p.trim != "" || p.label != "" {
			return
		}
		switch {
		case p.reasoning && p.partKind == event.Reasoning:
			p.plain = &p.runs.reasoning
		case !p.reasoning && p.partKind == event.Text && !p.hides():
			p.plain = &p.runs.text
		}
	case stJSON:
		if p.json.at == jsonValue && p.json.stream && p.lex.InString() && p.passing() {
			p.plain = &p.runs.json
		}
	case stArgs, stNamed:
		if p.lex.InString() && p.passing() {
			p.plain = &p.runs.json
		}
	case stValue:
		if p.param.types == args.String && p.param.opened && !p.param.lead && p.passing() {
			p.plain = &p.runs.value
		}
	case stCodec:
		if p.passer == nil || !p.passing() {
			return
		}
		if t := p.passer.Passes(); t != nil {
			if t != p.runs.table {
				p.runs.table = t
				p.runs.codec.compile(*t, func(byte) bool { return false })
			}
			p.plain = &p.runs.codec
		}
	}
}

// passing reports whether arguments are emitted.
func (p *Parser) passing() bool { return p.call.open && !p.call.failed && p.call.muted == event.None }

// fits reports whether the arguments may grow by n bytes.
func (p *Parser) fits(n int) bool { return p.call.size+int64(n) <= p.lim.ArgumentBytes }

// takes reports whether chunk is plain. Most chunks are tokens of a few bytes, whose lengths no branch predictor can
// foresee: up to 8 bytes are looked up without a branch, some of them twice.
func (r *plainRun) takes(chunk []byte) bool {
	work.Add(len(chunk))
	end := len(chunk) - 1
	if uint(end) < 8 {
		s := &r.special
		return s[chunk[0]]|s[chunk[min(1, end)]]|s[chunk[min(2, end)]]|s[chunk[min(3, end)]]|
			s[chunk[min(4, end)]]|s[chunk[min(5, end)]]|s[chunk[min(6, end)]]|s[chunk[end]]|r.last[chunk[end]] == 0
	}
	if end < 0 || r.last[chunk[end]] != 0 {
		return false
	}
	if r.only != 0 {
		return bytes.IndexByte(chunk, r.only) < 0
	}
	for _, c := range chunk {
		if r.special[c] != 0 {
			return false
		}
	}
	return true
}

// pass appends the event of a plain chunk of text or reasoning. The fields are set one by one, in place: a copy of the whole
// would cost as much as the rest.
func (p *Parser) pass(dst []event.Event, chunk []byte) []event.Event {
	n := len(dst)
	if n == cap(dst) {
		dst = append(dst, event.Event{})
	}
	dst = dst[:n+1]
	e := &dst[n]
	e.Kind, e.Why, e.Flags = p.partKind, 0, 0
	e.Choice, e.Part, e.Call, e.Tokens = p.opt.Choice, p.part, -1, 0
	e.Off = p.base
	p.base += int64(len(chunk))
	e.End = p.base
	e.Data, e.ID, e.Usage = chunk[:len(chunk):len(chunk)], nil, nil
	p.last = chunk[len(chunk)-1]
	return dst
}

// passArguments appends the event of a plain chunk of arguments.
func (p *Parser) passArguments(dst []event.Event, chunk []byte) []event.Event {
	n := len(dst)
	if n == cap(dst) {
		dst = append(dst, event.Event{})
	}
	dst = dst[:n+1]
	e, c := &dst[n], &p.call
	p.base += int64(len(chunk))
	e.Kind, e.Why, e.Flags = event.ToolArgs, 0, c.flags
	e.Choice, e.Part, e.Call, e.Tokens = p.opt.Choice, p.part, c.no, 0
	e.Off, e.End = c.from, p.base
	e.Data, e.ID, e.Usage = chunk[:len(chunk):len(chunk)], nil, nil
	c.from = p.base
	c.size += int64(len(chunk))
	return dst
}
