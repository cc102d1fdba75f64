// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"io"
	"iter"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// This file is structured as follows: options, the StreamDecoder and its entry points, the event types, the response
// object that ends a stream. Which item an event belongs to is in streamdecode_items.go, text in streamdecode_text.go,
// calls in streamdecode_calls.go. Only what Decode, Close and Reset call changes a StreamDecoder.

// StreamDecoderOptions configures a [StreamDecoder].
type StreamDecoderOptions struct {
	// ToolName gives the name that the model knows a tool by, for the namespace and the name that the server says. It
	// undoes StreamOptions.Namespace. Nil means that it is the name, whatever the namespace.
	ToolName func(namespace, name string) string
	// Limits bounds the JSON of one event: Body (64 MiB; for the events of [Events] 8 MiB), Depth (128) and Values
	// (1,048,576) count. Nil is the defaults.
	Limits *block.Limits
}

// StreamDecoder reads the server-sent events of a streamed response. It is made to sit in front of a server that speaks
// the API: every event type of the API is understood, and so are streams with parts missing. Create one with
// [NewStreamDecoder]. One goroutine at a time.
//
//	response.created, in_progress, queued       Start, once; with usage if there is some
//	reasoning_text, reasoning_summary_text      Reasoning; parts after the first follow a blank line
//	encrypted_content of a reasoning item       Signature, when the item is done
//	output_text, refusal                        Text, Refusal; Logprobs before the text they belong to
//	output_text.annotation                      Annotation
//	function_call, custom_tool_call             ToolStart … ToolEnd or ToolAbort; Custom
//	items named …_output                        ToolResult with the flag Server; Data is the item
//	all other items                             Opaque when they are done; Data is the item
//	response.completed, response.incomplete     Usage, Finish
//	response.failed, cancelled, error           Usage if there is some, Error
//
// All other event types, those that tell of the progress of server-side tools above all, are skipped.
//
// # Decisions
//
//   - What is repeated is compared, not taken twice. The events that end a text, a part, an item and the response carry what
//     the deltas carried; if there is more in them, the rest is sent. If they contradict the deltas, the deltas stand.
//   - An event belongs to the item with its item_id (or that call_id), else to the open one with its output_index, else to an
//     open one of its kind. Items that were never added open with their first delta.
//   - Arguments wait for the name of their call, up to 1 MiB in all. A call never has a ToolEnd unless its arguments are one JSON
//     object or empty, or free text of a custom tool, and its item is not marked as incomplete.
//   - Every part of a message is a part of its own. A reasoning item is one; if it has both raw reasoning and a summary, it
//     is read as the one that came first, and as raw reasoning where it came at once.
//   - event.Finish follows from the last event: incomplete is Length, ContentFilter or Paused (max_tool_calls). Completed is
//     ToolCalls if there was a complete call, else Refused if there was a refusal, else Stop.
//   - Parts that overlap keep their numbers: events of one Part need not follow one another.
//
// # Memory
//
// Data of an event is a view of the data of the server-sent event or of the StreamDecoder: valid until the next call, and
// as long as that data does not change. The answer is not collected. What is kept is some 100 to 400 bytes for each item and
// part, at most 4096 of them, with the length and hash of its text, and arguments that wait. A text delta costs no
// allocation.
type StreamDecoder struct {
	opt StreamDecoderOptions
	in  streamdec.Typed

	refused  bool
	complete int   // calls
	ordinals int32 // of calls
	usage    event.Tokens

	waiting int // bytes of arguments that calls hold

	items []inItem
	texts []inPart
	calls []inCall
	open  []int32 // items that are not done, oldest first
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
	resp := root
	if r := root.Get("response"); r.Kind() == jsonscan.Object { // the last event of a stream
		resp = r
	}
	switch e := streamdec.ErrorOf(root); {
	case resp.Get("output").Exists() || resp.Get("status").Exists():
		d.end("", resp)
	case e.Exists():
		d.fail(streamdec.ErrorEvent(e))
	default:
		d.in.Err = streamdec.Wrong(root, "a response")
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
	d.fail(streamdec.CutEvent())
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
	*d = StreamDecoder{opt: d.opt, in: d.in, items: d.items[:0], texts: d.texts[:0], calls: d.calls[:0], open: d.open[:0]}
}

// emit appends an event, after the Start if there was none.
func (d *StreamDecoder) emit(e event.Event) {
	d.begin(jsonscan.Value{})
	d.in.Out = append(d.in.Out, e)
}

// begin appends the Start, once, with the usage if there is some.
func (d *StreamDecoder) begin(usage jsonscan.Value) {
	if !d.in.Started {
		var counts event.Tokens
		known := streamdec.Usage(usage, &counts)
		d.in.Begin(counts, known)
	}
}

// fail ends the answer with an error. It needs no Start.
func (d *StreamDecoder) fail(e event.Event) {
	d.closeCalls(true)
	d.in.Ended = true
	d.in.Out = append(d.in.Out, e)
}

// index returns an index of a list, -1 if it is absent.
func (d *StreamDecoder) index(v jsonscan.Value) int64 {
	if n, ok := v.Int(); ok && n >= 0 {
		return n
	}
	if !v.IsNull() {
		d.in.Wrong(v, "an index")
	}
	return -1
}

// event reads an event by its type.
func (d *StreamDecoder) event(name []byte, root jsonscan.Value) {
	switch string(name) {
	case "response.output_text.delta":
		d.textDelta(root, inText)
	case "response.reasoning_text.delta", "response.reasoning.delta": // the latter of old previews
		d.textDelta(root, inRaw)
	case "response.reasoning_summary_text.delta", "response.reasoning_summary.delta":
		d.textDelta(root, inSummary)
	case "response.refusal.delta":
		d.textDelta(root, inRefusal)
	case "response.function_call_arguments.delta":
		d.argsDelta(root, inFunction)
	case "response.custom_tool_call_input.delta":
		d.argsDelta(root, inCustom)

	case "response.output_text.done":
		d.textDone(root, inText, root.Get("text"))
	case "response.reasoning_text.done", "response.reasoning.done":
		d.textDone(root, inRaw, root.Get("text"))
	case "response.reasoning_summary_text.done", "response.reasoning_summary.done":
		d.textDone(root, inSummary, root.Get("text"))
	case "response.refusal.done":
		d.textDone(root, inRefusal, root.Get("refusal"))
	case "response.content_part.done", "response.reasoning_part.done", "response.reasoning_summary_part.done":
		d.partDone(root)
	case "response.function_call_arguments.done":
		d.argsDone(root, inFunction)
	case "response.custom_tool_call_input.done":
		d.argsDone(root, inCustom)

	case "response.output_text.annotation.added", "response.output_text_annotation.added":
		d.annotation(root)
	case "response.output_item.added":
		d.itemAdded(root)
	case "response.output_item.done":
		d.itemDone(root)

	case "response.created", "response.in_progress", "response.queued":
		v := root.Get("response")
		d.in.Name(v)
		d.begin(v.Get("usage"))
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
		d.end(string(name[len("response."):]), d.in.Object(root, "response"))
	case "error", "response.error":
		d.fail(streamdec.ErrorIn(root))
	default:
		// An error in the form of another API, as proxies send it in the middle of a stream.
		if k := root.Get("error").Kind(); k == jsonscan.Object || k == jsonscan.String {
			d.fail(streamdec.ErrorIn(root))
		}
	}
}

// end reads the response object that ends the answer. status is what the event's type says.
func (d *StreamDecoder) end(status string, resp jsonscan.Value) {
	switch s := d.in.Str(resp.Get("status")); string(s) {
	case "completed", "incomplete", "failed", "cancelled":
		status = string(s)
	case "in_progress", "queued":
		if status == "" {
			status = string(s)
		}
	}
	d.in.Name(resp)
	usage := resp.Get("usage")
	d.begin(usage)
	d.output(resp.Get("output"))
	switch status {
	case "completed", "done", "": // whole
		d.closeCalls(false)
	default:
		d.closeCalls(true)
	}
	d.flush(-1)
	if streamdec.Usage(usage, &d.usage) {
		d.emit(event.Event{Kind: event.Usage, Call: -1, Usage: &d.usage})
	}
	e := event.Event{Kind: event.Finish, Call: -1}
	switch status {
	case "incomplete":
		switch reason := d.in.Str(resp.Get("incomplete_details").Get("reason")); string(reason) {
		case "content_filter":
			e.Why = event.ContentFilter
		case "max_tool_calls":
			e.Why = event.Paused
		default: // max_output_tokens
			e.Why = event.Length
		}
	case "failed":
		e = streamdec.ErrorEvent(resp.Get("error"))
	case "cancelled":
		e = event.Event{Kind: event.Error, Call: -1, Why: event.Canceled, Data: []byte("The response was cancelled.")}
	case "in_progress", "queued":
		e = streamdec.CutEvent()
	default:
		switch {
		case d.complete > 0:
			e.Why = event.ToolCalls
		case d.refused:
			e.Why = event.Refused
		default:
			e.Why = event.Stop
		}
	}
	d.emit(e)
	d.in.Ended = true
}
