// SPDX-License-Identifier: Apache-2.0

package streamdec

import (
	"bytes"
	"io"
	"iter"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/sse"
)

// Decoder is what the stream decoders of all APIs have in common.
type Decoder interface {
	Decode(dst []event.Event, typ, data []byte) ([]event.Event, error)
	Close(dst []event.Event) []event.Event
	// Ended reports that nothing more is to come.
	Ended() bool
}

// Pull returns the events of the stream src. It reads until d has ended or src has. An error of src, of the framing or of
// d is the last element.
//
// A server that was asked for a stream and sent one JSON document is understood: whole decodes it, or says that it is over the limits.
func Pull(src io.Reader, d Decoder, lim *block.Limits, whole func(dst []event.Event, body []byte) ([]event.Event, error)) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		var events []event.Event
		all := func() bool {
			for i := range events {
				if !yield(events[i], nil) {
					return false
				}
			}
			return true
		}
		src, isJSON, err := peek(src)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		if isJSON {
			limit := maxBytes
			if lim != nil {
				limit = or(lim.Body, maxBytes)
			}
			body, err := io.ReadAll(io.LimitReader(src, int64(limit)+1))
			if err == nil {
				events, err = whole(nil, body)
			}
			if all() && err != nil {
				yield(event.Event{}, err)
			}
			return
		}
		// An event at the end without its blank line may be whole, as many servers forget it, or cut.
		end := &eofReader{src: src}
		r := sse.Reader{FlushAtEOF: true}
		if lim != nil {
			r.MaxEvent = lim.Body
		}
		for ev, err := range r.Events(end) {
			if err == nil && ev.Comment {
				continue
			}
			if err == nil {
				events, err = d.Decode(events[:0], ev.Type, ev.Data)
				if !all() {
					return
				}
				if err != nil && end.eof {
					break
				}
			}
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			if d.Ended() {
				break
			}
		}
		events = d.Close(events[:0])
		all()
	}
}

// peek reports whether the first byte of src that is not blank opens a JSON object, which no server-sent event does. The
// reader it returns gives all bytes of src.
func peek(src io.Reader) (io.Reader, bool, error) {
	head := make([]byte, 512)
	n, err := io.ReadAtLeast(src, head, 1)
	if err != nil && err != io.EOF {
		return nil, false, err
	}
	head = head[:n]
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xEF\xBB\xBF")), " \t\r\n")
	return io.MultiReader(bytes.NewReader(head), src), len(text) > 0 && text[0] == '{', nil
}

// eofReader notes the end of src. It never gives bytes together with it.
type eofReader struct {
	src io.Reader
	err error
	eof bool
}

func (r *eofReader) Read(p []byte) (n int, err error) {
	if r.err == nil {
		n, r.err = r.src.Read(p)
		if n > 0 {
			return n, nil
		}
	}
	r.eof = r.err == io.EOF
	return 0, r.err
}
