// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"io"
	"iter"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// This file is structured as follows: options, the StreamDecoder and its entry points, the event types, usage and stop
// reasons. Content blocks are in streamdecode_blocks.go. Only what Decode, Close and Reset call changes a StreamDecoder.

// StreamDecoderOptions configures a [StreamDecoder].
type StreamDecoderOptions struct {
	// StopOptional takes a stream for whole that ends behind its stop reason, without message_stop. By default such a
	// stream was cut.
	StopOptional bool
	// Limits bounds the JSON of one event: Body (64 MiB; for the events of [Events] 8 MiB), Depth (128) and Values
	// (1,048,576) count. Nil is the defaults.
	Limits *block.Limits
}

// StreamDecoder reads the server-sent events of a streamed message. It is made to sit in front of a server that speaks
// the API: all of its events are understood, and so are streams with parts missing. Create one with [NewStreamDecoder].
// One goroutine at a time.
//
//	message_start                     Start with the usage
//	text                              Text; citations are Annotation
//	thinking                          Reasoning, Signature
//	tool_use                          ToolStart … ToolEnd or ToolAbort
//	server_tool_use                   the same with the flag Server
//	blocks named …tool_result         ToolResult with the flag Server; Data is the block
//	redacted_thinking, other blocks   Opaque; Data is the block
//	message_delta                     Usage
//	message_stop                      Finish
//	error                             Error
//
// ping, and events and deltas of other types, are skipped.
//
// # Decisions
//
//   - A call has a ToolEnd if its input is one JSON object, or empty, which is {}. Any other input aborts it: [Stream] breaks
//     the input of an aborted call on purpose. A call without input that the answer ends with for lack of tokens was cut
//     before its input; until that is known, at the next event, its ToolEnd waits.
//   - Input that stands in content_block_start counts if no delta follows, as in the official clients; so does a signature.
//   - ToolStart has the id as [CallID] gives it, so that encoding it for this API gives the same id again.
//   - Thinking that was withheld is the event.Opaque of its redacted_thinking block, which [Stream] sends as it is. Blocks of
//     a type that is not modelled (mcp_tool_use, compaction, …) are sent when they stop, with the input or the content
//     that their deltas brought. One whose input was cut is left out.
//   - A signature is passed on, also one that this package made: see [CheckSignature].
//   - A delta belongs to the open block with its index, if that is of its kind, else to the block of its kind that opened
//     last, else to a new one. Several blocks may be open; they stop when their index starts again, or at the stop reason.
//   - Text is Text, also if the answer ends as a refusal: the API has no other. The caller of a tool and the details of a
//     refusal are not kept.
//   - event.Finish follows from stop_reason. tool_use, end_turn and no reason are ToolCalls if there was a complete call of
//     the client's, else Stop; compaction is Paused.
//
// # Memory
//
// Data of an event is a view of the data of the server-sent event or of the StreamDecoder: valid until the next call, and
// as long as that data does not change. The answer is not collected. What is kept is the open blocks, at most 64, and in all
// 1 MiB of what a content_block_start says ahead of its deltas, and of the input of blocks that are not modelled. A text
// delta costs no allocation.
type StreamDecoder struct {
	opt StreamDecoderOptions
	in  streamdec.Typed

	entire   bool  // data is a whole message: what is in a block is all there is
	complete int   // calls of the client's
	ordinals int32 // of calls

	why     event.Why // of the stop reason; None before it
	stopSeq []byte
	tokens  inTokens
	usage   event.Tokens

	open []inBlock // oldest first
}

// NewStreamDecoder returns a StreamDecoder. Nil means the default options.
func NewStreamDecoder(opt *StreamDecoderOptions) *StreamDecoder {
	d := &StreamDecoder{}
	if opt != nil {
		d.opt = *opt
	}
	return d
}

// Events returns the events of the HTTP body src, which a server sent for stream:true. It reads until the answer has ended.
// A body that is one JSON document is read as [DecodeResponse] does. An error is the last element; without one, the last
// event is a Finish or an Error.
func Events(src io.Reader, opt *StreamDecoderOptions) iter.Seq2[event.Event, error] {
	d := NewStreamDecoder(opt)
	return streamdec.Pull(src, d, d.opt.Limits, d.DecodeResponse)
}

// DecodeResponse appends the events of a whole answer, as a server sends it for stream:false. Their Data are views of body
// where possible. The error is a *[block.Error]; the events before it are good.
func DecodeResponse(dst []event.Event, body []byte) ([]event.Event, error) {
	return NewStreamDecoder(nil).DecodeResponse(dst, body)
}

// DecodeResponse is the function [DecodeResponse] with the options of d. It starts over, as [StreamDecoder.Reset] does.
func (d *StreamDecoder) DecodeResponse(dst []event.Event, body []byte) ([]event.Event, error) {
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

// Decode appends the events of one server-sent event, of which typ is the event field, possibly empty, and data the data. A
// field type in data counts more than typ. After the end of the answer it appends nothing.
//
// An error is a *[block.Error] with the place in data. What could be read of data is in the events, and the StreamDecoder
// goes on with the next call as if the rest of data had not been sent.
func (d *StreamDecoder) Decode(dst []event.Event, typ, data []byte) ([]event.Event, error) {
	name, root, failure := d.in.Read(dst, typ, data, d.opt.Limits)
	switch {
	case failure != nil:
		d.fail(*failure)
	case root.Exists():
		d.event(name, root)
	}
	return d.in.Take()
}

// Close ends the input. If the answer has not ended, it was cut: calls that are open are aborted, and an event.Error
// follows.
func (d *StreamDecoder) Close(dst []event.Event) []event.Event {
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

// ID returns the id of the answer as the server says it, "" before it is known.
func (d *StreamDecoder) ID() string { return string(d.in.ID) }

// Model returns the model as the server names it, "" before it is known.
func (d *StreamDecoder) Model() string { return string(d.in.Model) }

// Ended reports that the answer has ended, with a Finish or an Error: more input gives no more events.
func (d *StreamDecoder) Ended() bool { return d.in.Ended }

// Reset makes d ready for the next response and keeps its memory and options.
func (d *StreamDecoder) Reset() {
	d.in.Reset()
	*d = StreamDecoder{opt: d.opt, in: d.in, stopSeq: d.stopSeq[:0], open: d.open[:0]}
}

// emit appends an event, after the Start if there was none.
func (d *StreamDecoder) emit(e event.Event) {
	d.begin()
	d.in.Out = append(d.in.Out, e)
}

// begin appends the Start, once, with the usage if that is known.
func (d *StreamDecoder) begin() {
	if !d.in.Started {
		d.in.Begin(d.tokens.event(), d.tokens.known)
	}
}

// fail ends the answer with an error. It needs no Start.
func (d *StreamDecoder) fail(e event.Event) {
	d.abort()
	d.in.Ended = true
	d.in.Out = append(d.in.Out, e)
}

// finish ends the answer.
func (d *StreamDecoder) finish() {
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

// event reads an event by its type.
func (d *StreamDecoder) event(name []byte, root jsonscan.Value) {
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
		// An error in the form of another API, as proxies send it in the middle of a stream.
		if k := root.Get("error").Kind(); k == jsonscan.Object || k == jsonscan.String {
			d.fail(streamdec.ErrorIn(root))
		}
	}
}

// message reads a message: the empty one that begins a stream, or a whole one.
func (d *StreamDecoder) message(v jsonscan.Value) {
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

// stopReason reads what a message or a message_delta says about the end of the answer.
func (d *StreamDecoder) stopReason(v jsonscan.Value) {
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

// counts reads usage that is no longer that of message_start.
func (d *StreamDecoder) counts(v jsonscan.Value) {
	if v.Kind() != jsonscan.Object && !v.IsNull() {
		d.in.Wrong(v, "an object")
	}
	if d.tokens.read(v) {
		d.count()
	}
}

func (d *StreamDecoder) count() {
	d.usage = d.tokens.event()
	d.emit(event.Event{Kind: event.Usage, Call: -1, Usage: &d.usage})
}

// inTokens is usage as the API has it: input tokens that were read from or written to a cache are not in fresh.
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

// read takes in a usage object and reports whether it is one. Counts are cumulative. Those that are absent stand; so do
// those of the input if all that are given are 0, as servers write that count only at the start.
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
