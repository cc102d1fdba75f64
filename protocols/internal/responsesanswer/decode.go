// SPDX-License-Identifier: Apache-2.0

package responsesanswer

import (
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// This file is structured as follows: options, the Decoder and its exported methods, the event types, the response
// object that ends a stream. Items are in decode_items.go, text in decode_text.go, calls in decode_calls.go.

// DecoderOptions configures a [Decoder].
type DecoderOptions struct {
	// ToolName returns the model's name of a tool, given its namespace and name in the response. It is the inverse of
	// Options.Namespace. If nil, the namespace is ignored.
	ToolName func(namespace, name string) string
	// Limits bounds the JSON of one event: Body (64 MiB; with streamdec.Pull 8 MiB), Depth (128) and Values (1,048,576)
	// are used. Nil means these defaults.
	Limits *block.Limits
}

// Decoder decodes the server-sent events of a streamed response. It supports all event types of the API and streams
// that lack some events. Create one with [NewDecoder]. A Decoder is not safe for concurrent use.
//
// # Memory
//
// Data of an event is a view of the data of the server-sent event or of the Decoder's memory. It is valid until the
// next call and while that data is not modified. The Decoder keeps 100 to 400 bytes for each item and part, at most
// 4096 of them, including the length and hash of its text, and held arguments. A text delta does not allocate.
type Decoder struct {
	opt DecoderOptions
	in  streamdec.Typed

	refused  bool
	complete int   // calls
	ordinals int32 // of calls
	usage    event.Tokens

	waiting int // bytes of arguments held by calls

	items []inItem
	texts []inPart
	calls []inCall
	open  []int32 // items that are not done, oldest first
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
	d.fail(streamdec.CutEvent())
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
	*d = Decoder{opt: d.opt, in: d.in, items: d.items[:0], texts: d.texts[:0], calls: d.calls[:0], open: d.open[:0]}
}

// emit appends an event, after the Start if that was not appended.
func (d *Decoder) emit(e event.Event) {
	d.begin(jsonscan.Value{})
	d.in.Out = append(d.in.Out, e)
}

// begin appends the Start, once, with the usage if known.
func (d *Decoder) begin(usage jsonscan.Value) {
	if !d.in.Started {
		var counts event.Tokens
		known := streamdec.Usage(usage, &counts)
		d.in.Begin(counts, known)
	}
}

// fail ends the response with an error. It does not require a Start.
func (d *Decoder) fail(e event.Event) {
	d.closeCalls(true)
	d.in.Ended = true
	d.in.Out = append(d.in.Out, e)
}

// index returns an index, or -1 if absent.
func (d *Decoder) index(v jsonscan.Value) int64 {
	if n, ok := v.Int(); ok && n >= 0 {
		return n
	}
	if !v.IsNull() {
		d.in.Wrong(v, "an index")
	}
	return -1
}

// event decodes an event according to its type.
func (d *Decoder) event(name []byte, root jsonscan.Value) {
	switch string(name) {
	case "response.output_text.delta":
		d.textDelta(root, inText)
	case "response.reasoning_text.delta", "response.reasoning.delta": // the latter in old previews
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
		// Proxies may send an error in the form of another API in the middle of a stream.
		if k := root.Get("error").Kind(); k == jsonscan.Object || k == jsonscan.String {
			d.fail(streamdec.ErrorIn(root))
		}
	}
}

// end decodes the response object that ends the response. status is the status according to the event's type.
func (d *Decoder) end(status string, resp jsonscan.Value) {
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
