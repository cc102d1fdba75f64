// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"bytes"

	"github.com/weft-go/weft/parsers/internal/args"
	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/parsers/internal/keys"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// paramState is the state of arguments that are written one by one as raw text, in tags or elements, and typed by
// the tool's schema. Strings stream as JSON string fragments; other values are held until they close.
type paramState struct {
	bare    bool // the call has no wrapper and may still be prose
	lead    bool // the structural newline before the value may follow
	unwrap  bool // the value is all arguments if it is an object
	closed  bool // the call ended with its name
	stray   bool // the call contains something other than parameters
	quoting bool // the opening tag of a call was seen in the value
	opened  bool // of a string: its opening quote was emitted
	tagged  bool // something other than an object follows the name
	closer  uint8
	newline bool       // one newline at each end of a value belongs to the markup
	set     *markerSet // what may end a value
	all     *markerSet // the markers of every set that a value of the family may have, if set changes; otherwise nil
	types   args.Types
	doc     docState // whether the value is a JSON object or array
	scanned int      // bytes of it that the lexer has seen
	schema  bool     // types are the schema's, which may be more specific
	key     []byte
	seen    keys.Set // keys of this call
	object  bool     // one object holds all the arguments
}

// docState is the state of a value that can only be an object or array: closing tags inside its strings are data.
type docState uint8

const (
	docMaybe docState = iota // its beginning is not known
	docIs                    // it is being read
	docWhole                 // it is complete; only white space may follow
	docNot                   // it is not JSON
)

func (s *paramState) reset() {
	s.seen.Reset()
	*s = paramState{key: s.key[:0], seen: s.seen, set: s.set, all: s.all, newline: s.newline}
}

// beginValue opens the value of key after window position pos.
func (p *machine) beginValue(key []byte, types args.Types) {
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
	v.types, v.lead, v.opened, v.quoting = types, v.newline, false, false
	v.doc, v.scanned = docNot, 0
	if types&args.String == 0 && types&(args.Object|args.Array) != 0 && !p.call.failed {
		v.doc = docMaybe
	}
	p.start, p.node = p.pos, 0
	p.state = stValue
}

// has reports whether key was seen, or the call has no separate arguments because one object holds them all.
func (s *paramState) has(key []byte) bool { return s.object || s.seen.Has(key) }

// empty reports whether no argument was seen.
func (s *paramState) empty() bool { return !s.object && s.seen.Len() == 0 }

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

// value reads on in a value.
func (p *machine) value() bool {
	v := &p.param
	if v.lead {
		n, ok := p.lineBegins()
		if !ok {
			return false
		}
		v.lead = false
		p.start += n
		p.pos = max(p.pos, p.start)
	}
	if v.doc < docWhole && !p.document() {
		return false
	}
	m := p.find(v.set)
	if m < 0 {
		if p.growValue(p.free(v.set)); p.call.failed && v.doc == docWhole { // the beginning is no longer held
			v.doc = docNot
		}
		return false
	}
	if v.doc == docWhole {
		if p.mark-p.start <= p.lim.HeldBytes && p.blankBetween(p.start+v.scanned, p.mark) {
			p.closeAt, p.closeEnd = p.mark, p.pos
			return p.layout.endsJSON(v.set.markers[m].role)
		}
		v.doc = docNot
		p.pos, p.node = p.start, 0
		return true
	}
	if !p.layout.mayEndValue(v.set.markers[m].role) {
		return true
	}
	p.growValue(p.mark)
	p.closeAt, p.closeEnd = p.mark, p.pos
	p.from = p.pos
	p.step, p.lit, p.node = 0, 0, 0
	p.state = stConfirm
	return true
}

// document reads on in a value that may be a JSON object or array. It reports false if more of it is needed.
func (p *machine) document() bool {
	v := &p.param
	if p.call.failed { // nothing is held
		v.doc = docNot
		return true
	}
	w := p.win[p.start:min(len(p.win), p.start+p.lim.HeldBytes)]
	if v.doc == docMaybe {
		for v.scanned < len(w) && blank(w[v.scanned]) {
			work.Add(1)
			v.scanned++
		}
		if v.scanned == len(w) {
			if p.final || len(w) == p.lim.HeldBytes {
				v.doc = docNot
			}
			return v.doc == docNot
		}
		if c := w[v.scanned]; c != '{' && c != '[' {
			v.doc = docNot
			return true
		}
		v.doc = docIs
		p.lex.Reset()
	}
	n, st := p.lex.Scan(w[v.scanned:])
	v.scanned += n
	switch {
	case st == jsontext.Done:
		v.doc = docWhole
		p.pos, p.node = p.start+v.scanned, 0
	case st != jsontext.Open || p.final && !p.cut || len(w) == p.lim.HeldBytes:
		v.doc = docNot
	default: // it continues, or Length cut it
		return false
	}
	return true
}

// blankBetween reports whether only white space is between window positions from and to.
func (p *machine) blankBetween(from, to int) bool {
	for _, c := range p.win[from:to] {
		if !blank(c) {
			return false
		}
	}
	return true
}

// lineBegins returns the number of bytes of the newline at start. It reports false if more input is needed.
func (p *machine) lineBegins() (n int, ok bool) {
	switch w := p.win[p.start:]; {
	case len(w) == 0 || len(w) == 1 && w[0] == '\r' && !p.final:
		return 0, false
	case w[0] == '\n':
		return 1, true
	case len(w) > 1 && w[0] == '\r' && w[1] == '\n':
		return 2, true
	}
	return 0, true
}

// growValue passes on what of the value cannot belong to its end, or checks what is held.
func (p *machine) growValue(to int) {
	if p.param.types != args.String && !p.call.failed {
		if to-p.start <= p.lim.HeldBytes {
			return
		}
		p.fail(event.LimitExceeded, to)
	}
	to = p.unlined(to)
	if p.param.newline && to > p.start && p.win[to-1] == '\r' { // a newline may follow
		to--
	}
	if to = p.whole(p.start, to); to > p.start {
		p.stringPart(to)
	}
}

// unlined returns the window position before the structural newline that ends a value at to, if the family writes one.
func (p *machine) unlined(to int) int {
	if p.param.newline && to > p.start && p.win[to-1] == '\n' {
		if to--; to > p.start && p.win[to-1] == '\r' {
			to--
		}
	}
	return to
}

// stringPart emits win[start:to] as part of a JSON string.
func (p *machine) stringPart(to int) {
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
func (p *machine) openString() {
	if !p.param.opened {
		p.param.opened = true
		p.member()
		p.out = append(p.out, '"')
	}
}

// member appends to out the text before the value of key.
func (p *machine) member() {
	c := byte('{')
	if p.param.seen.Len() > 1 {
		c = ','
	}
	p.out = append(p.out, c)
	p.out = append(jsontext.AppendQuoted(p.out, p.param.key), ':')
}

// endValue emits the rest of a value that ends at closeAt and continues after its closer, at closeEnd.
func (p *machine) endValue() {
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
	} else if raw := bytes.TrimSpace(p.win[p.start:to]); v.unwrap && len(raw) > 0 && raw[0] == '{' && jsontext.Valid(raw) {
		v.object = true
		p.out = append(p.out, raw...)
	} else {
		p.member()
		if raw := p.win[p.start:to]; v.schema {
			p.out = p.call.schema.Param(v.key).AppendValue(p.out, raw)
		} else {
			p.out = args.AppendValue(p.out, raw, v.types)
		}
	}
	v.unwrap = false
	p.start, p.pos, p.node = p.closeEnd, p.closeEnd, 0
	p.arguments(p.out[n:len(p.out):len(p.out)], p.closeEnd)
}

// notTheEnd continues in a value after what only looked like its end.
func (p *machine) notTheEnd() bool {
	p.node, p.pos, p.lit = 0, p.closeEnd, 0
	p.state = stValue
	return true
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
