// SPDX-License-Identifier: Apache-2.0

package streamdec

import (
	"bytes"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/errform"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// ErrorOf returns the error object in root, the document of an event or of a whole body, or root itself if it is one.
// The result is absent if root does not report an error. It accepts the same forms as [apierr.Parse]. It costs a few
// lookups; decoders call it only for events that are not deltas.
func ErrorOf(root jsonscan.Value) jsonscan.Value { return errform.Find(root) }

// ErrorEvent returns the event for a result of [ErrorOf]. The event owns its memory.
func ErrorEvent(v jsonscan.Value) event.Event {
	e := errform.Read(v, 0)
	return event.Event{Kind: event.Error, Call: -1, Why: e.Why, Data: []byte(e.Message), ID: []byte(e.Code)}
}

// ErrorIn returns the event for a server-sent event that is an error: for the error object in root, if any, or else for
// root itself.
func ErrorIn(root jsonscan.Value) event.Event {
	if e := ErrorOf(root); e.Exists() {
		return ErrorEvent(e)
	}
	return ErrorEvent(root)
}

// cut is the message of the error for a stream that ended early.
const cut = "The engine ended before the answer was finished."

// CutError returns the error for a stream that ended early, for encoders.
func CutError() *apierr.Error { return apierr.New(event.EngineFailed, cut) }

// CutEvent returns the event for the same error, for decoders.
func CutEvent() event.Event {
	return event.Event{Kind: event.Error, Call: -1, Why: event.EngineFailed, Data: []byte(cut)}
}

// ErrorLine returns the event for a server-sent event of type error. Its data may be an error object, a JSON string,
// plain text or empty.
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
