// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/protocols/event"
)

// noArguments aborts the open call if a JSON value that is no object begins at pos. The value is read to its end, because
// markers inside it are data.
func (p *machine) noArguments() bool {
	if p.pos == len(p.win) || p.win[p.pos] != '"' && p.win[p.pos] != '[' {
		return false
	}
	p.fail(event.BadArguments, p.pos)
	p.start, p.node = p.pos, 0
	p.lex.Reset()
	p.state = stArgs
	return true
}

// rawJSON forwards arguments that are one bare JSON object, up to its end.
func (p *machine) rawJSON() bool {
	if !p.lex.Started() {
		if p.node != 0 { // inside an end marker
			return p.layout.jsonEnded(jsonNone)
		}
		p.skipBlanks()
		p.start = p.pos
		if p.pos == len(p.win) && !p.terse {
			return false
		}
		if p.state == stArgs && (p.pos == len(p.win) || p.win[p.pos] != '{' && !p.call.failed) {
			return p.layout.jsonEnded(jsonNone)
		}
	}
	n, st := p.lex.Scan(p.win[p.pos:])
	p.pos += n
	to := p.pos
	if st == jsontext.Open {
		to = p.whole(p.start, to)
	}
	p.verbatim(to)
	switch st {
	case jsontext.Open:
		return false
	case jsontext.Bad:
		if p.state == stArgs {
			return p.layout.jsonEnded(jsonBad)
		}
		return p.broken(event.BadArguments)
	case jsontext.Deep:
		return p.broken(event.LimitExceeded)
	}
	if p.state == stNamed {
		p.endCall(p.pos, 0)
		p.layout.afterBlock()
		return true
	}
	return p.layout.jsonEnded(jsonDone)
}
