// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/args"
	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/parsers/internal/work"
)

// tag reads white space and a tag. It takes the tag when it is complete.
func (d *nestedDecoder) tag(src []byte) (n int, again bool) {
	if d.look == 0 {
		for n < len(src) && blank(src[n]) {
			n++
		}
		src = src[n:]
		work.Add(n)
	}
	root := len(d.frames) == 1
	for ; d.look < len(src); d.look++ {
		c := src[d.look]
		work.Add(1)
		at := d.look - len(d.open)
		switch {
		case at < 0:
			if c != d.open[d.look] {
				d.end = grammar.Bad
				return n, false
			}
		case root && (at == 0 && c == '/' || at > 0 && c == '='):
			d.finish()
			return n, false
		case c == '>':
			took := d.look + 1
			d.look = 0
			if name := src[len(d.open) : took-1]; at > 0 && name[0] == '/' {
				d.closeTag(name[1:])
			} else {
				d.openTag(name)
			}
			if d.end != grammar.More {
				took = 0
			}
			return n + took, true
		case c < ' ' || c == '<' || c == '"' || c == '=' || at > nestedName:
			d.end = grammar.Bad
			return n, false
		}
	}
	return n, false
}

// finish ends the arguments.
func (d *nestedDecoder) finish() {
	if d.frames[0].keys.Len() == 0 {
		d.out = append(d.out, '{')
	}
	d.flushProperty(&d.frames[0])
	d.out = append(d.out, '}')
	d.end = grammar.Done
}

// openTag begins the value in the tag name.
func (d *nestedDecoder) openTag(name []byte) {
	f := d.top()
	if len(name) == 0 || len(name) > nestedName {
		d.end = grammar.Bad
		return
	}
	if len(d.frames) > nestedDepth {
		d.end = grammar.Limit
		return
	}
	if f.kind == nestedUnknown {
		d.decide(f, name)
	}
	switch {
	case f.kind == nestedArray:
		if f.n > 0 {
			d.out = append(d.out, ',')
		}
		d.node = f.node.Item(f.n)
		f.n++
	case f.list != nestedNone && bytes.Equal(name, f.keys.Last()):
		list := f.node.Property(name)
		if f.list == nestedMay {
			d.out = append(d.out, '[')
			d.value(list.Item(0))
			f.list, f.n = nestedIs, 1
		}
		d.out = append(d.out, ',')
		d.node = list.Item(f.n)
		f.n++
	default:
		d.flushProperty(f)
		if d.end = addKey(&f.keys, name); d.end != grammar.More {
			return
		}
		switch {
		case f.keys.Len() > 1:
			d.out = append(d.out, ',')
		case len(d.frames) == 1:
			d.out = append(d.out, '{')
		}
		d.out = append(jsontext.AppendQuoted(d.out, name), ':')
		d.node = f.node.Property(name)
	}
	d.name = len(d.names)
	d.names = append(d.names, name...)
	d.look, d.gap = 0, 0
	switch t := d.node.Types(); {
	case !d.node.Declared() || t&(args.Object|args.Array) != 0:
		d.state = nestedFirst
	default:
		d.beginText(t == args.String)
	}
}

// decide determines the kind of the container f, whose first tag is name, and opens it.
func (d *nestedDecoder) decide(f *nestedFrame, name []byte) {
	t := f.node.Types()
	if !f.node.Declared() {
		t = args.Object | args.Array
	}
	isItem := string(name) == "item"
	switch {
	case t&args.Array == 0:
		f.kind = nestedObject
	case t&args.Object == 0:
		f.kind = nestedArray
		if elem := f.node.Item(0); !isItem && elem.Property(name).Declared() {
			d.out = append(d.out, '[')
			f.kind, f.node, f.only = nestedObject, elem, true
		}
	case isItem && !f.node.Property(name).Declared():
		f.kind = nestedArray
	default:
		f.kind = nestedObject
	}
	c := byte('{')
	if f.kind == nestedArray {
		c = '['
	}
	d.out = append(d.out, c)
}

// flushProperty writes what is left of the last property of an object when another follows or none.
func (d *nestedDecoder) flushProperty(f *nestedFrame) {
	switch f.list {
	case nestedMay:
		d.value(f.node.Property(f.keys.Last()))
	case nestedIs:
		d.out = append(d.out, ']')
	}
	f.list = nestedNone
}

// closeTag ends the innermost container, whose name must be name.
func (d *nestedDecoder) closeTag(name []byte) {
	f := d.top()
	if !bytes.Equal(name, d.names[f.name:]) {
		d.end = grammar.Bad
		return
	}
	c := byte('}')
	if f.kind == nestedArray {
		c = ']'
	}
	d.flushProperty(f)
	d.out = append(d.out, c)
	d.names = d.names[:f.name]
	only := f.only
	d.frames = d.frames[:len(d.frames)-1]
	if only {
		if f = d.top(); d.mayRepeat(f, args.Node{}) {
			f.list, f.n = nestedIs, 1
		} else {
			d.out = append(d.out, ']')
		}
	}
}

// mayRepeat reports whether the value that ends, which node declares, may be given again in the object f. A parameter may
// if it can only be an array, so that others need not wait for the next one.
func (d *nestedDecoder) mayRepeat(f *nestedFrame, node args.Node) bool {
	return f.kind == nestedObject && f.list == nestedNone &&
		(len(d.frames) > 1 || node.Declared() && node.Types()&(args.Array|args.String) == args.Array)
}
