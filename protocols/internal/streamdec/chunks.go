// SPDX-License-Identifier: Apache-2.0

package streamdec

import (
	"bytes"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/sse"
)

// Chunks decodes the common part of the chunks of the Chat and Completions APIs, which is all except the output in a
// choice, and keeps the ID, model and usage of the response. The zero value is ready for use. A Chunks is not safe for
// concurrent use.
//
//	dst, err = c.Read(dst, typ, data, lim) // appends Start and Usage
//	for c.Next(&choice) {
//		… // Index, Delta, Ends, …
//	}
//	… // c.Failure, c.Done
type Chunks struct {
	Doc
	ID, Model []byte // from the server
	Usage     event.Tokens
	Started   bool // a chunk was read
	Ended     bool // the response has ended; set by the decoder
	Dropped   int  // deltas without an open call or choice; counted by the decoder

	// Failure is the error in the last event, which ends the response after the event's choices, or nil. Done reports
	// whether the last event is [DONE].
	Failure *event.Event
	Done    bool

	whole    bool
	choices  jsonscan.Value
	next     jsonscan.Value // next element of choices
	position int64          // index of next
}

// Choice is an element of the array choices.
type Choice struct {
	Index    int64          // its index field or else its index in the array
	Delta    jsonscan.Value // or its message; always the message if Whole
	Text     jsonscan.Value
	Logprobs jsonscan.Value
	TokenIDs jsonscan.Value
	Stop     jsonscan.Value // if Why is StopSequence: the sequence, if known
	// StopToken is the number of the token that ended the choice, if known. It may be among TokenIDs, but is not in Text.
	StopToken jsonscan.Value

	Whole  bool      // part of a response that is not streamed
	Ends   bool      // last element for its choice: it has a finish_reason, or Whole is set
	Failed bool      // the engine gave up, which ends all choices: see [Chunks.GaveUp]
	Why    event.Why // cause of its end
}

// Reset makes c ready for another response. It keeps its memory.
func (c *Chunks) Reset() { *c = Chunks{Doc: c.Doc, ID: c.ID[:0], Model: c.Model[:0]} }

// Read decodes one server-sent event and appends its event.Start and event.Usage; Next returns the choices. Events of
// unknown types are decoded if they are objects. If the event is malformed, Read returns a *[block.Error] and no
// events. It ignores events after c has ended.
func (c *Chunks) Read(dst []event.Event, typ, data []byte, lim *block.Limits) ([]event.Event, error) {
	c.Failure, c.Done, c.next = nil, false, jsonscan.Value{}
	if c.Ended {
		return dst, nil
	}
	known := true
	switch string(typ) {
	case "", "message":
	case "error":
		c.failed(ErrorLine(&c.Doc, data, lim))
		return dst, nil
	default:
		known = false
	}
	if data = bytes.TrimSpace(data); len(data) == 0 {
		return dst, nil
	}
	if string(data) == sse.Done {
		c.Done = true
		return dst, nil
	}
	root, err := c.Parse(data, lim)
	switch {
	case err == nil && root.Kind() == jsonscan.Object:
		return c.read(dst, root)
	case !known: // an unrelated event
		return dst, nil
	case err == nil:
		err = Wrong(root, "an object")
	}
	return dst, err
}

// ReadWhole is like Read for the body of a response that is not streamed.
func (c *Chunks) ReadWhole(dst []event.Event, body []byte, lim *block.Limits) ([]event.Event, error) {
	c.whole = true
	root, err := c.Parse(body, lim)
	if err == nil && root.Kind() != jsonscan.Object {
		err = Wrong(root, "an object")
	}
	if err != nil {
		return dst, err
	}
	return c.read(dst, root)
}

// read decodes a chunk or a whole response except for its choices.
func (c *Chunks) read(dst []event.Event, root jsonscan.Value) ([]event.Event, error) {
	var choices, usage, failure, id, model jsonscan.Value
	for m := root.First(); m.Exists(); m = root.Next(m) {
		switch m.Key() {
		case "choices":
			choices = m
		case "usage":
			if m.Kind() == jsonscan.Object {
				usage = m
			}
		case "x_groq": // Groq's usage
			if u := m.Get("usage"); u.Kind() == jsonscan.Object {
				usage = u
			}
		case "error":
			if k := m.Kind(); k == jsonscan.Object || k == jsonscan.String && m.RawStr() != `""` {
				failure = m
			}
		case "id":
			id = m
		case "model":
			model = m
		}
	}
	if k := choices.Kind(); k != jsonscan.Array && k > jsonscan.Null || c.whole && k <= jsonscan.Null && !ErrorOf(root).Exists() {
		return dst, Wrong(choices, "an array of choices")
	}
	for v := choices.First(); v.Exists(); v = choices.Next(v) {
		if v.Kind() != jsonscan.Object {
			return dst, Wrong(v, "an object")
		}
	}
	if !choices.Exists() && !usage.Exists() {
		if e := ErrorOf(root); e.Exists() {
			c.failed(ErrorEvent(e))
		}
		return dst, nil // not a chunk
	}
	first := choices.First()
	if first.Kind() == jsonscan.Object && !usage.Exists() {
		if u := first.Get("usage"); u.Kind() == jsonscan.Object { // Moonshot
			usage = u
		}
	}
	before := c.Usage
	counted := Usage(usage, &c.Usage)
	switch {
	case !c.Started && (!failure.Exists() || first.Exists()):
		c.Started = true
		c.ID, c.Model = append(c.ID[:0], c.Text(id)...), append(c.Model[:0], c.Text(model)...)
		start := event.Event{Kind: event.Start, Call: -1}
		if counted {
			start.Usage = &c.Usage
		}
		dst = append(dst, start)
	case counted && c.Usage != before:
		dst = append(dst, event.Event{Kind: event.Usage, Call: -1, Usage: &c.Usage})
	}
	switch {
	case failure.Exists():
		c.failed(ErrorEvent(failure))
	case c.whole && !first.Exists():
		c.failed(event.Event{Kind: event.Error, Call: -1, Why: event.EngineFailed, Data: []byte("The engine sent no answer.")})
	}
	c.choices, c.next, c.position = choices, first, 0
	return dst, nil
}

func (c *Chunks) failed(e event.Event) { c.Failure = &e }

// Next decodes the next choice of the last event into x. It returns false if there are no more.
func (c *Chunks) Next(x *Choice) bool {
	if !c.next.Exists() {
		return false
	}
	c.choice(x)
	return true
}

// choice decodes the choice at c.next.
func (c *Chunks) choice(x *Choice) {
	v, index := c.next, c.position
	c.next, c.position = c.choices.Next(v), index+1
	var delta, message, text, logprobs, reason, ids jsonscan.Value
	for m := v.First(); m.Exists(); m = v.Next(m) {
		switch m.Key() {
		case "index":
			if n, ok := m.Int(); ok {
				index = n
			}
		case "delta":
			delta = m
		case "message":
			message = m
		case "text":
			text = m
		case "logprobs":
			logprobs = m
		case "finish_reason":
			reason = m
		case "token_ids":
			ids = m
		}
	}
	if c.whole || delta.Kind() != jsonscan.Object && message.Kind() == jsonscan.Object {
		delta = message
	}
	*x = Choice{Index: index, Delta: delta, Text: text, Logprobs: logprobs, TokenIDs: ids, Whole: c.whole, Ends: c.whole, Why: event.Stop}
	if reason.Kind() == jsonscan.String && reason.RawStr() != `""` {
		x.Ends = true
		x.Why, x.Failed = Finish(string(c.Text(reason)))
	}
	if x.Ends && (x.Why == event.Stop || x.Why == event.StopSequence) {
		switch s := stopOf(v); s.Kind() {
		case jsonscan.String:
			x.Why, x.Stop = event.StopSequence, s
		case jsonscan.Number:
			x.StopToken = s
		}
	}
}

// GaveUp returns the error for a choice that failed: the error of its chunk, if any, or else one with the cause of x.
func (c *Chunks) GaveUp(x *Choice) event.Event {
	if c.Failure != nil {
		return *c.Failure
	}
	return event.Event{Kind: event.Error, Call: -1, Why: x.Why, Data: []byte(Aborted)}
}
