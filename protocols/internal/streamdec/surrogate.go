// SPDX-License-Identifier: Apache-2.0

package streamdec

import (
	"unicode/utf16"
	"unicode/utf8"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// Halves joins surrogate pairs that a server split between two deltas. A program that counts text in UTF-16, as
// JavaScript does, may end one delta with the escape of a high surrogate and begin the next with the low one. The zero
// value is ready for use.
//
//	h.Text(`"a\ud83d"`)  a
//	h.Text(`"\ude00!"`)  😀!
type Halves struct{ high rune }

// Text is like [Doc.Text] for the next delta of a text. It holds a high surrogate at the end until the next delta.
func (h *Halves) Text(d *Doc, v jsonscan.Value) []byte {
	if v.Kind() != jsonscan.String {
		return nil
	}
	return h.Next(d, v, d.Text(v))
}

// Next is like Text, given the decoded text of v.
func (h *Halves) Next(d *Doc, v jsonscan.Value, text []byte) []byte {
	raw := v.Raw()
	raw = raw[1 : len(raw)-1]
	if h.high == 0 && (len(text) == len(raw) || highTail(raw) == 0) { // every escape is longer than the character it represents
		return text
	}
	if len(raw) == 0 {
		return nil
	}
	from := len(d.buf)
	if h.high != 0 {
		r := rune(utf8.RuneError)
		if low, ok := escape(raw); ok && utf16.IsSurrogate(low) && low >= 0xDC00 {
			r, raw = utf16.DecodeRune(h.high, low), raw[6:]
		}
		d.buf = utf8.AppendRune(d.buf, r)
		h.high = 0
	}
	if h.high = highTail(raw); h.high != 0 {
		raw = raw[:len(raw)-6]
	}
	d.buf = jsonscan.AppendUnescaped(d.buf, raw)
	return d.buf[from:len(d.buf):len(d.buf)]
}

// Flush ends the text. It returns U+FFFD if a high surrogate was held, else nil.
func (h *Halves) Flush() []byte {
	if h.high == 0 {
		return nil
	}
	h.high = 0
	return []byte("\uFFFD")
}

// highTail returns the high surrogate whose escape is at the end of raw, the validated contents of a string, or 0.
func highTail(raw []byte) rune {
	at := len(raw) - 6
	if at < 0 {
		return 0
	}
	r, ok := escape(raw[at:])
	if !ok || r < 0xD800 || r >= 0xDC00 {
		return 0
	}
	slashes := 0
	for i := at - 1; i >= 0 && raw[i] == '\\'; i-- {
		slashes++
	}
	if slashes%2 != 0 { // the backslash is itself escaped
		return 0
	}
	return r
}

// escape returns the UTF-16 unit that the escape at the start of raw represents.
func escape(raw []byte) (r rune, ok bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	for _, c := range raw[2:6] {
		v := jsonw.Hex(c)
		if v < 0 {
			return 0, false
		}
		r = r<<4 | rune(v)
	}
	return r, true
}

// Drop discards a high surrogate that is held, because another source has the text.
func (h *Halves) Drop() { h.high = 0 }
