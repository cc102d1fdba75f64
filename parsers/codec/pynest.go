// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"

	"github.com/weft-go/weft/parsers/grammar"
)

// before writes the comma that is due before a value.
func (d *pythonDecoder) before() {
	if d.comma {
		d.comma = false
		d.put(",")
	}
}

// after reads c following a value.
func (d *pythonDecoder) after(c byte) bool {
	k := d.kind[d.depth]
	switch {
	case c == ',' && k == pythonCall:
		d.state = pythonName
	case c == ',' && !(k == pythonDict && d.key):
		switch k {
		case pythonParen:
			d.decide(pythonTuple, '[')
		case pythonBrace:
			d.decide(pythonSet, '[')
		}
		d.state, d.comma, d.shut, d.key = pythonValue, true, true, true
	case c == ':' && k == pythonBrace && d.last != pythonWasContainer:
		if d.last == pythonWasPlain {
			d.pend[d.mark[d.depth]+1] = '"'
			d.put(`"`)
		}
		d.decide(pythonDict, '{')
		d.colon()
	case c == ':' && k == pythonDict && d.key:
		d.colon()
	case c == ')' && k == pythonCall:
		return d.shutCall()
	case k == pythonDict && d.key:
		d.end = grammar.Bad
		return false
	default:
		return d.close(c)
	}
	return true
}

func (d *pythonDecoder) colon() {
	d.put(":")
	d.state, d.shut, d.key = pythonValue, false, false
}

// push opens a container.
func (d *pythonDecoder) push(k pythonKind) bool {
	if d.depth == maxDepth-1 {
		d.end = grammar.Limit
		return false
	}
	d.before()
	d.depth++
	d.kind[d.depth] = k
	d.state, d.shut, d.key = pythonValue, true, true
	if k == pythonList {
		d.put("[")
		return true
	}
	d.open++
	d.mark[d.depth] = uint16(len(d.pend))
	d.put("\x00")
	if k == pythonBrace {
		d.put("\x00") // for the quote before a key that is not a string
	}
	return true
}

// close reads the byte that ends the innermost container.
func (d *pythonDecoder) close(c byte) bool {
	k, empty := d.kind[d.depth], d.state == pythonValue
	end := "]"
	d.key = false // no container is a key of a dict
	switch {
	case c == ']' && k == pythonList:
	case c == ')' && k == pythonTuple:
	case c == ')' && k == pythonParen:
		if !empty {
			d.depth--
			d.resolve()
			return true // a value in parentheses is that value
		}
		d.decide(pythonTuple, '[')
	case c == '}' && k == pythonSet:
	case c == '}' && k == pythonDict:
		end = "}"
	case c == '}' && k == pythonBrace && empty:
		d.decide(pythonDict, '{')
		end = "}"
	case c == '}' && k == pythonBrace:
		d.decide(pythonSet, '[')
	default:
		d.end = grammar.Bad
		return false
	}
	d.put(end)
	d.depth--
	d.state, d.comma, d.last = pythonAfter, false, pythonWasContainer
	return true
}

// decide makes the innermost container a k, which begins with c.
func (d *pythonDecoder) decide(k pythonKind, c byte) {
	d.kind[d.depth] = k
	d.pend[d.mark[d.depth]] = c
	d.resolve()
}

// resolve notes that one level less is undecided, and writes what was kept when none is.
func (d *pythonDecoder) resolve() {
	if d.open--; d.open > 0 {
		return
	}
	p := d.pend
	for len(p) > 0 {
		n := bytes.IndexByte(p, 0)
		if n < 0 {
			n = len(p)
		}
		d.out = append(d.out, p[:n]...)
		p = p[min(n+1, len(p)):]
	}
	d.pend = d.pend[:0]
}

// put writes text where output goes now.
func (d *pythonDecoder) put(text string) {
	to := d.to()
	*to = append(*to, text...)
}

// to returns where output goes now.
func (d *pythonDecoder) to() *[]byte {
	if d.open > 0 {
		return &d.pend
	}
	return &d.out
}
