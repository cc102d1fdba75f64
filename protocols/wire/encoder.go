// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/chatanswer"
	"github.com/weft-go/weft/protocols/internal/completionsanswer"
	"github.com/weft-go/weft/protocols/internal/messagesanswer"
	"github.com/weft-go/weft/protocols/internal/responsesanswer"
	"github.com/weft-go/weft/protocols/internal/streamdec"
	"github.com/weft-go/weft/protocols/sse"
)

// An Encoder encodes events as the body of an HTTP response: server-sent events if the request asks for a stream, else
// one JSON document, which Finish appends. An Encoder is not safe for concurrent use.
//
// The response is complete if each choice has an event.Finish. [Encoder.Finish] ends a choice that lacks one as if the
// model had stopped, except that an open call or the absence of any output is an error: the response was cut off. The
// finish reason is tool_calls if the model stopped and a call is complete. The client gets the counts of the last
// event.Usage, or of the event.Start.
//
// An error, from Fail, an event.Error or a response that was cut off, ends the response. While Started returns false, a
// server can still send the error with its own status:
//
//	out = enc.Finish(out[:0], events...)
//	if err := enc.Err(); err != nil && !enc.Started() {
//		api.WriteError(w, err)
//		return
//	}
//	w.Write(out)
type Encoder struct {
	set *settings

	// One of these encodes a stream. They are not an interface value, because events would then escape to the heap.
	kind        block.API // None if not streamed
	chat        *chatanswer.Encoder
	responses   *responsesanswer.Encoder
	messages    *messagesanswer.Encoder
	completions *completionsanswer.Encoder

	whole event.Collector
	done  bool
	err   *apierr.Error
}

// NewEncoder returns an encoder for the response to req, which may be of any API. Nil options mean the defaults. The
// caller must not edit req while using the Encoder.
func (a *API) NewEncoder(req *block.Request, opt *Options) *Encoder {
	e := &Encoder{set: a.settings(req, opt)}
	if !req.Params().Stream {
		return e
	}
	e.kind = a.api
	switch a.api {
	case block.Chat:
		e.chat = chatanswer.NewEncoder(e.set.chat())
	case block.Responses:
		e.responses = responsesanswer.NewEncoder(e.set.responses())
	case block.Messages:
		e.messages = messagesanswer.NewEncoder(e.set.messages())
	default:
		e.completions = completionsanswer.NewEncoder(e.set.completions())
	}
	return e
}

// streamEncoder is implemented by the stream encoders of all APIs.
type streamEncoder interface {
	Finish(dst []byte) []byte
	Fail(dst []byte, e *apierr.Error) []byte
	AppendKeepAlive(dst []byte) []byte
	Started() bool
	Err() *apierr.Error
	Dropped() int
}

// stream returns the stream encoder, or nil if the response is not streamed.
func (e *Encoder) stream() streamEncoder {
	switch e.kind {
	case block.Chat:
		return e.chat
	case block.Responses:
		return e.responses
	case block.Messages:
		return e.messages
	case block.Completions:
		return e.completions
	}
	return nil
}

// ContentType returns the media type of the response.
func (e *Encoder) ContentType() string {
	if e.kind == block.None {
		return "application/json"
	}
	return sse.ContentType
}

// Started reports whether part of the response was appended, so that an error can no longer have its own HTTP status.
// The output of Fail and AppendKeepAlive does not count.
func (e *Encoder) Started() bool {
	if s := e.stream(); s != nil {
		return s.Started()
	}
	return e.done && e.err == nil
}

// Err returns the error that ended the response, an *[apierr.Error], or nil.
func (e *Encoder) Err() error {
	err := e.err
	if s := e.stream(); s != nil {
		err = s.Err()
	}
	if err == nil {
		return nil
	}
	return err
}

// Append encodes events and appends the bytes for the client to dst; if the response is not streamed, it appends
// nothing. Events after the end and those that the API cannot express are skipped; see [Encoder.Dropped]. The Encoder
// does not retain the events. A text delta does not allocate if dst has the capacity, except that the Responses API
// collects the text.
func (e *Encoder) Append(dst []byte, events ...event.Event) []byte {
	switch e.kind {
	case block.Chat:
		return e.chat.Append(dst, events...)
	case block.Responses:
		return e.responses.Append(dst, events...)
	case block.Messages:
		return e.messages.Append(dst, events...)
	case block.Completions:
		return e.completions.Append(dst, events...)
	}
	for i := range events {
		if !e.done && e.whole.Err == event.None {
			e.whole.Add(events[i])
		}
	}
	return dst
}

// Finish adds the last events, if any, and appends the rest of the response.
func (e *Encoder) Finish(dst []byte, events ...event.Event) []byte {
	dst = e.Append(dst, events...)
	if e.kind == block.Responses {
		e.responses.SetCompletedAt(e.set.Now().Unix())
	}
	if s := e.stream(); s != nil {
		return s.Finish(dst)
	}
	if e.done {
		return dst
	}
	return e.finishWhole(dst)
}

// finishWhole appends the collected response.
func (e *Encoder) finishWhole(dst []byte) []byte {
	c := &e.whole
	if c.Err != event.None {
		return e.Fail(dst, &apierr.Error{Why: c.Err, Message: c.Message, Code: c.Code})
	}
	isOpen := func(b event.Block) bool {
		return b.Kind == event.ToolStart && !b.Flags.Has(event.Complete) && !e.set.left(b.Flags)
	}
	for i := range c.Answers {
		a := &c.Answers[i]
		if a.Finish == event.None {
			if len(a.Blocks) == 0 || slices.ContainsFunc(a.Blocks, isOpen) {
				return e.Fail(dst, streamdec.CutError())
			}
			a.Finish = event.Stop
		}
	}
	if len(c.Answers) == 0 {
		return e.Fail(dst, streamdec.CutError())
	}
	e.done = true
	switch e.set.api.api {
	case block.Chat:
		return chatanswer.AppendResponse(dst, c, e.set.chat())
	case block.Responses:
		opt := e.set.responses()
		opt.CompletedAt = e.set.Now().Unix()
		return responsesanswer.AppendResponse(dst, c, opt)
	case block.Messages:
		return messagesanswer.AppendResponse(dst, c, e.set.messages())
	}
	return completionsanswer.AppendResponse(dst, c, e.set.completions())
}

// Fail ends the response with err, which may be any error; see [apierr.Wrap]. For a stream it appends the API's error
// event. Otherwise it appends the body of an error response or, for the Responses API, a failed response with the items
// so far. After the end of the response it does nothing.
func (e *Encoder) Fail(dst []byte, err error) []byte {
	if s := e.stream(); s != nil {
		return s.Fail(dst, apierr.Wrap(err))
	}
	if e.done {
		return dst
	}
	e.done, e.err = true, apierr.Wrap(err)
	if e.set.api == Responses {
		return responsesanswer.AppendFailed(dst, &e.whole, e.set.responses(), e.err)
	}
	return e.set.api.AppendError(dst, err)
}

// AppendKeepAlive appends data that all clients skip: a comment or, in a messages stream that has begun, a ping. Write
// it if nothing was sent for some seconds. If the response is not streamed, it appends nothing.
func (e *Encoder) AppendKeepAlive(dst []byte) []byte {
	if s := e.stream(); s != nil {
		return s.AppendKeepAlive(dst)
	}
	return dst
}

// Dropped returns the number of events so far that were left out of the stream because the API cannot express them. It
// is 0 if the response is not streamed.
func (e *Encoder) Dropped() int {
	if s := e.stream(); s != nil {
		return s.Dropped()
	}
	return 0
}
