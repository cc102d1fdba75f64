// SPDX-License-Identifier: Apache-2.0

package streamdec

import (
	"bytes"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/sse"
)

// maxName is the maximum length in bytes of an ID or model that is kept.
const maxName = 512

// Typed is the common part of the decoders of the Messages and Responses APIs, whose server-sent events have types. It
// holds the output events and the first error of one call, and the ID and model of the response. The zero value is
// ready for use. A Typed is not safe for concurrent use.
//
//	name, root, failure := t.Read(dst, typ, data, lim)
//	… // appends to t.Out
//	return t.Take()
type Typed struct {
	Doc
	ID, Model []byte
	Started   bool // the event.Start was appended
	Ended     bool // the response has ended; set by the decoder

	Out []event.Event // of the current call
	Err error         // first fault of the current call

	known event.Tokens // usage of the event.Start
	parts int32
}

// Reset makes t ready for another response. It keeps its memory.
func (t *Typed) Reset() { *t = Typed{Doc: t.Doc, ID: t.ID[:0], Model: t.Model[:0]} }

// Read begins a call that decodes one server-sent event. It returns its type and its object, which is absent if the
// event is malformed or ignored. A type field in data takes precedence over typ. failure is the event for an error in
// plain text, or nil. Read ignores events after t has ended.
func (t *Typed) Read(dst []event.Event, typ, data []byte, lim *block.Limits) (name []byte, root jsonscan.Value, failure *event.Event) {
	t.Out, t.Err = dst, nil
	if t.Ended || string(bytes.TrimSpace(data)) == sse.Done {
		return nil, jsonscan.Value{}, nil
	}
	root, err := t.Parse(data, lim)
	if err == nil && root.Kind() != jsonscan.Object {
		err = Wrong(root, "an object")
	}
	if err != nil {
		if string(typ) == "error" {
			e := ErrorLine(&t.Doc, data, lim)
			return nil, jsonscan.Value{}, &e
		}
		t.Err = err
		return nil, jsonscan.Value{}, nil
	}
	if name = t.Str(root.Get("type")); len(name) == 0 {
		name = typ
	}
	return name, root, nil
}

// Take ends a call and returns its events and its error.
func (t *Typed) Take() ([]event.Event, error) {
	out, err := t.Out, t.Err
	t.Out, t.Err = nil, nil
	return out, err
}

// Begin appends the event.Start, once. It has counts, without those of the output, if known is set.
func (t *Typed) Begin(counts event.Tokens, known bool) {
	if t.Started {
		return
	}
	t.Started = true
	e := event.Event{Kind: event.Start, Call: -1}
	if known {
		counts.Output, counts.Reasoning = 0, 0
		t.known = counts
		e.Usage = &t.known
	}
	t.Out = append(t.Out, e)
}

// NextPart returns the index of a new part.
func (t *Typed) NextPart() int32 {
	t.parts++
	return t.parts - 1
}

// Begun returns *p, after setting it to the index of a new part if it is negative.
func (t *Typed) Begun(p *int32) int32 {
	if *p < 0 {
		*p = t.NextPart()
	}
	return *p
}

// Name sets ID and Model from the fields of v.
func (t *Typed) Name(v jsonscan.Value) {
	if s := t.Str(v.Get("id")); len(s) > 0 && len(s) <= maxName {
		t.ID = append(t.ID[:0], s...)
	}
	if s := t.Str(v.Get("model")); len(s) > 0 && len(s) <= maxName {
		t.Model = append(t.Model[:0], s...)
	}
}

// Str returns a string, or nil if v is absent or null. Any other value is an error.
func (t *Typed) Str(v jsonscan.Value) []byte {
	if v.Kind() == jsonscan.String {
		return t.Text(v)
	}
	if !v.IsNull() {
		t.Wrong(v, "a string")
	}
	return nil
}

// Delta is like [Halves.Text], except that a value that is not a string is an error.
func (t *Typed) Delta(h *Halves, v jsonscan.Value) []byte {
	if v.Kind() != jsonscan.String && !v.IsNull() {
		t.Wrong(v, "a string")
	}
	return h.Text(&t.Doc, v)
}

// Object returns the field name of root if it is an object. Otherwise it returns an absent value and records an error.
func (t *Typed) Object(root jsonscan.Value, name string) jsonscan.Value {
	v := root.Get(name)
	switch {
	case v.Kind() == jsonscan.Object:
		return v
	case v.Exists():
		t.Wrong(v, "an object")
	case t.Err == nil:
		off, _ := root.Span()
		path := jsonscan.AppendPathKey([]byte(root.Path()), []byte(name))
		t.Err = &block.Error{Kind: block.WrongType, Path: string(path), Offset: int64(off), Msg: "an object is required", Answer: true}
	}
	return jsonscan.Value{}
}

// Wrong records that v does not have the expected type.
func (t *Typed) Wrong(v jsonscan.Value, what string) {
	if t.Err == nil {
		t.Err = Wrong(v, what)
	}
}

// TooMany records that v exceeds a limit.
func (t *Typed) TooMany(v jsonscan.Value, msg, limit string, maximum int64) {
	if t.Err == nil {
		off, _ := v.Span()
		t.Err = &block.Error{Kind: block.LimitPassed, Path: v.Path(), Offset: int64(off), Msg: msg, Limit: limit, Max: maximum, Answer: true}
	}
}
