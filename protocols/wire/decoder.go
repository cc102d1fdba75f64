// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"io"
	"iter"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/chatanswer"
	"github.com/weft-go/weft/protocols/internal/completionsanswer"
	"github.com/weft-go/weft/protocols/internal/messagesanswer"
	"github.com/weft-go/weft/protocols/internal/responsesanswer"
	"github.com/weft-go/weft/protocols/internal/streamdec"
	"github.com/weft-go/weft/protocols/sse"
)

// DecoderOptions configures a [Decoder].
type DecoderOptions struct {
	// Limits bounds the JSON of one server-sent event or of a response that is one JSON document. Only Body (by default
	// 8 MiB for an event, 64 MiB for a document), Depth and Values are used.
	Limits *block.Limits
}

// A Decoder decodes the body of an engine's HTTP response, either a stream of server-sent events or one JSON document,
// to events. A Decoder is not safe for concurrent use.
//
// Data, ID and Usage of the events are views of the Decoder's memory and are valid until the next call.
//
// An error that the server reports becomes an event.Error. If the stream ends early, the Decoder returns a ToolAbort
// for each open call and then an event.Error. Malformed JSON is a *[block.Error]; the Decoder continues with the next
// event.
type Decoder struct {
	in     apiDecoder
	limits *block.Limits

	form form
	sse  sse.Reader
	body []byte // of a document, or the bytes before the form was known
	keep []byte // data of the events that one call returns, except those of its last server-sent event
}

// form is the form of a body.
type form uint8

const (
	unknown form = iota
	stream
	document
)

// apiDecoder is implemented by the decoders of all APIs.
type apiDecoder interface {
	streamdec.Decoder
	AppendWhole(dst []event.Event, body []byte) ([]event.Event, error)
	Reset()
	ID() string
	Model() string
}

// NewDecoder returns a decoder for one response. Nil options mean the defaults.
func (a *API) NewDecoder(opt *DecoderOptions) *Decoder {
	if opt == nil {
		opt = &DecoderOptions{}
	}
	d := &Decoder{in: a.decoder(opt), limits: opt.Limits}
	d.sse.FlushAtEOF = true
	if opt.Limits != nil {
		d.sse.MaxEvent = opt.Limits.Body
	}
	return d
}

func (a *API) decoder(opt *DecoderOptions) apiDecoder {
	switch a.api {
	case block.Chat:
		return chatanswer.NewDecoder(&chatanswer.DecoderOptions{Limits: opt.Limits})
	case block.Responses:
		return responsesanswer.NewDecoder(&responsesanswer.DecoderOptions{Limits: opt.Limits})
	case block.Messages:
		return messagesanswer.NewDecoder(&messagesanswer.DecoderOptions{Limits: opt.Limits})
	}
	return completionsanswer.NewDecoder(&completionsanswer.DecoderOptions{Limits: opt.Limits})
}

// Events returns the events of the HTTP response body src. An error of src or malformed JSON is the last element; the
// error names the API and how much of src was read, and wraps the cause. An event is valid until the next iteration. To
// stop the loop while src blocks, close src.
func (a *API) Events(src io.Reader, opt *DecoderOptions) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		d := a.NewDecoder(opt)
		streamdec.Pull(src, d.in, d.limits, d.in.AppendWhole)(func(ev event.Event, err error) bool {
			if err != nil {
				err = fmt.Errorf("wire: %s response: %w", a, err)
			}
			return yield(ev, err)
		})
	}
}

// Reset makes the Decoder ready for another response. It keeps its memory.
func (d *Decoder) Reset() {
	d.in.Reset()
	d.sse.Reset()
	d.form, d.body = unknown, d.body[:0]
}

// ID returns the ID of the response as sent by the server, or "" if it has not arrived.
func (d *Decoder) ID() string { return d.in.ID() }

// Model returns the model as sent by the server, or "" if it has not arrived.
func (d *Decoder) Model() string { return d.in.Model() }

// Dropped returns the number of deltas so far that did not belong to an open call or choice. Only the decoders of the
// Chat and Completions APIs count them; for other APIs it is 0.
func (d *Decoder) Dropped() int {
	if c, ok := d.in.(interface{ Dropped() int }); ok {
		return c.Dropped()
	}
	return 0
}

// TokenIDs returns the token IDs of a choice in the last server-sent event of a completions stream, if the engine sends
// them (vLLM: return_token_ids). They are valid until the next call. A call of Append may decode several server-sent
// events, whose IDs are then lost except for the last one's: to receive all of them, split the body with an
// [sse.Reader] and call AppendEvent and TokenIDs for each.
func (d *Decoder) TokenIDs(choice int32) []uint32 {
	if c, ok := d.in.(*completionsanswer.Decoder); ok {
		return c.TokenIDs(choice)
	}
	return nil
}

// AppendEvent decodes one server-sent event with the given type, which may be empty, and data, for callers that split
// the body themselves; they must skip comments (sse.Event.Comment). Data of the events may be views of data.
func (d *Decoder) AppendEvent(dst []event.Event, typ, data []byte) ([]event.Event, error) {
	d.form = stream
	return d.in.Append(dst, typ, data)
}

// Append decodes the next piece of the body, split anywhere, and appends its events to dst. After an error, the next
// call, possibly with an empty body, continues with the rest.
func (d *Decoder) Append(dst []event.Event, body []byte) ([]event.Event, error) {
	switch d.form {
	case unknown:
		d.body = append(d.body, body...)
		if d.form = formOf(d.body); d.form != stream {
			return dst, nil
		}
		body = d.body
		d.body = d.body[:0]
	case document:
		if room := streamdec.MaxBody(d.limits) + 1 - len(d.body); room > 0 { // one more byte shows that the limit was exceeded
			d.body = append(d.body, body[:min(room, len(body))]...)
		}
		return dst, nil
	}
	d.sse.Add(body)
	return d.drain(dst, false)
}

// Finish ends the body and appends the remaining events.
func (d *Decoder) Finish(dst []event.Event) ([]event.Event, error) {
	if d.form == document {
		return d.in.AppendWhole(dst, bytes.TrimPrefix(d.body, []byte(bom)))
	}
	from := len(dst)
	d.sse.Finish()
	dst, err := d.drain(dst, true)
	if err != nil {
		return dst, err
	}
	d.own(dst[from:])
	return d.in.Finish(dst), nil
}

// drain decodes the buffered server-sent events. At the end of the body, a malformed event is ignored, because it was
// cut off.
func (d *Decoder) drain(dst []event.Event, end bool) ([]event.Event, error) {
	d.keep = d.keep[:0]
	from := len(dst)
	for !d.in.Ended() {
		ev, ok, err := d.sse.Next()
		if err != nil || !ok {
			return dst, err
		}
		if ev.Comment {
			continue
		}
		d.own(dst[from:])
		from = len(dst)
		if dst, err = d.in.Append(dst, ev.Type, ev.Data); err != nil && !end {
			return dst, err
		}
	}
	return dst, nil
}

// own copies the memory of events, which the next server-sent event would overwrite.
func (d *Decoder) own(events []event.Event) {
	for i := range events {
		e := &events[i]
		n := len(d.keep)
		d.keep = append(append(d.keep, e.Data...), e.ID...)
		if k := n + len(e.Data); e.Data != nil {
			e.Data = d.keep[n:k:k]
		}
		if k := len(d.keep); e.ID != nil {
			e.ID = d.keep[k-len(e.ID) : k : k]
		}
		if e.Usage != nil {
			u := *e.Usage
			e.Usage = &u
		}
	}
}

const bom = "\xEF\xBB\xBF"

// formOf returns the form of a body that begins with head.
func formOf(head []byte) form {
	if len(head) < len(bom) && bytes.HasPrefix([]byte(bom), head) {
		return unknown
	}
	switch text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte(bom)), " \t\r\n"); {
	case len(text) == 0:
		return unknown
	case text[0] == '{':
		return document
	}
	return stream
}
