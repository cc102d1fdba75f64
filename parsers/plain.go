// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"bytes"
	"unicode/utf8"

	"github.com/weft-go/weft/parsers/args"
	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/protocols/event"
)

// Most chunks only continue what is open: a run of text or reasoning, or a string in the arguments. No marker can begin in
// them, nothing in them needs escaping, and they end with a whole character that cannot be structure. Such a chunk
// leaves the state as it is, so it is passed on at once, as the states would do it. TestPlainPath compares the two.

// plainRun says which chunks are plain in what is open.
type plainRun struct {
	special *[256]bool // c may begin a marker or must be rewritten
	last    [256]bool  // c may not be the last byte
	only    byte       // the only special byte; 0 if there are more
	args    bool       // in arguments
}

// plainRuns are the plain runs of a parser.
type plainRuns struct {
	text, reasoning, json, value, codec plainRun
}

// plainRuns compiles what is plain.
func (p *Parser) plainRuns() *plainRuns {
	r := new(plainRuns)
	var none [256]bool
	text, reasoning, json, value := p.textMarkers.set.Starts(), p.reasonMarkers.set.Starts(), none, none
	if s := p.valueSet(); s != nil {
		value = s.set.Starts()
	}
	r.text.special, r.reasoning.special, r.json.special, r.value.special = &text, &reasoning, &json, &value
	r.codec.special = &none
	for i := range 256 {
		c := byte(i)
		odd := c >= utf8.RuneSelf
		p.reasoning = false
		r.text.last[c] = odd || p.structural(c)
		p.reasoning = true
		r.reasoning.last[c] = odd || p.structural(c)
		p.reasoning = false
		r.json.last[c], r.codec.last[c] = odd, odd
		r.value.last[c] = odd || c == '\n'
		if !jsontext.Plain(c) {
			json[c], value[c] = true, true
		}
	}
	r.json.args, r.value.args, r.codec.args = true, true, true
	for _, run := range []*plainRun{&r.text, &r.reasoning, &r.json, &r.value} {
		n := 0
		for c, s := range run.special {
			if s {
				n++
				run.only = byte(c)
			}
		}
		if n != 1 {
			run.only = 0
		}
	}
	return r
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
			p.runs.codec.special = t
			p.plain = &p.runs.codec
		}
	}
}

// passing reports whether arguments are emitted.
func (p *Parser) passing() bool { return p.call.open && !p.call.failed && p.call.muted == event.None }

// fits reports whether the arguments may grow by n bytes.
func (p *Parser) fits(n int) bool { return p.call.size+int64(n) <= p.lim.ArgumentBytes }

// takes reports whether chunk is plain.
func (r *plainRun) takes(chunk []byte) bool {
	if len(chunk) > 16 && r.only != 0 {
		return bytes.IndexByte(chunk, r.only) < 0 && !r.last[chunk[len(chunk)-1]]
	}
	for _, c := range chunk {
		if r.special[c] {
			return false
		}
	}
	return len(chunk) > 0 && !r.last[chunk[len(chunk)-1]]
}

// pass appends the event of a plain chunk. The fields are set one by one, in place: a copy of the whole would cost as much as
// the rest.
func (p *Parser) pass(dst []event.Event, chunk []byte) []event.Event {
	off := p.base
	p.base += int64(len(chunk))
	n := len(dst)
	if n == cap(dst) {
		dst = append(dst, event.Event{})
	}
	dst = dst[:n+1]
	e := &dst[n]
	e.Why, e.Tokens = 0, 0
	e.Choice, e.Part = p.opt.Choice, p.part
	e.Off, e.End = off, p.base
	e.Data, e.ID, e.Usage = chunk[:len(chunk):len(chunk)], nil, nil
	if !p.plain.args {
		p.last = chunk[len(chunk)-1]
		e.Kind, e.Flags, e.Call = p.partKind, 0, -1
		return dst
	}
	c := &p.call
	e.Kind, e.Flags, e.Call = event.ToolArgs, c.flags, c.no
	e.Off = c.from
	c.from = p.base
	c.size += int64(len(chunk))
	return dst
}
