// SPDX-License-Identifier: Apache-2.0

package streamdec

import (
	"unicode/utf16"
	"unicode/utf8"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// Halves joins characters that a server cut in two. A program that counts text in UTF-16, as JavaScript does, may end one
// delta with the escape of a high surrogate and begin the next with that of the low one. The zero value is ready for use.
//
//	h.Text(`"a\ud83d"`)  a
//	h.Text(`"\ude00!"`)  😀!
type Halves struct{ high rune }

// Text is [Doc.Text] for the next delta of one text. A high surrogate at the end is held until the delta after it.
func (h *Halves) Text(d *Doc, v jsonscan.Value) []byte {
	if v.Kind() != jsonscan.String {
		return nil
	}
	return h.Next(d, v, d.Text(v))
}

// Next is Text for a string v whose text is known.
func (h *Halves) Next(d *Doc, v jsonscan.Value, text []byte) []byte {
	raw := v.Raw()
	raw = raw[1 : len(raw)-1]
	if h.high == 0 && (len(text) == len(raw) || highTail(raw) == 0) { // every escape is longer than what it stands for
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

// Flush ends the text: it returns U+FFFD if a half was held, else nothing.
func (h *Halves) Flush() []byte {
	if h.high == 0 {
		return nil
	}
	h.high = 0
	return []byte("\uFFFD")
}

// highTail returns the high surrogate that is escaped at the end of raw, the checked inside of a string, or 0.
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

// escape returns the UTF-16 unit that the escape at the start of raw stands for.
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

// Drop forgets a half that is held: the text is known from elsewhere.
func (h *Halves) Drop() { h.high = 0 }
