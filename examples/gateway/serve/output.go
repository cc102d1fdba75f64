// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net/http"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// An output encodes the events of a response for the client. It holds all that each event touches in one place, because
// with many streams at once, little of a stream is in the processor's cache when its next event arrives.
type output interface {
	send(events ...event.Event) // encodes events
	flush() error               // writes the encoded events, if any; its first error is final
	restart(start event.Event)  // drops the encoded events and begins again
}

// A wholeOutput writes one body at the end.
type wholeOutput struct {
	c    *call
	enc  *wire.Encoder
	form func(body []byte) ([]byte, error) // changes the form of the body; nil keeps it
}

func (o *wholeOutput) send(events ...event.Event) { o.enc.Append(nil, events...) }

func (o *wholeOutput) flush() error { return nil }

func (o *wholeOutput) restart(start event.Event) {
	o.enc = o.c.encoder()
	o.enc.Append(nil, start)
}

// write writes the body. An error is of the response, or errClientGone.
func (o *wholeOutput) write(w http.ResponseWriter) error {
	body := o.enc.Finish(nil)
	if err := o.enc.Err(); err != nil {
		return err
	}
	o.c.keep(body)
	if o.form != nil {
		var err error
		if body, err = o.form(body); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", o.enc.ContentType())
	if _, err := w.Write(body); err != nil {
		return fmt.Errorf("%w: %w", errClientGone, err)
	}
	return nil
}

// A streamOutput writes server-sent events.
type streamOutput struct {
	c      *call
	enc    *wire.Encoder
	frames []byte // encoded events
	due    bool   // there were events; frames may still be empty, as the first ones only open the stream
	failed error
	w      streamWriter
}

func (o *streamOutput) send(events ...event.Event) {
	o.frames, o.due = o.enc.Append(o.frames, events...), true
}

func (o *streamOutput) flush() error {
	if o.due && o.failed == nil {
		o.c.sent = o.c.sent || len(o.frames) > 0
		o.failed = o.w.write(o.frames)
	}
	o.frames, o.due = o.frames[:0], false
	return o.failed
}

func (o *streamOutput) restart(start event.Event) {
	o.enc, o.frames, o.due = o.c.encoder(), o.frames[:0], false
	o.w.reopen(o.enc.Append(nil, start))
}
