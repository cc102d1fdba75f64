// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"io"
	"iter"
	"slices"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// This file is structured as follows: options, the StreamDecoder and its entry points, then how one chunk and one choice
// of it are read. Only the methods that Decode and Close call change a StreamDecoder.

// StreamDecoderOptions configures a [StreamDecoder]. nil is all defaults.
type StreamDecoderOptions struct {
	// Limits bounds one server-sent event, and in [Events] an answer that is one JSON document. Only Body (for events of
	// [Events] 8 MiB by default), Depth and Values have a meaning here.
	Limits *block.Limits
	// DoneFinishes lets [DONE] end the choices for which the server sent no finish_reason. Without it they count as cut.
	DoneFinishes bool
}

// StreamDecoder reads the server-sent events of a streamed completion, as OpenAI, vLLM, SGLang and others send them, into
// events: Start, Text, Logprobs, Usage, Finish, Error. Create one with [NewStreamDecoder]. One goroutine at a time.
//
//	data: {"choices":[{"index":0,"text":"Hi","token_ids":[13347]}]}       Start, Text
//	data: {"choices":[{"index":0,"text":"","finish_reason":"stop"}]}      Finish
//	data: {"choices":[],"usage":{…}}                                      Usage
//	data: [DONE]                                                          nothing
//
// The text is passed on as it is: a parser that knows the model's markup comes behind. It finds the ids of the tokens in
// [StreamDecoder.TokenIDs]. A warm decoder allocates nothing and keeps no text.
type StreamDecoder struct {
	opt     StreamDecoderOptions
	in      streamdec.Chunks
	choices []decodedChoice
	entries []byte // lists of log probabilities of one chunk
}

// decodedChoice is the state of one of the answers.
type decodedChoice struct {
	n        int32
	finished bool
	half     streamdec.Halves
	ids      []uint32
}

// NewStreamDecoder returns a decoder for one stream.
func NewStreamDecoder(opt *StreamDecoderOptions) *StreamDecoder {
	d := &StreamDecoder{}
	if opt != nil {
		d.opt = *opt
	}
	return d
}

// Reset makes the decoder ready for another stream and keeps its memory.
func (d *StreamDecoder) Reset() {
	d.in.Reset()
	d.choices = d.choices[:0]
}

// ID returns the id of the response as the server gave it, "" before the first chunk.
func (d *StreamDecoder) ID() string { return string(d.in.ID) }

// Model returns the model as the server named it, "" before the first chunk.
func (d *StreamDecoder) Model() string { return string(d.in.Model) }

// Dropped returns the number of deltas so far that could not be placed: for a choice that has finished or that is none.
func (d *StreamDecoder) Dropped() int { return d.in.Dropped }

// Ended reports that nothing more is to come: [DONE] or an error was read.
func (d *StreamDecoder) Ended() bool { return d.in.Ended }

// TokenIDs returns the ids of the tokens of a choice in the event that was decoded last, empty if the engine sent none
// (vLLM sends them for return_token_ids). They are valid until the next call.
func (d *StreamDecoder) TokenIDs(choice int32) []uint32 {
	if choice < 0 || int(choice) >= len(d.choices) {
		return nil
	}
	return d.choices[choice].ids
}

// Decode reads one server-sent event, given its type (empty for message) and data, and appends what it says to dst. Data
// of the events is a view of data and of the decoder's memory: it is valid until the next call and as long as data does
// not change.
//
// A malformed chunk is a *[block.Error] with path and offset; nothing of it is delivered. Errors that the server reports,
// in a chunk or instead of one, are an event.Error.
func (d *StreamDecoder) Decode(dst []event.Event, typ, data []byte) ([]event.Event, error) {
	if d.in.Ended {
		return dst, nil
	}
	for i := range d.choices {
		d.choices[i].ids = d.choices[i].ids[:0]
	}
	dst, err := d.in.Read(dst, typ, data, d.opt.Limits)
	return d.take(dst), err
}

// Close ends the stream. If it was cut, that is, ended without a finish_reason for every choice it had, Close appends an
// event.Error of class EngineFailed.
func (d *StreamDecoder) Close(dst []event.Event) []event.Event {
	if d.in.Ended {
		return dst
	}
	if len(d.choices) > 0 && !slices.ContainsFunc(d.choices, func(c decodedChoice) bool { return !c.finished }) {
		d.in.Ended = true
		return dst
	}
	return d.fail(dst, streamdec.CutEvent())
}

// DecodeResponse appends the events of a whole answer, for a request that did not ask for a stream. An error body gives
// an event.Error. Data of the events is a view of body and of memory that nobody else has. A malformed body is a
// *[block.Error].
func DecodeResponse(dst []event.Event, body []byte) ([]event.Event, error) {
	return NewStreamDecoder(nil).whole(dst, body)
}

// whole is [DecodeResponse] with the options of d, which is new.
func (d *StreamDecoder) whole(dst []event.Event, body []byte) ([]event.Event, error) {
	dst, err := d.in.ReadWhole(dst, body, d.opt.Limits)
	return d.take(dst), err
}

// Events returns the events of the stream src, the body of an HTTP answer. The events are valid until the next one is
// asked for. An error of src, a malformed chunk, or an event over the limits is the last element. A server that sends
// one JSON document in spite of stream:true is understood. To stop the range while src blocks, close src.
func Events(src io.Reader, opt *StreamDecoderOptions) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		d := NewStreamDecoder(opt)
		streamdec.Pull(src, d, d.opt.Limits, d.whole)(yield)
	}
}

// take takes in what was read.
func (d *StreamDecoder) take(dst []event.Event) []event.Event {
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

// doneLine takes in [DONE].
func (d *StreamDecoder) doneLine(dst []event.Event) []event.Event {
	if d.opt.DoneFinishes && d.in.Started {
		d.choice(0)
		for i := range d.choices {
			if c := &d.choices[i]; !c.finished {
				dst = c.finish(dst, event.Stop, nil)
			}
		}
	}
	return d.Close(dst)
}

// fail ends the response with an error.
func (d *StreamDecoder) fail(dst []event.Event, e event.Event) []event.Event {
	d.in.Ended = true
	return append(dst, e)
}

// one takes in an element of choices.
func (d *StreamDecoder) one(dst []event.Event, x *streamdec.Choice) []event.Event {
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
		if l := x.Logprobs.Get("content"); !ok && l.Kind() == jsonscan.Array && l.First().Exists() { // the Chat API's form, of SGLang
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
	return c.finish(dst, x.Why, d.in.Text(x.Stop))
}

// finish ends a choice.
func (c *decodedChoice) finish(dst []event.Event, why event.Why, stop []byte) []event.Event {
	c.finished = true
	return append(dst, event.Event{Kind: event.Finish, Choice: c.n, Call: -1, Why: why, Data: stop})
}

// choice returns the state of a choice, nil for a number that is none.
func (d *StreamDecoder) choice(n int64) *decodedChoice {
	if n < 0 || n >= maxChoices {
		return nil
	}
	for int(n) >= len(d.choices) {
		k := len(d.choices)
		d.choices = slices.Grow(d.choices, 1)[:k+1]
		c := &d.choices[k] // maybe from before a Reset, with its memory
		*c = decodedChoice{n: int32(k), ids: c.ids[:0]}
	}
	return &d.choices[n]
}
