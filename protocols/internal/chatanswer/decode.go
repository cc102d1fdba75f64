// SPDX-License-Identifier: Apache-2.0

package chatanswer

import (
	"slices"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// This file is structured as follows: options, the Decoder and its exported methods, then the decoding of a chunk and
// of a choice. Deltas are in decode_delta.go, calls in decode_calls.go.

// DecoderOptions configures a [Decoder].
type DecoderOptions struct {
	// Limits bounds one server-sent event or, with streamdec.Pull, a response that is one JSON document. Only Body (8
	// MiB by default for an event), Depth and Values are used.
	Limits *block.Limits
	// MaxHeld is the maximum number of bytes of arguments held for calls whose names have not arrived. 0 means 65,536.
	// A call that needs more is aborted.
	MaxHeld int
	// DoneFinishes makes [DONE] end the choices for which the server sent no finish_reason. By default they are treated
	// as cut off.
	DoneFinishes bool
}

// Decoder decodes the server-sent events of a streamed chat completion, as sent by OpenAI, vLLM, SGLang, Dynamo, Ollama
// and others, to events. Create one with [NewDecoder]. A Decoder is not safe for concurrent use.
//
// # Memory
//
// The Decoder keeps names and IDs, but neither text nor arguments beyond MaxHeld. After the first events, deltas do not
// allocate.
type Decoder struct {
	opt     DecoderOptions
	in      streamdec.Chunks
	choices []decodedChoice
	calls   int // number in all choices
	held    int // bytes of arguments held until their name arrives
}

// decodedChoice is the state of a choice.
type decodedChoice struct {
	n        int32
	finished bool
	refused  bool // refusal text has arrived
	hasText  bool // text has arrived
	kind     event.Kind
	part     int32 // the open part; -1 before the first
	parts    int32 // number of parts so far
	tokens   int32 // not yet counted in an event
	half     streamdec.Halves
	calls    []decodedCall
	open     int   // number of calls that have not ended
	low      int   // calls with lower indexes have ended
	ordinals int32 // number of calls that have an ordinal
	complete int
}

// NewDecoder returns a decoder for one stream.
func NewDecoder(opt *DecoderOptions) *Decoder {
	d := &Decoder{}
	if opt != nil {
		d.opt = *opt
	}
	if d.opt.MaxHeld <= 0 {
		d.opt.MaxHeld = 64 << 10
	}
	return d
}

// Reset makes the Decoder ready for another stream. It keeps its memory.
func (d *Decoder) Reset() {
	d.in.Reset()
	d.choices, d.calls, d.held = d.choices[:0], 0, 0
}

// ID returns the ID of the response as sent by the server, or "" before the first chunk.
func (d *Decoder) ID() string { return string(d.in.ID) }

// Model returns the model as sent by the server, or "" before the first chunk.
func (d *Decoder) Model() string { return string(d.in.Model) }

// Dropped returns the number of deltas so far that were dropped: for a call that has ended or a choice that has
// finished, with an invalid choice index, or repeated in reasoning_details.
func (d *Decoder) Dropped() int { return d.in.Dropped }

// Ended reports whether [DONE] or an error was read, so that later events are ignored.
func (d *Decoder) Ended() bool { return d.in.Ended }

// Append decodes one server-sent event with the given type (empty for message) and data, and appends its events to dst.
// Data and ID of the events are views of data and of the Decoder's memory. They are valid until the next call and while
// data is not modified.
//
// For a malformed chunk, Append returns a *[block.Error] with path and offset, and no events. An error that the server
// reports, in a chunk or instead of one, becomes an event.Error after a ToolAbort for every open call. Events of the
// types tool_call_dispatch and reasoning_dispatch repeat the contents of chunks and are skipped, as are unknown fields.
//
// A delta of a call belongs to the call with its index; without an index, to the call with its ID; without both, to the
// last call. It opens a new call if it has a name and that call has ended, has another ID or name, or has complete
// arguments, because many servers give all calls the index 0.
func (d *Decoder) Append(dst []event.Event, typ, data []byte) ([]event.Event, error) {
	switch string(typ) {
	case "tool_call_dispatch", "reasoning_dispatch":
		return dst, nil
	}
	dst, err := d.in.Read(dst, typ, data, d.opt.Limits)
	return d.take(dst), err
}

// Finish ends the stream. If a choice has no finish_reason, the stream was cut off: Finish appends a ToolAbort
// (Truncated) for each open call and then an event.Error of class EngineFailed.
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
	from := len(dst)
	dst, err := d.in.ReadWhole(dst, body, d.opt.Limits)
	if dst = d.take(dst); err == nil && len(dst) > from && len(d.choices) == 0 {
		dst = d.Finish(dst) // no choice has a valid index: an error, unless there is one already
	}
	return dst, err
}

// take appends the events of the choices, the error or the [DONE] that d.in has read.
func (d *Decoder) take(dst []event.Event) []event.Event {
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
				dst = d.finish(dst, c, event.Stop, nil)
			}
		}
	}
	return d.Finish(dst)
}

// fail ends the response with an error.
func (d *Decoder) fail(dst []event.Event, e event.Event) []event.Event {
	d.in.Ended = true
	return append(d.abandon(dst), e)
}

// one appends the events of an element of choices.
func (d *Decoder) one(dst []event.Event, x *streamdec.Choice) []event.Event {
	c := d.choice(x.Index)
	if c == nil || c.finished {
		if hasContent(x.Delta) {
			d.in.Dropped++
		}
		return dst
	}
	from := len(dst)
	dst = d.delta(dst, c, x)
	for l := x.Logprobs.First(); l.Exists() && x.Logprobs.Kind() == jsonscan.Object; l = x.Logprobs.Next(l) {
		if l.Kind() == jsonscan.Array && l.First().Exists() && (l.KeyIs("content") || l.KeyIs("refusal")) {
			dst = append(dst, event.Event{Kind: event.Logprobs, Choice: c.n, Part: max(0, c.part), Call: -1, Data: l.Raw()})
		}
	}
	if x.TokenIDs.Kind() == jsonscan.Array {
		c.tokens += int32(min(x.TokenIDs.Len(), 1<<20))
	}
	if len(dst) > from {
		dst[from].Tokens, c.tokens = c.tokens, 0
	}
	switch {
	case !x.Ends:
		return dst
	case x.Failed:
		return d.fail(dst, d.in.GaveUp(x))
	}
	return d.finish(dst, c, x.Why, d.in.Text(x.Stop))
}

// hasContent reports whether a delta has fields other than its role.
func hasContent(delta jsonscan.Value) bool {
	for m := delta.First(); m.Exists() && delta.Kind() == jsonscan.Object; m = delta.Next(m) {
		if !m.IsNull() && !m.KeyIs("role") && m.RawStr() != `""` && m.RawStr() != "[]" {
			return true
		}
	}
	return false
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
		*c = decodedChoice{n: int32(k), part: -1, calls: c.calls[:0]}
	}
	return &d.choices[n]
}

// finish ends a choice.
func (d *Decoder) finish(dst []event.Event, c *decodedChoice, why event.Why, stop []byte) []event.Event {
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
