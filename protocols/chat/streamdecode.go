// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"bytes"
	"io"
	"iter"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/streamdec"
	"github.com/weft-go/weft/protocols/sse"
)

// This file is structured as follows: options, the StreamDecoder and its entry points, then how one chunk and one choice
// of it are read. What a delta says is in streamdecode_delta.go, calls are in streamdecode_calls.go. Only the methods that
// Decode and Close call change a StreamDecoder.

// StreamDecoderOptions configures a [StreamDecoder]. nil is all defaults.
type StreamDecoderOptions struct {
	// Limits bounds one server-sent event, and the whole answer in [DecodeResponse]. Only Body (for events of [Events]
	// 8 MiB by default), Depth and Values have a meaning here.
	Limits *block.Limits
	// MaxHeld is how many bytes of arguments are held for calls whose names have not come yet. 0 means 65,536. A call that
	// needs more is aborted.
	MaxHeld int
	// DoneFinishes lets [DONE] end the choices for which the server sent no finish_reason. Without it they count as cut.
	DoneFinishes bool
}

// StreamDecoder reads the server-sent events of a streamed chat completion, as OpenAI, vLLM, SGLang, Dynamo, Ollama and
// others send them, into events. Create one with [NewStreamDecoder]. One goroutine at a time.
//
//	data: {"choices":[{"delta":{"role":"assistant"}}]}                    Start
//	data: {"choices":[{"delta":{"reasoning":"Hm."}}]}                     Reasoning
//	data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x",
//	       "function":{"name":"get","arguments":""}}]}}]}                 ToolStart
//	data: {"choices":[{"delta":{"tool_calls":[{"index":0,
//	       "function":{"arguments":"{}"}}]}}]}                            ToolArgs
//	data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}         ToolEnd, Finish
//	data: {"choices":[],"usage":{…}}                                      Usage
//	data: [DONE]                                                          nothing
//
// # What it makes of the API's gaps
//
//   - Order is that of the chunks; within one delta it is reasoning, content, refusal, calls. A part begins with every
//     change of kind and with every call.
//   - The API does not say where a call ends. A call ends when its arguments are one complete JSON object and something
//     else arrives, or with the finish_reason. Then, arguments that are incomplete abort it: Truncated if the answer was
//     cut, BadArguments if not. Arguments that are no object abort it as soon as something else arrives. Free text of a custom call ends with the finish_reason only: it might go on any time.
//   - ToolStart waits for the name. An id that comes with or before the name, or between it and the first arguments, is in
//     ToolStart; one that comes later is lost. Which delta belongs to which call: see [StreamDecoder.Decode].
//   - A finish_reason stop behind a complete call is ToolCalls, and behind a refusal Refused.
//   - Usage may come before Finish or behind it.
//
// # Memory
//
// The decoder keeps names and ids, never text or arguments beyond MaxHeld. A warm one allocates nothing for a delta.
type StreamDecoder struct {
	opt       StreamDecoderOptions
	doc       streamdec.Doc
	id, model []byte
	started   bool
	ended     bool
	usage     event.Tokens
	choices   []decodedChoice
	calls     int // of all choices
	held      int // bytes of arguments that wait for a name
	dropped   int
}

// decodedChoice is the state of one of n answers.
type decodedChoice struct {
	n        int32
	finished bool
	refused  bool // there was refusal text
	kind     event.Kind
	part     int32 // the open one, -1 before the first
	parts    int32 // parts that have begun
	tokens   int32 // that ended in no event yet
	half     streamdec.Halves
	calls    []decodedCall
	open     int   // of them: not ended
	low      int   // the calls in front of this one have ended
	ordinals int32 // calls that have an ordinal
	complete int
}

// NewStreamDecoder returns a decoder for one stream.
func NewStreamDecoder(opt *StreamDecoderOptions) *StreamDecoder {
	d := &StreamDecoder{}
	if opt != nil {
		d.opt = *opt
	}
	if d.opt.MaxHeld <= 0 {
		d.opt.MaxHeld = 64 << 10
	}
	return d
}

// Reset makes the decoder ready for another stream and keeps its memory.
func (d *StreamDecoder) Reset() {
	for i := range d.choices {
		c := &d.choices[i]
		*c = decodedChoice{n: c.n, part: -1, calls: c.calls[:0]}
	}
	d.choices = d.choices[:0]
	d.id, d.model = d.id[:0], d.model[:0]
	d.started, d.ended, d.usage, d.calls, d.held, d.dropped = false, false, event.Tokens{}, 0, 0, 0
}

// ID returns the id of the response as the server gave it, "" before the first chunk.
func (d *StreamDecoder) ID() string { return string(d.id) }

// Model returns the model as the server named it, "" before the first chunk.
func (d *StreamDecoder) Model() string { return string(d.model) }

// Dropped returns the number of deltas so far that could not be placed: for a call that has ended, for a choice that has
// finished or that is none, encrypted reasoning.
func (d *StreamDecoder) Dropped() int { return d.dropped }

// Ended reports that nothing more is to come: [DONE] or an error was read.
func (d *StreamDecoder) Ended() bool { return d.ended }

// Decode reads one server-sent event, given its type (empty for message) and data, and appends what it says to dst. Data
// and ID of the events are views of data and of the decoder's memory: they are valid until the next call and as long as
// data does not change.
//
// A malformed chunk is a *[block.Error] with path and offset; nothing of it is delivered. Errors that the server reports,
// in a chunk or instead of one, are an event.Error, behind a ToolAbort for every open call. Events of the types
// tool_call_dispatch and reasoning_dispatch repeat what the chunks say; they are skipped, as are fields that are not known.
//
// A delta of a call belongs to the call with its index, without an index to the one with its id, without both to the last
// one. It opens a new call if it names a tool and that call has ended, has another id or another name, or has complete
// arguments already: many servers give all calls the index 0.
func (d *StreamDecoder) Decode(dst []event.Event, typ, data []byte) ([]event.Event, error) {
	if d.ended {
		return dst, nil
	}
	known := true
	switch string(typ) {
	case "", "message":
	case "tool_call_dispatch", "reasoning_dispatch":
		return dst, nil
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

// Close ends the stream. If it was cut, that is, ended without a finish_reason for every choice it had, Close appends a
// ToolAbort (Truncated) for each open call and then an event.Error of class EngineFailed.
func (d *StreamDecoder) Close(dst []event.Event) []event.Event {
	if d.ended {
		return dst
	}
	d.ended = true
	cut := len(d.choices) == 0
	for i := range d.choices {
		cut = cut || !d.choices[i].finished
	}
	if !cut {
		return dst
	}
	return append(d.abandon(dst), streamdec.CutEvent())
}

// DecodeResponse appends the events of a whole answer, for a request that did not ask for a stream. An error body gives
// an event.Error. Data and ID of the events are views of body and of memory that nobody else has. A malformed body is a
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
		if len(d.choices) == 0 {
			d.choice(0)
		}
		for i := range d.choices {
			if c := &d.choices[i]; !c.finished {
				dst = d.finish(dst, c, event.Stop, nil)
			}
		}
	}
	return d.Close(dst)
}

// fail ends the response with an error.
func (d *StreamDecoder) fail(dst []event.Event, e event.Event) []event.Event {
	d.ended = true
	return append(d.abandon(dst), e)
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
		case "x_groq": // Groq has its usage in there
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
	if first := choices.First(); first.Kind() == jsonscan.Object && !usage.Exists() {
		if u := first.Get("usage"); u.Kind() == jsonscan.Object { // Moonshot
			usage = u
		}
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
	var delta, message, logprobs, reason, ids jsonscan.Value
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
		case "logprobs":
			logprobs = m
		case "finish_reason":
			reason = m
		case "token_ids":
			ids = m
		}
	}
	if whole || delta.Kind() != jsonscan.Object && message.Kind() == jsonscan.Object {
		delta = message
	}
	c := d.choice(index)
	if c == nil || c.finished {
		if says(delta) {
			d.dropped++
		}
		return dst, false
	}
	why, failed := event.Stop, false
	ends := whole
	if reason.Kind() == jsonscan.String && reason.RawStr() != `""` {
		why, failed = streamdec.Finish(string(d.doc.Text(reason)))
		ends = true
	}
	from := len(dst)
	dst = d.delta(dst, c, delta, why, whole)
	for l := logprobs.First(); l.Exists() && logprobs.Kind() == jsonscan.Object; l = logprobs.Next(l) {
		if l.Kind() == jsonscan.Array && l.First().Exists() && (l.KeyIs("content") || l.KeyIs("refusal")) {
			dst = append(dst, event.Event{Kind: event.Logprobs, Choice: c.n, Part: max(0, c.part), Call: -1, Data: l.Raw()})
		}
	}
	if ids.Kind() == jsonscan.Array {
		c.tokens += int32(min(ids.Len(), 1<<20))
	}
	if len(dst) > from {
		dst[from].Tokens, c.tokens = c.tokens, 0
	}
	if !ends {
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
	return d.finish(dst, c, why, stop), false
}

// says reports whether a delta says anything besides its role.
func says(delta jsonscan.Value) bool {
	for m := delta.First(); m.Exists() && delta.Kind() == jsonscan.Object; m = delta.Next(m) {
		if !m.IsNull() && !m.KeyIs("role") && m.RawStr() != `""` && m.RawStr() != "[]" {
			return true
		}
	}
	return false
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
		c := &d.choices[k]
		*c = decodedChoice{n: int32(k), part: -1, calls: c.calls[:0]}
	}
	return &d.choices[n]
}

// finish ends a choice.
func (d *StreamDecoder) finish(dst []event.Event, c *decodedChoice, why event.Why, stop []byte) []event.Event {
	dst = d.endCalls(d.flush(dst, c), c, why)
	c.finished = true
	switch {
	case why == event.ToolCalls && c.complete == 0:
		why = event.Stop
	case why == event.Stop && c.refused:
		why = event.Refused
	case why == event.Stop && c.complete > 0:
		why = event.ToolCalls
	}
	return append(dst, event.Event{Kind: event.Finish, Choice: c.n, Part: max(0, c.part), Call: -1, Why: why, Data: stop})
}
