// SPDX-License-Identifier: Apache-2.0

package streamdec

import (
	"errors"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Defaults of the limits for what a server sends. An answer that is not streamed is one document; deltas are small.
const (
	maxBytes  = 64 << 20
	maxDepth  = 128
	maxValues = 1 << 20
)

// keepValues is the size of an index that is kept for the next event.
const keepValues = 4096

// keepBytes is the size of the buffer for unescaped text that is kept for the next event.
const keepBytes = 64 << 10

// Doc reads documents in the same memory. The zero value is ready for use. One goroutine at a time.
type Doc struct {
	scan jsonscan.Scanner
	buf  []byte
}

// Parse checks data and returns its value. Values and texts of the document before are gone; those of this one are valid
// until the next Parse, and as long as data does not change. Errors are *[block.Error]. Zero limits are the defaults;
// Blocks and Tools have no meaning here.
func (d *Doc) Parse(data []byte, lim *block.Limits) (jsonscan.Value, error) {
	l := jsonscan.Limits{Bytes: maxBytes, Depth: maxDepth, Values: maxValues}
	if lim != nil {
		l.Bytes, l.Depth, l.Values = or(lim.Body, maxBytes), or(lim.Depth, maxDepth), or(lim.Values, maxValues)
	}
	d.scan.Trim(keepValues)
	if d.buf = d.buf[:0]; cap(d.buf) > keepBytes {
		d.buf = nil
	}
	doc, err := d.scan.Scan(data, l)
	if err != nil {
		return jsonscan.Value{}, Fault(err)
	}
	return doc.Root(), nil
}

func or(n, def int) int {
	if n > 0 {
		return n
	}
	return def
}

// Text returns the text of a string, nil for any other value. It is valid until the next Parse.
func (d *Doc) Text(v jsonscan.Value) []byte {
	s, _ := v.Text(&d.buf)
	return s
}

// Keep copies a text into the document's memory, for one that must be valid until the next Parse.
func (d *Doc) Keep(text []byte) []byte {
	from := len(d.buf)
	d.buf = append(d.buf, text...)
	return d.buf[from:len(d.buf):len(d.buf)]
}

// Int returns an integer, 0 for any other value.
func Int(v jsonscan.Value) int64 {
	n, _ := v.Int()
	return n
}

// Fault turns an error of the scanner into a *[block.Error] about an answer.
func Fault(err error) error {
	se, ok := errors.AsType[*jsonscan.Error](err)
	if !ok {
		return err
	}
	kind := block.Malformed
	switch se.Kind {
	case jsonscan.Encoding:
		kind = block.InvalidEncoding
	case jsonscan.Duplicate:
		kind = block.DuplicateKey
	case jsonscan.Limit:
		kind = block.LimitPassed
	}
	return &block.Error{Kind: kind, Path: se.Path, Offset: int64(se.Offset), Msg: se.Msg, Limit: se.Limit, Max: se.Max, Answer: true}
}

// Wrong is the error for a value of the wrong type: what was expected in its place.
func Wrong(v jsonscan.Value, what string) error {
	off, _ := v.Span()
	return &block.Error{
		Kind: block.WrongType, Path: v.Path(), Offset: int64(off), Msg: what + " was expected, not " + v.Kind().String(), Answer: true,
	}
}
