// SPDX-License-Identifier: Apache-2.0

package completionsanswer

import (
	"slices"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// This file is structured as follows: options, the Decoder and its exported methods, then the decoding of a chunk and
// of a choice.

// DecoderOptions configures a [Decoder].
type DecoderOptions struct {
	// Limits bounds one server-sent event or, with streamdec.Pull, a response that is one JSON document. Only Body (8
	// MiB by default for an event), Depth and Values are used.
	Limits *block.Limits
	// DoneFinishes makes [DONE] end the choices for which the server sent no finish_reason. By default they are treated
	// as cut off.
	DoneFinishes bool
}

// Decoder decodes the server-sent events of a streamed completion, as sent by OpenAI, vLLM, SGLang and others, to
// events: Start, Text, Logprobs, Usage, Finish, Error. Create one with [NewDecoder]. A Decoder is not safe for
// concurrent use.
//
//	data: {"choices":[{"index":0,"text":"Hi","token_ids":[13347]}]}       Start, Text
//	data: {"choices":[{"index":0,"text":"","finish_reason":"stop"}]}      Finish, with the ID of the stop token in stop_reason
//	data: {"choices":[],"usage":{…}}                                      Usage
//	data: [DONE]                                                          nothing
//
// The text is not modified, so that a parser can process the model's markup. [Decoder.TokenIDs] returns the token IDs
// for the parser. After the first events, a Decoder does not allocate. It does not keep text.
type Decoder struct {
	opt     DecoderOptions
	in      streamdec.Chunks
	choices []decodedChoice
	entries []byte // converted log probabilities of one chunk
}

// decodedChoice is the state of a choice.
type decodedChoice struct {
	n        int32
	finished bool
	half     streamdec.Halves
	ids      []uint32
}

// NewDecoder returns a decoder for one stream.
func NewDecoder(opt *DecoderOptions) *Decoder {
	d := &Decoder{}
	if opt != nil {
		d.opt = *opt
	}
	return d
}

// Reset makes the Decoder ready for another stream. It keeps its memory.
func (d *Decoder) Reset() {
	d.in.Reset()
	d.choices = d.choices[:0]
}

// ID returns the ID of the response as sent by the server, or "" before the first chunk.
func (d *Decoder) ID() string { return string(d.in.ID) }

// Model returns the model as sent by the server, or "" before the first chunk.
func (d *Decoder) Model() string { return string(d.in.Model) }

// Dropped returns the number of deltas so far that were dropped because their choice had finished or its index is
// invalid.
func (d *Decoder) Dropped() int { return d.in.Dropped }

// Ended reports whether [DONE] or an error was read, so that later events are ignored.
func (d *Decoder) Ended() bool { return d.in.Ended }

// TokenIDs returns the token IDs of a choice in the last server-sent event, if the engine sends them (vLLM:
// return_token_ids). They are valid until the next call.
func (d *Decoder) TokenIDs(choice int32) []uint32 {
	if choice < 0 || int(choice) >= len(d.choices) {
		return nil
	}
	return d.choices[choice].ids
}

// Append decodes one server-sent event with the given type (empty for message) and data, and appends its events to dst.
// Data of the events is a view of data or of the Decoder's memory. It is valid until the next call and while data is
// not modified.
//
// For a malformed chunk, Append returns a *[block.Error] with path and offset, and no events. An error that the server
// reports, in a chunk or instead of one, becomes an event.Error.
func (d *Decoder) Append(dst []event.Event, typ, data []byte) ([]event.Event, error) {
	if d.in.Ended {
		return dst, nil
	}
	for i := range d.choices {
		d.choices[i].ids = d.choices[i].ids[:0]
	}
	dst, err := d.in.Read(dst, typ, data, d.opt.Limits)
	return d.take(dst), err
}

// Finish ends the stream. If a choice has no finish_reason, the stream was cut off, and Finish appends an event.Error
// of class EngineFailed.
func (d *Decoder) Finish(dst []event.Event) []event.Event {
	if d.in.Ended {
		return dst
	}
	if len(d.choices) > 0 && !slices.ContainsFunc(d.choices, func(c decodedChoice) bool { return !c.finished }) {
		d.in.Ended = true
		return dst
	}
	return d.fail(dst, streamdec.CutEvent())
}

// AppendWhole resets the Decoder and appends the events of a response that is not streamed.
func (d *Decoder) AppendWhole(dst []event.Event, body []byte) ([]event.Event, error) {
	d.Reset()
	dst, err := d.in.ReadWhole(dst, body, d.opt.Limits)
	return d.take(dst), err
}

// take appends the events of the choices, the error or the [DONE] that d.in has read.
func (d *Decoder) take(dst []event.Event) []event.Event {
	d.entries = d.entries[:0]
	var x streamdec.Choice
	for d.in.Next(&x) {
		if dst = d.one(dst, &x); d.in.Ended {
			return dst
		}
	}
	switch {
	case d.in.Failure != nil:
		return d.fail(dst, *d.in.Failure)
	case d.in.Done:
		return d.doneLine(dst)
	}
	return dst
}

// doneLine handles [DONE].
func (d *Decoder) doneLine(dst []event.Event) []event.Event {
	if d.opt.DoneFinishes && d.in.Started {
		d.choice(0)
		for i := range d.choices {
			if c := &d.choices[i]; !c.finished {
				dst = c.finish(dst, event.Stop, nil, nil)
			}
		}
	}
	return d.Finish(dst)
}

// fail ends the response with an error.
func (d *Decoder) fail(dst []event.Event, e event.Event) []event.Event {
	d.in.Ended = true
	return append(dst, e)
}

// one appends the events of an element of choices.
func (d *Decoder) one(dst []event.Event, x *streamdec.Choice) []event.Event {
	data := d.in.Text(x.Text)
	c := d.choice(x.Index)
	if c == nil || c.finished {
		if len(data) > 0 {
			d.in.Dropped++
		}
		return dst
	}
	if len(data) > 0 {
		data = c.half.Next(&d.in.Doc, x.Text, data)
	}
	e := event.Event{Kind: event.Text, Choice: c.n, Call: -1, Data: data}
	for i := x.TokenIDs.First(); i.Exists() && x.TokenIDs.Kind() == jsonscan.Array; i = x.TokenIDs.Next(i) {
		if n, ok := i.Uint32(); ok {
			c.ids = append(c.ids, n)
		}
	}
	if e.Tokens = int32(len(c.ids)); len(data) > 0 || e.Tokens > 0 {
		dst = append(dst, e)
	}
	if x.Logprobs.Kind() == jsonscan.Object {
		from := len(d.entries)
		list, ok := appendEntries(d.entries, x.Logprobs)
		if l := x.Logprobs.Get("content"); !ok && l.Kind() == jsonscan.Array && l.First().Exists() { // the Chat API's form, from SGLang
			dst = append(dst, event.Event{Kind: event.Logprobs, Choice: c.n, Call: -1, Data: l.Raw()})
		} else if ok {
			d.entries = list
			dst = append(dst, event.Event{Kind: event.Logprobs, Choice: c.n, Call: -1, Data: list[from:len(list):len(list)]})
		}
	}
	switch {
	case !x.Ends:
		return dst
	case x.Failed:
		return d.fail(dst, d.in.GaveUp(x))
	}
	if rest := c.half.Flush(); len(rest) > 0 {
		dst = append(dst, event.Event{Kind: event.Text, Choice: c.n, Call: -1, Data: rest})
	}
	var token []byte
	if _, ok := x.StopToken.Uint32(); ok {
		token = x.StopToken.Raw()
	}
	return c.finish(dst, x.Why, d.in.Text(x.Stop), token)
}

// finish ends a choice at a stop sequence or token, which may be nil.
func (c *decodedChoice) finish(dst []event.Event, why event.Why, stop, token []byte) []event.Event {
	c.finished = true
	return append(dst, event.Event{Kind: event.Finish, Choice: c.n, Call: -1, Why: why, Data: stop, ID: token})
}

// choice returns the state of a choice, or nil if n is out of range.
func (d *Decoder) choice(n int64) *decodedChoice {
	if n < 0 || n >= maxChoices {
		return nil
	}
	for int(n) >= len(d.choices) {
		k := len(d.choices)
		d.choices = slices.Grow(d.choices, 1)[:k+1]
		c := &d.choices[k] // possibly from before a Reset; its memory is reused
		*c = decodedChoice{n: int32(k), ids: c.ids[:0]}
	}
	return &d.choices[n]
}
