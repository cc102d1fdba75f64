// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/jsontext"
)

// open looks whether src begins with an opening quote, and takes it when it is whole.
func (d *gemmaDecoder) open(src []byte) (n int, again bool) {
	for d.match < len(d.quote) {
		if d.match == len(src) {
			return 0, false
		}
		if src[d.match] != d.quote[d.match] { // text that only begins like one
			d.match = 0
			if d.state = gemmaRaw; d.key {
				d.state = gemmaBareKey
			}
			return 0, true
		}
		d.match++
	}
	d.state, d.match = gemmaString, 0
	return len(d.quote), true
}

// text reads on between quotes.
func (d *gemmaDecoder) text(dst, src []byte, i int) ([]byte, int) {
	switch {
	case d.match == 0:
		run := src[i:]
		if n := bytes.IndexByte(run, d.quote[0]); n >= 0 {
			run = run[:n]
		}
		if len(run) > 0 {
			if d.key {
				run = run[:1] // so that the limit is reached at the same byte always
			}
			return d.put(dst, run), i + len(run)
		}
		d.match = 1
	case src[i] == d.quote[d.match]:
		d.match++
	default:
		b := d.border[d.match]
		dst = d.put(dst, d.quote[:d.match-b])
		d.match = b
		return dst, i
	}
	if d.match == len(d.quote) {
		d.state, d.gap = gemmaClose, 0
	}
	return dst, i + 1
}

// confirm reads c after a quote and white space, and decides whether the string ends there.
func (d *gemmaDecoder) confirm(dst []byte, c byte, i int) ([]byte, int) {
	switch {
	case blank(c) && d.gap < maxGap:
		d.gapText[d.gap] = c
		d.gap++
		return dst, i + 1
	case d.key && c == ':':
		d.state = gemmaColon
		return dst, i
	case !d.key && (c == ',' || c == '}' || c == ']'):
		d.state = gemmaAfter
		return append(dst, '"'), i
	}
	d.state, d.match = gemmaString, 0
	if d.gap == 0 {
		d.match = d.border[len(d.quote)]
	}
	dst = d.put(dst, d.quote[:len(d.quote)-d.match])
	return d.put(dst, d.gapText[:d.gap]), i
}

// put adds text to the string or key.
func (d *gemmaDecoder) put(dst, text []byte) []byte {
	if d.key {
		d.held = append(d.held, text...)
		return dst
	}
	return jsontext.AppendEscaped(dst, text)
}

// quoted reads on between double quotes.
func (d *gemmaDecoder) quoted(dst, src []byte, i int) ([]byte, int) {
	if !d.key {
		dst, n, done := d.json.read(dst, src[i:])
		if done {
			d.state = gemmaAfter
		}
		if d.json.rule == escapesBad {
			d.end = grammar.Bad
		}
		return dst, i + n
	}
	var n int
	var done bool
	if d.held, n, done = d.json.read(d.held, src[i:i+1]); done {
		d.state = gemmaColon
	}
	if d.json.rule == escapesBad {
		d.end = grammar.Bad
	}
	return dst, i + n
}
