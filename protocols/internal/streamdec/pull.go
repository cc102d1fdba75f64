// SPDX-License-Identifier: Apache-2.0

package streamdec

import (
	"bytes"
	"fmt"
	"io"
	"iter"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/sse"
)

// Decoder is implemented by the stream decoders of all APIs.
type Decoder interface {
	Append(dst []event.Event, typ, data []byte) ([]event.Event, error)
	Finish(dst []event.Event) []event.Event
	// Ended reports whether the response has ended, so that later events are ignored.
	Ended() bool
}

// Pull returns the events of the stream src. It reads until d or src has ended. An error of src, of the framing or of d
// is the last element.
//
// If src is one JSON document, although a stream was requested, whole decodes it or returns an error if it exceeds the
// limits.
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
			body, err := io.ReadAll(io.LimitReader(src, int64(MaxBody(lim))+1))
			if err == nil {
				events, err = whole(nil, bytes.TrimPrefix(body, []byte(bom)))
			} else {
				err = fmt.Errorf("read: %w after %d bytes", err, len(body))
			}
			if all() && err != nil {
				yield(event.Event{}, err)
			}
			return
		}
		// An event at the end without its blank line may be complete, as many servers omit the line, or cut off.
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
				events, err = d.Append(events[:0], ev.Type, ev.Data)
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
		events = d.Finish(events[:0])
		all()
	}
}

const bom = "\xEF\xBB\xBF"

// peek reports whether the first byte of src after white space begins a JSON object, which no server-sent event does.
// The reader that it returns reads all bytes of src.
func peek(src io.Reader) (io.Reader, bool, error) {
	head := make([]byte, 512)
	n, err := io.ReadAtLeast(src, head, 1)
	if err != nil && err != io.EOF {
		return nil, false, fmt.Errorf("read: %w before the first byte", err)
	}
	head = head[:n]
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte(bom)), " \t\r\n")
	return io.MultiReader(bytes.NewReader(head), src), len(text) > 0 && text[0] == '{', nil
}

// eofReader records that src has ended. It never returns bytes together with io.EOF.
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
