// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"bytes"
	"io"
	"iter"
	"math"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/streamdec"
	"github.com/weft-go/weft/protocols/sse"
)

// This file is structured as follows: options, the StreamDecoder and its entry points, then how one chunk and one choice
// of it are read. Only the methods that Decode and Close call change a StreamDecoder.

// StreamDecoderOptions configures a [StreamDecoder]. nil is all defaults.
type StreamDecoderOptions struct {
	// Limits bounds one server-sent event, and the whole answer in [DecodeResponse]. Only Body (for events of [Events]
	// 8 MiB by default), Depth and Values have a meaning here.
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
	opt       StreamDecoderOptions
	doc       streamdec.Doc
	id, model []byte
	started   bool
	ended     bool
	usage     event.Tokens
	choices   []decodedChoice
	entries   []byte // lists of log probabilities of one chunk
	dropped   int
}

// decodedChoice is the state of one of the answers.
type decodedChoice struct {
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
	d.choices = d.choices[:0]
	d.id, d.model = d.id[:0], d.model[:0]
	d.started, d.ended, d.usage, d.dropped = false, false, event.Tokens{}, 0
}

// ID returns the id of the response as the server gave it, "" before the first chunk.
func (d *StreamDecoder) ID() string { return string(d.id) }

// Model returns the model as the server named it, "" before the first chunk.
func (d *StreamDecoder) Model() string { return string(d.model) }

// Dropped returns the number of deltas so far that could not be placed: for a choice that has finished or that is none.
func (d *StreamDecoder) Dropped() int { return d.dropped }

// Ended reports that nothing more is to come: [DONE] or an error was read.
func (d *StreamDecoder) Ended() bool { return d.ended }

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
	if d.ended {
		return dst, nil
	}
	for i := range d.choices {
		d.choices[i].ids = d.choices[i].ids[:0]
	}
	known := true
	switch string(typ) {
	case "", "message":
	case "error":
		return d.fail(dst, streamdec.ErrorLine(&d.doc, data, d.opt.Limits)), nil
	default:
		known = false
	}
	if data = bytes.TrimSpace(data); len(data) == 0 {
		return dst, nil
	}
	if string(data) == sse.Done {
		return d.doneLine(dst), nil
	}
	root, err := d.doc.Parse(data, d.opt.Limits)
	switch {
	case err == nil && root.Kind() == jsonscan.Object:
		return d.chunk(dst, root, false)
	case !known: // not ours
		return dst, nil
	case err == nil:
		err = streamdec.Wrong(root, "an object")
	}
	return dst, err
}

// Close ends the stream. If it was cut, that is, ended without a finish_reason for every choice it had, Close appends an
// event.Error of class EngineFailed.
func (d *StreamDecoder) Close(dst []event.Event) []event.Event {
	if d.ended {
		return dst
	}
	d.ended = true
	cut := len(d.choices) == 0
	for i := range d.choices {
		cut = cut || !d.choices[i].finished
	}
	if cut {
		dst = append(dst, streamdec.CutEvent())
	}
	return dst
}

// DecodeResponse appends the events of a whole answer, for a request that did not ask for a stream. An error body gives
// an event.Error. Data of the events is a view of body and of memory that nobody else has. A malformed body is a
// *[block.Error].
func DecodeResponse(dst []event.Event, body []byte) ([]event.Event, error) {
	d := NewStreamDecoder(nil)
	root, err := d.doc.Parse(body, nil)
	if err == nil && root.Kind() != jsonscan.Object {
		err = streamdec.Wrong(root, "an object")
	}
	if err != nil {
		return dst, err
	}
	return d.chunk(dst, root, true)
}

// Events returns the events of the stream src, the body of an HTTP answer. The events are valid until the next one is
// asked for. An error of src, a malformed chunk, or an event over the limits is the last element. A server that sends
// one JSON document in spite of stream:true is understood. To stop the range while src blocks, close src.
func Events(src io.Reader, opt *StreamDecoderOptions) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		d := NewStreamDecoder(opt)
		streamdec.Pull(src, d, d.opt.Limits, DecodeResponse)(yield)
	}
}

// doneLine takes in [DONE].
func (d *StreamDecoder) doneLine(dst []event.Event) []event.Event {
	if d.opt.DoneFinishes && d.started {
		d.choice(0)
		for i := range d.choices {
			if c := &d.choices[i]; !c.finished {
				c.finished = true
				dst = append(dst, event.Event{Kind: event.Finish, Choice: int32(i), Call: -1, Why: event.Stop})
			}
		}
	}
	return d.Close(dst)
}

// fail ends the response with an error.
func (d *StreamDecoder) fail(dst []event.Event, e event.Event) []event.Event {
	d.ended = true
	return append(dst, e)
}

// chunk reads a chunk, or, if whole is set, a whole answer.
func (d *StreamDecoder) chunk(dst []event.Event, root jsonscan.Value, whole bool) ([]event.Event, error) {
	var choices, usage, failure, id, model jsonscan.Value
	for m := root.First(); m.Exists(); m = root.Next(m) {
		switch m.Key() {
		case "choices":
			choices = m
		case "usage":
			if m.Kind() == jsonscan.Object {
				usage = m
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
	if k := choices.Kind(); k != jsonscan.Array && k > jsonscan.Null || whole && k <= jsonscan.Null && !streamdec.ErrorOf(root).Exists() {
		return dst, streamdec.Wrong(choices, "an array of choices")
	}
	for v := choices.First(); v.Exists(); v = choices.Next(v) {
		if v.Kind() != jsonscan.Object {
			return dst, streamdec.Wrong(v, "an object")
		}
	}
	if !choices.Exists() && !usage.Exists() {
		if e := streamdec.ErrorOf(root); e.Exists() {
			return d.fail(dst, streamdec.ErrorEvent(e)), nil
		}
		return dst, nil // not a chunk
	}
	before := d.usage
	counted := streamdec.Usage(usage, &d.usage)
	switch {
	case !d.started && (!failure.Exists() || choices.First().Exists()):
		d.started = true
		d.id, d.model = append(d.id[:0], d.doc.Text(id)...), append(d.model[:0], d.doc.Text(model)...)
		start := event.Event{Kind: event.Start, Call: -1}
		if counted {
			start.Usage = &d.usage
		}
		dst = append(dst, start)
	case counted && d.usage != before:
		dst = append(dst, event.Event{Kind: event.Usage, Call: -1, Usage: &d.usage})
	}
	d.entries = d.entries[:0]
	position := int64(0)
	for v := choices.First(); v.Exists(); v = choices.Next(v) {
		var failed bool
		if dst, failed = d.one(dst, v, position, failure, whole); failed {
			return dst, nil
		}
		position++
	}
	switch {
	case failure.Exists():
		dst = d.fail(dst, streamdec.ErrorEvent(failure))
	case whole && !choices.First().Exists():
		dst = d.fail(dst, event.Event{Kind: event.Error, Call: -1, Why: event.EngineFailed, Data: []byte("The engine sent no answer.")})
	}
	return dst, nil
}

// one reads an element of choices. failed reports that the answer is over.
func (d *StreamDecoder) one(dst []event.Event, v jsonscan.Value, index int64, failure jsonscan.Value, whole bool) (_ []event.Event, failed bool) {
	var text, logprobs, reason, ids jsonscan.Value
	for m := v.First(); m.Exists(); m = v.Next(m) {
		switch m.Key() {
		case "index":
			if n, ok := m.Int(); ok {
				index = n
			}
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
	data := d.doc.Text(text)
	c := d.choice(index)
	if c == nil || c.finished {
		if len(data) > 0 {
			d.dropped++
		}
		return dst, false
	}
	if len(data) > 0 {
		data = c.half.Next(&d.doc, text, data)
	}
	e := event.Event{Kind: event.Text, Choice: int32(index), Call: -1, Data: data}
	for i := ids.First(); i.Exists() && ids.Kind() == jsonscan.Array; i = ids.Next(i) {
		if n, ok := i.Int(); ok && n >= 0 && n <= math.MaxUint32 {
			c.ids = append(c.ids, uint32(n))
		}
	}
	if e.Tokens = int32(len(c.ids)); len(data) > 0 || e.Tokens > 0 {
		dst = append(dst, e)
	}
	if logprobs.Kind() == jsonscan.Object {
		from := len(d.entries)
		list, ok := appendEntries(d.entries, logprobs)
		if c := logprobs.Get("content"); !ok && c.Kind() == jsonscan.Array && c.First().Exists() { // the Chat API's form, of SGLang
			dst = append(dst, event.Event{Kind: event.Logprobs, Choice: int32(index), Call: -1, Data: c.Raw()})
		} else if ok {
			d.entries = list
			dst = append(dst, event.Event{Kind: event.Logprobs, Choice: int32(index), Call: -1, Data: list[from:len(list):len(list)]})
		}
	}
	why := event.Stop
	switch {
	case reason.Kind() == jsonscan.String && reason.RawStr() != `""`:
		why, failed = streamdec.Finish(string(d.doc.Text(reason)))
	case !whole:
		return dst, false
	}
	if failed {
		e := event.Event{Kind: event.Error, Call: -1, Why: why, Data: []byte(streamdec.Aborted)}
		if failure.Exists() {
			e = streamdec.ErrorEvent(failure)
		}
		return d.fail(dst, e), true
	}
	var stop []byte
	if why == event.Stop || why == event.StopSequence {
		if s := streamdec.StopSequence(v); s.Exists() {
			why, stop = event.StopSequence, d.doc.Text(s)
		}
	}
	c.finished = true
	if rest := c.half.Flush(); len(rest) > 0 {
		dst = append(dst, event.Event{Kind: event.Text, Choice: int32(index), Call: -1, Data: rest})
	}
	return append(dst, event.Event{Kind: event.Finish, Choice: int32(index), Call: -1, Why: why, Data: stop}), false
}

// choice returns the state of a choice, nil for a number that is none.
func (d *StreamDecoder) choice(n int64) *decodedChoice {
	if n < 0 || n >= maxChoices {
		return nil
	}
	for int(n) >= len(d.choices) {
		k := len(d.choices)
		if k < cap(d.choices) { // from before a Reset, with its memory
			d.choices = d.choices[:k+1]
		} else {
			d.choices = append(d.choices, decodedChoice{})
		}
		d.choices[k] = decodedChoice{ids: d.choices[k].ids[:0]}
	}
	return &d.choices[n]
}
