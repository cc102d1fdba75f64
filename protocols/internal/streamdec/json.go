// SPDX-License-Identifier: Apache-2.0

package streamdec

import (
	"errors"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Default limits for data from a server. A response that is not streamed is one document; deltas are small.
const (
	maxBytes  = 64 << 20
	maxDepth  = 128
	maxValues = 1 << 20
)

// keepValues is the maximum size of an index that is kept for the next event.
const keepValues = 4096

// keepBytes is the maximum size in bytes of a buffer for unescaped text that is kept for the next event.
const keepBytes = 64 << 10

// Doc decodes JSON documents, one after the other, in the same memory. The zero value is ready for use. A Doc is not
// safe for concurrent use.
type Doc struct {
	scan jsonscan.Scanner
	buf  []byte
}

// Parse validates data and returns its value. Values and texts are valid until the next call to Parse and while data is
// not modified. Errors are of type *[block.Error]. Limits of 0 mean the defaults; Blocks and Tools are not used.
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

// Text returns the text of a string, or nil for any other value. It is valid until the next call to Parse.
func (d *Doc) Text(v jsonscan.Value) []byte {
	s, _ := v.Text(&d.buf)
	return s
}

// Keep copies text to the document's memory, where it is valid until the next call to Parse.
func (d *Doc) Keep(text []byte) []byte {
	from := len(d.buf)
	d.buf = append(d.buf, text...)
	return d.buf[from:len(d.buf):len(d.buf)]
}

// Int returns an integer, or 0 for any other value.
func Int(v jsonscan.Value) int64 {
	n, _ := v.Int()
	return n
}

// Fault converts an error of the scanner to a *[block.Error] about a response.
func Fault(err error) error {
	se, ok := errors.AsType[*jsonscan.Error](err)
	if !ok {
		return err
	}
	kind := block.Malformed
	if se.Kind == jsonscan.Limit {
		kind = block.LimitPassed
	}
	return &block.Error{Kind: kind, Path: se.Path, Offset: int64(se.Offset), Msg: se.Msg, Limit: se.Limit, Max: se.Max, Answer: true}
}

// Wrong returns the error for a value of the wrong type. what describes the expected type.
func Wrong(v jsonscan.Value, what string) error {
	off, _ := v.Span()
	return &block.Error{
		Kind: block.WrongType, Path: v.Path(), Offset: int64(off), Msg: what + " was expected, not " + v.Kind().String(), Answer: true,
	}
}

// MaxBody returns the maximum size in bytes of a response that is not streamed.
func MaxBody(lim *block.Limits) int {
	if lim == nil {
		return maxBytes
	}
	return or(lim.Body, maxBytes)
}
