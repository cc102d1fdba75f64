// SPDX-License-Identifier: Apache-2.0

package jsonw

import (
	"bytes"
	"slices"
	"unicode/utf16"
)

// Pairs replaces lone surrogates in JSON text that arrives in pieces: an escape such as \ud83d without its other half becomes
// \ufffd, since strict parsers refuse it. All other text keeps its bytes. An escape that is not complete, and a high surrogate
// until the next escape, are held back. The zero value is ready to use.
//
//	p.Next(`"a\ud83d`)  `"a`
//	p.Next(`\ude00`)    `\ud83d\ude00`
//	p.Next(`\ud83d!"`)  `\ufffd!"`
type Pairs struct {
	hold [12]byte // a high surrogate or nothing, then the start of an escape
	n    uint8
	out  []byte
}

const loneSurrogate = `\ufffd`

// Next returns the text that data adds to what is held back. The result is data itself if possible, otherwise memory of p. It is
// valid until the next call, and only while data does not change.
func (p *Pairs) Next(data []byte) []byte {
	if p.n == 0 && IsPaired(data) {
		return data
	}
	p.out = p.out[:0]
	for len(data) > 0 {
		if p.n == 0 {
			i := bytes.IndexByte(data, '\\')
			if i < 0 {
				p.out = append(p.out, data...)
				break
			}
			p.out = append(p.out, data[:i]...)
			data = data[i:]
		}
		if p.take(data[0]) {
			data = data[1:]
		}
	}
	return p.out
}

// take adds a byte to what is held back. It returns false if the byte does not belong to that and must be read again.
func (p *Pairs) take(c byte) bool {
	high := p.n >= 6 // hold begins with a high surrogate
	at := p.n % 6    // position in the escape
	switch {
	case at == 0 && c != '\\', at > 1 && Hex(c) < 0:
		p.release()
		return false
	case at == 1 && c != 'u':
		p.hold[p.n] = c
		p.n++
		p.release()
		return true
	}
	p.hold[p.n] = c
	p.n++
	if at < 5 {
		return true
	}
	switch r := p.escape(p.n - 6); {
	case high && isLow(r):
		p.out = append(p.out, p.hold[:]...)
		p.n = 0
	case isHigh(r):
		if high {
			p.out = append(p.out, loneSurrogate...)
		}
		p.n = uint8(copy(p.hold[:], p.hold[p.n-6:p.n]))
	default:
		if isLow(r) {
			copy(p.hold[p.n-6:], loneSurrogate)
		}
		p.release()
	}
	return true
}

// release appends what is held back to the text, without a high surrogate.
func (p *Pairs) release() {
	if p.n >= 6 && isHigh(p.escape(0)) {
		copy(p.hold[:], loneSurrogate)
	}
	p.out = append(p.out, p.hold[:p.n]...)
	p.n = 0
}

// escape returns the UTF-16 unit of the escape at hold[i:].
func (p *Pairs) escape(i uint8) (r rune) {
	for _, c := range p.hold[i+2 : i+6] {
		r = r<<4 | rune(Hex(c))
	}
	return r
}

func isHigh(r rune) bool { return utf16.IsSurrogate(r) && r < 0xDC00 }
func isLow(r rune) bool  { return utf16.IsSurrogate(r) && r >= 0xDC00 }

// Holds reports whether text is held back.
func (p *Pairs) Holds() bool { return p.n > 0 }

// Flush ends the text and returns what is held back, valid until the next call.
func (p *Pairs) Flush() []byte {
	p.out = p.out[:0]
	p.release()
	return p.out
}

// IsPaired reports whether JSON text certainly has no part of a surrogate: it has no \u escape and does not end in one.
func IsPaired(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return true
		}
		if i+1 == len(text) || text[i+1] == 'u' {
			return false
		}
		text = text[i+2:]
	}
}

// Paired returns JSON text in which lone surrogates are replaced as by [Pairs]: text itself if it has none.
func Paired(text []byte) []byte {
	var p Pairs
	out := p.Next(text)
	if !p.Holds() {
		return out
	}
	return append(slices.Clone(out), p.Flush()...)
}
