// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Walk passes the conversation of r, of any API, to fn as a sequence of values, so that a template's values can be
// built from it without JSON in between. The sequence is the object {"messages": [...], "tools": [...]}, with the lists
// of [AppendMessages] and [AppendTools]. Walk returns the losses of the messages followed by those of the tools.
//
// fn is called for each of these, with a kind and a text:
//
//	'{' '[' '}' ']'  the beginning or the end of an object or a list; the text is empty
//	':'              the name of a field, before its value
//	'"'              a string, decoded. It may contain invalid UTF-8, in whose place AppendMessages writes U+FFFD
//	'!'              the same for the arguments of a call, if RenderOptions.Call reported that the model wrote this text
//	'='              any value, as JSON text that was copied from the request
//
// Texts are views of the request, as those of its blocks are.
func Walk(r *block.Request, fn func(kind byte, text string), opt *RenderOptions) []block.Loss {
	w := renderer{r: r, out: values{fn: fn}}
	if opt != nil {
		w.opt = *opt
	}
	return w.walk()
}

// walk writes the messages and the tools.
func (w *renderer) walk() []block.Loss {
	w.out.begin('{')
	w.out.key("messages")
	w.out.begin('[')
	w.messages()
	w.out.end(']')
	w.out.key("tools")
	w.out.begin('[')
	lost := w.out.tools(w.r)
	w.out.end(']')
	w.out.end('}')
	if w.walked != nil {
		w.walked.losses = slices.Clip(w.losses)
	}
	return append(slices.Clip(w.losses), lost...)
}

// values writes values as JSON, or passes them to fn.
type values struct {
	dst []byte
	fn  func(kind byte, text string) // if not nil, instead of dst
}

// next adds the comma between two values or fields.
func (v *values) next() {
	if n := len(v.dst); n > 0 && !strings.ContainsRune("{[:", rune(v.dst[n-1])) {
		v.dst = append(v.dst, ',')
	}
}

func (v *values) begin(kind byte) {
	if v.fn != nil {
		v.fn(kind, "")
		return
	}
	v.next()
	v.dst = append(v.dst, kind)
}

func (v *values) end(kind byte) {
	if v.fn != nil {
		v.fn(kind, "")
		return
	}
	v.dst = append(v.dst, kind)
}

// key starts a field.
func (v *values) key(name string) {
	if v.fn != nil {
		v.fn(':', name)
		return
	}
	v.next()
	v.dst = append(jsonscan.AppendString(v.dst, name), ':')
}

// str writes a string.
func (v *values) str(s string) {
	if v.fn != nil {
		v.fn('"', s)
		return
	}
	v.next()
	v.dst = jsonscan.AppendString(v.dst, s)
}

// own writes a string of JSON that the model wrote.
func (v *values) own(s string) {
	if v.fn != nil {
		v.fn('!', s)
		return
	}
	v.str(s)
}

// member writes a field that is a string.
func (v *values) member(name, s string) {
	v.key(name)
	v.str(s)
}

// raw writes JSON.
func (v *values) raw(json string) {
	if v.fn != nil {
		v.fn('=', json)
		return
	}
	v.next()
	v.dst = append(v.dst, json...)
}

// rawBytes is raw for a view of the request's body.
func (v *values) rawBytes(json []byte) { v.raw(unsafe.String(unsafe.SliceData(json), len(json))) }
