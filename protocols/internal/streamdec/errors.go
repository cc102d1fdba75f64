// SPDX-License-Identifier: Apache-2.0

package streamdec

import (
	"bytes"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// ErrorOf finds the error object that root, the document of an event or a whole body, is or holds, absent if it tells of
// none. The forms are those of [apierr.Find]. It costs a few lookups: decoders call it for what is no delta.
func ErrorOf(root jsonscan.Value) jsonscan.Value { return apierr.Find(root) }

// ErrorEvent returns the event for an error that [ErrorOf] found. It owns its memory.
func ErrorEvent(v jsonscan.Value) event.Event {
	e := apierr.Read(v)
	return event.Event{Kind: event.Error, Call: -1, Why: e.Why, Data: []byte(e.Message), ID: []byte(e.Code)}
}

// ErrorIn returns the event for an event that is an error: the one it holds, or else itself.
func ErrorIn(root jsonscan.Value) event.Event {
	if e := ErrorOf(root); e.Exists() {
		return ErrorEvent(e)
	}
	return ErrorEvent(root)
}

// cut is the message of the error for a stream that ended before its answer did.
const cut = "The engine ended before the answer was finished."

// CutError returns the error for a stream that ended before its answer did, for encoders.
func CutError() *apierr.Error { return apierr.New(event.EngineFailed, cut) }

// CutEvent is CutError as an event, for decoders.
func CutEvent() event.Event {
	return event.Event{Kind: event.Error, Call: -1, Why: event.EngineFailed, Data: []byte(cut)}
}

// ErrorLine returns the event for a server-sent event of the type error, whose data may be an error object, a JSON string,
// plain text or nothing.
func ErrorLine(d *Doc, data []byte, lim *block.Limits) event.Event {
	root, err := d.Parse(data, lim)
	if err == nil {
		if e := ErrorOf(root); e.Exists() {
			return ErrorEvent(e)
		}
		if text := d.Text(root); len(text) > 0 {
			data = text
		}
	}
	if data = bytes.TrimSpace(data); len(data) == 0 {
		data = []byte(Aborted)
	}
	return event.Event{Kind: event.Error, Call: -1, Why: event.EngineFailed, Data: bytes.ToValidUTF8(data, []byte("\uFFFD"))}
}
