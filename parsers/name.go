// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"bytes"
	"slices"
	"strings"

	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/work"
	"github.com/weft-go/weft/protocols/event"
)

// callName reads the name of a call. Without a wrapper the tag before it may still be prose.
func (p *tagged) callName() bool {
	n := p.tag.Name
	if p.step == 0 { // white space and prefix
		for p.lit == 0 && p.pos < len(p.win) && blank(p.win[p.pos]) && p.pos-p.from < p.c.g.MaxHold {
			work.Add(1)
			p.pos++
		}
		if p.lit == 0 {
			if p.pos == len(p.win) && !p.final {
				return false
			}
			p.from = p.pos
		}
		st := p.namePrefix(n.Prefix)
		if st == scan.More {
			return p.cutName()
		}
		if st == scan.Yes {
			p.from = p.pos
		}
		p.pos, p.step, p.lit = p.from, 1, 0
	}
	text, st := p.word(n.Ends, n.Stops)
	if st == scan.More {
		return p.cutName()
	}
	if st != scan.Yes {
		return p.badName()
	}
	p.named(text)
	if !p.acceptsName() {
		return p.badName()
	}
	p.param.reset()
	p.lit = 0
	p.param.closed = bytes.HasSuffix(p.win[:p.pos], []byte("/>")) && slices.ContainsFunc(n.Ends, selfCloses)
	switch {
	case p.tag.Body.Params == nil:
		p.state = stBody
	case p.call.open || p.wrapper: // in a block, a tag and a name cannot be prose
		end := p.pos
		if !p.call.open && !p.commit() {
			return false
		}
		p.startCall(end)
		p.start, p.pos = end, end
		p.state = stParams
	default:
		p.param.bare = true
		p.state = stParams
	}
	return true
}

// namePrefix reports whether the prefix of a name, or the part of it from a later < or colon on, is at from. It continues at pos, after
// lit bytes of the prefix.
func (p *tagged) namePrefix(prefix string) scan.Prefix {
	st := p.spacedPrefix(prefix)
	for k := 0; st == scan.No; {
		i := strings.IndexAny(prefix[min(k+1, len(prefix)):], "<:")
		if i < 0 {
			break
		}
		k += 1 + i
		p.pos, p.lit = p.from, k
		st = p.spacedPrefix(prefix)
	}
	return st
}

// spacedPrefix continues to match the prefix of a name at pos. White space may come before a < in it.
func (p *tagged) spacedPrefix(prefix string) scan.Prefix {
	for {
		st, at := scan.Match(p.win, p.pos, prefix, &p.lit)
		p.pos = at
		if st != scan.No || prefix[p.lit] != '<' || !blank(p.win[at]) || at-p.from > p.c.g.MaxHold {
			return st
		}
		p.pos++
	}
}

// selfCloses reports whether end ends a call together with its name.
func selfCloses(end string) bool { return strings.HasSuffix(end, "/>") }

// cutName handles the end of the window inside a name.
func (p *tagged) cutName() bool {
	switch {
	case !p.final || p.call.open:
		return false
	case (p.tag.Open.Token && !p.wrapper || p.tag.Open.Text == "") && (p.step == 0 || p.mayBeName(p.win[p.from:])):
		return p.truncatedOpener()
	}
	return p.badName()
}

// mayBeName reports whether text, at which the stream ended, is the beginning of a name or of the bytes between a name
// and the arguments.
func (p *tagged) mayBeName(text []byte) bool {
	text = bytes.TrimRight(text, " \n\t\r")
	i := 0
	for i < len(text) && nameChar(text[i]) {
		i++
	}
	if i == len(text) {
		return true
	}
	n := p.tag.Name
	return i > 0 && (n.ID != "" && text[i] == n.ID[0] || slices.ContainsFunc(n.Ends, func(end string) bool { return text[i] == end[0] }))
}

// acceptsName reports whether the bytes read as a name are valid. A name with its own delimiters may contain any bytes;
// a name that ends at a newline or at the arguments must be an identifier, because models also write other text in its
// position.
func (p *tagged) acceptsName() bool {
	n := p.tag.Name
	if n.Stops == "" && !slices.Contains(n.Ends, "\n") && !slices.Contains(n.Ends, "(") || p.toolNamed(p.call.name) != nil {
		return len(p.call.name) > 0
	}
	return isName(p.call.name)
}

// nameChar reports whether c can be part of the name of a function.
func nameChar(c byte) bool {
	return nameStart(c) || c >= '0' && c <= '9' || strings.IndexByte(".-:/$@", c) >= 0
}

// isName reports whether name can be the name of a function.
func isName(name []byte) bool {
	for _, c := range name {
		if !nameChar(c) {
			return false
		}
	}
	return len(name) > 0
}

// named extracts the name and the ID from the text between the tag and the body.
func (p *tagged) named(text []byte) {
	n := p.tag.Name
	work.Add(len(text))
	p.call.id = p.call.id[:0]
	if n.ID != "" {
		if name, id, ok := bytes.Cut(text, []byte(n.ID)); ok {
			text = bytes.TrimSpace(name)
			p.call.id = append(p.call.id, bytes.TrimSpace(id)...)
		}
	}
	if n.Number != "" {
		if i := bytes.LastIndex(text, []byte(n.Number)); i >= 0 && digits(text[i+len(n.Number):]) {
			p.call.id = append(append(p.call.id, n.Prefix...), text...)
			text = bytes.TrimSpace(text[:i])
		} else if counts(text) && p.toolNamed(text) == nil { // an id without the name: of the only tool, or of none
			p.call.id = append(p.call.id, text...)
			if text = nil; len(p.opt.Tools) == 1 {
				text = []byte(p.opt.Tools[0].Name)
			}
		}
	}
	p.call.name = append(p.call.name[:0], unquoted(text)...)
}

// unquoted returns a name or key without the quotes that models write around it and without further attributes of its tag.
func unquoted(text []byte) []byte {
	text = firstAttribute(text)
	if n := len(text); n > 1 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		return bytes.TrimSpace(text[1 : n-1])
	}
	return text
}

// firstAttribute returns text up to the quote before further attributes: f of f" id="1, if the first quote belongs to the tag, and "f" of
// "f" id="1".
func firstAttribute(text []byte) []byte {
	for i := 1; i < len(text); i++ {
		switch q := text[i]; {
		case q != '"' && q != '\'' || !attribute(text[i+1:]):
		case text[0] == q:
			return text[:i+1]
		case text[0] != '"' && text[0] != '\'':
			return text[:i]
		}
	}
	return text
}

// attribute reports whether text begins with white space and an attribute, such as type="string".
func attribute(text []byte) bool {
	t := bytes.TrimLeft(text, " \t")
	if len(t) == len(text) {
		return false
	}
	name, _, ok := bytes.Cut(t, []byte{'='})
	return ok && isName(name)
}

// idBegins reports whether the separator between the name and the ID of a call begins at window position i.
func (p *tagged) idBegins(i int) scan.Prefix {
	n, id := 0, p.tag.Name.ID
	st, _ := scan.Match(p.win, i, id, &n)
	if id == "" || st == scan.More && p.final {
		return scan.No
	}
	return st
}

// counts reports whether text only counts a call, as in 0 or call_00003.
func counts(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("call"))
	return digits(bytes.TrimPrefix(text, []byte("_")))
}

func digits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

// word reads the name or key that begins at from, up to one of ends or a byte of stops. White space may be around it, but no
// newline inside. On Yes it is a view of the window, without blanks around it, and pos is after what ended it; on No pos is
// at the byte that cannot belong to it.
func (p *tagged) word(ends []string, stops string) ([]byte, scan.Prefix) {
	m := p.machine
	for i := max(m.from, m.pos); i < len(m.win); i++ {
		c := m.win[i]
		work.Add(1)
		for _, end := range ends {
			if c != end[0] {
				continue
			}
			n := 0
			if len(ends) == 1 { // examined bytes are not examined again
				n, m.lit = m.lit, 0
			}
			switch st, at := scan.Match(m.win, i+n, end, &n); {
			case st == scan.Yes && m.is(end, at):
				m.pos = at
				return bytes.TrimSpace(m.win[m.from:i]), scan.Yes
			case st == scan.More:
				if m.pos = i; len(ends) == 1 {
					m.lit = n
				}
				return nil, scan.More
			}
		}
		if strings.IndexByte(stops, c) >= 0 {
			m.pos = i
			return bytes.TrimSpace(m.win[m.from:i]), scan.Yes
		}
		if c == '<' || i-m.from > m.c.g.MaxHold {
			m.pos = i
			return nil, scan.No
		}
		if c == '[' && m.state == stName { // not in a name
			if st := p.idBegins(i); st != scan.Yes {
				m.pos = i
				return nil, st
			}
		} else if i > m.from && blank(m.win[i-1]) && !blank(c) {
			if line := m.lineBefore(i); line >= 0 {
				m.pos = line
				return nil, scan.No
			}
		}
	}
	m.pos = len(m.win)
	return nil, scan.More
}

// lineBefore returns the position of a newline in the white space before window position i, if it comes after other
// bytes of the current word, or -1.
func (p *machine) lineBefore(i int) int {
	line := -1
	for i--; i >= p.from && blank(p.win[i]); i-- {
		work.Add(1)
		if p.win[i] == '\n' {
			line = i
		}
	}
	if i < p.from {
		return -1
	}
	return line
}

func (p *tagged) badName() bool {
	if p.call.open {
		return p.broken(event.BadName)
	}
	return p.doubt(p.from)
}
