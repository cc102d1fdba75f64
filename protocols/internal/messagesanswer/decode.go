// SPDX-License-Identifier: Apache-2.0

package messagesanswer

import (
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// This file is structured as follows: options, the Decoder and its exported methods, the event types, usage and stop
// reasons. Content blocks are in decode_blocks.go.

// DecoderOptions configures a [Decoder].
type DecoderOptions struct {
	// StopOptional accepts a stream that ends after its stop_reason, without message_stop. By default such a stream is
	// treated as cut off.
	StopOptional bool
	// Limits bounds the JSON of one event: Body (64 MiB; with streamdec.Pull 8 MiB), Depth (128) and Values (1,048,576)
	// are used. Nil means these defaults.
	Limits *block.Limits
}

// Decoder decodes the server-sent events of a streamed message. It supports all events of the API and streams that lack
// some of them. Create one with [NewDecoder]. A Decoder is not safe for concurrent use.
//
// # Memory
//
// Data of an event is a view of the data of the server-sent event or of the Decoder's memory. It is valid until the
// next call and while that data is not modified. The Decoder keeps at most 64 open blocks and, for all of them
// together, 1 MiB of content from content_block_start and of input of blocks of other types. A text delta does not
// allocate.
type Decoder struct {
	opt DecoderOptions
	in  streamdec.Typed

	entire   bool  // the response is not streamed, so blocks are complete
	complete int   // complete calls for the client
	ordinals int32 // of calls

	why     event.Why // of the stop reason; None before it
	stopSeq []byte
	tokens  inTokens
	usage   event.Tokens

	open []inBlock // oldest first
}

// NewDecoder returns a Decoder. Nil options mean the defaults.
func NewDecoder(opt *DecoderOptions) *Decoder {
	d := &Decoder{}
	if opt != nil {
		d.opt = *opt
	}
	return d
}

// AppendWhole resets the Decoder and appends the events of a response that is not streamed.
func (d *Decoder) AppendWhole(dst []event.Event, body []byte) ([]event.Event, error) {
	d.Reset()
	root, err := d.in.Parse(body, d.opt.Limits)
	if err != nil {
		return dst, err
	}
	d.in.Out, d.in.Err = dst, nil
	switch e := streamdec.ErrorOf(root); {
	case e.Exists():
		d.fail(streamdec.ErrorEvent(e))
	case root.Get("content").Exists() || root.Get("stop_reason").Exists():
		d.message(root)
		d.stopReason(root)
		d.counts(root.Get("usage"))
		d.finish()
	default:
		d.in.Err = streamdec.Wrong(root, "a message")
	}
	return d.in.Take()
}

// Append decodes one server-sent event with the given type, possibly empty, and data, and appends its events to dst. A
// type field in data takes precedence over typ. After the end of the response it appends nothing.
//
// Errors are of type *[block.Error] and have the position in data. The events contain the part of data that could be
// decoded; the next call continues as if the rest had not been sent.
func (d *Decoder) Append(dst []event.Event, typ, data []byte) ([]event.Event, error) {
	name, root, failure := d.in.Read(dst, typ, data, d.opt.Limits)
	switch {
	case failure != nil:
		d.fail(*failure)
	case root.Exists():
		d.event(name, root)
	}
	return d.in.Take()
}

// Finish ends the input. If the response is incomplete, Finish aborts open calls and appends an event.Error.
func (d *Decoder) Finish(dst []event.Event) []event.Event {
	if d.in.Ended {
		return dst
	}
	d.in.Out = dst
	if d.why != event.None && d.opt.StopOptional {
		d.finish()
	} else {
		d.fail(streamdec.CutEvent())
	}
	dst, _ = d.in.Take()
	return dst
}

// ID returns the ID of the response as sent by the server, or "" if it has not arrived.
func (d *Decoder) ID() string { return string(d.in.ID) }

// Model returns the model as sent by the server, or "" if it has not arrived.
func (d *Decoder) Model() string { return string(d.in.Model) }

// Ended reports whether the response has ended, with a Finish or an Error. Later input is ignored.
func (d *Decoder) Ended() bool { return d.in.Ended }

// Reset makes d ready for the next response. It keeps its memory and options.
func (d *Decoder) Reset() {
	d.in.Reset()
	*d = Decoder{opt: d.opt, in: d.in, stopSeq: d.stopSeq[:0], open: d.open[:0]}
}

// emit appends an event, after the Start if that was not appended.
func (d *Decoder) emit(e event.Event) {
	d.begin()
	d.in.Out = append(d.in.Out, e)
}

// begin appends the Start, once, with the usage if known.
func (d *Decoder) begin() {
	if !d.in.Started {
		d.in.Begin(d.tokens.event(), d.tokens.known)
	}
}

// fail ends the response with an error. It does not require a Start.
func (d *Decoder) fail(e event.Event) {
	d.abort()
	d.in.Ended = true
	d.in.Out = append(d.in.Out, e)
}

// finish ends the response.
func (d *Decoder) finish() {
	d.closeAll()
	e := event.Event{Kind: event.Finish, Call: -1, Why: d.why}
	switch d.why {
	case event.None, event.Stop, event.ToolCalls:
		if e.Why = event.Stop; d.complete > 0 {
			e.Why = event.ToolCalls
		}
	case event.StopSequence:
		e.Data = d.stopSeq
	}
	d.emit(e)
	d.in.Ended = true
}

// event decodes an event according to its type.
func (d *Decoder) event(name []byte, root jsonscan.Value) {
	switch string(name) {
	case "content_block_delta":
		d.blockDelta(root)
	case "content_block_start":
		if v := d.in.Object(root, "content_block"); v.Exists() {
			d.blockStart(d.index(root), v)
		}
	case "content_block_stop":
		d.blockStop(d.index(root))
	case "message_start":
		if v := d.in.Object(root, "message"); v.Exists() {
			d.message(v)
			d.stopReason(v)
		}
	case "message_delta":
		d.begin()
		v := root.Get("delta")
		if v.Kind() != jsonscan.Object && !v.IsNull() {
			d.in.Wrong(v, "an object")
		}
		d.stopReason(v)
		if d.why != event.None {
			d.closeAll()
		}
		d.counts(root.Get("usage"))
	case "message_stop":
		d.finish()
	case "ping":
	case "error":
		d.fail(streamdec.ErrorIn(root))
	default:
		// Proxies may send an error in the form of another API in the middle of a stream.
		if k := root.Get("error").Kind(); k == jsonscan.Object || k == jsonscan.String {
			d.fail(streamdec.ErrorIn(root))
		}
	}
}

// message decodes a message: the empty one that begins a stream, or a complete one.
func (d *Decoder) message(v jsonscan.Value) {
	d.in.Name(v)
	if d.tokens.read(v.Get("usage")) && d.in.Started {
		d.count() // it came late
	}
	d.begin()
	list := v.Get("content")
	if list.Kind() != jsonscan.Array && !list.IsNull() {
		d.in.Wrong(list, "an array")
	}
	d.entire = true
	n := int64(0)
	for b := list.First(); b.Exists(); b = list.Next(b) {
		if b.Kind() != jsonscan.Object {
			d.in.Wrong(b, "an object")
			continue
		}
		d.blockStart(n, b)
		d.blockStop(n)
		n++
	}
	d.entire = false
}

// stopReason decodes the stop_reason and stop_sequence of a message or a message_delta.
func (d *Decoder) stopReason(v jsonscan.Value) {
	reason := d.in.Str(v.Get("stop_reason"))
	if len(reason) == 0 {
		return
	}
	switch string(reason) {
	case "max_tokens":
		d.why = event.Length
	case "model_context_window_exceeded":
		d.why = event.ContextFull
	case "stop_sequence":
		d.why = event.StopSequence
		d.stopSeq = append(d.stopSeq[:0], d.in.Str(v.Get("stop_sequence"))...)
	case "refusal":
		d.why = event.Refused
	case "pause_turn", "compaction":
		d.why = event.Paused
	default: // end_turn, tool_use
		d.why = event.Stop
	}
}

// counts decodes usage that follows message_start.
func (d *Decoder) counts(v jsonscan.Value) {
	if v.Kind() != jsonscan.Object && !v.IsNull() {
		d.in.Wrong(v, "an object")
	}
	if d.tokens.read(v) {
		d.count()
	}
}

func (d *Decoder) count() {
	d.usage = d.tokens.event()
	d.emit(event.Event{Kind: event.Usage, Call: -1, Usage: &d.usage})
}

// inTokens is usage in the form of the API: fresh does not include input tokens that were read from or written to a
// cache.
type inTokens struct {
	known                                   bool
	fresh, written, cached, output, thought int64
}

// event returns the counts in the form of events.
func (t *inTokens) event() event.Tokens {
	return event.Tokens{
		Prompt: t.fresh + t.written + t.cached, Cached: t.cached, CacheWrite: t.written, Output: t.output, Reasoning: t.thought,
	}
}

// read decodes a usage object and reports whether v is one. Counts are cumulative. Absent counts do not change t; nor
// do counts of the input that are all 0, because some servers send them only at the start.
func (t *inTokens) read(v jsonscan.Value) bool {
	if v.Kind() != jsonscan.Object {
		return false
	}
	n := *t
	count := func(v jsonscan.Value, p *int64) {
		if k, ok := v.Int(); ok {
			*p = max(k, 0)
		}
	}
	if c := v.Get("cache_creation"); c.Kind() == jsonscan.Object {
		var short, long int64
		count(c.Get("ephemeral_5m_input_tokens"), &short)
		count(c.Get("ephemeral_1h_input_tokens"), &long)
		n.written = short + long
	}
	count(v.Get("input_tokens"), &n.fresh)
	count(v.Get("cache_creation_input_tokens"), &n.written)
	count(v.Get("cache_read_input_tokens"), &n.cached)
	if n.fresh+n.written+n.cached > 0 {
		t.fresh, t.written, t.cached = n.fresh, n.written, n.cached
	}
	n.output = 0
	if count(v.Get("output_tokens"), &n.output); n.output > 0 {
		t.output = n.output
	}
	count(v.Get("output_tokens_details").Get("thinking_tokens"), &t.thought)
	t.known = true
	return true
}
