// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"bytes"
	"cmp"
	"sync"
	"unicode/utf8"

	"github.com/weft-go/weft/parsers/internal/args"
	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/parsers/internal/text"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// Most chunks only continue a run of text or reasoning, or a string in the arguments. No marker can begin in them, and
// they end with a complete character that cannot be structure. Such a chunk does not change the state, so it is emitted
// directly, with the same result as by the states. TestPlainPath compares the two.

// plainRun specifies which chunks are plain in an open run or string.
type plainRun struct {
	bytes  [256]odd  // the meaning of a byte regardless of its position
	last   [256]odd  // its meaning at the end of the chunk
	second [256]bool // the byte may follow the first one of a marker
	args   bool      // in arguments
	json   bool      // the text is JSON: the two bytes of an escape belong together
	only   byte      // the only byte with a meaning; 0 if there are several
}

// odd is the set of reasons why bytes are special in a run.
type odd uint8

const (
	oddStop   odd = 1 << iota // the chunk is not plain
	oddMark                   // it may begin a marker, if what follows it may
	oddEscape                 // it has to be escaped, or is the beginning of an escape
	oddWide                   // it may be the end of a character, or the middle of one
)

// plainRuns are the plain runs of a parser. Parsers share all but codec.
type plainRuns struct {
	text, reasoning, json, value *plainRun
	codec                        plainRun

	table *[256]bool // that codec is compiled from
}

// setPlain sets the plain runs.
func (p *machine) setPlain() {
	r := &p.runs
	r.text = p.textMarkers.plain(p.edge(false))
	r.reasoning = p.reasonMarkers.plain(p.edge(true))
	r.json, r.codec.args = jsonRun(), true
	if s := cmp.Or(p.param.all, p.param.set); s != nil {
		r.value = s.plain(edge{last: "\n\r", value: true})
	}
}

// jsonRun returns the plain run of strings in JSON arguments.
var jsonRun = sync.OnceValue(func() *plainRun {
	r := &plainRun{args: true, json: true}
	r.compile(nil, oddStop, edge{})
	return r
})

// plain returns the plain run in which the markers of s are looked for. It is compiled once for each edge, of which a grammar
// has a few.
func (s *markerSet) plain(e edge) *plainRun {
	r, ok := s.runs.Load(e)
	if !ok {
		r, _ = s.runs.LoadOrStore(e, s.compilePlain(e))
	}
	return r.(*plainRun)
}

// compilePlain compiles a plain run.
func (s *markerSet) compilePlain(e edge) *plainRun {
	r := &plainRun{args: e.value}
	starts, mark, ok := s.set.Starts(), oddMark, false
	if r.second, ok = s.set.Seconds(); !ok {
		mark = oddStop
	}
	r.compile(&starts, mark, e)
	return r
}

// compile fills the tables: bytes in starts, which may be nil, have the meaning mark, and no byte of e may be the last one.
func (r *plainRun) compile(starts *[256]bool, mark odd, e edge) {
	n := 0
	for i := range 256 {
		c := byte(i)
		r.bytes[c], r.last[c] = 0, 0
		switch {
		case starts != nil && starts[c]:
			r.bytes[c] = mark
		case !r.args || jsontext.Plain(c):
		case r.json && c != '\\' && c != '"': // a control character
			r.bytes[c] = oddStop
		default:
			r.bytes[c] = oddEscape
		}
		if r.bytes[c] != 0 {
			r.only = c
			n++
		}
		if r.bytes[c] == oddMark || e.has(c) {
			r.last[c] = oddStop
		} else if c >= utf8.RuneSelf {
			r.last[c] = oddWide
		}
	}
	if n != 1 {
		r.only = 0
	}
}

// allowPlain determines whether plain chunks may follow, after a call to Append in which the states ran.
func (p *machine) allowPlain() {
	p.plain = nil
	if len(p.win) != p.start || p.tokNext < len(p.tokEnds) || p.tokDue != 0 || p.err != nil || p.rawOn {
		return
	}
	if p.state >= stConfirm {
		p.plain = p.layout.passes()
		return
	}
	switch p.state {
	case stText:
		if !p.runOpen || p.trim != "" || p.label != "" {
			return
		}
		switch {
		case p.reasoning && p.partKind == event.Reasoning:
			p.plain = p.runs.reasoning
		case !p.reasoning && p.partKind == event.Text && !p.hides():
			p.plain = p.runs.text
		}
	case stArgs, stNamed:
		if p.inJSONString() && p.passing() {
			p.plain = p.runs.json
		}
	case stValue:
		if p.param.types == args.String && p.param.opened && !p.param.lead && p.passing() {
			p.plain = p.runs.value
		}
	}
}

// setTextMarkers changes the markers that end a run of text.
func (p *machine) setTextMarkers(s *markerSet) {
	if p.textMarkers != s {
		p.textMarkers = s
		p.reasoning = false
		p.runs.text = s.plain(p.edge(false))
	}
}

func (p *machine) inJSONString() bool { return p.lex.InString() || p.lex.InEscape() }

// passing reports whether arguments are emitted.
func (p *machine) passing() bool { return p.call.open && !p.call.failed && p.call.muted == event.None }

// short emits a plain chunk, given its oddities. If the chunk is not plain, it does nothing and returns false.
func (p *machine) short(dst []event.Event, chunk []byte, o odd) ([]event.Event, bool) {
	r := p.plain
	switch {
	case o&oddStop != 0, o&oddWide != 0 && text.Whole(chunk) < len(chunk), o&oddMark != 0 && r.marks(chunk):
		return dst, false
	case !r.args:
		return p.pass(dst, chunk), true
	case p.call.size+6*int64(len(chunk)) > p.lim.ArgumentBytes: // near the limit, the states must count
		return dst, false
	case r.json && (o&oddEscape != 0 || p.lex.InEscape()):
		escape, ok := escapes(chunk, p.lex.InEscape())
		if !ok {
			return dst, false
		}
		p.lex.SetEscape(escape)
		return p.passArguments(dst, chunk, chunk[:len(chunk):len(chunk)]), true
	case o&oddEscape == 0:
		return p.passArguments(dst, chunk, chunk[:len(chunk):len(chunk)]), true
	}
	p.out = jsontext.AppendEscaped(p.out[:0], chunk)
	return p.passArguments(dst, chunk, p.out[:len(p.out):len(p.out)]), true
}

// oddities returns the reasons why the bytes of chunk are special.
func (r *plainRun) oddities(chunk []byte) odd {
	work.Add(len(chunk))
	if len(chunk) == 0 {
		return oddStop
	}
	o := r.last[chunk[len(chunk)-1]]
	if len(chunk) > 16 && r.only != 0 {
		if bytes.IndexByte(chunk, r.only) >= 0 {
			o |= r.bytes[r.only]
		}
		return o
	}
	for _, c := range chunk {
		o |= r.bytes[c]
	}
	return o
}

// marks reports whether a marker may begin in chunk, which does not end with the first byte of one.
func (r *plainRun) marks(chunk []byte) bool {
	for i, c := range chunk[:len(chunk)-1] {
		if r.bytes[c] == oddMark && r.second[chunk[i+1]] {
			return true
		}
	}
	return false
}

// escapes scans chunk as part of a JSON string. It begins after a backslash if open is set. escape reports whether it
// ends after a backslash. ok is false if chunk contains the end of the string or an escape of more than two bytes.
func escapes(chunk []byte, open bool) (escape, ok bool) {
	for _, c := range chunk {
		switch {
		case open:
			if !jsontext.Escape(c) {
				return false, false
			}
			open = false
		case c == '"':
			return false, false
		case c == '\\':
			open = true
		}
	}
	return open, true
}

// pass appends the event of a plain chunk of text or reasoning. The fields are set in place, because copying the whole
// event would cost as much as the rest.
func (p *machine) pass(dst []event.Event, chunk []byte) []event.Event {
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

// passArguments appends the event of a plain chunk of arguments, which are data.
func (p *machine) passArguments(dst []event.Event, chunk, data []byte) []event.Event {
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
	e.Data, e.ID, e.Usage = data, nil, nil
	c.from = p.base
	c.size += int64(len(data))
	return dst
}
