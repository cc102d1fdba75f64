// SPDX-License-Identifier: Apache-2.0

package codec

import "github.com/weft-go/weft/parsers/grammar"

// The decoders implement [grammar.Passing]: inside a string they copy, except for the bytes in these tables.

// specials returns a table of bytes.
func specials(bytes ...byte) *[256]bool {
	t := new([256]bool)
	for _, c := range bytes {
		t[c] = true
	}
	return t
}

var pythonSpecials = specials('\'', '"', '\\')

// Passes implements [grammar.Passing].
func (d *gemmaDecoder) Passes() *[256]bool {
	if d.state != gemmaString || d.match != 0 || d.key || d.end != grammar.More {
		return nil
	}
	return d.special
}

// Passes implements [grammar.Passing].
func (d *pythonDecoder) Passes() *[256]bool {
	if d.state != pythonString || d.open > 0 || d.str.format {
		return nil
	}
	return pythonSpecials
}

// Passes implements [grammar.Passing].
func (d *nestedDecoder) Passes() *[256]bool {
	if d.state != nestedText || !d.stream || d.step != nestedSeek || d.end != grammar.More {
		return nil
	}
	return d.special
}
