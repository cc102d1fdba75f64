// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/args"
	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/parsers/internal/scan"
	"github.com/weft-go/weft/parsers/internal/work"
)

// first looks whether what may be a container begins with an opening tag. It takes nothing.
func (d *nestedDecoder) first(src []byte, final bool) (again bool) {
	for ; d.look < len(src); d.look++ {
		c := src[d.look]
		work.Add(1)
		switch at := d.look - d.gap; {
		case at == 0 && blank(c) && d.gap < maxGap:
			d.gap++
		case at < len(d.open):
			if c != d.open[at] {
				d.leaf()
				return true
			}
		case c == '/':
			d.leaf()
			return true
		default:
			d.look = 0
			f := d.push()
			f.kind, f.node, f.name = nestedUnknown, d.node, d.name
			d.state = nestedTag
			return true
		}
	}
	if final {
		d.leaf()
	}
	return final
}

// leaf begins a text that could have been a container. One that is not declared is a string, which may leave as it
// comes unless it may be the first of several.
func (d *nestedDecoder) leaf() {
	d.beginText(!d.node.Declared() && !d.mayRepeat(d.top(), d.node))
}

func (d *nestedDecoder) beginText(stream bool) {
	d.stream, d.held = stream, d.held[:0]
	if stream {
		d.out = append(d.out, '"')
	}
	d.look, d.step, d.gap = 0, 0, 0
	d.state = nestedText
}

// The steps of looking for the end of a text.
const (
	nestedSeek     uint8 = iota // no tag has begun
	nestedOpen                  // in what every tag begins with
	nestedClose                 // after it
	nestedAfterTag              // after a closing tag
)

// The closing tags that the bytes seen may belong to.
const (
	nestedOwn  uint8 = 1 << iota // the text's own
	nestedCall                   // the call's
)

// text reads on in a text.
func (d *nestedDecoder) text(src []byte, final bool) (n int, again bool) {
	for i := 0; ; { // what is before i is text
		if d.step == nestedSeek {
			at := bytes.IndexByte(src[i:], d.open[0])
			if at < 0 {
				work.Add(len(src) - i)
				return d.grow(src), false
			}
			work.Add(at)
			i += at
			d.step, d.look = nestedOpen, 0
		}
		switch d.closing(src[i:], final) {
		case scan.More:
			return d.grow(src[:i]), false
		case scan.No:
			d.step, d.look, d.gap = nestedSeek, 0, 0
			i++
		case scan.Yes:
			if n = d.grow(src[:i]); n < i {
				return n, false
			}
			if d.alive == nestedCall {
				d.end = grammar.Bad
				return n, false
			}
			n += d.closed
			d.endText()
			return n, true
		}
	}
}

// closing reports whether src begins with a closing tag that ends the text, or with the call's. alive selects which,
// and closed is its length.
func (d *nestedDecoder) closing(src []byte, final bool) scan.Prefix {
	for ; d.look < len(src); d.look++ {
		c := src[d.look]
		work.Add(1)
		switch d.step {
		case nestedOpen:
			if c != d.open[d.look] {
				return scan.No
			}
			if d.look == len(d.open)-1 {
				d.step, d.alive = nestedClose, nestedOwn|nestedCall
			}
		case nestedClose:
			if !d.closes(c, d.look-len(d.open)) {
				return scan.No
			}
		case nestedAfterTag:
			switch at := d.look - d.closed - d.gap; {
			case at == 0 && blank(c) && d.gap < maxGap:
				d.gap++
			case c != d.open[at]:
				return scan.No
			case at == len(d.open)-1:
				return scan.Yes
			}
		}
	}
	switch {
	case !final:
		return scan.More
	case d.step == nestedAfterTag && d.alive == nestedOwn:
		return scan.Yes
	}
	return scan.No
}

// closes compares c with byte at of the two closing tags, after the common beginning of all tags.
func (d *nestedDecoder) closes(c byte, at int) bool {
	own := d.names[d.name:]
	if d.alive&nestedOwn != 0 {
		switch {
		case at == 0 && c == '/', at > 0 && at <= len(own) && c == own[at-1]:
		case at == len(own)+1 && c == '>':
			d.step, d.alive, d.closed = nestedAfterTag, nestedOwn, d.look+1
			return true
		default:
			d.alive &^= nestedOwn
		}
	}
	if d.alive&nestedCall != 0 {
		switch {
		case at >= len(d.last) || c != d.last[at]:
			d.alive &^= nestedCall
		case at == len(d.last)-1:
			d.step, d.alive, d.closed = nestedAfterTag, nestedCall, d.look+1
		}
	}
	return d.alive != 0
}

// grow passes text on and returns how much of it was taken: all, unless that is more than may be held.
func (d *nestedDecoder) grow(text []byte) int {
	if d.stream {
		d.out = jsontext.AppendEscaped(d.out, text)
		return len(text)
	}
	if room := d.limit - len(d.held); len(text) > room {
		text = text[:room]
		d.end = grammar.Limit
	}
	d.held = append(d.held, text...)
	return len(text)
}

// endText writes the value whose text is complete.
func (d *nestedDecoder) endText() {
	d.names = d.names[:d.name]
	d.state, d.look = nestedTag, 0
	if d.stream {
		d.out = append(d.out, '"')
		return
	}
	at := len(d.out)
	d.value(d.node)
	f := d.top()
	mayBeFirst := !d.node.Declared() || d.node.Types()&args.Array != 0
	if mayBeFirst && d.mayRepeat(f, d.node) && d.out[at] != '[' {
		d.out = d.out[:at]
		f.list = nestedMay
	}
}

// value writes the text in held as what node declares.
func (d *nestedDecoder) value(node args.Node) {
	if len(bytes.TrimLeft(d.held, " \n\t\r")) == 0 {
		if empty := emptyOf(node.Types()); empty != "" {
			d.out = append(d.out, empty...)
			return
		}
	}
	d.out = node.AppendValue(d.out, d.held)
}

// emptyOf returns the value of one of the types t that the template writes as nothing at all.
func emptyOf(t args.Types) string {
	switch {
	case t&args.String != 0:
	case t&args.Array != 0:
		return "[]"
	case t&args.Object != 0:
		return "{}"
	case t&args.Null != 0:
		return "null"
	}
	return ""
}
