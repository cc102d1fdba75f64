// SPDX-License-Identifier: Apache-2.0

package streamdec

import (
	"bytes"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/sse"
)

// maxName is the greatest length of an id or a model that is kept.
const maxName = 512

// Typed is what the decoders of the Messages and Responses APIs share, whose events have types: the frame of one call, with
// its events and its first fault, and what is known of the answer. The zero value is ready for use. One goroutine at a
// time.
//
//	name, root, failure := t.Read(dst, typ, data, lim)
//	… // appends to t.Out
//	return t.Take()
type Typed struct {
	Doc
	ID, Model []byte
	Started   bool // there was a Start
	Ended     bool // nothing more is to come; for the decoder to set

	Out []event.Event // of the call that is running
	Err error         // first fault of the call that is running

	known event.Tokens // of Start
	parts int32
}

// Reset makes t ready for another answer and keeps its memory.
func (t *Typed) Reset() { *t = Typed{Doc: t.Doc, ID: t.ID[:0], Model: t.Model[:0]} }

// Read begins a call that reads one server-sent event. It returns its type, which in data counts more than typ, and the object
// it is, absent if there is nothing to do. failure is an error in plain text. It reads nothing more once t has ended.
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

// Take ends a call: it returns the events and the fault.
func (t *Typed) Take() ([]event.Event, error) {
	out, err := t.Out, t.Err
	t.Out, t.Err = nil, nil
	return out, err
}

// Begin appends the Start, once, with the counts that are known ahead of the output, if there are some.
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

// NextPart returns the number of a part that begins.
func (t *Typed) NextPart() int32 {
	t.parts++
	return t.parts - 1
}

// Begun returns the number of the part at p, which begins if it is negative.
func (t *Typed) Begun(p *int32) int32 {
	if *p < 0 {
		*p = t.NextPart()
	}
	return *p
}

// Name reads the id and the model of an answer.
func (t *Typed) Name(v jsonscan.Value) {
	if s := t.Str(v.Get("id")); len(s) > 0 && len(s) <= maxName {
		t.ID = append(t.ID[:0], s...)
	}
	if s := t.Str(v.Get("model")); len(s) > 0 && len(s) <= maxName {
		t.Model = append(t.Model[:0], s...)
	}
}

// Str returns a string, nil if it is absent or null. Any other value is a fault.
func (t *Typed) Str(v jsonscan.Value) []byte {
	if v.Kind() == jsonscan.String {
		return t.Text(v)
	}
	if !v.IsNull() {
		t.Wrong(v, "a string")
	}
	return nil
}

// Delta is [Halves.Text] for a delta. A value that is no string is a fault.
func (t *Typed) Delta(h *Halves, v jsonscan.Value) []byte {
	if v.Kind() != jsonscan.String && !v.IsNull() {
		t.Wrong(v, "a string")
	}
	return h.Text(&t.Doc, v)
}

// Object returns the member name of root if it is an object, else an absent value and a fault.
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

// Wrong notes a value that is not what it should be.
func (t *Typed) Wrong(v jsonscan.Value, what string) {
	if t.Err == nil {
		t.Err = Wrong(v, what)
	}
}

// TooMany notes that a limit was passed at v.
func (t *Typed) TooMany(v jsonscan.Value, msg, limit string, maximum int64) {
	if t.Err == nil {
		off, _ := v.Span()
		t.Err = &block.Error{Kind: block.LimitPassed, Path: v.Path(), Offset: int64(off), Msg: msg, Limit: limit, Max: maximum, Answer: true}
	}
}
